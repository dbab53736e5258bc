//! `PATCH /emails/{id}` and `POST /emails/{id}/cancel`: reschedules or cancels a waiting email.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::Time;
use serde_json::{Value, json};

use super::{
    error::{as_request_fault, missing},
    time,
};
use crate::{
    auth::Sender,
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::{
        MessagePathId, find,
        operate::transition::{OperatorAction, operate, reschedule},
    },
    state::SharedState,
};

pub(super) async fn update(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let asked = body::json_object(request).await?;
    let send_at = match asked.get("scheduled_at") {
        None | Some(Value::Null) => return Err(ApiError::invalid(vec![missing("scheduled_at")])),
        Some(Value::String(text)) => time::parse_time(text, app.clock.now()),
        Some(other) => {
            let time = other.to_string().parse::<Time>();
            time.map_err(|error| FieldError::new("scheduled_at", error.to_string()))
        }
    };
    let send_at = send_at.map_err(|fault| ApiError::invalid(vec![fault]))?;
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    reschedule(&app, &caller, &uid.to_string(), send_at, &request_id).await.map_err(as_request_fault)?;
    Ok(Json(json!({"object": "email", "id": uid})))
}

pub(super) async fn cancel(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    operate(&app, &caller, &uid.to_string(), OperatorAction::Cancel, &request_id)
        .await
        .map_err(as_request_fault)?;
    Ok(Json(json!({"object": "email", "id": uid})))
}
