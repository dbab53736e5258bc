//! `POST /v1/accounts/{id}/suspend` and `/activate`: whether an account's mail is sent.

use axum::{Json, extract::State};
use postway_store::record::{DirectoryChange, SuspensionRecord, SuspensionScope};

use super::{AccountView, NamedAccount, find};
use crate::{
    auth::Manager,
    http::{error::ApiError, request_id::RequestId},
    state::SharedState,
};

/// Suspend an account
///
/// Its mail is not sent, on any node; mail is still accepted. Mail that is being transmitted is finished.
#[utoipa::path(
    post,
    path = "/v1/accounts/{id}/suspend",
    operation_id = "suspendAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 200, description = "The account after the change", body = AccountView))
)]
pub(crate) async fn suspend(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
) -> Result<Json<AccountView>, ApiError> {
    let account = find(&app, &caller.tenant, &id).await?;
    let (actor, tenant) = (&caller.actor, &caller.tenant);
    let entry = app.audit(actor, Some(tenant), "account.suspend", id.as_str(), &request_id, None);
    let scope = SuspensionScope::Account(id);
    let suspension = SuspensionRecord { tenant: tenant.clone(), scope, since: app.clock.now() };
    app.store.change(DirectoryChange::Suspend(suspension), Some(entry)).await?;
    AccountView::with_standing(&app, &account).await.map(Json)
}

/// Activate an account
///
/// Its mail is sent again.
#[utoipa::path(
    post,
    path = "/v1/accounts/{id}/activate",
    operation_id = "activateAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 200, description = "The account after the change", body = AccountView))
)]
pub(crate) async fn activate(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
) -> Result<Json<AccountView>, ApiError> {
    let account = find(&app, &caller.tenant, &id).await?;
    let (actor, tenant) = (&caller.actor, &caller.tenant);
    let entry = app.audit(actor, Some(tenant), "account.activate", id.as_str(), &request_id, None);
    let change = DirectoryChange::Activate(tenant.clone(), SuspensionScope::Account(id));
    app.store.change(change, Some(entry)).await?;
    AccountView::with_standing(&app, &account).await.map(Json)
}
