//! `GET /v1/messages/{id}/events`: a message's history.

use axum::{Json, extract::State};

use super::{
    GivenId, find,
    view::{EventList, EventView},
};
use crate::{auth::Reader, error::ApiError, state::Shared};

/// Show a message's history
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/events",
    operation_id = "getMessageEvents",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "What happened, in order", body = EventList))
)]
pub(crate) async fn events(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<EventList>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    Ok(Json(EventList { data: record.events.into_iter().map(EventView::from).collect(), next_cursor: None }))
}
