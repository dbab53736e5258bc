//! `GET /v1/messages/{id}/events`: a message's history.

use axum::{Json, extract::State};

use crate::{
    auth::Reader,
    http::{error::ApiError, pagination::Part},
    message::{
        GivenId, find,
        view::{EventList, EventView},
    },
    state::Shared,
};

/// Show a message's history
///
/// Everything that happened to it, oldest first.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/events",
    operation_id = "getMessageEvents",
    tag = "messages",
    params(
        ("id" = String, Path, description = "Your id of it, or its uid"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "What happened, in order", body = EventList))
)]
pub(crate) async fn events(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
    part: Part,
) -> Result<Json<EventList>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    let (events, next_cursor) = part.of(record.events, |event| event.seq)?;
    Ok(Json(EventList { data: events.into_iter().map(EventView::from).collect(), next_cursor }))
}
