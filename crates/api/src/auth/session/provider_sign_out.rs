//! `POST /v1/session/oidc/logout`: the provider says that a person's sessions are over (OpenID Connect
//! Back-Channel Logout 1.0).
//!
//! There is no key: the provider's signature under the token is what counts. A token that is not good ends
//! nothing and is counted as a wrong key of its sender. Sessions end here at once, and on other nodes within
//! seconds. If the store is down the answer is 503, and the provider may send the token again.

use axum::{
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_store::record::UserKey;

use super::{away::configured, user};
use crate::{
    auth::person::provider::{AwayFailure, end_sessions, identity_of},
    http::{body, error::ApiError, origin::RequestOrigin, request_id::RequestId},
    state::SharedState,
};

/// The largest body. A token has a bound of its own.
const BODY_BYTES_MAX: usize = 128 * 1024;

/// Sign a person out (for the provider)
///
/// Register this address at the provider as the client's back-channel logout URL. It takes a form with a
/// `logout_token` that names a subject (`sub`), and ends all sessions of that person.
#[utoipa::path(
    post,
    path = "/v1/session/oidc/logout",
    operation_id = "signOutPerson",
    tag = "operations",
    security(()),
    responses((status = 200, description = "Their sessions have ended, or there were none"))
)]
pub(crate) async fn sign_out_person(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let provider = configured(&app)?;
    let (parts, form) = request.into_parts();
    let client = RequestOrigin::from_parts(&parts).and_then(|origin| origin.client());
    if let Some(wait) = app.key_cache.wait(client) {
        return Err(ApiError::too_many_sign_ins(wait));
    }
    let form = body::read(&parts, form, BODY_BYTES_MAX).await?;
    let token = url::form_urlencoded::parse(&form).find(|(name, _)| name == "logout_token");
    let (_, token) = token.ok_or_else(|| ApiError::malformed("the form has no `logout_token`"))?;
    let subject = match provider.provider.read_logout(&token).await {
        Ok(subject) => subject,
        Err(AwayFailure::Unavailable(why)) => {
            let message = "the provider's keys cannot be read now; send the token again";
            return Err(ApiError::unavailable(message, why));
        }
        Err(AwayFailure::Refused(why)) => {
            tracing::warn!(why, "a logout token was not accepted");
            user::count("oidc_logout", "wrong");
            app.key_cache.count_wrong(client);
            return Err(ApiError::malformed(format!("the logout token is not accepted: {why}")));
        }
    };
    if let Some(user) = app.store.user(&UserKey::Identity(identity_of(provider, &subject))).await? {
        end_sessions(&app, &user, "logout_token", &request_id).await?;
    }
    user::count("oidc_logout", "ok");
    let no_store = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::OK, no_store).into_response())
}
