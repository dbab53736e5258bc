//! DKIM signing keys: generated for a domain, sealed for the store, opened to sign.

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::{DkimAlgorithm, DkimKey, TenantId, Time, address::domain_to_ascii, secret::SecretKey};
use postway_mime::dkim::{self, DkimSigner};
use secrecy::ExposeSecret;

/// Why a key could not be made or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    /// The domain or the selector is not a valid name.
    #[error("{0}")]
    Name(String),
    /// The key could not be generated, sealed or opened.
    #[error("{0}")]
    Key(String),
}

fn broken(error: impl ToString) -> SigningError {
    SigningError::Key(error.to_string())
}

/// Generates a key for this domain.
pub fn new_key(
    tenant: &TenantId,
    domain: &str,
    selector: &str,
    algorithm: DkimAlgorithm,
    secret_key: &SecretKey,
    now: Time,
) -> Result<DkimKey, SigningError> {
    let selector = selector.to_ascii_lowercase();
    let domain = domain_to_ascii(domain)
        .map_err(|error| SigningError::Name(format!("domain: must be a domain: {error}")))?;
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if selector.len() > 63 || !selector.split('.').all(is_label) {
        let message = "selector: must be 1 to 63 letters, digits and dashes".to_owned();
        return Err(SigningError::Name(message));
    }
    let made = dkim::generate(algorithm).map_err(broken)?;
    let private = BASE64_STANDARD.encode(made.private_pkcs8.expose_secret());
    let place = DkimKey::sealing_context(tenant, &domain, &selector);
    Ok(DkimKey {
        private: secret_key.seal(&place, &private).map_err(broken)?,
        public: BASE64_STANDARD.encode(&made.public),
        tenant: tenant.clone(),
        domain,
        selector,
        algorithm,
        active: true,
        created_at: now,
    })
}

/// The DNS name under which the public key is published.
pub fn dns_name(key: &DkimKey) -> String {
    dkim::dns_name(&key.selector, &key.domain)
}

/// The DNS record with the public key.
pub fn dns_record(key: &DkimKey) -> String {
    let public = BASE64_STANDARD.decode(&key.public).unwrap_or_default();
    dkim::dns_record(key.algorithm, &public)
}

/// A signer with this key.
pub(crate) fn signer(key: &DkimKey, secret_key: &SecretKey) -> Result<DkimSigner, SigningError> {
    let place = DkimKey::sealing_context(&key.tenant, &key.domain, &key.selector);
    let private = secret_key.open(&place, &key.private).map_err(broken)?;
    let private = BASE64_STANDARD.decode(private).map_err(broken)?;
    DkimSigner::new(&key.domain, &key.selector, key.algorithm, &private).map_err(broken)
}
