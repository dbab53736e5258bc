//! Signing in from a browser, as a person or with a key; then a cookie.
//!
//! The cookie is sealed under the gateway's secret key, so every node accepts it. That of a person names a
//! session of the store (`user.rs`). That of a key contains the key's digest: the server stores nothing, and
//! a key that is revoked or expires ends its sessions, as a new admin key does. Only a key's session that was
//! signed out is stored, until it would have expired, so that no copy of its cookie works anywhere
//! (`ended.rs`). No script can read the cookie (`HttpOnly`), no other site can send it (`SameSite=Strict`),
//! and a request that changes something must also carry `X-CSRF-Token`, which only our own page can have
//! read.

pub(crate) mod away;
mod cookie;
mod ended;
pub(crate) mod invitation;
pub(crate) mod passkey;
pub(crate) mod provider_sign_out;
pub(crate) mod user;

use aws_lc_rs::{constant_time, hmac};
use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{
    KeyDigest, KeyScope, Time, UserRole, UserTenants,
    id::SessionId,
    secret::{SealedSecret, SecretKey},
};
use postway_store::record::DirectoryChange;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub(crate) use cookie::shown_tenant;
pub(crate) use ended::EndedSessions;

use crate::{
    auth::{AuthenticatedKey, authenticate, authenticate_key},
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    state::{AppState, SharedState},
};

/// The header in which requests that change something carry their token.
pub(crate) const CSRF_HEADER: &str = "x-csrf-token";
/// How long a session lasts.
const LASTS_MS: i64 = 12 * 60 * 60 * 1000;
/// The purpose that the cookie is sealed for.
const PLACE: &str = "session";
/// The largest body of a sign-in: it is read before the caller is known.
const SIGN_IN_BYTES_MAX: usize = 16 * 1024;

/// The content of the cookie.
#[derive(Debug, Serialize, Deserialize)]
struct SessionContent {
    /// The session's id, by which it is signed out.
    id: SessionId,
    /// The digest of the key that was shown.
    key: String,
    /// Whether it was the admin key.
    admin: bool,
    /// When the session began, in milliseconds.
    at: i64,
}

/// A sign-in: a `key`, or a `user` with `password` and `code`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SignIn)]
pub(crate) struct SignInRequest {
    /// A tenant's key, or the admin key.
    key: Option<String>,
    /// A user's name.
    #[schema(example = json!(null))]
    user: Option<String>,
    /// The user's password.
    #[schema(example = json!(null))]
    password: Option<String>,
    /// The code that the authenticator app shows, or a recovery code.
    #[schema(example = json!(null))]
    code: Option<String>,
}

/// The signed-in caller and its permissions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionView {
    /// Whether the caller may do everything: the admin key, or a user with the role `admin` for all tenants.
    admin: bool,
    /// The only tenant; absent for who has several, and names one with `X-Tenant`.
    tenant: Option<String>,
    /// The tenants of a user who has some; absent for a key, and for who has all of them.
    tenants: Option<Vec<String>>,
    /// What the caller may do.
    #[schema(value_type = Vec<String>)]
    scopes: Vec<KeyScope>,
    /// The user's name; absent for a key.
    user: Option<String>,
    /// How the user signed in: `password`, `passkey`, `oidc` or `invitation`; absent for a key.
    way: Option<String>,
    /// The user's role; absent for a key.
    #[schema(value_type = Option<String>)]
    role: Option<UserRole>,
    /// The token to send as `X-CSRF-Token` with every request that changes something.
    csrf_token: String,
    /// The server's version.
    version: &'static str,
}

/// Sign in
///
/// For browsers: sets a session cookie in exchange for a key, or for a user's name, password and code.
/// Programs send their key with each request instead. A wrong name, password or code is 401, and too many of
/// them 429.
#[utoipa::path(
    post,
    path = "/v1/session",
    operation_id = "signIn",
    tag = "operations",
    security(()),
    request_body = SignInRequest,
    responses((status = 200, description = "Signed in; the cookie is set", body = SessionView))
)]
pub(crate) async fn sign_in(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    refuse_other_sites(&parts.headers)?;
    let body = Request::from_parts(parts.clone(), body);
    let body = body::json_object_within(body, SIGN_IN_BYTES_MAX).await?;
    let form = "must be the key to sign in with, or a user with password and code, and nothing else";
    let wrong = || ApiError::invalid(vec![FieldError::new("key", form)]);
    match serde_json::from_value(body.into()).map_err(|_| wrong())? {
        SignInRequest { key: Some(key), user: None, password: None, code: None } => {
            sign_in_key(&app, &parts, &key).await
        }
        SignInRequest { key: None, user: Some(name), password: Some(password), code: Some(code) } => {
            user::sign_in(&app, &parts, &request_id, user::TriedPassword { name, password, code }).await
        }
        SignInRequest { .. } => Err(wrong()),
    }
}

async fn sign_in_key(app: &AppState, parts: &Parts, key: &str) -> Result<Response, ApiError> {
    let who = authenticate_key(key.trim().as_bytes(), parts, app).await?;
    let (admin, digest) = match &who {
        AuthenticatedKey::Key(key) => (false, key.digest.0.to_vec()),
        AuthenticatedKey::Admin | AuthenticatedKey::User(_) => (true, app.admin_key.digest().to_vec()),
    };
    let now = app.clock.now();
    let content = SessionContent {
        id: SessionId::new(now, &mut rand::rng()),
        key: BASE64_URL_SAFE_NO_PAD.encode(digest),
        admin,
        at: now.as_millis(),
    };
    let sealed = seal(app, &content)?;
    let view = view(app, &who, &sealed);
    let set = cookie::set(&sealed, LASTS_MS / 1000, parts)?;
    Ok(([(header::SET_COOKIE, set)], Json(view)).into_response())
}

/// Show the session
///
/// For browsers: who is signed in, and the token that requests that change something must carry. 401 if no
/// one is signed in.
#[utoipa::path(
    get,
    path = "/v1/session",
    operation_id = "getSession",
    tag = "operations",
    responses((status = 200, description = "The session", body = SessionView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    parts: Parts,
) -> Result<Json<SessionView>, ApiError> {
    let who = authenticate(&parts, &app).await?;
    Ok(Json(view(&app, &who, cookie::sealed(&parts).unwrap_or_default())))
}

/// Sign out
///
/// Removes the cookie and ends its session. A copy of the cookie stops working: here at once, on other nodes
/// within seconds.
#[utoipa::path(
    delete,
    path = "/v1/session",
    operation_id = "signOut",
    tag = "operations",
    security(()),
    responses((status = 204, description = "The cookie is removed and its session has ended"))
)]
pub(crate) async fn sign_out(State(app): State<SharedState>, parts: Parts) -> Result<Response, ApiError> {
    refuse_other_sites(&parts.headers)?;
    if let Some(session) = cookie::sealed(&parts).and_then(|sealed| user::open(&app, sealed)) {
        app.store.change(DirectoryChange::EndUserSession(session), None).await?;
    }
    // A cookie that does not open has expired or was never valid.
    if let Some(content) = cookie::sealed(&parts).and_then(|sealed| open(&app, sealed)) {
        let ends_at = Time::from_millis(content.at.saturating_add(LASTS_MS));
        app.store.change(DirectoryChange::EndSession(content.id, ends_at), None).await?;
        app.ended_sessions.record_end(content.id);
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie::set("", 0, &parts)?)]).into_response())
}

/// The key or the user behind a request's session cookie, if the cookie is valid. A request that changes
/// something must carry the token too.
pub(crate) async fn authenticated_key(
    parts: &Parts,
    app: &AppState,
) -> Result<Option<AuthenticatedKey>, ApiError> {
    let Some(cookie) = cookie::sealed(parts) else { return Ok(None) };
    if let Some(session) = user::open(app, cookie) {
        check_csrf_token(app, cookie, parts)?;
        return Ok(app.user_sessions.find(session, app).await?.map(AuthenticatedKey::User));
    }
    let Some(content) = open(app, cookie) else { return Ok(None) };
    let Ok(digest) = BASE64_URL_SAFE_NO_PAD.decode(&content.key) else { return Ok(None) };
    check_csrf_token(app, cookie, parts)?;
    if app.ended_sessions.is_ended(content.id, &*app.store).await? {
        return Ok(None);
    }
    if content.admin {
        let same = constant_time::verify_slices_are_equal(&digest, app.admin_key.digest()).is_ok();
        return Ok(same.then_some(AuthenticatedKey::Admin));
    }
    let Ok(digest) = digest.try_into() else { return Ok(None) };
    Ok(app.key_cache.valid_digest(KeyDigest(digest), app).await?.map(AuthenticatedKey::Key))
}

/// Refuses a request that changes something and lacks the token of its session.
fn check_csrf_token(app: &AppState, cookie: &str, parts: &Parts) -> Result<(), ApiError> {
    let token = parts.headers.get(CSRF_HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
    if matches!(parts.method, Method::GET | Method::HEAD) || is_csrf_token(app, cookie, token) {
        return Ok(());
    }
    let message = "a request that changes something needs the X-CSRF-Token of its session: reload the page";
    Err(ApiError::forbidden(message))
}

pub(crate) fn view(app: &AppState, who: &AuthenticatedKey, cookie: &str) -> SessionView {
    let csrf_token = csrf_token(app, cookie);
    let version = env!("CARGO_PKG_VERSION");
    let bare = SessionView {
        admin: false,
        tenant: None,
        tenants: None,
        scopes: Vec::new(),
        user: None,
        way: None,
        role: None,
        csrf_token,
        version,
    };
    match who {
        AuthenticatedKey::Admin => SessionView { admin: true, scopes: KeyScope::ALL.to_vec(), ..bare },
        AuthenticatedKey::Key(key) => {
            SessionView { tenant: Some(key.tenant.to_string()), scopes: key.scopes.clone(), ..bare }
        }
        AuthenticatedKey::User(signed_in) => {
            let user = &signed_in.user;
            let tenants: Option<Vec<String>> = match &user.tenants {
                UserTenants::All => None,
                UserTenants::Named(named) => Some(named.iter().map(ToString::to_string).collect()),
            };
            SessionView {
                admin: user.is_full_admin(),
                tenant: tenants.as_ref().and_then(|tenants| match tenants.as_slice() {
                    [only] => Some(only.clone()),
                    _ => None,
                }),
                tenants,
                scopes: KeyScope::ALL.into_iter().filter(|scope| user.may(*scope)).collect(),
                user: Some(user.name.to_string()),
                way: Some(signed_in.session.way.clone()),
                role: Some(user.role),
                ..bare
            }
        }
    }
}

fn csrf_token(app: &AppState, cookie: &str) -> String {
    csrf_token_under(&app.secret_key, cookie)
}

/// The token is bound to the cookie: another session's token is of no use.
fn csrf_token_under(secret_key: &SecretKey, cookie: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret_key.derive("csrf"));
    BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key, cookie.as_bytes()))
}

/// A page that was loaded before the secret key was replaced keeps working, like its cookie.
fn is_csrf_token(app: &AppState, cookie: &str, token: &[u8]) -> bool {
    let is_of = |key: &SecretKey| {
        constant_time::verify_slices_are_equal(token, csrf_token_under(key, cookie).as_bytes()).is_ok()
    };
    app.secret_key.generations().any(is_of)
}

fn seal(app: &AppState, content: &SessionContent) -> Result<String, ApiError> {
    let text = serde_json::to_string(content).map_err(|error| ApiError::internal(error.to_string()))?;
    let sealed = app.secret_key.seal(PLACE, &text).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(sealed.0))
}

fn open(app: &AppState, cookie: &str) -> Option<SessionContent> {
    let sealed = SealedSecret(BASE64_URL_SAFE_NO_PAD.decode(cookie).ok()?);
    let content: SessionContent = serde_json::from_str(&app.secret_key.open(PLACE, &sealed).ok()?).ok()?;
    let age = app.clock.now().as_millis() - Time::from_millis(content.at).as_millis();
    (0..LASTS_MS).contains(&age).then_some(content)
}

/// A browser says which site a request comes from; other programs say nothing.
pub(super) fn refuse_other_sites(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(ApiError::forbidden("signing in and out is for pages of this server alone")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_sites_sign_nobody_in() {
        for (site, fits) in
            [("same-origin", true), ("none", true), ("cross-site", false), ("same-site", false)]
        {
            let headers = HeaderMap::from_iter([(
                header::HeaderName::from_static("sec-fetch-site"),
                HeaderValue::from_static(site),
            )]);
            assert_eq!(refuse_other_sites(&headers).is_ok(), fits, "{site}");
        }
        assert!(refuse_other_sites(&HeaderMap::new()).is_ok());
    }
}
