//! `POST /v1/session/invitation`: a person accepts an invitation.
//!
//! First the invitation is exchanged for the secret of an authenticator app and a challenge. Then a password
//! and a code of that app are sent, or a passkey that answers the challenge: they are stored, older ones are
//! replaced, all sessions of the user end, and one begins.

use axum::{
    Json,
    extract::{Request, State},
    http::{header, request::Parts},
    response::{AppendHeaders, IntoResponse, Response},
};
use postway_domain::{User, user::UserCredentials};
use postway_store::record::{ChangeResult, DirectoryChange, UserKey};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{SIGN_IN_BYTES_MAX, SessionView, passkey::PasskeyChallengeView, refuse_other_sites, user, view};
use crate::{
    auth::{
        AuthenticatedKey, CallerActor,
        person::{
            invitation::{UserEnrollment, UserInvitation},
            passkey::{NewPasskeyAnswer, PasskeyChallenge},
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

/// An invitation to accept: first `invitation` alone, then `enrollment` with `password` and `code`, or with a
/// `passkey`.
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
    /// What the browser answered to the challenge, instead of password and code.
    #[schema(example = json!(null))]
    passkey: Option<NewPasskeyAnswer>,
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
    /// The text to send with the password or the passkey.
    enrollment: Option<String>,
    /// The challenge for a passkey; its `ceremony` is the `enrollment`.
    passkey: Option<PasskeyChallengeView>,
    /// Codes that work once each where the app is lost; shown only now, and none with a passkey.
    recovery_codes: Option<Vec<String>>,
    /// The session that has begun.
    session: Option<SessionView>,
}

/// Accept an invitation
///
/// For browsers. Send the `invitation`: the answer has the secret for an authenticator app, a challenge for a
/// passkey, and an `enrollment`. Then send that with a `password` and a `code` of the app, or with a `passkey`:
/// the user has them from then on and nothing from before, earlier sessions end, and a new one begins. An
/// invitation works once, and for seven days.
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
    let form = "must be the invitation alone, or the enrollment with password and code, or with a passkey";
    let wrong = || ApiError::invalid(vec![FieldError::new("invitation", form)]);
    match serde_json::from_value(body.into()).map_err(|_| wrong())? {
        InvitationAcceptRequest {
            invitation: Some(invitation),
            enrollment: None,
            password: None,
            code: None,
            passkey: None,
        } => offer_secret(&app, invitation.trim()).await,
        InvitationAcceptRequest {
            invitation: None,
            enrollment: Some(enrollment),
            password: Some(password),
            code: Some(code),
            passkey: None,
        } => {
            let chosen = ChosenWay::Password { password, code };
            finish(&app, &parts, &enrollment, chosen, &request_id).await
        }
        InvitationAcceptRequest {
            invitation: None,
            enrollment: Some(enrollment),
            password: None,
            code: None,
            passkey: Some(passkey),
        } => finish(&app, &parts, &enrollment, ChosenWay::Passkey(passkey), &request_id).await,
        InvitationAcceptRequest { .. } => Err(wrong()),
    }
}

/// How an invited person wants to sign in from now on.
enum ChosenWay {
    Password { password: String, code: String },
    Passkey(NewPasskeyAnswer),
}

async fn finish(
    app: &AppState,
    parts: &Parts,
    enrollment: &str,
    chosen: ChosenWay,
    request_id: &RequestId,
) -> Result<Response, ApiError> {
    let enrollment = UserEnrollment::open(&app.secret_key, enrollment).ok_or_else(used_up)?;
    let enrolled = enroll(app, &enrollment, chosen, request_id).await?;
    let begun = user::begin_session(app, parts, enrolled.user, "invitation").await?;
    let answer = InvitationAnswerView {
        user: begun.signed_in.user.name.to_string(),
        recovery_codes: enrolled.recovery_codes,
        session: Some(view(app, &AuthenticatedKey::User(begun.signed_in.into()), &begun.cookie)),
        ..InvitationAnswerView::default()
    };
    let set = AppendHeaders(begun.cookies.map(|cookie| (header::SET_COOKIE, cookie)));
    Ok((set, Json(answer)).into_response())
}

fn used_up() -> ApiError {
    ApiError::forbidden("this invitation was used, replaced by a newer one, or has expired: ask for another")
}

async fn offer_secret(app: &AppState, text: &str) -> Result<Response, ApiError> {
    let invitation = UserInvitation::open(&app.secret_key, text).ok_or_else(used_up)?;
    let user = invited(app, &invitation).await?;
    let secret = TotpSecret::make(&mut rand::rng());
    let challenge = PasskeyChallenge::make(Some(user.id), app.clock.now());
    let enrollment =
        UserEnrollment::of(invitation, secret.to_base32(), challenge.challenge.clone(), app.clock.now());
    let enrollment = enrollment.seal(&app.secret_key)?;
    Ok(Json(InvitationAnswerView {
        user: user.name.to_string(),
        secret: Some(secret.to_base32()),
        otpauth_url: Some(secret.to_url(user.name.as_str())),
        passkey: Some(PasskeyChallengeView::for_new(&challenge, enrollment.clone(), &user)),
        enrollment: Some(enrollment),
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
    recovery_codes: Option<Vec<String>>,
}

async fn enroll(
    app: &AppState,
    enrollment: &UserEnrollment,
    chosen: ChosenWay,
    request_id: &RequestId,
) -> Result<EnrolledUser, ApiError> {
    let user = invited(app, &enrollment.invitation).await?;
    let now = app.clock.now();
    let way = match &chosen {
        ChosenWay::Password { .. } => "password",
        ChosenWay::Passkey(_) => "passkey",
    };
    let (credentials, recovery_codes) = match chosen {
        ChosenWay::Password { password, code } => {
            let (credentials, codes) = with_password(app, enrollment, &user, password, &code).await?;
            (credentials, Some(codes))
        }
        ChosenWay::Passkey(answer) => {
            let passkey = answer.accept(&enrollment.challenge, now);
            let passkey = passkey.map_err(|fault| ApiError::field("passkey", fault.0))?;
            (UserCredentials { passkeys: vec![passkey], ..UserCredentials::default() }, None)
        }
    };
    let credentials = UserCredentials { invitations: user.credentials.invitations + 1, ..credentials };
    let expected = user.version;
    let next = User { credentials, version: expected + 1, updated_at: now, ..user };
    let detail = json!({"way": "invitation", "chosen": way});
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

/// The credentials of who chose a password, and the recovery codes to show.
async fn with_password(
    app: &AppState,
    enrollment: &UserEnrollment,
    user: &User,
    password: String,
    code: &str,
) -> Result<(UserCredentials, Vec<String>), ApiError> {
    if let Some(refusal) = password::refusal(&password, user.name.as_str()) {
        return Err(ApiError::field("password", refusal));
    }
    let secret = TotpSecret::from_base32(&enrollment.totp).ok_or_else(used_up)?;
    let step = secret.step_of(code, 0, app.clock.now()).ok_or_else(|| {
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
        ..UserCredentials::default()
    };
    Ok((credentials, recovery_codes))
}
