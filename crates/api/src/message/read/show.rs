//! `GET /v1/messages/{id}`: one message with its recipients, attempts, history, and who was told of it.

use axum::{Json, extract::State};
use postway_domain::{Subscriber, TenantId};
use postway_store::{
    Holds,
    record::{MessageRecord, NotificationView},
};

use crate::{
    auth::Reader,
    http::error::ApiError,
    message::{GivenId, find, view::Message},
    state::{App, Shared},
};

/// Show a message
///
/// Where it stands, its recipients with what became of each, and its attempts. 404 once it was removed.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}",
    operation_id = "getMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "The message", body = Message))
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Message>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    let holds = Holds::read(&*app.store, &caller.tenant, [&record.summary], app.clock.now()).await?;
    let held_by = holds.of(&record.summary);
    let (told, subscribers) = told(&app, &caller.tenant, &record).await?;
    Ok(Json(Message::new(record, held_by, told, &subscribers)))
}

/// What was told of a message, and who there is to be told, once it has ended.
pub(crate) async fn told(
    app: &App,
    tenant: &TenantId,
    record: &MessageRecord,
) -> Result<(Vec<NotificationView>, Vec<Subscriber>), ApiError> {
    let told = app.store.notifications(tenant, record.summary.uid).await?;
    let subscribers = match record.summary.state.status().is_final() {
        true => app.store.subscribers(Some(tenant)).await?,
        false => Vec::new(),
    };
    Ok((told, subscribers))
}

/// The message whose client called it `batch`: that path is a call of its own, but only for POST.
pub(crate) async fn show_named_batch(app: State<Shared>, caller: Reader) -> Result<Json<Message>, ApiError> {
    show(app, caller, GivenId("batch".to_owned())).await
}

/// The message whose client called it `raw`.
pub(crate) async fn show_named_raw(app: State<Shared>, caller: Reader) -> Result<Json<Message>, ApiError> {
    show(app, caller, GivenId("raw".to_owned())).await
}
