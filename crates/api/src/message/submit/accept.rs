//! `POST /v1/messages`: one mail through the door. The hot path: nothing here but what the door needs to know.

use std::time::Instant;

use axum::{
    extract::{Request, State},
    http::HeaderMap,
    response::Response,
};
use bytes::Bytes;
use postway_domain::message::OnDoubt;
use postway_intake::{Receipt, RequestContext};

use crate::{
    auth::Sender,
    http::{
        body,
        error::ApiError,
        query::{Parameters, flag},
        request_id::RequestId,
    },
    message::{
        ReceiptView,
        submit::{accept_raw, request_schema::MessageRequest},
    },
    state::{App, Shared},
};

/// The longest idempotency key.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;

/// Send a mail
///
/// The answer comes once the mail is durable. The same id or `Idempotency-Key` with the same body gives the same answer
/// again and sends nothing twice; with another body it is 409. A ready-made mail may come as `message/rfc822`, with the query
/// of `POST /v1/messages/raw`.
#[utoipa::path(
    post,
    path = "/v1/messages",
    operation_id = "sendMessage",
    tag = "messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Names this request, for repeats"),
        ("X-Postway-On-Doubt" = Option<String>, Header, description = "`resend` or `hold` for mail that does not say it itself"),
        ("dry_run" = Option<bool>, Query, description = "Only check; store nothing. Files are fetched: for four dry runs of a tenant at once, others are 503"),
        ("any_subject" = Option<bool>, Query, description = "Take a subject as long as headers may be, where the tenant has set no bound of its own"),
    ),
    request_body(content(
        (MessageRequest = "application/json"),
        (String = "message/rfc822"),
    )),
    responses(
        (status = 202, description = "Durable", body = ReceiptView),
        (status = 200, description = "A dry run passed; nothing is stored", body = ReceiptView),
    )
)]
pub(crate) async fn accept(
    State(app): State<Shared>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    if body::is_mail(request.headers()) {
        return accept_raw::take(&app, caller, &id, request).await;
    }
    let (parts, body) = request.into_parts();
    let mut query = Parameters::of(&parts.uri)?;
    let dry_run = query.parse("dry_run", flag).unwrap_or(false);
    let any_subject = query.parse("any_subject", flag).unwrap_or(false);
    query.finish()?;
    let context = RequestContext { any_subject, ..context(caller, &id, &parts.headers, dry_run)? };
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let receipt = take(&app, &context, bytes).await?;
    Ok(crate::message::receipt(receipt, dry_run))
}

/// Takes one message, whichever call brought it.
pub(crate) async fn take(app: &App, context: &RequestContext, bytes: Bytes) -> Result<Receipt, ApiError> {
    let timed = AcceptTimer::start();
    let receipt = app.door.accept_json(context, bytes).await?;
    timed.stop();
    Ok(receipt)
}

/// Who brings a message, as the door wants to know it.
pub(crate) fn context(
    Sender(caller): Sender,
    id: &RequestId,
    headers: &HeaderMap,
    dry_run: bool,
) -> Result<RequestContext, ApiError> {
    Ok(RequestContext {
        tenant: caller.tenant,
        request_id: id.as_str().to_owned(),
        idempotency_key: idempotency_key(headers)?,
        dry_run,
        must_leave: false,
        any_subject: false,
        spoken_times: false,
        on_doubt: on_doubt(headers)?,
        restrictions: caller.restrictions,
    })
}

/// The same, at a door of another system.
pub(crate) fn door_context(
    sender: Sender,
    id: &RequestId,
    headers: &HeaderMap,
) -> Result<RequestContext, ApiError> {
    Ok(RequestContext { must_leave: true, ..context(sender, id, headers, false)? })
}

/// What a call says of all that it brings: callers of a compatible door may have no field to say it in.
fn on_doubt(headers: &HeaderMap) -> Result<Option<OnDoubt>, ApiError> {
    const NAME: &str = "X-Postway-On-Doubt";
    let Some(value) = headers.get(NAME) else {
        return Ok(None);
    };
    let word = value.to_str().map_err(|_| OnDoubt::WORDS).and_then(|word| word.trim().parse());
    word.map(Some).map_err(|problem| ApiError::field(NAME, problem))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len()) && !key.contains('\t') => {
            Ok(Some(key.to_owned()))
        }
        _ => Err(ApiError::field(
            "Idempotency-Key",
            format!("must be 1 to {IDEMPOTENCY_KEY_BYTES_MAX} printable ASCII characters"),
        )),
    }
}

/// Measures how long the door takes: checking, composing and making durable, without the client's own pace.
pub(crate) struct AcceptTimer(Instant);

impl AcceptTimer {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn stop(self) {
        metrics::histogram!("postway_accept_seconds").record(self.0.elapsed().as_secs_f64());
    }
}
