//! Requests to a token endpoint (RFC 6749).

use std::time::Duration;

use postway_domain::{
    Time,
    oauth::{OAuthGrant, OAuthSecrets, OAuthSettings, OAuthUse},
};
use postway_net::http::{HttpAnswer, HttpAuth, HttpClient, SendRequest, parse_url};
use url::{Url, form_urlencoded};

use crate::{
    answer::{self, GrantedToken},
    assertion::ServiceAssertion,
    error::TokenError,
};

/// How long one call may take.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(15);
/// The longest response that is read.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The fields of a form.
pub(crate) type FormFields = Vec<(&'static str, String)>;

/// Requests a token by the grant, with the current refresh token.
pub(crate) async fn request_token(
    http: &HttpClient,
    settings: &OAuthSettings,
    secrets: &OAuthSecrets,
    refresh_token: Option<&str>,
    purpose: OAuthUse,
    username: &str,
    now: Time,
) -> Result<GrantedToken, TokenError> {
    let missing = |what: &str| TokenError::settings(format!("the grant has no {what}: set it"));
    let token_url = settings.token_url().ok_or_else(|| missing("token_url"))?;
    let scope = settings.scope(purpose);
    let mut form: FormFields = Vec::new();
    match settings.grant {
        OAuthGrant::ClientCredentials => form.push(("grant_type", "client_credentials".to_owned())),
        OAuthGrant::RefreshToken => {
            let token = refresh_token.ok_or_else(|| {
                TokenError::settings(
                    "nobody has consented yet: run `postway accounts authorize` or `postway mailboxes authorize`",
                )
            })?;
            form.push(("grant_type", "refresh_token".to_owned()));
            form.push(("refresh_token", token.to_owned()));
        }
        OAuthGrant::ServiceAccount => {
            let key = secrets.private_key.as_deref().ok_or_else(|| missing("private_key"))?;
            let assertion = ServiceAssertion {
                issuer: &settings.client_id,
                audience: &token_url,
                scope: scope.as_deref(),
                subject: Some(settings.subject.as_deref().unwrap_or(username)),
                at: now,
            };
            form.push(("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()));
            form.push(("assertion", assertion.sign(key)?));
            let (host, answer) = post(http, &token_url, &form, HttpAuth::None).await?;
            return answer::read_answer(&host, &answer, now);
        }
    }
    form.extend(scope.map(|scope| ("scope", scope)));
    exchange(http, &token_url, form, &settings.client_id, secrets.client_secret.as_deref(), now).await
}

/// Posts a form with the client's credentials, and reads the token in the response.
pub(crate) async fn exchange(
    http: &HttpClient,
    token_url: &str,
    form: FormFields,
    client_id: &str,
    client_secret: Option<&str>,
    now: Time,
) -> Result<GrantedToken, TokenError> {
    let mut whole = form.clone();
    whole.push(("client_id", client_id.to_owned()));
    whole.extend(client_secret.map(|secret| ("client_secret", secret.to_owned())));
    let (host, answer) = post(http, token_url, &whole, HttpAuth::None).await?;
    // Large providers accept the secret in the form; RFC 6749 2.3.1 requires servers to accept Basic
    // authentication, and some accept nothing else. A request of an unknown client does not use up a code or
    // refresh token.
    let is_unknown = answer.status == 401 || answer.body.windows(14).any(|part| part == b"invalid_client");
    match client_secret {
        Some(secret) if is_unknown && !answer.is_success() => {
            let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let auth = HttpAuth::basic(encode(client_id), encode(secret));
            let (host, answer) = post(http, token_url, &form, auth).await?;
            answer::read_answer(&host, &answer, now)
        }
        _ => answer::read_answer(&host, &answer, now),
    }
}

/// Posts a form. Returns the host, for errors, and the response.
pub(crate) async fn post(
    http: &HttpClient,
    url: &str,
    form: &FormFields,
    auth: HttpAuth,
) -> Result<(String, HttpAnswer), TokenError> {
    let url: Url = parse_url(url)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = SendRequest {
        url,
        body: body.into(),
        content_type: "application/x-www-form-urlencoded".to_owned(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        auth,
        timeout: CALL_MAX,
        answer_bytes_max: ANSWER_BYTES_MAX,
    };
    Ok((host, http.send(&request).await?))
}
