//! Signing in from a browser: the key once, then a cookie.
//!
//! The cookie is sealed under the gateway's secret key and contains the digest of the key, so the server
//! stores nothing and every node accepts it. A key that is revoked or expires ends its sessions, and so does
//! a new admin key. Only a session that was signed out is stored, until it would have expired, so that no
//! copy of its cookie works anywhere (`ended.rs`). No script can read the cookie (`HttpOnly`), no other site
//! can send it (`SameSite=Strict`), and a request that changes something must also carry `X-CSRF-Token`,
//! which only our own page can have read.

mod cookie;
mod ended;

use aws_lc_rs::{constant_time, hmac};
use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::{
    KeyDigest, KeyScope, Time,
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

/// A sign-in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SignIn)]
pub(crate) struct SignInRequest {
    /// A tenant's key, or the admin key.
    key: String,
}

/// The signed-in caller and its permissions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionView {
    /// Whether the caller signed in with the admin key.
    admin: bool,
    /// The key's tenant; absent for the admin key, which names one with `X-Tenant`.
    tenant: Option<String>,
    /// What the key may do.
    #[schema(value_type = Vec<String>)]
    scopes: Vec<KeyScope>,
    /// The token to send as `X-CSRF-Token` with every request that changes something.
    csrf_token: String,
    /// The server's version.
    version: &'static str,
}

/// Sign in
///
/// For browsers: sets a session cookie in exchange for a key. Programs send their key with each request
/// instead.
#[utoipa::path(
    post,
    path = "/v1/session",
    operation_id = "signIn",
    tag = "operations",
    security(()),
    request_body = SignInRequest,
    responses((status = 200, description = "Signed in; the cookie is set", body = SessionView))
)]
pub(crate) async fn sign_in(State(app): State<SharedState>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    refuse_other_sites(&parts.headers)?;
    let body = Request::from_parts(parts.clone(), body);
    let body = body::json_object_within(body, SIGN_IN_BYTES_MAX).await?;
    let SignInRequest { key } = serde_json::from_value(body.into()).map_err(|_| {
        ApiError::invalid(vec![FieldError::new("key", "must be the key to sign in with, and nothing else")])
    })?;
    let who = authenticate_key(key.trim().as_bytes(), &parts, &app).await?;
    let (admin, digest) = match &who {
        AuthenticatedKey::Admin => (true, app.admin_key.digest().to_vec()),
        AuthenticatedKey::Key(key) => (false, key.digest.0.to_vec()),
    };
    let now = app.clock.now();
    let content = SessionContent {
        id: SessionId::new(now, &mut rand::rng()),
        key: BASE64_URL_SAFE_NO_PAD.encode(digest),
        admin,
        at: now.as_millis(),
    };
    let sealed = seal(&app, &content)?;
    let view = view(&app, &who, &sealed);
    let set = cookie::set(&sealed, LASTS_MS / 1000, &parts)?;
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
    // A cookie that does not open has expired or was never valid.
    if let Some(content) = cookie::sealed(&parts).and_then(|sealed| open(&app, sealed)) {
        let ends_at = Time::from_millis(content.at.saturating_add(LASTS_MS));
        app.store.change(DirectoryChange::EndSession(content.id, ends_at), None).await?;
        app.ended_sessions.record_end(content.id);
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie::set("", 0, &parts)?)]).into_response())
}

/// The key behind a request's session cookie, if the cookie is valid. A request that changes something must
/// carry the token too.
pub(crate) async fn authenticated_key(
    parts: &Parts,
    app: &AppState,
) -> Result<Option<AuthenticatedKey>, ApiError> {
    let Some(cookie) = cookie::sealed(parts) else { return Ok(None) };
    let Some(content) = open(app, cookie) else { return Ok(None) };
    let Ok(digest) = BASE64_URL_SAFE_NO_PAD.decode(&content.key) else { return Ok(None) };
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        let token = parts.headers.get(CSRF_HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
        if !is_csrf_token(app, cookie, token) {
            let message =
                "a request that changes something needs the X-CSRF-Token of its session: reload the page";
            return Err(ApiError::forbidden(message));
        }
    }
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

fn view(app: &AppState, who: &AuthenticatedKey, cookie: &str) -> SessionView {
    let (admin, tenant, scopes) = match who {
        AuthenticatedKey::Admin => (true, None, KeyScope::ALL.to_vec()),
        AuthenticatedKey::Key(key) => (false, Some(key.tenant.to_string()), key.scopes.clone()),
    };
    let version = env!("CARGO_PKG_VERSION");
    SessionView { admin, tenant, scopes, csrf_token: csrf_token(app, cookie), version }
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
fn refuse_other_sites(headers: &HeaderMap) -> Result<(), ApiError> {
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
