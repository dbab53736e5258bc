//! `/v1/session/oidc`: signing in at a provider, and coming back.
//!
//! What is needed to finish travels in a sealed cookie of ten minutes, so any node can finish what another
//! began, and an answer that this browser did not ask for opens nothing. Whatever goes wrong, the browser
//! ends on our page with a word that the page explains; the log has the provider's own words.

use aws_lc_rs::constant_time;
use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, Uri, header, request::Parts},
    response::{AppendHeaders, IntoResponse, Response},
};
use postway_domain::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{cookie, user};
use crate::{
    auth::person::{
        invitation as sealed,
        provider::{AwayFailure, AwaySignIn, ProviderSignIn},
    },
    http::{error::ApiError, request_id::RequestId},
    state::{AppState, SharedState},
};

/// The purpose that the cookie is sealed for.
const AWAY: &str = "oidc_sign_in";
/// The end of the address that the provider sends people back to.
const CALLBACK: &str = "v1/session/oidc/callback";
/// The longest code that is passed on.
const CODE_BYTES_MAX: usize = 4_096;

/// The content of the cookie.
#[derive(Serialize, Deserialize)]
struct AwayContent {
    state: String,
    nonce: String,
    verifier: String,
    /// When the sign-in began.
    at: Time,
}

/// The ways to sign in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SignInWays)]
pub(crate) struct SignInWaysView {
    /// What people call the provider at which they can sign in; null if no provider is configured.
    provider: Option<String>,
}

/// Show the ways to sign in
///
/// For browsers: whether there is a provider beside keys, and users with a password.
#[utoipa::path(
    get,
    path = "/v1/session/ways",
    operation_id = "getSignInWays",
    tag = "operations",
    security(()),
    responses((status = 200, description = "The ways", body = SignInWaysView))
)]
pub(crate) async fn ways(State(app): State<SharedState>) -> Json<SignInWaysView> {
    Json(SignInWaysView { provider: app.provider.as_ref().map(|provider| provider.name.clone()) })
}

/// Sign in at the provider
///
/// For browsers: goes to the provider's page. 404 where no provider is configured.
#[utoipa::path(
    get,
    path = "/v1/session/oidc",
    operation_id = "signInAtProvider",
    tag = "operations",
    security(()),
    responses((status = 303, description = "To the provider"))
)]
pub(crate) async fn begin(State(app): State<SharedState>, parts: Parts) -> Result<Response, ApiError> {
    let provider = configured(&app)?;
    let begun = match provider.provider.begin(&provider.redirect_url).await {
        Ok(begun) => begun,
        Err(failure) => return Ok(back_with(word_of(&failure), &parts)?.into_response()),
    };
    let content =
        AwayContent { state: begun.state, nonce: begun.nonce, verifier: begun.verifier, at: app.clock.now() };
    let sealed = sealed::seal(&app.secret_key, AWAY, &content)?;
    let set = cookie::set_away(&sealed, cookie::AWAY_S, &parts)?;
    Ok(redirect(&begun.url, [set])?.into_response())
}

/// Come back from the provider
///
/// For browsers: the provider sends them here. Sets the session cookie and goes to the page.
#[utoipa::path(
    get,
    path = "/v1/session/oidc/callback",
    operation_id = "finishSignInAtProvider",
    tag = "operations",
    security(()),
    params(
        ("code" = Option<String>, Query, description = "The provider's code"),
        ("state" = Option<String>, Query, description = "What was sent to the provider"),
        ("error" = Option<String>, Query, description = "Why the provider refused"),
    ),
    responses((status = 303, description = "To the page"))
)]
pub(crate) async fn finish(
    State(app): State<SharedState>,
    request_id: RequestId,
    uri: Uri,
    parts: Parts,
) -> Result<Response, ApiError> {
    let provider = configured(&app)?;
    // A provider may add parameters of its own, so unknown ones are no error.
    let query: Vec<(String, String)> =
        url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let given = |name: &str| query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
    let Some(begun) = begun_here(&app, &parts, given("state").unwrap_or_default()) else {
        user::count("oidc", "wrong");
        return Ok(back_with("expired", &parts)?.into_response());
    };
    let Some(code) = given("code").filter(|code| code.len() <= CODE_BYTES_MAX) else {
        let said: String = given("error").unwrap_or("no code").chars().take(100).collect();
        tracing::warn!(request_id = request_id.as_str(), said, "the provider signed nobody in");
        user::count("oidc", "wrong");
        return Ok(back_with("refused", &parts)?.into_response());
    };
    let claims = match provider.provider.redeem(code, &begun, &provider.redirect_url).await {
        Ok(claims) => claims,
        Err(failure) => {
            user::count("oidc", "wrong");
            return Ok(back_with(word_of(&failure), &parts)?.into_response());
        }
    };
    match provider.user_of(&app, &claims, &request_id).await? {
        Ok(found) => {
            let begun = user::begin_session(&app, &parts, found, "oidc").await?;
            let [session, browser] = begun.cookies;
            Ok(redirect("/", [session, browser, cookie::set_away("", 0, &parts)?])?.into_response())
        }
        Err(refusal) => {
            let why = refusal.as_str();
            tracing::warn!(
                request_id = request_id.as_str(),
                why,
                "a person whom the provider knows was not signed in"
            );
            user::count("oidc", "refused");
            Ok(back_with(why, &parts)?.into_response())
        }
    }
}

/// Sign out at the provider
///
/// For browsers that have signed out here: goes to the provider's page for signing out, which comes back; to
/// our page where the provider has none.
#[utoipa::path(
    get,
    path = "/v1/session/oidc/logout",
    operation_id = "signOutAtProvider",
    tag = "operations",
    security(()),
    responses((status = 303, description = "To the provider, or to the page"))
)]
pub(crate) async fn logout(State(app): State<SharedState>) -> Result<Response, ApiError> {
    let provider = configured(&app)?;
    let home = provider.redirect_url.trim_end_matches(CALLBACK);
    let url = provider.provider.logout_url(home).await;
    Ok(redirect(url.as_deref().unwrap_or("/"), [])?.into_response())
}

pub(super) fn configured(app: &AppState) -> Result<&ProviderSignIn, ApiError> {
    let missing = || ApiError::not_found("there is no provider to sign in at: the operator sets oidc.issuer");
    app.provider.as_deref().ok_or_else(missing)
}

/// The sign-in that this browser has begun, if the answer is to it and not too late.
fn begun_here(app: &AppState, parts: &Parts, state: &str) -> Option<AwaySignIn> {
    let content: AwayContent = sealed::open(&app.secret_key, AWAY, cookie::away(parts)?)?;
    let age = app.clock.now().as_millis() - content.at.as_millis();
    let is_ours = constant_time::verify_slices_are_equal(content.state.as_bytes(), state.as_bytes()).is_ok();
    let AwayContent { state, nonce, verifier, .. } = content;
    let is_in_time = (0..cookie::AWAY_S * 1_000).contains(&age);
    (is_ours && is_in_time).then(|| AwaySignIn { url: String::new(), state, nonce, verifier })
}

fn word_of(failure: &AwayFailure) -> &'static str {
    match failure {
        AwayFailure::Unavailable(why) => {
            tracing::warn!(why, "the provider is not available");
            "unavailable"
        }
        AwayFailure::Refused(why) => {
            tracing::warn!(why, "the provider signed nobody in");
            "refused"
        }
    }
}

/// To our page, which explains the word.
fn back_with(word: &str, parts: &Parts) -> Result<Redirection<1>, ApiError> {
    redirect(&format!("/#/refused/{word}"), [cookie::set_away("", 0, parts)?])
}

type Redirection<const N: usize> = (
    StatusCode,
    [(header::HeaderName, HeaderValue); 1],
    AppendHeaders<[(header::HeaderName, HeaderValue); N]>,
);

fn redirect<const N: usize>(to: &str, cookies: [HeaderValue; N]) -> Result<Redirection<N>, ApiError> {
    let to = HeaderValue::from_str(to).map_err(ApiError::internal)?;
    let set = AppendHeaders(cookies.map(|cookie| (header::SET_COOKIE, cookie)));
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, to)], set))
}
