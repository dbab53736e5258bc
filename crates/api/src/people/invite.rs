//! `POST /v1/users/{name}/invitation`: lets a person set a password and an authenticator app here.

use axum::{Json, extract::State, http::StatusCode};
use postway_domain::{Time, User};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde::Serialize;
use utoipa::ToSchema;

use super::{NamedUser, find};
use crate::{
    auth::{TenantAdmin, person::invitation::UserInvitation},
    http::{error::ApiError, request_id::RequestId, resource::change_versioned},
    state::SharedState,
};

/// An invitation, shown only once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub(crate) struct InvitationView {
    /// The user's name.
    user: String,
    /// The text to pass on to the person.
    invitation: String,
    /// The page to open, behind the address of this server.
    #[schema(example = "/#/invitation/c2VhbGVk")]
    path: String,
    /// When it expires.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Time,
}

/// Invite a user
///
/// For admins. Whoever has the invitation sets a new password and authenticator app for the user, and ends
/// its sessions: pass it on in private. It works once and for seven days, and earlier ones stop working.
#[utoipa::path(
    post,
    path = "/v1/users/{name}/invitation",
    operation_id = "inviteUser",
    tag = "users",
    params(("name" = String, Path, description = "The user's name")),
    responses((status = 201, description = "The invitation", body = InvitationView))
)]
pub(crate) async fn invite(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    request_id: RequestId,
    NamedUser(name): NamedUser,
) -> Result<(StatusCode, Json<InvitationView>), ApiError> {
    let invited = change_versioned("user", || async {
        let current = find(&app, &admin, &name).await?;
        if current.disabled_at.is_some() {
            return Err(ApiError::conflict("the user is disabled; change that first"));
        }
        let expected = current.version;
        let mut next = User { version: expected + 1, ..current };
        next.credentials.invitations += 1;
        let entry = app.audit(&admin.actor, None, "user.invite", name.as_str(), &request_id, None);
        let change = DirectoryChange::UpdateUser(next.clone(), expected);
        let done = app.store.change(change, Some(entry)).await? == ChangeResult::Done;
        Ok(done.then_some(next))
    })
    .await?;
    let made = UserInvitation::of(&invited, app.clock.now());
    let invitation = made.seal(&app.secret_key)?;
    let view = InvitationView {
        user: invited.name.to_string(),
        path: format!("/#/invitation/{invitation}"),
        invitation,
        expires_at: made.until,
    };
    Ok((StatusCode::CREATED, Json(view)))
}
