//! `PATCH /emails/{id}` and `POST /emails/{id}/cancel`: another time for an email that waits, or none.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use postway_domain::Time;
use serde_json::{Value, json};

use super::{
    error::{INVALID, missing, theirs},
    moment,
};
use crate::{
    auth::Sender,
    body,
    error::{ApiError, FieldError},
    message::{GivenId, find},
    operate::{Asked, operate, reschedule},
    request_id::RequestId,
    state::Shared,
};

pub(super) async fn update(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let asked = body::json_object(request).await?;
    let send_at = match asked.get("scheduled_at") {
        None | Some(Value::Null) => return Err(ApiError::invalid(vec![missing("scheduled_at")])),
        Some(Value::String(text)) => {
            let exact = moment::exact(text, Some(app.clock.now()));
            exact.map_err(|fault| ApiError::invalid(vec![fault]))?.parse::<Time>()
        }
        Some(other) => other.to_string().parse(),
    };
    let send_at = send_at.map_err(|error| ApiError::field("scheduled_at", error.to_string()))?;
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    reschedule(&app, &caller.tenant, &uid.to_string(), send_at, &request_id).await.map_err(cannot)?;
    Ok(Json(json!({"object": "email", "id": uid})))
}

pub(super) async fn cancel(
    State(app): State<Shared>,
    caller: Sender,
    request_id: RequestId,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    operate(&app, &caller.tenant, &uid.to_string(), Asked::Cancel, &request_id).await.map_err(cannot)?;
    Ok(Json(json!({"object": "email", "id": uid})))
}

/// A conflict is about idempotency here; that an email is too far on is a fault of the request.
fn cannot(error: ApiError) -> ApiError {
    match error.status() {
        StatusCode::CONFLICT => {
            let fault = FieldError { code: Some(INVALID), ..FieldError::new("", error.message()) };
            ApiError::invalid(vec![fault])
        }
        _ => theirs(error),
    }
}
