//! `POST /v1/tenants/{id}/suspend` and `/activate`: all of a tenant's mail held, and let go.

use axum::{Json, extract::State};
use postway_domain::TenantId;
use postway_store::record::{DirectoryChange, Suspension, SuspensionScope};

use super::{NamedTenant, TenantView, find, view};
use crate::{
    auth::Admin,
    http::{error::ApiError, request_id::RequestId},
    state::{App, Shared},
};

/// Suspend a tenant
///
/// All its mail is held where it is, on every node; mail is still accepted. What is on the wire finishes.
#[utoipa::path(
    post,
    path = "/v1/tenants/{id}/suspend",
    operation_id = "suspendTenant",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    responses((status = 200, description = "The tenant as it is now", body = TenantView))
)]
pub(crate) async fn suspend(
    State(app): State<Shared>,
    admin: Admin,
    request_id: RequestId,
    NamedTenant(id): NamedTenant,
) -> Result<Json<TenantView>, ApiError> {
    hold(&app, &admin, &request_id, id).await.map(Json)
}

/// Holds all mail of a tenant.
pub(crate) async fn hold(
    app: &App,
    admin: &Admin,
    request_id: &RequestId,
    id: TenantId,
) -> Result<TenantView, ApiError> {
    let tenant = find(app, &id).await?;
    let entry = app.audit(&admin.actor, Some(&id), "tenant.suspend", id.as_str(), request_id, None);
    let suspension = Suspension { tenant: id, scope: SuspensionScope::Tenant, since: app.clock.now() };
    app.store.change(DirectoryChange::Suspend(suspension), Some(entry)).await?;
    view(app, &tenant).await
}

/// Activate a tenant
///
/// Its held mail goes on.
#[utoipa::path(
    post,
    path = "/v1/tenants/{id}/activate",
    operation_id = "activateTenant",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    responses((status = 200, description = "The tenant as it is now", body = TenantView))
)]
pub(crate) async fn activate(
    State(app): State<Shared>,
    admin: Admin,
    request_id: RequestId,
    NamedTenant(id): NamedTenant,
) -> Result<Json<TenantView>, ApiError> {
    let_go(&app, &admin, &request_id, id).await.map(Json)
}

/// Lets a held tenant's mail go on.
pub(crate) async fn let_go(
    app: &App,
    admin: &Admin,
    request_id: &RequestId,
    id: TenantId,
) -> Result<TenantView, ApiError> {
    let tenant = find(app, &id).await?;
    let entry = app.audit(&admin.actor, Some(&id), "tenant.activate", id.as_str(), request_id, None);
    app.store.change(DirectoryChange::Activate(id, SuspensionScope::Tenant), Some(entry)).await?;
    view(app, &tenant).await
}
