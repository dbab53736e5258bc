//! `POST /v1/messages/{id}/cancel`, `/retry`, `/reschedule` and `/resolve`: an operator's word on one message.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Time, message::Resolution};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{GivenId, view::Summary};
use crate::{
    auth::Sender,
    body,
    error::{ApiError, FieldError},
    operate::{self, Asked, operate},
    request_id::RequestId,
    schema::{RescheduleRequest, ResolveRequest},
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

/// Give a message another time
///
/// For one that waits for its `send_at`; 409 in any other state. A time that has passed is now.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/reschedule",
    operation_id = "rescheduleMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    request_body = RescheduleRequest,
    responses((status = 200, description = "It waits for its new time", body = Summary))
)]
pub(crate) async fn reschedule(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<Summary>, ApiError> {
    let send_at = only("send_at", "must be a time: RFC 3339 or Unix seconds", request, |given| {
        Time::deserialize(given).ok()
    });
    operate::reschedule(&app, &caller.tenant, &id, send_at.await?, &request_id).await.map(Json)
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
    let resolution =
        only("outcome", "must be sent, failed or resend", request, |given| match given.as_str() {
            Some("sent") => Some(Resolution::Sent),
            Some("failed") => Some(Resolution::Failed),
            Some("resend") => Some(Resolution::Resend),
            _ => None,
        });
    operate(&app, &caller.tenant, &id, Asked::Resolve(resolution.await?), &request_id).await.map(Json)
}

/// The one field that a body has, as `read` understands it.
async fn only<T>(
    name: &'static str,
    must: &'static str,
    request: Request,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, ApiError> {
    let mut body: Map<String, Value> = body::json_object(request).await?;
    let value = body.remove(name).as_ref().and_then(read);
    let mut wrong: Vec<FieldError> =
        body.keys().map(|name| FieldError::new(name, "is not a field of this call")).collect();
    if value.is_none() {
        wrong.push(FieldError::new(name, must));
    }
    match value {
        Some(value) if wrong.is_empty() => Ok(value),
        _ => Err(ApiError::invalid(wrong)),
    }
}
