//! `POST /v1/messages/{id}/cancel`, `/retry` and `/resolve`: an operator's word on one message.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::message::Resolution;
use serde_json::Value;

use super::{GivenId, view::Summary};
use crate::{
    auth::Sender,
    body,
    error::{ApiError, FieldError},
    operate::{Asked, operate},
    request_id::RequestId,
    schema::ResolveRequest,
    state::Shared,
};

/// Cancel a message
///
/// Stops a message that is not on the wire yet; 409 otherwise. One that some recipients have got already stays `sent`,
/// or `in_doubt` where they may have, and is not sent to the others.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/cancel",
    operation_id = "cancelMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "Nobody else is sent to", body = Summary))
)]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
) -> Result<Json<Summary>, ApiError> {
    operate(&app, &caller.tenant, &id, Asked::Cancel, &request_id).await.map(Json)
}

/// Send a message now
///
/// Puts a failed message back in the queue with all its retries, for the recipients that failed; one that waits for its
/// next attempt or for its `send_at` becomes due now. 409 in any other state.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/retry",
    operation_id = "retryMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "It is in the queue", body = Summary))
)]
pub(crate) async fn retry(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
) -> Result<Json<Summary>, ApiError> {
    operate(&app, &caller.tenant, &id, Asked::Replay, &request_id).await.map(Json)
}

/// Settle a message in doubt
///
/// The mail went out and the relay's answer was lost. Say that it was `sent`, that it `failed`, or `resend` it. The word
/// is about the recipients in doubt; others that are still open are sent to.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/resolve",
    operation_id = "resolveMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    request_body = ResolveRequest,
    responses((status = 200, description = "The doubt is settled", body = Summary))
)]
pub(crate) async fn resolve(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<Summary>, ApiError> {
    let resolution = resolution(body::json_object(request).await?)?;
    operate(&app, &caller.tenant, &id, Asked::Resolve(resolution), &request_id).await.map(Json)
}

fn resolution(mut body: serde_json::Map<String, Value>) -> Result<Resolution, ApiError> {
    let outcome = body.remove("outcome");
    let mut wrong: Vec<FieldError> =
        body.keys().map(|name| FieldError::new(name, "is not a field of this call")).collect();
    let resolution = match outcome.as_ref().and_then(Value::as_str) {
        Some("sent") => Some(Resolution::Sent),
        Some("failed") => Some(Resolution::Failed),
        Some("resend") => Some(Resolution::Resend),
        _ => None,
    };
    if resolution.is_none() {
        wrong.push(FieldError::new("outcome", "must be sent, failed or resend"));
    }
    match resolution {
        Some(resolution) if wrong.is_empty() => Ok(resolution),
        _ => Err(ApiError::invalid(wrong)),
    }
}
