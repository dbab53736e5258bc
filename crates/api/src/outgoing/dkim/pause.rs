//! `POST /v1/dkim/{domain}/{selector}/activate` and `/suspend`: whether a key signs.

use axum::{Json, extract::State};
use postway_domain::DkimKey;
use postway_store::record::{Changed, DirectoryChange};

use super::{KeyView, NamedKey, find};
use crate::{
    auth::{Caller, Manager},
    http::{error::ApiError, request_id::RequestId},
    state::{App, Shared},
};

/// Let a key sign
///
/// Mail of its domain that is composed from now on is signed with it. Publish its record first.
#[utoipa::path(
    post,
    path = "/v1/dkim/{domain}/{selector}/activate",
    operation_id = "activateSigningKey",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("selector" = String, Path, description = "The selector"),
    ),
    responses((status = 200, description = "The key as it is now", body = KeyView))
)]
pub(crate) async fn activate(
    State(app): State<Shared>,
    Manager(caller): Manager,
    request_id: RequestId,
    named: NamedKey,
) -> Result<Json<KeyView>, ApiError> {
    set_active(&app, &caller, &request_id, &named, true).await.map(Json)
}

/// Stop a key from signing
///
/// Mail goes on without its signature; mail composed before keeps it.
#[utoipa::path(
    post,
    path = "/v1/dkim/{domain}/{selector}/suspend",
    operation_id = "suspendSigningKey",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("selector" = String, Path, description = "The selector"),
    ),
    responses((status = 200, description = "The key as it is now", body = KeyView))
)]
pub(crate) async fn suspend(
    State(app): State<Shared>,
    Manager(caller): Manager,
    request_id: RequestId,
    named: NamedKey,
) -> Result<Json<KeyView>, ApiError> {
    set_active(&app, &caller, &request_id, &named, false).await.map(Json)
}

async fn set_active(
    app: &App,
    caller: &Caller,
    request_id: &RequestId,
    named: &NamedKey,
    active: bool,
) -> Result<KeyView, ApiError> {
    let current = find(app, &caller.tenant, named).await?;
    if current.active == active {
        return Ok(KeyView::from(&current));
    }
    let view = KeyView::from(&DkimKey { active, ..current.clone() });
    let action = if active { "dkim.activate" } else { "dkim.suspend" };
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), action, named.target(), request_id, None);
    let DkimKey { tenant, domain, selector, .. } = current;
    let change = DirectoryChange::SwitchDkimKey(tenant, domain, selector, active);
    match app.store.change(change, Some(entry)).await? {
        Changed::Done | Changed::Already => Ok(view),
        _ => Err(named.missing()),
    }
}
