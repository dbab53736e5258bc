//! Signing in at an OpenID provider: connects the API's question with the client that speaks the protocol.

use std::sync::Arc;

use async_trait::async_trait;
use postway_api::{AwayFailure, AwaySignIn, ProviderSignIn, SignInProvider};
use postway_domain::Clock;
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_oauth::oidc::{OidcError, OidcProvider, OidcSettings};
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::config::OidcSection;

/// The configured provider.
struct ConfiguredProvider(OidcProvider);

/// The provider of this section, asked through the guard as everything that a configuration names.
pub fn build(section: &OidcSection, guard: &Arc<AddressGuard>, clock: Arc<dyn Clock>) -> ProviderSignIn {
    let settings = OidcSettings {
        issuer: section.issuer.clone(),
        client_id: section.client_id.clone(),
        client_secret: section.client_secret.as_ref().map(|secret| SecretString::from(secret.expose())),
        scopes: section.scopes.clone(),
    };
    let http = HttpClient::new(guard.clone(), HttpSettings::default());
    ProviderSignIn {
        provider: Arc::new(ConfiguredProvider(OidcProvider::new(settings, http, clock))),
        name: section.name.clone(),
        redirect_url: section.redirect_url.clone(),
        role_claim: section.role_claim.clone(),
        roles: section.roles.clone(),
        default_role: section.default_role,
        tenants_claim: section.tenants_claim.clone(),
        default_tenants: section.tenants.clone(),
        just_in_time: section.just_in_time,
    }
}

#[async_trait]
impl SignInProvider for ConfiguredProvider {
    fn issuer(&self) -> &str {
        self.0.issuer()
    }

    async fn begin(&self, redirect_uri: &str) -> Result<AwaySignIn, AwayFailure> {
        let begun = self.0.begin(redirect_uri).await.map_err(failure)?;
        Ok(AwaySignIn { url: begun.url, state: begun.state, nonce: begun.nonce, verifier: begun.verifier })
    }

    async fn redeem(
        &self,
        code: &str,
        begun: &AwaySignIn,
        redirect_uri: &str,
    ) -> Result<Map<String, Value>, AwayFailure> {
        let proven = self.0.redeem(code, &begun.verifier, &begun.nonce, redirect_uri).await;
        proven.map(|proven| proven.claims).map_err(failure)
    }

    async fn read_logout(&self, token: &str) -> Result<String, AwayFailure> {
        self.0.read_logout(token).await.map_err(failure)
    }

    async fn logout_url(&self, back: &str) -> Option<String> {
        self.0.logout_url(back).await
    }
}

fn failure(error: OidcError) -> AwayFailure {
    match error {
        OidcError::Unavailable(_) => AwayFailure::Unavailable(error.to_string()),
        OidcError::Refused(_) | OidcError::Token(_) => AwayFailure::Refused(error.to_string()),
    }
}
