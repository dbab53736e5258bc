//! Sessions of people: signing in with a password and a code, and what the cookie of such a session holds.
//!
//! Whatever is wrong, the answer is the same: nobody learns whether the name exists, or which part was right.
//! A code is used up in the same transaction that checks the user's version, so of two sign-ins with one code
//! one fails, on whichever nodes they are.

use std::time::Instant;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{AppendHeaders, IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{
    Time, User, UserName,
    id::{SessionId, UserId},
    secret::SealedSecret,
};
use postway_store::record::{ChangeResult, DirectoryChange, UserKey, UserSession};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{LASTS_MS, cookie, view};
use crate::{
    auth::{
        AuthenticatedKey, CallerActor,
        person::{
            SignedInUser, invitation as sealed,
            pace::TrierDigest,
            totp::{TotpSecret, recovery_digest},
        },
    },
    http::{error::ApiError, origin::RequestOrigin, request_id::RequestId},
    state::AppState,
};

/// The purposes that cookies are sealed for.
const SESSION: &str = "user_session";
const BROWSER: &str = "user_browser";
/// The place of a user's authenticator secret.
const TOTP: &str = "user_totp";
/// How often a sign-in is tried again when the user was changed meanwhile.
const TRIES_MAX: u32 = 3;
/// The longest text of a browser about itself that is kept.
const AGENT_CHARS_MAX: usize = 200;

/// What somebody who wants to sign in has typed.
pub(super) struct TriedPassword {
    pub(super) name: String,
    pub(super) password: String,
    pub(super) code: String,
}

/// The content of a session cookie.
#[derive(Serialize, Deserialize)]
struct UserSessionContent {
    session: SessionId,
}

/// The content of the cookie of a browser in which a user has signed in before.
#[derive(Serialize, Deserialize)]
struct KnownBrowserContent {
    user: UserId,
    browser: SessionId,
}

/// The session that a cookie names.
pub(super) fn open(app: &AppState, cookie: &str) -> Option<SessionId> {
    let content: UserSessionContent = sealed::open(&app.secret_key, SESSION, cookie)?;
    Some(content.session)
}

/// Signs in with a name, a password and a code.
pub(super) async fn sign_in(
    app: &AppState,
    parts: &Parts,
    request_id: &RequestId,
    tried: TriedPassword,
) -> Result<Response, ApiError> {
    let client = RequestOrigin::from_parts(parts).and_then(|origin| origin.client());
    if let Some(wait) = app.key_cache.wait(client) {
        return Err(ApiError::too_many_sign_ins(wait));
    }
    let name = tried.name.parse::<UserName>().ok();
    let found = match &name {
        Some(name) => app.store.user(&UserKey::Name(name.clone())).await?,
        None => None,
    };
    let trier = trier_of(app, parts, found.as_ref(), name.as_ref());
    app.sign_in_pace.take(trier, Instant::now()).map_err(|wait| {
        count("password", "throttled");
        ApiError::too_many_sign_ins(wait)
    })?;
    let hash = found.as_ref().and_then(|user| user.credentials.password.as_deref());
    let is_password = app.password_check.verify(tried.password, hash).await?;
    let signed_in = match found.filter(|user| is_password && user.disabled_at.is_none()) {
        Some(user) => use_code(app, user, &tried.code, request_id).await?,
        None => None,
    };
    match signed_in {
        Some(user) => {
            app.sign_in_pace.forgive(trier, Instant::now());
            begin(app, parts, user, "password").await
        }
        None => {
            count("password", "wrong");
            app.key_cache.count_wrong(client);
            Err(ApiError::wrong_credentials())
        }
    }
}

/// Whose tries this one is counted among.
fn trier_of(app: &AppState, parts: &Parts, user: Option<&User>, name: Option<&UserName>) -> TrierDigest {
    let known: Option<KnownBrowserContent> =
        cookie::known_browser(parts).and_then(|text| sealed::open(&app.secret_key, BROWSER, text));
    match (known, user) {
        (Some(known), Some(user)) if known.user == user.id => {
            TrierDigest::browser(&known.browser.to_string())
        }
        _ => TrierDigest::account(name.map_or("", UserName::as_str)),
    }
}

/// Uses up the code of the authenticator app, or a recovery code; `None` if it is neither.
async fn use_code(
    app: &AppState,
    mut user: User,
    code: &str,
    request_id: &RequestId,
) -> Result<Option<User>, ApiError> {
    for _ in 0..TRIES_MAX {
        let (expected, now) = (user.version, app.clock.now());
        let Some(secret) = totp_secret(app, &user) else { return Ok(None) };
        let mut next = user.clone();
        let by = match secret.step_of(code, user.credentials.totp_step, now) {
            Some(step) => {
                next.credentials.totp_step = step;
                "code"
            }
            None => {
                let digest = recovery_digest(code);
                next.credentials.recovery.retain(|left| *left != digest);
                if next.credentials.recovery.len() == user.credentials.recovery.len() {
                    return Ok(None);
                }
                "recovery_code"
            }
        };
        next.version = expected + 1;
        let actor = CallerActor::of_user(&user);
        let detail = json!({"way": "password", "by": by});
        let entry = app.audit(&actor, None, "user.sign_in", user.name.as_str(), request_id, Some(detail));
        let change = DirectoryChange::UpdateUser(next.clone(), expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            return Ok(Some(next));
        }
        // Somebody else used a code, or an admin changed the user: the decision is made anew.
        let read = app.store.user(&UserKey::Id(user.id)).await?;
        let Some(read) = read.filter(|read| {
            read.disabled_at.is_none() && read.credentials.password == user.credentials.password
        }) else {
            return Ok(None);
        };
        user = read;
    }
    Err(ApiError::conflict("the user is being changed by others; try again"))
}

/// The secret of the user's authenticator app.
fn totp_secret(app: &AppState, user: &User) -> Option<TotpSecret> {
    let stored = user.credentials.totp.as_deref()?;
    let sealed = SealedSecret(BASE64_URL_SAFE_NO_PAD.decode(stored).ok()?);
    TotpSecret::from_base32(&app.secret_key.open(TOTP, &sealed).ok()?)
}

/// The secret of an authenticator app as it is stored.
pub(crate) fn seal_totp(app: &AppState, secret: &TotpSecret) -> Result<String, ApiError> {
    let sealed = app.secret_key.seal(TOTP, &secret.to_base32()).map_err(ApiError::internal)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(sealed.0))
}

/// Seals a stored secret of an authenticator app with the newest key; `None` if it is so already.
pub(crate) fn renew_totp(app: &AppState, stored: &str) -> Result<Option<String>, ()> {
    let sealed = SealedSecret(BASE64_URL_SAFE_NO_PAD.decode(stored).map_err(drop)?);
    let renewed = app.secret_key.renew(TOTP, &sealed).map_err(drop)?;
    Ok(renewed.map(|sealed| BASE64_URL_SAFE_NO_PAD.encode(sealed.0)))
}

/// Begins a session of this user, and sets its cookies.
pub(super) async fn begin(
    app: &AppState,
    parts: &Parts,
    user: User,
    way: &'static str,
) -> Result<Response, ApiError> {
    let begun = begin_session(app, parts, user, way).await?;
    let set = AppendHeaders(begun.cookies.map(|cookie| (header::SET_COOKIE, cookie)));
    let shown = view(app, &AuthenticatedKey::User(begun.signed_in.into()), &begun.cookie);
    Ok((StatusCode::OK, set, Json(shown)).into_response())
}

/// A session that has just begun.
pub(super) struct BegunSession {
    pub(super) signed_in: SignedInUser,
    /// The session cookie.
    pub(super) cookie: String,
    /// The headers that set the cookies.
    pub(super) cookies: [HeaderValue; 2],
}

/// Begins a session of this user.
pub(super) async fn begin_session(
    app: &AppState,
    parts: &Parts,
    user: User,
    way: &'static str,
) -> Result<BegunSession, ApiError> {
    let now = app.clock.now();
    let agent = parts.headers.get(header::USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let session = UserSession {
        id: SessionId::new(now, &mut rand::rng()),
        user: user.id,
        began_at: now,
        ends_at: Time::from_millis(now.as_millis().saturating_add(LASTS_MS)),
        seen_at: now,
        way: way.to_owned(),
        address: RequestOrigin::from_parts(parts).map(|origin| origin.address.to_string()),
        agent: agent.map(|agent| agent.chars().take(AGENT_CHARS_MAX).collect()),
    };
    let content = UserSessionContent { session: session.id };
    let cookie = sealed::seal(&app.secret_key, SESSION, &content)?;
    let browser = KnownBrowserContent { user: user.id, browser: session.id };
    let browser = sealed::seal(&app.secret_key, BROWSER, &browser)?;
    let cookies =
        [cookie::set(&cookie, LASTS_MS / 1000, parts)?, cookie::set_known_browser(&browser, parts)?];
    app.store.change(DirectoryChange::BeginUserSession(session.clone()), None).await?;
    count(way, "ok");
    Ok(BegunSession { signed_in: SignedInUser { user, session }, cookie, cookies })
}

/// Counts a sign-in.
pub(super) fn count(way: &'static str, outcome: &'static str) {
    metrics::counter!("postway_sign_ins_total", "way" => way, "outcome" => outcome).increment(1);
}
