//! `POST /v1/dkim/{domain}/{selector}/activate` and `/suspend`: whether a key signs.

use axum::{Json, extract::State};
use postway_domain::DkimKey;
use postway_store::record::{ChangeResult, DirectoryChange};

use super::{SigningKeyPath, SigningKeyView, find};
use crate::{
    auth::{Caller, Manager},
    http::{error::ApiError, request_id::RequestId},
    state::{AppState, SharedState},
};

/// Activate a signing key
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
    responses((status = 200, description = "The key after the change", body = SigningKeyView))
)]
pub(crate) async fn activate(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    named: SigningKeyPath,
) -> Result<Json<SigningKeyView>, ApiError> {
    set_active(&app, &caller, &request_id, &named, true).await.map(Json)
}

/// Suspend a signing key
///
/// Mail is sent without its signature; mail composed before keeps it.
#[utoipa::path(
    post,
    path = "/v1/dkim/{domain}/{selector}/suspend",
    operation_id = "suspendSigningKey",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("selector" = String, Path, description = "The selector"),
    ),
    responses((status = 200, description = "The key after the change", body = SigningKeyView))
)]
pub(crate) async fn suspend(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    named: SigningKeyPath,
) -> Result<Json<SigningKeyView>, ApiError> {
    set_active(&app, &caller, &request_id, &named, false).await.map(Json)
}

async fn set_active(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    named: &SigningKeyPath,
    active: bool,
) -> Result<SigningKeyView, ApiError> {
    let current = find(app, &caller.tenant, named).await?;
    if current.active == active {
        return Ok(SigningKeyView::from(&current));
    }
    let view = SigningKeyView::from(&DkimKey { active, ..current.clone() });
    let action = if active { "dkim.activate" } else { "dkim.suspend" };
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), action, named.target(), request_id, None);
    let DkimKey { tenant, domain, selector, .. } = current;
    let change = DirectoryChange::SwitchDkimKey(tenant, domain, selector, active);
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done | ChangeResult::Already => Ok(view),
        _ => Err(named.missing()),
    }
}
