//! `POST /v1/messages/{id}/cancel`, `/retry`, `/reschedule` and `/resolve`: an operator's actions on one
//! message.
//!
//! The scope `send` is enough. It does not allow reading: without the scope `read` the answer is the
//! message's uid and status only.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{MessageStatus, MessageUid, Time, message::DoubtResolution};
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
        MessagePathId,
        operate::transition::{self, OperatorAction, operate},
        submit::request_schema::{RescheduleRequest, ResolveRequest},
        view::MessageSummaryView,
    },
    state::SharedState,
};

/// The message after the action.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum SettledMessage {
    /// For a key with the scope `read`.
    Whole(Box<MessageSummaryView>),
    /// For any other.
    Brief(MessageStanding),
}

/// A message's ids and status.
#[derive(Debug, Serialize)]
pub(crate) struct MessageStanding {
    uid: MessageUid,
    status: MessageStatus,
}

/// One object of which most fields may be missing, instead of a choice: generated clients that try both forms
/// find that both fit.
impl PartialSchema for SettledMessage {
    fn schema() -> RefOr<Schema> {
        let mut schema = MessageSummaryView::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.required = vec!["uid".to_owned(), "status".to_owned()];
            let about = "The message after the action: complete for a key with the scope `read`, otherwise its `uid` and `status`.";
            object.description = Some(about.to_owned());
        }
        schema
    }
}

impl ToSchema for SettledMessage {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        MessageSummaryView::schemas(schemas);
    }
}

fn shown_to(caller: &Caller, moved: MessageSummaryView) -> Json<SettledMessage> {
    Json(match caller.may_read {
        true => SettledMessage::Whole(Box::new(moved)),
        false => SettledMessage::Brief(MessageStanding { uid: moved.uid, status: moved.status }),
    })
}

/// Cancel a message
///
/// Stops a message that is not being transmitted yet; 409 otherwise. If some recipients already have it, it
/// stays `sent`, or `in_doubt` if they may have it, and is not sent to the others.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/cancel",
    operation_id = "cancelMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "The message is not sent to any further recipient", body = SettledMessage))
)]
pub(crate) async fn cancel(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<SettledMessage>, ApiError> {
    let moved = operate(&app, &caller, &id, OperatorAction::Cancel, &request_id).await?;
    Ok(shown_to(&caller, moved))
}

/// Send a message now
///
/// Puts a failed message back in the queue with all its retries, for the recipients that failed. The files of
/// an invalid message are fetched again. A message that waits for its next attempt or its `send_at` becomes
/// due now. 409 in any other state.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/retry",
    operation_id = "retryMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "The message is in the queue", body = SettledMessage))
)]
pub(crate) async fn retry(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<SettledMessage>, ApiError> {
    let moved = operate(&app, &caller, &id, OperatorAction::Replay, &request_id).await?;
    Ok(shown_to(&caller, moved))
}

/// Reschedule a message
///
/// For a message that waits for its `send_at`; 409 in any other state. A time in the past means now.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/reschedule",
    operation_id = "rescheduleMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    request_body = RescheduleRequest,
    responses((status = 200, description = "The message waits for its new time", body = SettledMessage))
)]
pub(crate) async fn reschedule(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<SettledMessage>, ApiError> {
    let send_at =
        read_single_field("send_at", "must be a time: RFC 3339 or Unix seconds", request, |given| {
            Time::deserialize(given).ok()
        });
    let moved = transition::reschedule(&app, &caller, &id, send_at.await?, &request_id).await?;
    Ok(shown_to(&caller, moved))
}

/// Resolve a message in doubt
///
/// The mail was transmitted and the relay's answer was lost. Declare it `sent` or `failed`, or `resend` it.
/// This applies to the recipients in doubt; the message is sent to recipients that are still open.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/resolve",
    operation_id = "resolveMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    request_body = ResolveRequest,
    responses((status = 200, description = "The message after the decision", body = SettledMessage))
)]
pub(crate) async fn resolve(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<SettledMessage>, ApiError> {
    let resolution = read_single_field("outcome", "must be sent, failed or resend", request, |given| {
        match given.as_str() {
            Some("sent") => Some(DoubtResolution::Sent),
            Some("failed") => Some(DoubtResolution::Failed),
            Some("resend") => Some(DoubtResolution::Resend),
            _ => None,
        }
    });
    let asked = OperatorAction::Resolve(resolution.await?);
    let moved = operate(&app, &caller, &id, asked, &request_id).await?;
    Ok(shown_to(&caller, moved))
}

/// The only field of a body, parsed by `read`.
async fn read_single_field<T>(
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
