//! `/v1/sessions` and `/v1/users/{name}/sessions`: where people are signed in, and ending that.

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
};
use postway_domain::{
    Time,
    id::{SessionId, UserId},
};
use postway_store::record::{ChangeResult, DirectoryChange, UserKey, UserSession};
use serde::Serialize;
use utoipa::ToSchema;

use super::{NamedUser, find};
use crate::{
    auth::{AuthenticatedKey, CallerActor, TenantAdmin, authenticate},
    http::{error::ApiError, request_id::RequestId, resource::path_parameter},
    state::SharedState,
};

/// A browser in which a user is signed in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserSession)]
pub(crate) struct UserSessionView {
    /// The session's id.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    began_at: Time,
    /// When it ends by itself.
    #[schema(value_type = String, format = DateTime)]
    ends_at: Time,
    /// When it was last used, to some minutes.
    #[schema(value_type = String, format = DateTime)]
    seen_at: Time,
    /// How the user signed in: `password`, `passkey`, `oidc` or `invitation`.
    way: String,
    /// From which address.
    address: Option<String>,
    /// With which browser, as it says.
    agent: Option<String>,
    /// Whether it is the session of this request.
    current: bool,
}

/// The sessions of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserSessionList {
    /// The newest first.
    data: Vec<UserSessionView>,
}

/// The session that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedSession(SessionId);

path_parameter!(NamedSession, "id", |given| given.parse().map(NamedSession).map_err(|_| no_session()));

fn no_session() -> ApiError {
    ApiError::not_found("there is no such session, or it has ended")
}

async fn listed(
    app: &SharedState,
    user: UserId,
    current: Option<SessionId>,
) -> Result<Json<UserSessionList>, ApiError> {
    let now = app.clock.now();
    let sessions = app.store.user_sessions(user).await?.into_iter().filter(|session| session.ends_at > now);
    let view = |session: UserSession| UserSessionView {
        current: current == Some(session.id),
        id: session.id.to_string(),
        began_at: session.began_at,
        ends_at: session.ends_at,
        seen_at: session.seen_at,
        way: session.way,
        address: session.address,
        agent: session.agent,
    };
    Ok(Json(UserSessionList { data: sessions.map(view).collect() }))
}

/// List your sessions
///
/// Where you are signed in. For people; a key has no sessions to list.
#[utoipa::path(
    get,
    path = "/v1/sessions",
    operation_id = "listSessions",
    tag = "users",
    responses((status = 200, description = "The newest first", body = UserSessionList))
)]
pub(crate) async fn list_own(
    State(app): State<SharedState>,
    parts: Parts,
) -> Result<Json<UserSessionList>, ApiError> {
    match authenticate(&parts, &app).await? {
        AuthenticatedKey::User(own) => listed(&app, own.user.id, Some(own.session.id)).await,
        AuthenticatedKey::Admin | AuthenticatedKey::Key(_) => Err(for_people()),
    }
}

fn for_people() -> ApiError {
    ApiError::forbidden("this call is for users: a key has no sessions")
}

/// End your sessions
///
/// Signs you out everywhere, this session included: here at once, on other nodes within seconds.
#[utoipa::path(
    delete,
    path = "/v1/sessions",
    operation_id = "endSessions",
    tag = "users",
    responses((status = 204, description = "They have ended"))
)]
pub(crate) async fn end_own(
    State(app): State<SharedState>,
    request_id: RequestId,
    parts: Parts,
) -> Result<StatusCode, ApiError> {
    let AuthenticatedKey::User(own) = authenticate(&parts, &app).await? else { return Err(for_people()) };
    let actor = CallerActor::of_user(&own.user);
    end_all(&app, &actor, own.user.id, own.user.name.as_str(), &request_id).await
}

async fn end_all(
    app: &SharedState,
    actor: &CallerActor,
    user: UserId,
    name: &str,
    request_id: &RequestId,
) -> Result<StatusCode, ApiError> {
    let entry = app.audit(actor, None, "user.sign_out", name, request_id, None);
    app.store.change(DirectoryChange::EndUserSessions(user), Some(entry)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a session
///
/// One of your own; an admin ends those of its users, too.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    operation_id = "endSession",
    tag = "users",
    params(("id" = String, Path, description = "The session")),
    responses((status = 204, description = "It has ended"))
)]
pub(crate) async fn end(
    State(app): State<SharedState>,
    request_id: RequestId,
    NamedSession(id): NamedSession,
    mut parts: Parts,
) -> Result<StatusCode, ApiError> {
    let who = authenticate(&parts, &app).await?;
    let session = app.store.user_session(id).await?;
    let owner = match &session {
        Some(session) => app.store.user(&UserKey::Id(session.user)).await?,
        None => None,
    };
    let actor = match (&who, &owner) {
        (AuthenticatedKey::User(own), Some(owner)) if own.user.id == owner.id => {
            CallerActor::of_user(&own.user)
        }
        _ => {
            let admin = TenantAdmin::from_request_parts(&mut parts, &app).await;
            // Who is no admin learns nothing about the sessions of others.
            let admin = admin.map_err(|_| no_session())?;
            if !owner.as_ref().is_some_and(|owner| admin.tenants.covers(&owner.tenants)) {
                return Err(no_session());
            }
            admin.actor
        }
    };
    let name = owner.map(|owner| owner.name.to_string()).unwrap_or_default();
    let entry = app.audit(&actor, None, "user.sign_out", name, &request_id, None);
    match app.store.change(DirectoryChange::EndUserSession(id), Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(no_session()),
    }
}

/// List a user's sessions
///
/// For admins: where the user is signed in.
#[utoipa::path(
    get,
    path = "/v1/users/{name}/sessions",
    operation_id = "listUserSessions",
    tag = "users",
    params(("name" = String, Path, description = "The user's name")),
    responses((status = 200, description = "The newest first", body = UserSessionList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    NamedUser(name): NamedUser,
) -> Result<Json<UserSessionList>, ApiError> {
    let user = find(&app, &admin, &name).await?;
    listed(&app, user.id, None).await
}

/// End a user's sessions
///
/// For admins: signs the user out everywhere, here at once, on other nodes within seconds.
#[utoipa::path(
    delete,
    path = "/v1/users/{name}/sessions",
    operation_id = "endUserSessions",
    tag = "users",
    params(("name" = String, Path, description = "The user's name")),
    responses((status = 204, description = "They have ended"))
)]
pub(crate) async fn end_of_user(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    request_id: RequestId,
    NamedUser(name): NamedUser,
) -> Result<StatusCode, ApiError> {
    let user = find(&app, &admin, &name).await?;
    end_all(&app, &admin.actor, user.id, name.as_str(), &request_id).await
}
