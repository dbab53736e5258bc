//! `/v1/users`: the people who operate the gateway.
//!
//! Admins manage users, each those whose tenants are all among its own: the admin of one tenant neither sees
//! nor makes a user of another. Nobody changes their own role, tenants or rights, and nobody gives more than
//! they have. The last user who may do everything stays.

mod edit;
pub(crate) mod invite;
pub(crate) mod passkey_list;
pub(crate) mod session_list;
mod view;
pub(crate) mod write;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri},
};
use postway_domain::{User, UserName};
use postway_store::record::{ChangeResult, DirectoryChange, UserKey};

use self::view::{UserList, UserView};
use crate::{
    auth::{CallerActor, TenantAdmin},
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The user that `{name}` in the path names. A text that cannot be a name is 404.
pub(crate) struct NamedUser(UserName);

path_parameter!(NamedUser, "name", |given| given.parse().map(NamedUser).map_err(|_| no_user(given)));

fn no_user(given: &str) -> ApiError {
    let shown: String = given.chars().take(UserName::CHARS_MAX).collect();
    ApiError::not_found(format!("there is no user `{shown}`; create it with POST /v1/users"))
}

/// A user whom this admin manages. Others do not exist for it.
async fn find(app: &AppState, admin: &TenantAdmin, name: &UserName) -> Result<User, ApiError> {
    let found = app.store.user(&UserKey::Name(name.clone())).await?;
    found.filter(|user| admin.tenants.covers(&user.tenants)).ok_or_else(|| no_user(name.as_str()))
}

/// Refuses a change of the admin's own rights, or an end of itself.
fn refuse_self(admin: &TenantAdmin, user: &User, what: &str) -> Result<(), ApiError> {
    match &admin.actor {
        CallerActor::User { name, .. } if *name == user.name => {
            Err(ApiError::forbidden(format!("you cannot {what} yourself: another admin can")))
        }
        CallerActor::User { .. } | CallerActor::Admin | CallerActor::Key(_) => Ok(()),
    }
}

fn last_admin() -> ApiError {
    ApiError::conflict("this is the last user who may do everything; make another one such first")
}

/// List users
///
/// For admins: the users whose tenants are among your own, by name.
#[utoipa::path(
    get,
    path = "/v1/users",
    operation_id = "listUsers",
    tag = "users",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by name", body = UserList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    uri: Uri,
) -> Result<Json<UserList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let after: Option<UserName> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let (mut found, mut next, wanted) = (Vec::new(), after, limit as usize + 1);
    // Users of other tenants are left out, so several pages of the store may make one of ours.
    while found.len() < wanted {
        let page = app.store.users(next.as_ref(), pagination::LIMIT_MAX).await?;
        let is_last = page.len() < pagination::LIMIT_MAX as usize;
        next = page.last().map(|user| user.name.clone()).or(next);
        found.extend(page.into_iter().filter(|user| admin.tenants.covers(&user.tenants)));
        if is_last {
            break;
        }
    }
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.name));
    Ok(Json(UserList { data: found.iter().map(UserView::from).collect(), next_cursor }))
}

/// Show a user
///
/// For admins: role, tenants, and the ways in which the user can sign in; never a secret.
#[utoipa::path(
    get,
    path = "/v1/users/{name}",
    operation_id = "getUser",
    tag = "users",
    params(("name" = String, Path, description = "The user's name")),
    responses((status = 200, description = "The user", body = UserView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    NamedUser(name): NamedUser,
) -> Result<Json<UserView>, ApiError> {
    Ok(Json(UserView::from(&find(&app, &admin, &name).await?)))
}

/// Delete a user
///
/// Its sessions end: here at once, on other nodes within seconds. The audit log and the histories of messages
/// keep its name. 409 for the last user who may do everything, 403 for yourself.
#[utoipa::path(
    delete,
    path = "/v1/users/{name}",
    operation_id = "deleteUser",
    tag = "users",
    params(("name" = String, Path, description = "The user's name")),
    responses((status = 204, description = "It is deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    request_id: RequestId,
    NamedUser(name): NamedUser,
) -> Result<StatusCode, ApiError> {
    let user = find(&app, &admin, &name).await?;
    refuse_self(&admin, &user, "delete")?;
    let entry = app.audit(&admin.actor, None, "user.delete", name.as_str(), &request_id, None);
    match app.store.change(DirectoryChange::DeleteUser(user.id), Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        ChangeResult::InUse => Err(last_admin()),
        ChangeResult::Already | ChangeResult::Missing | ChangeResult::Exists | ChangeResult::Stale => {
            Err(no_user(name.as_str()))
        }
    }
}
