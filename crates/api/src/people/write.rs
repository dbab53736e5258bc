//! `POST /v1/users` and `PATCH /v1/users/{name}`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{User, UserRole, UserTenants, id::UserId, user::UserCredentials};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

use super::{
    NamedUser, UserView,
    edit::{self, UserEdit},
    find, last_admin, refuse_self,
    view::UserRequest,
};
use crate::{
    auth::TenantAdmin,
    http::{
        body,
        error::ApiError,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    state::{AppState, SharedState},
};

/// Create a user
///
/// For admins, each for its own tenants. The user signs in at the provider, or with an invitation, which
/// `POST /v1/users/{name}/invitation` makes. 409 if the name is taken.
#[utoipa::path(
    post,
    path = "/v1/users",
    operation_id = "createUser",
    tag = "users",
    request_body = UserRequest,
    responses((status = 201, description = "Created", body = UserView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let given = edit::read(body::json_object(request).await?, true).map_err(ApiError::invalid)?;
    let needed = |name: &str| ApiError::field(name, "is needed");
    let now = app.clock.now();
    let user = User {
        id: UserId::new(now, &mut rand::rng()),
        name: given.name.ok_or_else(|| needed("name"))?,
        display_name: given.display_name.unwrap_or_default(),
        email: given.email.flatten(),
        role: given.role.ok_or_else(|| needed("role"))?,
        tenants: given.tenants.ok_or_else(|| needed("tenants"))?,
        read_content: given.read_content.unwrap_or(false),
        identity: None,
        credentials: UserCredentials::default(),
        disabled_at: given.disabled.unwrap_or(false).then_some(now),
        created_at: now,
        updated_at: now,
        version: 1,
    };
    check_reach(&app, &admin, &user).await?;
    let detail = json!({"role": user.role, "tenants": user.tenants, "read_content": user.read_content});
    let entry = app.audit(&admin.actor, None, "user.create", user.name.as_str(), &request_id, Some(detail));
    match app.store.change(DirectoryChange::CreateUser(user.clone()), Some(entry)).await? {
        ChangeResult::Done => {
            let location = [(header::LOCATION, format!("/v1/users/{}", user.name))];
            Ok((StatusCode::CREATED, location, Json(UserView::from(&user))).into_response())
        }
        _ => Err(ApiError::conflict("there is a user with this name already; choose another")),
    }
}

/// Refuses a user that would have more than the admin who makes or changes it.
async fn check_reach(app: &AppState, admin: &TenantAdmin, user: &User) -> Result<(), ApiError> {
    if !admin.tenants.covers(&user.tenants) {
        return Err(ApiError::forbidden("a user can have the tenants only that you are the admin of"));
    }
    let UserTenants::Named(named) = &user.tenants else { return Ok(()) };
    for tenant in named {
        if !app.knows_tenant(tenant).await? {
            return Err(ApiError::field("tenants", format!("there is no tenant `{tenant}`")));
        }
    }
    Ok(())
}

/// Change a user
///
/// Changes the given fields: here at once, on other nodes within seconds, also for sessions that go on. With
/// `version`, the change is made only if the user still has that version; 409 otherwise, and for the last
/// user who may do everything. Nobody changes their own role, tenants or rights: 403.
#[utoipa::path(
    patch,
    path = "/v1/users/{name}",
    operation_id = "changeUser",
    tag = "users",
    params(("name" = String, Path, description = "The user's name")),
    request_body = UserRequest,
    responses((status = 200, description = "The user after the change", body = UserView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    request_id: RequestId,
    NamedUser(name): NamedUser,
    request: Request,
) -> Result<Json<UserView>, ApiError> {
    let given = edit::read(body::json_object(request).await?, false).map_err(ApiError::invalid)?;
    change_versioned("user", || async {
        let current = find(&app, &admin, &name).await?;
        let expected = current.version;
        check_version("user", given.version, expected)?;
        if given.changes_rights() {
            refuse_self(&admin, &current, "change the rights of")?;
        }
        let user = changed(&app, &given, current);
        check_reach(&app, &admin, &user).await?;
        let detail = json!({
            "fields": &given.fields, "role": user.role, "tenants": user.tenants,
            "read_content": user.read_content, "disabled": user.disabled_at.is_some(),
        });
        let entry = app.audit(&admin.actor, None, "user.change", name.as_str(), &request_id, Some(detail));
        match app.store.change(DirectoryChange::UpdateUser(user.clone(), expected), Some(entry)).await? {
            ChangeResult::Done => Ok(Some(Json(UserView::from(&user)))),
            ChangeResult::InUse => Err(last_admin()),
            _ => Ok::<_, ApiError>(None),
        }
    })
    .await
}

fn changed(app: &AppState, given: &UserEdit, current: User) -> User {
    let now = app.clock.now();
    let role: UserRole = given.role.unwrap_or(current.role);
    User {
        display_name: given.display_name.clone().unwrap_or_else(|| current.display_name.clone()),
        email: given.email.clone().unwrap_or_else(|| current.email.clone()),
        role,
        tenants: given.tenants.clone().unwrap_or_else(|| current.tenants.clone()),
        read_content: given.read_content.unwrap_or(current.read_content),
        disabled_at: match given.disabled {
            Some(true) => current.disabled_at.or(Some(now)),
            Some(false) => None,
            None => current.disabled_at,
        },
        updated_at: now,
        version: current.version + 1,
        ..current
    }
}
