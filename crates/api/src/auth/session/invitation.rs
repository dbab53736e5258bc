//! `POST /v1/session/invitation`: a person accepts an invitation.
//!
//! First the invitation is exchanged for the secret of an authenticator app. Then a password and a code of
//! that app are sent: both are stored, older ones are replaced, all sessions of the user end, and one begins.

use axum::{
    Json,
    extract::{Request, State},
    http::header,
    response::{AppendHeaders, IntoResponse, Response},
};
use postway_domain::{User, user::UserCredentials};
use postway_store::record::{ChangeResult, DirectoryChange, UserKey};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{SIGN_IN_BYTES_MAX, SessionView, refuse_other_sites, user, view};
use crate::{
    auth::{
        AuthenticatedKey, CallerActor,
        person::{
            invitation::{UserEnrollment, UserInvitation},
            password,
            totp::{TotpSecret, make_recovery_codes},
        },
    },
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    state::{AppState, SharedState},
};

/// An invitation to accept: first `invitation` alone, then `enrollment` with `password` and `code`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AcceptInvitation)]
pub(crate) struct InvitationAcceptRequest {
    /// The invitation.
    invitation: Option<String>,
    /// The text that the first answer had.
    #[schema(example = json!(null))]
    enrollment: Option<String>,
    /// The new password: at least 12 characters.
    #[schema(example = json!(null))]
    password: Option<String>,
    /// The code that the authenticator app shows.
    #[schema(example = json!(null))]
    code: Option<String>,
}

/// The answer to an invitation: first the app's secret, then the session with the recovery codes.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = InvitationAnswer)]
pub(crate) struct InvitationAnswerView {
    /// The user's name.
    user: String,
    /// The secret to type into an authenticator app.
    secret: Option<String>,
    /// The secret as a URL, which apps read.
    otpauth_url: Option<String>,
    /// The text to send with the password.
    enrollment: Option<String>,
    /// Codes that work once each where the app is lost; shown only now.
    recovery_codes: Option<Vec<String>>,
    /// The session that has begun.
    session: Option<SessionView>,
}

/// Accept an invitation
///
/// For browsers. Send the `invitation`: the answer has the secret for an authenticator app, and an
/// `enrollment`. Then send that with a `password` and a `code` of the app: the user has them from then on,
/// earlier sessions end, and a new one begins. An invitation works once, and for seven days.
#[utoipa::path(
    post,
    path = "/v1/session/invitation",
    operation_id = "acceptInvitation",
    tag = "users",
    security(()),
    request_body = InvitationAcceptRequest,
    responses((status = 200, description = "The secret; or the session, whose cookie is set", body = InvitationAnswerView))
)]
pub(crate) async fn accept(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    refuse_other_sites(&parts.headers)?;
    let body = body::json_object_within(Request::from_parts(parts.clone(), body), SIGN_IN_BYTES_MAX).await?;
    let form = "must be the invitation alone, or the enrollment with password and code";
    let wrong = || ApiError::invalid(vec![FieldError::new("invitation", form)]);
    match serde_json::from_value(body.into()).map_err(|_| wrong())? {
        InvitationAcceptRequest {
            invitation: Some(invitation),
            enrollment: None,
            password: None,
            code: None,
        } => offer_secret(&app, invitation.trim()).await,
        InvitationAcceptRequest {
            invitation: None,
            enrollment: Some(enrollment),
            password: Some(password),
            code: Some(code),
        } => {
            let enrollment = UserEnrollment::open(&app.secret_key, &enrollment).ok_or_else(used_up)?;
            let user = enroll(&app, &enrollment, password, &code, &request_id).await?;
            let begun = user::begin_session(&app, &parts, user.user, "invitation").await?;
            let answer = InvitationAnswerView {
                user: begun.signed_in.user.name.to_string(),
                recovery_codes: Some(user.recovery_codes),
                session: Some(view(&app, &AuthenticatedKey::User(begun.signed_in.into()), &begun.cookie)),
                ..InvitationAnswerView::default()
            };
            let set = AppendHeaders(begun.cookies.map(|cookie| (header::SET_COOKIE, cookie)));
            Ok((set, Json(answer)).into_response())
        }
        InvitationAcceptRequest { .. } => Err(wrong()),
    }
}

fn used_up() -> ApiError {
    ApiError::forbidden("this invitation was used, replaced by a newer one, or has expired: ask for another")
}

async fn offer_secret(app: &AppState, text: &str) -> Result<Response, ApiError> {
    let invitation = UserInvitation::open(&app.secret_key, text).ok_or_else(used_up)?;
    let user = invited(app, &invitation).await?;
    let secret = TotpSecret::make(&mut rand::rng());
    let enrollment = UserEnrollment::of(invitation, secret.to_base32(), app.clock.now());
    Ok(Json(InvitationAnswerView {
        user: user.name.to_string(),
        secret: Some(secret.to_base32()),
        otpauth_url: Some(secret.to_url(user.name.as_str())),
        enrollment: Some(enrollment.seal(&app.secret_key)?),
        ..InvitationAnswerView::default()
    })
    .into_response())
}

/// The user of an invitation that works.
async fn invited(app: &AppState, invitation: &UserInvitation) -> Result<User, ApiError> {
    let user = app.store.user(&UserKey::Id(invitation.user)).await?;
    user.filter(|user| invitation.fits(user, app.clock.now())).ok_or_else(used_up)
}

/// A user with new credentials, and the codes to show once.
struct EnrolledUser {
    user: User,
    recovery_codes: Vec<String>,
}

async fn enroll(
    app: &AppState,
    enrollment: &UserEnrollment,
    password: String,
    code: &str,
    request_id: &RequestId,
) -> Result<EnrolledUser, ApiError> {
    let user = invited(app, &enrollment.invitation).await?;
    if let Some(refusal) = password::refusal(&password, user.name.as_str()) {
        return Err(ApiError::field("password", refusal));
    }
    let now = app.clock.now();
    let secret = TotpSecret::from_base32(&enrollment.totp).ok_or_else(used_up)?;
    let step = secret.step_of(code, 0, now).ok_or_else(|| {
        ApiError::field(
            "code",
            "is not what the app shows for this secret now: check the clock of the device",
        )
    })?;
    let (recovery_codes, recovery) = make_recovery_codes(&mut rand::rng());
    let credentials = UserCredentials {
        password: Some(app.password_check.hash(password).await?),
        totp: Some(user::seal_totp(app, &secret)?),
        totp_step: step,
        recovery,
        invitations: user.credentials.invitations + 1,
    };
    let expected = user.version;
    let next = User { credentials, version: expected + 1, updated_at: now, ..user };
    let detail = json!({"way": "invitation"});
    let actor = CallerActor::of_user(&next);
    let entry = app.audit(&actor, None, "user.enroll", next.name.as_str(), request_id, Some(detail));
    // First, so that a crash in between leaves no session of who had the old password.
    app.store.change(DirectoryChange::EndUserSessions(next.id), None).await?;
    let change = DirectoryChange::UpdateUser(next.clone(), expected);
    if app.store.change(change, Some(entry)).await? != ChangeResult::Done {
        return Err(ApiError::conflict("the user was changed meanwhile; try again"));
    }
    Ok(EnrolledUser { user: next, recovery_codes })
}
