//! Signing people in at an OpenID provider: the code flow with PKCE, state and nonce.
//!
//! What a provider says is believed only after its signature, issuer, audience, expiry and nonce were checked
//! (`id_token.rs`), with keys from the document that its issuer's address leads to (`discovery.rs`). Nothing
//! is stored here: what a sign-in needs to be finished is given to the caller, who seals it into a cookie.
//!
//! Every wait and every answer is bounded. An error is for the person who signs in and for the log; it has
//! the provider's own words where it gave some, and no token.

mod discovery;
#[cfg(test)]
mod fuzz;
mod id_token;
mod logout_token;

use std::{fmt, sync::Arc, time::Instant};

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use postway_domain::Clock;
use postway_net::http::{HttpAnswer, HttpAuth, HttpClient};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use url::{Url, form_urlencoded::byte_serialize};

use self::discovery::KnownProvider;
use crate::{
    error::shorten_text,
    request::{FormFields, post},
};

/// A provider, and this gateway as its client.
pub struct OidcSettings {
    /// The issuer: exactly what the provider calls itself.
    pub issuer: String,
    /// The client's id.
    pub client_id: String,
    /// The client's secret; a public client has none.
    pub client_secret: Option<SecretString>,
    /// What is asked for besides `openid`.
    pub scopes: String,
}

/// Why somebody could not be signed in.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The provider cannot be reached, or does not answer as it should; a retry may help.
    #[error("the provider is not available: {0}")]
    Unavailable(String),
    /// The provider does not sign this person in.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// The provider's token is not good: it proves nothing.
    #[error("the provider's token is not accepted: {0}")]
    Token(String),
}

/// A sign-in that has begun: where to send the person, and what is needed to finish it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunSignIn {
    /// The provider's page.
    pub url: String,
    /// What the provider must send back, so that nobody else's answer is taken.
    pub state: String,
    /// What the token must contain, so that no other token is taken.
    pub nonce: String,
    /// What proves to the provider that the code is redeemed by who asked for it.
    pub verifier: String,
}

/// Somebody who has signed in at the provider.
pub struct ProvenIdentity {
    /// The claims of the token, all checked that can be.
    pub claims: Map<String, Value>,
}

impl fmt::Debug for ProvenIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProvenIdentity(***)")
    }
}

/// A provider, with what is known of it.
pub struct OidcProvider {
    settings: OidcSettings,
    http: HttpClient,
    clock: Arc<dyn Clock>,
    known: Mutex<KnownProvider>,
}

/// The relevant fields of a token endpoint's answer.
#[derive(Deserialize)]
struct CodeAnswer {
    id_token: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl OidcProvider {
    /// A provider that nothing is known of yet; it is asked at the first sign-in.
    pub fn new(settings: OidcSettings, http: HttpClient, clock: Arc<dyn Clock>) -> Self {
        Self { settings, http, clock, known: Mutex::default() }
    }

    /// The issuer.
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Begins a sign-in that will come back to `redirect_uri`.
    pub async fn begin(&self, redirect_uri: &str) -> Result<BegunSignIn, OidcError> {
        let endpoint = {
            let mut known = self.known.lock().await;
            known
                .document(&self.http, &self.settings.issuer, Instant::now())
                .await?
                .authorization_endpoint
                .clone()
        };
        let mut url = read_url(&endpoint)?;
        let random = || BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        let begun = BegunSignIn { url: String::new(), state: random(), nonce: random(), verifier: random() };
        let challenge = digest::digest(&digest::SHA256, begun.verifier.as_bytes());
        let scope = format!("openid {}", self.settings.scopes);
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", scope.trim_end())
            .append_pair("state", &begun.state)
            .append_pair("nonce", &begun.nonce)
            .append_pair("code_challenge", &BASE64_URL_SAFE_NO_PAD.encode(challenge))
            .append_pair("code_challenge_method", "S256");
        Ok(BegunSignIn { url: url.into(), ..begun })
    }

    /// Redeems the code that came back, and checks the token that it gives.
    pub async fn redeem(
        &self,
        code: &str,
        verifier: &str,
        nonce: &str,
        redirect_uri: &str,
    ) -> Result<ProvenIdentity, OidcError> {
        let endpoint = {
            let mut known = self.known.lock().await;
            known.document(&self.http, &self.settings.issuer, Instant::now()).await?.token_endpoint.clone()
        };
        let id_token = self.exchange(&endpoint, code, verifier, redirect_uri).await?;
        let claims = self.signed_claims(&id_token).await?;
        let expected = id_token::ExpectedToken {
            issuer: &self.settings.issuer,
            audience: &self.settings.client_id,
            nonce,
            now: self.clock.now(),
        };
        expected.check(&claims)?;
        Ok(ProvenIdentity { claims })
    }

    /// Reads a logout token that the provider has sent: the subject whose sessions are over.
    pub async fn read_logout(&self, token: &str) -> Result<String, OidcError> {
        let claims = self.signed_claims(token).await?;
        let expected = logout_token::ExpectedLogout {
            issuer: &self.settings.issuer,
            audience: &self.settings.client_id,
            now: self.clock.now(),
        };
        expected.check(&claims)
    }

    /// The claims of a token that the provider has signed. Nothing else of them is checked.
    async fn signed_claims(&self, token: &str) -> Result<Map<String, Value>, OidcError> {
        let header = id_token::header_of(token)?;
        let key = {
            let mut known = self.known.lock().await;
            known.key(&self.http, &self.settings.issuer, &header, Instant::now()).await?
        };
        id_token::verify(token, &header, &key)
    }

    async fn exchange(
        &self,
        endpoint: &str,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
    ) -> Result<String, OidcError> {
        let form: FormFields = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("redirect_uri", redirect_uri.to_owned()),
            ("code_verifier", verifier.to_owned()),
        ];
        let client_id = &self.settings.client_id;
        let answer = match &self.settings.client_secret {
            None => {
                let whole = [form, vec![("client_id", client_id.clone())]].concat();
                self.ask(endpoint, &whole, HttpAuth::None).await?
            }
            // RFC 6749 2.3.1: servers accept Basic, with both parts form-encoded. A few accept the form only;
            // a request of an unknown client does not use up the code.
            Some(secret) => {
                let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let auth = HttpAuth::basic(encode(client_id), encode(secret.expose_secret()));
                let answer = self.ask(endpoint, &form, auth).await?;
                let is_unknown =
                    answer.status == 401 || answer.body.windows(14).any(|part| part == b"invalid_client");
                if is_unknown && !answer.is_success() {
                    let secret = secret.expose_secret().to_owned();
                    let client = vec![("client_id", client_id.clone()), ("client_secret", secret)];
                    self.ask(endpoint, &[form, client].concat(), HttpAuth::None).await?
                } else {
                    answer
                }
            }
        };
        let Ok(read) = serde_json::from_slice::<CodeAnswer>(&answer.body) else {
            let status = answer.status;
            return Err(OidcError::Unavailable(format!("its token endpoint answered {status} and no JSON")));
        };
        if let Some(error) = read.error {
            let said = format!("{error}: {}", read.error_description.unwrap_or_default());
            return Err(OidcError::Refused(shorten_text(said.trim_end_matches([':', ' ']))));
        }
        read.id_token.ok_or_else(|| OidcError::Token("its answer has no id_token".to_owned()))
    }

    async fn ask(&self, endpoint: &str, form: &FormFields, auth: HttpAuth) -> Result<HttpAnswer, OidcError> {
        let asked = post(&self.http, endpoint, form, auth).await;
        asked.map(|(_, answer)| answer).map_err(|error| OidcError::Unavailable(error.to_string()))
    }

    /// Where to send a person who signed out here, so that the provider signs them out, too; `None` where the
    /// provider offers no such page.
    pub async fn logout_url(&self, back: &str) -> Option<String> {
        let mut known = self.known.lock().await;
        let document = known.document(&self.http, &self.settings.issuer, Instant::now()).await.ok()?;
        let mut url = read_url(document.end_session_endpoint.as_deref()?).ok()?;
        url.query_pairs_mut()
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("post_logout_redirect_uri", back);
        Some(url.into())
    }
}

fn read_url(text: &str) -> Result<Url, OidcError> {
    Url::parse(text)
        .map_err(|_| OidcError::Unavailable("its document names an address that is none".to_owned()))
}
