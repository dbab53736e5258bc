//! `POST /v1/messages`: accepts one mail. This is the hot path: it does only what the intake needs.

use std::time::Instant;

use axum::{
    extract::{Request, State},
    http::HeaderMap,
    response::Response,
};
use bytes::Bytes;
use postway_domain::message::OnDoubt;
use postway_intake::{AcceptReceipt, RequestContext, RequestTrace};

use crate::{
    auth::Sender,
    http::{
        body,
        error::ApiError,
        query::{QueryParameters, flag},
        request_id::RequestId,
    },
    message::{
        AcceptedView,
        submit::{accept_raw, request_schema::MessageSchema},
    },
    state::{AppState, SharedState},
};

/// The longest idempotency key.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;

/// Send a mail
///
/// The answer comes once the mail is durable. The same id or `Idempotency-Key` with the same body gives the
/// same answer again and sends nothing twice; with another body it is 409. A ready-made mail may be sent as
/// `message/rfc822`, with the query of `POST /v1/messages/raw`.
#[utoipa::path(
    post,
    path = "/v1/messages",
    operation_id = "sendMessage",
    tag = "messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Identifies this request, so that a repeat is recognised"),
        ("X-Postway-On-Doubt" = Option<String>, Header, description = "`resend` or `hold` for messages that do not set it themselves"),
        ("dry_run" = Option<bool>, Query, description = "Only check; store nothing. Files are fetched, so at most four dry runs of a tenant run at once; others are 503"),
        ("any_subject" = Option<bool>, Query, description = "Accept a subject as long as headers may be, unless the tenant has set a limit"),
    ),
    request_body(content(
        (MessageSchema = "application/json"),
        (String = "message/rfc822"),
    )),
    responses(
        (status = 202, description = "Durable", body = AcceptedView),
        (status = 200, description = "A dry run passed; nothing is stored", body = AcceptedView),
    )
)]
pub(crate) async fn accept(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    if body::is_mail(request.headers()) {
        return accept_raw::take(&app, caller, &id, request).await;
    }
    let (parts, body) = request.into_parts();
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let dry_run = query.parse("dry_run", flag).unwrap_or(false);
    let any_subject = query.parse("any_subject", flag).unwrap_or(false);
    query.finish()?;
    let context = RequestContext { any_subject, ..context(caller, &id, &parts.headers, dry_run)? };
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let receipt = take(&app, &context, bytes).await?;
    Ok(crate::message::receipt(receipt, dry_run))
}

/// Accepts one message, from any call.
pub(crate) async fn take(
    app: &AppState,
    context: &RequestContext,
    bytes: Bytes,
) -> Result<AcceptReceipt, ApiError> {
    let timed = AcceptTimer::start();
    let receipt = app.door.accept_json(context, bytes).await?;
    timed.stop();
    Ok(receipt)
}

/// The request's context for the intake.
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
        refuses_capture: false,
        any_subject: false,
        spoken_times: false,
        on_doubt: on_doubt(headers)?,
        restrictions: caller.restrictions,
        trace: RequestTrace::Decided(id.trace()),
    })
}

/// The request's context for the intake, for a call of a compatibility API.
pub(crate) fn compat_context(
    sender: Sender,
    id: &RequestId,
    headers: &HeaderMap,
) -> Result<RequestContext, ApiError> {
    Ok(RequestContext { refuses_capture: true, ..context(sender, id, headers, false)? })
}

/// The header that sets `on_doubt` for every message of a call: a compatibility API may have no field for it.
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

/// Measures how long the intake takes: checking, composing and storing, without the time the client takes to
/// send.
pub(crate) struct AcceptTimer(Instant);

impl AcceptTimer {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn stop(self) {
        metrics::histogram!("postway_accept_seconds").record(self.0.elapsed().as_secs_f64());
    }
}
