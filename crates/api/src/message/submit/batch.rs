//! `POST /v1/messages/batch`: accepts many mails, each with its own answer.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use bytes::Bytes;
use postway_domain::MessageUid;
use postway_intake::{AcceptReceipt, BatchReceipt, RejectedItem, RequestContext};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Sender,
    http::{
        body,
        error::{ApiError, ErrorBody},
        query::{QueryParameters, flag},
        request_id::RequestId,
    },
    message::submit::{
        accept::{AcceptTimer, context},
        request_schema::BatchSchema,
    },
    state::{AppState, SharedState},
};

/// The result of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchResult)]
pub(crate) struct BatchResultView {
    /// How many messages are durable.
    accepted: usize,
    /// How many were refused.
    rejected: usize,
    /// One answer per message, in their order.
    results: Vec<BatchItemView>,
}

/// The result for one message of a batch: a `status`, or an `error`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = BatchItem)]
pub(crate) struct BatchItemView {
    /// Your id of the message, or its uid.
    id: Option<String>,
    /// The message's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    uid: Option<MessageUid>,
    /// The message's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// True if the message was accepted before, by its id or key; absent if it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
}

/// Send many mails
///
/// At most 1,000, whose composed mails have at most 64 MiB together. `defaults` supplies fields that a
/// message leaves out. A refused message does not stop the others.
#[utoipa::path(
    post,
    path = "/v1/messages/batch",
    operation_id = "sendBatch",
    tag = "messages",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Identifies this batch, so that a repeat is recognised"),
        ("X-Postway-On-Doubt" = Option<String>, Header, description = "`resend` or `hold` for messages that do not set it themselves"),
        ("dry_run" = Option<bool>, Query, description = "Only check; store nothing"),
        ("any_subject" = Option<bool>, Query, description = "Accept subjects as long as headers may be, unless the tenant has set a limit"),
    ),
    request_body = BatchSchema,
    responses(
        (status = 202, description = "The accepted ones are durable", body = BatchResultView),
        (status = 200, description = "A dry run; nothing is stored", body = BatchResultView),
    )
)]
pub(crate) async fn accept(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<BatchResultView>), ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = QueryParameters::from_uri(&parts.uri)?;
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
    Ok((status, Json(BatchResultView { accepted, rejected, results })))
}

/// Accepts messages that a compatibility API has translated, each by itself.
pub(crate) async fn take_each(
    app: &AppState,
    context: &RequestContext,
    messages: Vec<Bytes>,
) -> Result<BatchReceipt, ApiError> {
    let timed = AcceptTimer::start();
    let receipt = app.door.accept_each(context, messages).await?;
    timed.stop();
    Ok(receipt)
}

/// Accepts all of them, or none if one is refused.
pub(crate) async fn take_whole(
    app: &AppState,
    context: &RequestContext,
    messages: Vec<Bytes>,
) -> Result<BatchReceipt, ApiError> {
    let timed = AcceptTimer::start();
    let receipt = app.door.accept_all_or_none(context, messages).await?;
    timed.stop();
    Ok(receipt)
}

fn item(result: Result<AcceptReceipt, RejectedItem>) -> BatchItemView {
    match result {
        Ok(AcceptReceipt { id, uid, status, is_repeat }) => BatchItemView {
            id: Some(id),
            uid: Some(uid),
            status: Some(status),
            repeated: is_repeat.then_some(true),
            error: None,
        },
        Err(RejectedItem { id, refusal }) => BatchItemView {
            id,
            error: Some(ApiError::from(refusal).into_body(None)),
            ..BatchItemView::default()
        },
    }
}
