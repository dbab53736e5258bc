//! Obtains a person's consent: by a code that the person enters on another device (RFC 8628), or in a browser
//! that redirects to this machine (RFC 8252, with PKCE, RFC 7636). Either flow ends with a refresh token for
//! the grant.

use std::time::Duration;

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::Time;
use postway_net::http::{HttpAuth, HttpClient};
use rand::Rng;
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use url::Url;

use crate::{
    error::{TokenError, TokenErrorKind, shorten_text},
    request::{FormFields, exchange, post},
};

/// The longest wait for a person's consent.
const CONSENT_MAX: Duration = Duration::from_secs(15 * 60);
/// The polling interval if the server names none (RFC 8628 3.2).
const INTERVAL_DEFAULT: Duration = Duration::from_secs(5);
/// The longest polling interval.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// A placeholder for the current time: the access token of a consent is not kept, so its expiry does not
/// matter.
fn undated() -> Time {
    Time::from_millis(0)
}

/// The OAuth client that asks for consent.
#[derive(Clone, Debug)]
pub struct ConsentClient {
    /// The URL of the token endpoint.
    pub token_url: String,
    /// Its id.
    pub client_id: String,
    /// Its secret; public clients have none.
    pub client_secret: Option<secrecy::SecretString>,
    /// The requested scope.
    pub scope: Option<String>,
}

/// A pending consent by code.
#[derive(Clone, Debug, Deserialize)]
pub struct DeviceConsent {
    device_code: String,
    /// The code that the person enters.
    pub user_code: String,
    /// The page on which the code is entered.
    #[serde(alias = "verification_url")]
    pub verification_uri: String,
    #[serde(default)]
    expires_in: Option<u64>,
    #[serde(default)]
    interval: Option<u64>,
}

impl ConsentClient {
    fn secret(&self) -> Option<&str> {
        self.client_secret.as_ref().map(secrecy::ExposeSecret::expose_secret)
    }

    /// Requests a code for a person to enter.
    pub async fn begin_device(
        &self,
        http: &HttpClient,
        device_url: &str,
    ) -> Result<DeviceConsent, TokenError> {
        let mut form: FormFields = vec![("client_id", self.client_id.clone())];
        form.extend(self.secret().map(|secret| ("client_secret", secret.to_owned())));
        form.extend(self.scope.clone().map(|scope| ("scope", scope)));
        let (host, answer) = post(http, device_url, &form, HttpAuth::None).await?;
        serde_json::from_slice(&answer.body).map_err(|_| {
            let said = shorten_text(&String::from_utf8_lossy(&answer.body));
            let message = format!("{host} gives no code (status {}): {said}", answer.status);
            TokenError::new(TokenErrorKind::Refused, message)
        })
    }

    /// Waits until the person has consented, and returns the refresh token.
    pub async fn finish_device(
        &self,
        http: &HttpClient,
        consent: &DeviceConsent,
    ) -> Result<String, TokenError> {
        let within = consent.expires_in.map_or(CONSENT_MAX, Duration::from_secs).min(CONSENT_MAX);
        let deadline = Instant::now() + within;
        let mut interval = consent.interval.map_or(INTERVAL_DEFAULT, Duration::from_secs);
        loop {
            sleep(interval.clamp(Duration::from_millis(10), INTERVAL_MAX)).await;
            let form = vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:device_code".to_owned()),
                ("device_code", consent.device_code.clone()),
            ];
            let asked =
                exchange(http, &self.token_url, form, &self.client_id, self.secret(), undated()).await;
            match asked {
                Ok(granted) => return refresh_token(granted.refresh_token),
                Err(error) if error.to_string().contains("authorization_pending") => {}
                Err(error) if error.to_string().contains("slow_down") => interval += INTERVAL_DEFAULT,
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                return Err(TokenError::new(
                    TokenErrorKind::Refused,
                    "nobody consented in time: begin again",
                ));
            }
        }
    }

    /// Begins a consent in the browser, which redirects to `redirect_uri`.
    pub fn begin_code(&self, authorize_url: &str, redirect_uri: &str) -> Result<CodeConsent, TokenError> {
        let mut url = Url::parse(authorize_url)
            .map_err(|error| TokenError::settings(format!("the authorize URL cannot be read: {error}")))?;
        let (verifier, state) = (random_text(), random_text());
        let challenge = digest::digest(&digest::SHA256, verifier.as_bytes());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &BASE64_URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256")
            // Google returns a refresh token only with these parameters.
            .append_pair("access_type", "offline")
            .append_pair("prompt", "consent");
        if let Some(scope) = &self.scope {
            url.query_pairs_mut().append_pair("scope", scope);
        }
        Ok(CodeConsent { url, redirect_uri: redirect_uri.to_owned(), verifier, state })
    }

    /// Exchanges the code of the redirect for a refresh token.
    pub async fn finish_code(
        &self,
        http: &HttpClient,
        consent: &CodeConsent,
        code: String,
    ) -> Result<String, TokenError> {
        let form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code),
            ("redirect_uri", consent.redirect_uri.clone()),
            ("code_verifier", consent.verifier.clone()),
        ];
        let granted =
            exchange(http, &self.token_url, form, &self.client_id, self.secret(), undated()).await?;
        refresh_token(granted.refresh_token)
    }
}

/// A pending consent in the browser.
#[derive(Debug)]
pub struct CodeConsent {
    /// The URL that the person opens.
    pub url: Url,
    redirect_uri: String,
    verifier: String,
    state: String,
}

impl CodeConsent {
    /// The code in the query of the redirect. The code of another consent is refused.
    pub fn code_of(&self, query: &str) -> Result<String, TokenError> {
        let refuse = |message: String| TokenError::new(TokenErrorKind::Refused, message);
        let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let value = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        if value("state").as_deref() != Some(self.state.as_str()) {
            return Err(refuse("the answer belongs to another consent: begin again".to_owned()));
        }
        match (value("error"), value("code")) {
            (None, Some(code)) => Ok(code),
            (error, _) => {
                let said = [error, value("error_description")].into_iter().flatten().collect::<Vec<_>>();
                Err(refuse(format!("nobody consented: {}", shorten_text(&said.join(": ")))))
            }
        }
    }
}

fn refresh_token(token: Option<String>) -> Result<String, TokenError> {
    token.ok_or_else(|| {
        TokenError::settings("no refresh token came with the consent: ask for the scope offline_access, if the provider has it")
    })
}

/// 32 random bytes, encoded.
fn random_text() -> String {
    let mut bytes = [0_u8; 32];
    rand::rng().fill(&mut bytes);
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
