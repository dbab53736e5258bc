//! `POST /v1/session/passkey`: a person signs in with a passkey.
//!
//! First the page asks for a challenge, then it sends what the device signed. Nothing is typed: the device
//! says whose passkey it is. The user's passkey is changed under the user's version in the transaction that
//! accepts the answer, so one answer opens one session, on whichever nodes it is tried.

use axum::{
    Json,
    extract::{Request, State},
    http::request::Parts,
    response::Response,
};
use postway_domain::User;
use postway_store::record::{ChangeResult, DirectoryChange, UserKey};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{SIGN_IN_BYTES_MAX, SessionView, refuse_other_sites, user};
use crate::{
    auth::{
        CallerActor,
        person::passkey::{ALGORITHMS, ANSWER_MS, PasskeyChallenge, PasskeySignature},
    },
    http::{
        body,
        error::{ApiError, FieldError},
        origin::RequestOrigin,
        request_id::RequestId,
    },
    state::{AppState, SharedState},
};

/// How often a sign-in is tried again when the user was changed meanwhile.
const TRIES_MAX: u32 = 3;

/// A challenge for a device.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PasskeyChallenge)]
pub(crate) struct PasskeyChallengeView {
    /// What the device signs, in base64url.
    pub(crate) challenge: String,
    /// The text to send back with the device's answer.
    pub(crate) ceremony: String,
    /// How long the person may take, in milliseconds.
    pub(crate) timeout_ms: i64,
    /// For a new passkey: the algorithms that may be used, the best first.
    pub(crate) algorithms: Option<Vec<i64>>,
    /// For a new passkey: the `user.id` to make it for, in base64url.
    pub(crate) user_handle: Option<String>,
    /// For a new passkey: the user's name.
    pub(crate) user: Option<String>,
    /// For a new passkey: the ids of those that the user has, which are not made again.
    pub(crate) known: Option<Vec<String>>,
}

impl PasskeyChallengeView {
    /// A challenge to sign in with.
    fn for_sign_in(challenge: &PasskeyChallenge, ceremony: String) -> Self {
        Self {
            challenge: challenge.challenge.clone(),
            ceremony,
            timeout_ms: ANSWER_MS,
            algorithms: None,
            user_handle: None,
            user: None,
            known: None,
        }
    }

    /// A challenge for a new passkey of this user.
    pub(crate) fn for_new(challenge: &PasskeyChallenge, ceremony: String, user: &User) -> Self {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        let known = user.credentials.passkeys.iter().map(|passkey| passkey.id.clone()).collect();
        Self {
            algorithms: Some(ALGORITHMS.to_vec()),
            user_handle: Some(BASE64_URL_SAFE_NO_PAD.encode(user.id.as_bytes())),
            user: Some(user.name.to_string()),
            known: Some(known),
            ..Self::for_sign_in(challenge, ceremony)
        }
    }
}

/// A sign-in with a passkey.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PasskeySignIn)]
pub(crate) struct PasskeySignInRequest {
    /// The text that came with the challenge.
    ceremony: String,
    /// What the device signed.
    passkey: PasskeySignature,
}

/// Ask for a challenge
///
/// For browsers: the first step of signing in with a passkey. The page passes `challenge` to
/// `navigator.credentials.get`.
#[utoipa::path(
    post,
    path = "/v1/session/passkey/challenge",
    operation_id = "challengePasskey",
    tag = "users",
    security(()),
    responses((status = 200, description = "The challenge", body = PasskeyChallengeView))
)]
pub(crate) async fn challenge(
    State(app): State<SharedState>,
    parts: Parts,
) -> Result<Json<PasskeyChallengeView>, ApiError> {
    refuse_other_sites(&parts.headers)?;
    let challenge = PasskeyChallenge::make(None, app.clock.now());
    let ceremony = challenge.seal(&app.secret_key)?;
    Ok(Json(PasskeyChallengeView::for_sign_in(&challenge, ceremony)))
}

/// Sign in with a passkey
///
/// For browsers: the second step. A challenge is answered once, within five minutes. A wrong answer is 401,
/// and too many of them 429.
#[utoipa::path(
    post,
    path = "/v1/session/passkey",
    operation_id = "signInWithPasskey",
    tag = "users",
    security(()),
    request_body = PasskeySignInRequest,
    responses((status = 200, description = "Signed in; the cookie is set", body = SessionView))
)]
pub(crate) async fn sign_in(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    refuse_other_sites(&parts.headers)?;
    let client = RequestOrigin::from_parts(&parts).and_then(|origin| origin.client());
    if let Some(wait) = app.key_cache.wait(client) {
        user::count("passkey", "throttled");
        return Err(ApiError::too_many_sign_ins(wait));
    }
    let body = body::json_object_within(Request::from_parts(parts.clone(), body), SIGN_IN_BYTES_MAX).await?;
    let form =
        "must be what the device answered: id, user_handle, client_data, authenticator_data, signature";
    let wrong = |_| ApiError::invalid(vec![FieldError::new("passkey", form)]);
    let tried: PasskeySignInRequest = serde_json::from_value(body.into()).map_err(wrong)?;
    match open(&app, &tried, &request_id).await? {
        Some(signed_in) => user::begin(&app, &parts, signed_in, "passkey").await,
        None => {
            user::count("passkey", "wrong");
            app.key_cache.count_wrong(client);
            Err(ApiError::wrong_passkey())
        }
    }
}

/// The user whose passkey answered, after the answer was used up. Whatever is wrong, the caller learns only
/// that it is; the log says what.
async fn open(
    app: &AppState,
    tried: &PasskeySignInRequest,
    request_id: &RequestId,
) -> Result<Option<User>, ApiError> {
    let refused = |why: &str| {
        tracing::info!(request_id = request_id.as_str(), why, "a passkey opened nothing");
        Ok(None)
    };
    let asked = match PasskeyChallenge::open(&app.secret_key, &tried.ceremony, None, app.clock.now()) {
        Ok(asked) => asked,
        Err(fault) => return refused(fault.0),
    };
    let Some(id) = tried.passkey.user() else { return refused("names no user") };
    for _ in 0..TRIES_MAX {
        let found = app.store.user(&UserKey::Id(id)).await?.filter(|user| user.disabled_at.is_none());
        let Some(user) = found else { return refused("is of nobody who may sign in") };
        let used = match tried.passkey.open(&user.credentials, &asked) {
            Ok(used) => used,
            Err(fault) => return refused(fault.0),
        };
        let actor = CallerActor::of_user(&user);
        let detail = json!({"way": "passkey", "passkey": used.name});
        let entry = app.audit(&actor, None, "user.sign_in", user.name.as_str(), request_id, Some(detail));
        let expected = user.version;
        let mut next = User { version: expected + 1, ..user };
        for passkey in next.credentials.passkeys.iter_mut().filter(|passkey| passkey.id == used.id) {
            passkey.clone_from(&used);
        }
        let change = DirectoryChange::UpdateUser(next.clone(), expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            return Ok(Some(next));
        }
    }
    Err(ApiError::conflict("the user is being changed by others; try again"))
}
