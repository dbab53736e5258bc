//! `POST /v1/messages/{id}/cancel`, `/retry`, `/reschedule` and `/resolve`: an operator's word on one message.
//!
//! Whoever may send may say it, but may not read with it: without the scope `read` the answer is the message's uid and status.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{MessageUid, Status, Time, message::Resolution};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use crate::{
    auth::{Caller, Sender},
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::{
        GivenId,
        operate::transition::{self, Asked, operate},
        submit::request_schema::{RescheduleRequest, ResolveRequest},
        view::Summary,
    },
    state::Shared,
};

/// A message as it is then.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum SettledMessage {
    /// For a key with the scope `read`.
    Whole(Box<Summary>),
    /// For any other.
    Brief(MessageStanding),
}

/// Where a message stands.
#[derive(Debug, Serialize)]
pub(crate) struct MessageStanding {
    uid: MessageUid,
    status: Status,
}

/// One object of which the rest may be missing, instead of a choice: generated clients that try both forms find that both fit.
impl PartialSchema for SettledMessage {
    fn schema() -> RefOr<Schema> {
        let mut schema = Summary::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.required = vec!["uid".to_owned(), "status".to_owned()];
            let about = "The message as it is then: whole for a key with the scope `read`, else its `uid` and `status`.";
            object.description = Some(about.to_owned());
        }
        schema
    }
}

impl ToSchema for SettledMessage {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Summary::schemas(schemas);
    }
}

fn shown_to(caller: &Caller, moved: Summary) -> Json<SettledMessage> {
    Json(match caller.may_read {
        true => SettledMessage::Whole(Box::new(moved)),
        false => SettledMessage::Brief(MessageStanding { uid: moved.uid, status: moved.status }),
    })
}

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
    responses((status = 200, description = "Nobody else is sent to", body = SettledMessage))
)]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
) -> Result<Json<SettledMessage>, ApiError> {
    let moved = operate(&app, &caller.tenant, &id, Asked::Cancel, &request_id).await?;
    Ok(shown_to(&caller, moved))
}

/// Send a message now
///
/// Puts a failed message back in the queue with all its retries, for the recipients that failed; an invalid one has its files
/// fetched anew; one that waits for its next attempt or for its `send_at` becomes due now. 409 in any other state.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/retry",
    operation_id = "retryMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "It is in the queue", body = SettledMessage))
)]
pub(crate) async fn retry(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
) -> Result<Json<SettledMessage>, ApiError> {
    let moved = operate(&app, &caller.tenant, &id, Asked::Replay, &request_id).await?;
    Ok(shown_to(&caller, moved))
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
    responses((status = 200, description = "It waits for its new time", body = SettledMessage))
)]
pub(crate) async fn reschedule(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<SettledMessage>, ApiError> {
    let send_at = only("send_at", "must be a time: RFC 3339 or Unix seconds", request, |given| {
        Time::deserialize(given).ok()
    });
    let moved = transition::reschedule(&app, &caller.tenant, &id, send_at.await?, &request_id).await?;
    Ok(shown_to(&caller, moved))
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
    responses((status = 200, description = "The doubt is settled", body = SettledMessage))
)]
pub(crate) async fn resolve(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<SettledMessage>, ApiError> {
    let resolution =
        only("outcome", "must be sent, failed or resend", request, |given| match given.as_str() {
            Some("sent") => Some(Resolution::Sent),
            Some("failed") => Some(Resolution::Failed),
            Some("resend") => Some(Resolution::Resend),
            _ => None,
        });
    let asked = Asked::Resolve(resolution.await?);
    let moved = operate(&app, &caller.tenant, &id, asked, &request_id).await?;
    Ok(shown_to(&caller, moved))
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
