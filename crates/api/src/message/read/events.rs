//! `GET /v1/messages/{id}/events`: a message's history.

use axum::{Json, extract::State};

use crate::{
    auth::Reader,
    http::{error::ApiError, pagination::ListPart},
    message::{
        MessagePathId, find,
        view::{EventList, EventView},
    },
    state::SharedState,
};

/// Show a message's history
///
/// Its events, oldest first.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/events",
    operation_id = "getMessageEvents",
    tag = "messages",
    params(
        ("id" = String, Path, description = "Your id of the message, or its uid"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The events, in order", body = EventList))
)]
pub(crate) async fn events(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
    part: ListPart,
) -> Result<Json<EventList>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    let (events, next_cursor) = part.select(record.events, |event| event.seq)?;
    Ok(Json(EventList { data: events.into_iter().map(EventView::from).collect(), next_cursor }))
}
