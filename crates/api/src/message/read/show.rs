//! `GET /v1/messages/{id}`: one message with its recipients, attempts, history and notifications.

use axum::{Json, extract::State};
use postway_domain::{Subscriber, TenantId};
use postway_store::{
    MessageBlockers,
    record::{MessageRecord, NotificationView},
};

use crate::{
    auth::Reader,
    http::error::ApiError,
    message::{MessagePathId, find, view::MessageDetailView},
    state::{AppState, SharedState},
};

/// Show a message
///
/// Its status, its recipients with their outcomes, and its attempts. 404 once it was removed.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}",
    operation_id = "getMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "The message", body = MessageDetailView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<MessageDetailView>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    let holds =
        MessageBlockers::read(&*app.store, &caller.tenant, [&record.summary], app.clock.now()).await?;
    let held_by = holds.of(&record.summary);
    let (notifications, subscribers) = notifications_of(&app, &caller.tenant, &record).await?;
    let dialogue = match record.attempts.is_empty() {
        true => None,
        false => app.store.dialogue(&caller.tenant, record.summary.uid).await?,
    };
    Ok(Json(MessageDetailView::new((record, dialogue), held_by, notifications, &subscribers)))
}

/// The notifications of a message, and, once it has ended, the subscribers that may get more.
pub(crate) async fn notifications_of(
    app: &AppState,
    tenant: &TenantId,
    record: &MessageRecord,
) -> Result<(Vec<NotificationView>, Vec<Subscriber>), ApiError> {
    let notifications = app.store.notifications(tenant, record.summary.uid).await?;
    let subscribers = match record.summary.state.status().is_final() {
        true => app.store.subscribers(Some(tenant)).await?,
        false => Vec::new(),
    };
    Ok((notifications, subscribers))
}

/// The message with the client id `batch`: that path is a call of its own, but only for POST.
pub(crate) async fn show_named_batch(
    app: State<SharedState>,
    caller: Reader,
) -> Result<Json<MessageDetailView>, ApiError> {
    show(app, caller, MessagePathId("batch".to_owned())).await
}

/// The message with the client id `raw`.
pub(crate) async fn show_named_raw(
    app: State<SharedState>,
    caller: Reader,
) -> Result<Json<MessageDetailView>, ApiError> {
    show(app, caller, MessagePathId("raw".to_owned())).await
}
