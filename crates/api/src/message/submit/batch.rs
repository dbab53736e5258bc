//! `POST /v1/messages/batch`: many mails through the door, each with its own answer.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use bytes::Bytes;
use postway_domain::MessageUid;
use postway_intake::{BatchReceipt, Receipt, RejectedItem, RequestContext};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Sender,
    http::{
        body,
        error::{ApiError, ErrorBody},
        query::{Parameters, flag},
        request_id::RequestId,
    },
    message::submit::{
        accept::{AcceptTimer, context},
        request_schema::BatchRequest,
    },
    state::{App, Shared},
};

/// What became of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchResult)]
pub(crate) struct BatchView {
    /// How many are durable.
    accepted: usize,
    /// How many were refused.
    rejected: usize,
    /// One answer per message, in their order.
    results: Vec<BatchItem>,
}

/// What became of one message of a batch: a `status`, or an `error`.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct BatchItem {
    /// Your id of it, or its uid.
    id: Option<String>,
    /// Its own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    uid: Option<MessageUid>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// True where it was here already, by its id or its key; absent where it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// Send many mails
///
/// At most 1,000, whose mails have at most 64 MiB together once they are composed. `defaults` fills what a message leaves out. A refused
/// message does not stop the others.
#[utoipa::path(
    post,
    path = "/v1/messages/batch",
    operation_id = "sendBatch",
    tag = "messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Names this batch, for repeats"),
        ("X-Postway-On-Doubt" = Option<String>, Header, description = "`resend` or `hold` for mail that does not say it itself"),
        ("dry_run" = Option<bool>, Query, description = "Only check; store nothing"),
        ("any_subject" = Option<bool>, Query, description = "Take subjects as long as headers may be, where the tenant has set no bound of its own"),
    ),
    request_body = BatchRequest,
    responses(
        (status = 202, description = "The accepted ones are durable", body = BatchView),
        (status = 200, description = "A dry run; nothing is stored", body = BatchView),
    )
)]
pub(crate) async fn accept(
    State(app): State<Shared>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<BatchView>), ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = Parameters::of(&parts.uri)?;
    let dry_run = query.parse("dry_run", flag).unwrap_or(false);
    let any_subject = query.parse("any_subject", flag).unwrap_or(false);
    query.finish()?;
    let context = RequestContext { any_subject, ..context(caller, &id, &parts.headers, dry_run)? };
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let timed = AcceptTimer::start();
    let BatchReceipt { accepted, rejected, results } = app.door.accept_batch(&context, bytes).await?;
    timed.stop();
    let results = results.into_iter().map(item).collect();
    let status = if dry_run { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(BatchView { accepted, rejected, results })))
}

/// Takes many messages that another system's door has translated.
pub(crate) async fn take_each(
    app: &App,
    context: &RequestContext,
    messages: Vec<Bytes>,
) -> Result<BatchReceipt, ApiError> {
    let timed = AcceptTimer::start();
    let receipt = app.door.accept_each(context, messages).await?;
    timed.stop();
    Ok(receipt)
}

/// The same of all of them, or of none where one is refused.
pub(crate) async fn take_whole(
    app: &App,
    context: &RequestContext,
    messages: Vec<Bytes>,
) -> Result<BatchReceipt, ApiError> {
    let timed = AcceptTimer::start();
    let receipt = app.door.accept_whole(context, messages).await?;
    timed.stop();
    Ok(receipt)
}

fn item(result: Result<Receipt, RejectedItem>) -> BatchItem {
    match result {
        Ok(Receipt { id, uid, status, is_repeat }) => BatchItem {
            id: Some(id),
            uid: Some(uid),
            status: Some(status),
            repeated: is_repeat.then_some(true),
            error: None,
        },
        Err(RejectedItem { id, refusal }) => {
            BatchItem { id, error: Some(ApiError::from(refusal).into_body(None)), ..BatchItem::default() }
        }
    }
}
