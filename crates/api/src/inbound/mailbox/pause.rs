//! `POST /v1/mailboxes/{id}/suspend` and `/activate`: whether a mailbox is watched.

use axum::{Json, extract::State};
use postway_domain::{WatchedMailbox, id::MailboxId};
use postway_store::record::{ChangeResult, DirectoryChange};

use super::{MailboxView, NamedMailbox, find};
use crate::{
    auth::{Caller, Manager},
    http::{error::ApiError, request_id::RequestId, resource::change_versioned},
    state::{AppState, SharedState},
};

/// Suspend a mailbox
///
/// Nothing new is read from it. Mail that was read before is still processed.
#[utoipa::path(
    post,
    path = "/v1/mailboxes/{id}/suspend",
    operation_id = "suspendMailbox",
    tag = "inbound",
    params(("id" = String, Path, description = "The mailbox")),
    responses((status = 200, description = "The mailbox after the change", body = MailboxView))
)]
pub(crate) async fn suspend(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedMailbox(id): NamedMailbox,
) -> Result<Json<MailboxView>, ApiError> {
    switch(&app, &caller, &request_id, &id, false).await
}

/// Activate a mailbox
///
/// Reading continues where it ended: mail that arrived meanwhile is not missed.
#[utoipa::path(
    post,
    path = "/v1/mailboxes/{id}/activate",
    operation_id = "activateMailbox",
    tag = "inbound",
    params(("id" = String, Path, description = "The mailbox")),
    responses((status = 200, description = "The mailbox after the change", body = MailboxView))
)]
pub(crate) async fn activate(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedMailbox(id): NamedMailbox,
) -> Result<Json<MailboxView>, ApiError> {
    switch(&app, &caller, &request_id, &id, true).await
}

async fn switch(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    id: &MailboxId,
    active: bool,
) -> Result<Json<MailboxView>, ApiError> {
    let (tenant, action) = (&caller.tenant, if active { "mailbox.activate" } else { "mailbox.suspend" });
    change_versioned("mailbox", || async {
        let (current, state) = find(app, tenant, id).await?;
        if current.settings.active == active {
            return Ok(Some(Json(MailboxView::new(current, Some(&state)))));
        }
        let (expected, updated_at) = (current.version, app.clock.now());
        let mut mailbox = WatchedMailbox { version: expected + 1, updated_at, ..current };
        mailbox.settings.active = active;
        let entry = app.audit(&caller.actor, Some(tenant), action, id.as_str(), request_id, None);
        let change = DirectoryChange::UpdateMailbox(mailbox.clone(), expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            return Ok(Some(Json(MailboxView::new(mailbox, Some(&state)))));
        }
        Ok::<_, ApiError>(None)
    })
    .await
}
