//! `POST /v1/tenants/{id}/suspend` and `/activate`: whether a tenant's mail is sent.

use axum::{Json, extract::State};
use postway_domain::TenantId;
use postway_store::record::{DirectoryChange, SuspensionRecord, SuspensionScope};

use super::{NamedTenant, TenantView, find, view};
use crate::{
    auth::Admin,
    http::{error::ApiError, request_id::RequestId},
    state::{AppState, SharedState},
};

/// Suspend a tenant
///
/// None of its mail is sent, on any node; mail is still accepted. Mail that is being transmitted is finished.
#[utoipa::path(
    post,
    path = "/v1/tenants/{id}/suspend",
    operation_id = "suspendTenant",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    responses((status = 200, description = "The tenant after the change", body = TenantView))
)]
pub(crate) async fn suspend(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    NamedTenant(id): NamedTenant,
) -> Result<Json<TenantView>, ApiError> {
    suspend_tenant(&app, &admin, &request_id, id).await.map(Json)
}

/// Suspends all mail of a tenant.
pub(crate) async fn suspend_tenant(
    app: &AppState,
    admin: &Admin,
    request_id: &RequestId,
    id: TenantId,
) -> Result<TenantView, ApiError> {
    let tenant = find(app, &id).await?;
    let entry = app.audit(&admin.actor, Some(&id), "tenant.suspend", id.as_str(), request_id, None);
    let suspension = SuspensionRecord { tenant: id, scope: SuspensionScope::Tenant, since: app.clock.now() };
    app.store.change(DirectoryChange::Suspend(suspension), Some(entry)).await?;
    view(app, &tenant).await
}

/// Activate a tenant
///
/// Its mail is sent again.
#[utoipa::path(
    post,
    path = "/v1/tenants/{id}/activate",
    operation_id = "activateTenant",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    responses((status = 200, description = "The tenant after the change", body = TenantView))
)]
pub(crate) async fn activate(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    NamedTenant(id): NamedTenant,
) -> Result<Json<TenantView>, ApiError> {
    activate_tenant(&app, &admin, &request_id, id).await.map(Json)
}

/// Activates a suspended tenant.
pub(crate) async fn activate_tenant(
    app: &AppState,
    admin: &Admin,
    request_id: &RequestId,
    id: TenantId,
) -> Result<TenantView, ApiError> {
    let tenant = find(app, &id).await?;
    let entry = app.audit(&admin.actor, Some(&id), "tenant.activate", id.as_str(), request_id, None);
    app.store.change(DirectoryChange::Activate(id, SuspensionScope::Tenant), Some(entry)).await?;
    view(app, &tenant).await
}
