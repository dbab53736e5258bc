//! What a provider says of itself, and its keys.
//!
//! Both are kept for a time. Where the provider is away, the document that was read last is used for a day.
//! A key that is not known makes the keys be read again, because providers replace them; but only a few times
//! a minute, whatever tokens strangers send.

use std::time::{Duration, Instant};

use jsonwebtoken::{
    Header,
    jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse},
};
use postway_net::http::{FetchRequest, HttpClient, parse_url};
use serde::{Deserialize, de::DeserializeOwned};
use url::Url;

use super::OidcError;
use crate::request::{ANSWER_BYTES_MAX, CALL_MAX};

/// How long the document is used before it is read again.
const DOCUMENT_FRESH: Duration = Duration::from_secs(60 * 60);
/// How long it is used where it cannot be read again.
const DOCUMENT_USED: Duration = Duration::from_secs(24 * 60 * 60);
/// How long keys are used before they are read again: a key that the provider has withdrawn is refused then.
const KEYS_FRESH: Duration = Duration::from_secs(10 * 60);
/// How often keys may be read again at once because one is not known, and how soon there is one more time.
const REREAD_BURST: u32 = 3;
const REREAD_EVERY: Duration = Duration::from_secs(60);

/// The relevant fields of `/.well-known/openid-configuration`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ProviderDocument {
    issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    pub(super) end_session_endpoint: Option<String>,
}

/// What is known of a provider.
#[derive(Default)]
pub(super) struct KnownProvider {
    document: Option<(Instant, ProviderDocument)>,
    keys: Option<(Instant, JwkSet)>,
    /// When all rereads will be free again.
    rereads_full_at: Option<Instant>,
}

impl KnownProvider {
    /// The document, fresh or at least usable.
    pub(super) async fn document(
        &mut self,
        http: &HttpClient,
        issuer: &str,
        now: Instant,
    ) -> Result<&ProviderDocument, OidcError> {
        let age = self.document.as_ref().map(|(read_at, _)| now.duration_since(*read_at));
        if age.is_none_or(|age| age >= DOCUMENT_FRESH) {
            match read_document(http, issuer).await {
                Ok(document) => self.document = Some((now, document)),
                Err(error) if age.is_none_or(|age| age >= DOCUMENT_USED) => return Err(error),
                Err(error) => tracing::warn!(%error, "the provider's document could not be read again"),
            }
        }
        let known = self.document.as_ref().map(|(_, document)| document);
        known.ok_or_else(|| OidcError::Unavailable("its document was not read".to_owned()))
    }

    /// The key that a token with this header is signed with.
    pub(super) async fn key(
        &mut self,
        http: &HttpClient,
        issuer: &str,
        header: &Header,
        now: Instant,
    ) -> Result<Jwk, OidcError> {
        let is_fresh = |(read_at, _): &&(Instant, JwkSet)| now.duration_since(*read_at) < KEYS_FRESH;
        let known = self.keys.as_ref().filter(is_fresh).and_then(|(_, keys)| choose(keys, header));
        if let Some(key) = known {
            return Ok(key.clone());
        }
        let has_fresh = self.keys.as_ref().filter(is_fresh).is_some();
        if has_fresh && !self.may_reread(now) {
            return Err(OidcError::Token(
                "it is signed with a key that is not known; try again in a minute".to_owned(),
            ));
        }
        let jwks_uri = self.document(http, issuer, now).await?.jwks_uri.clone();
        let keys: JwkSet = fetch(http, checked(&jwks_uri, issuer)?).await?;
        let key = choose(&keys, header).cloned();
        self.keys = Some((now, keys));
        key.ok_or_else(|| {
            OidcError::Token("it is signed with a key that the provider does not publish".to_owned())
        })
    }

    /// Takes one of the rereads that unknown keys may cause.
    fn may_reread(&mut self, now: Instant) -> bool {
        let full_at = self.rereads_full_at.unwrap_or(now).max(now) + REREAD_EVERY;
        let may = full_at <= now + REREAD_EVERY * REREAD_BURST;
        if may {
            self.rereads_full_at = Some(full_at);
        }
        may
    }
}

/// The key with the header's id; without an id, the only key there is. Never a symmetric one, nor one for
/// encryption.
pub(super) fn choose<'k>(keys: &'k JwkSet, header: &Header) -> Option<&'k Jwk> {
    let signs = |key: &&Jwk| {
        !matches!(key.algorithm, AlgorithmParameters::OctetKey(_) | AlgorithmParameters::Other(_))
            && !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption))
    };
    match &header.kid {
        Some(kid) => keys.keys.iter().filter(signs).find(|key| key.common.key_id.as_ref() == Some(kid)),
        None => {
            let mut signing = keys.keys.iter().filter(signs);
            signing.next().filter(|_| signing.next().is_none())
        }
    }
}

async fn read_document(http: &HttpClient, issuer: &str) -> Result<ProviderDocument, OidcError> {
    let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let document: ProviderDocument = fetch(http, checked(&address, issuer)?).await?;
    if document.issuer != issuer {
        return Err(OidcError::Unavailable(format!(
            "its document is of the issuer `{}`, and oidc.issuer is `{issuer}`: they must be the same to the letter",
            crate::error::shorten_text(&document.issuer)
        )));
    }
    for endpoint in [&document.authorization_endpoint, &document.token_endpoint, &document.jwks_uri] {
        checked(endpoint, issuer)?;
    }
    Ok(document)
}

/// An address of the provider: with TLS, unless the issuer itself is named without.
pub(super) fn checked(address: &str, issuer: &str) -> Result<Url, OidcError> {
    let url = parse_url(address).map_err(|error| OidcError::Unavailable(error.to_string()))?;
    match url.scheme() == "https" || issuer.starts_with("http://") {
        true => Ok(url),
        false => Err(OidcError::Unavailable("its document names an address without TLS".to_owned())),
    }
}

async fn fetch<T: DeserializeOwned>(http: &HttpClient, url: Url) -> Result<T, OidcError> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let mut request = FetchRequest::get(url, ANSWER_BYTES_MAX as u64);
    (request.timeout, request.redirects_max) = (CALL_MAX, 0);
    let mut bytes = Vec::new();
    let fetched = http.fetch(&request, &mut bytes).await;
    fetched.map_err(|error| OidcError::Unavailable(error.to_string()))?;
    let unreadable =
        |_| OidcError::Unavailable(format!("{host} answers with something else than was asked for"));
    serde_json::from_slice(&bytes).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_make_the_keys_be_read_again_a_few_times_only() {
        let (mut known, now) = (KnownProvider::default(), Instant::now());
        let tried = (0..1_000).filter(|_| known.may_reread(now)).count();
        assert_eq!(tried, REREAD_BURST as usize);
        assert!(known.may_reread(now + REREAD_EVERY) && !known.may_reread(now + REREAD_EVERY));
    }

    #[test]
    fn a_key_is_chosen_by_its_id_and_never_a_symmetric_one() {
        let keys: JwkSet = serde_json::from_str(
            r#"{"keys":[{"kty":"oct","k":"AAAA","kid":"a"},{"kty":"OKP","crv":"Ed25519","x":"AAAA","kid":"b"},
                {"kty":"OKP","crv":"Ed25519","x":"BBBB","kid":"c","use":"enc"}]}"#,
        )
        .unwrap();
        let header = |kid: Option<&str>| Header { kid: kid.map(str::to_owned), ..Header::default() };
        for (kid, is_found) in
            [(Some("a"), false), (Some("b"), true), (Some("c"), false), (Some("d"), false), (None, true)]
        {
            assert_eq!(choose(&keys, &header(kid)).is_some(), is_found, "{kid:?}");
        }
    }

    #[test]
    fn a_provider_with_tls_has_no_address_without() {
        assert!(checked("https://id.example/keys", "https://id.example").is_ok());
        assert!(checked("http://id.example/keys", "https://id.example").is_err());
        assert!(checked("http://127.0.0.1:1/keys", "http://127.0.0.1:1").is_ok());
    }
}
