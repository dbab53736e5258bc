//! Who may submit mail over SMTP. The binary implements the decision.

use std::{net::IpAddr, sync::Arc};

use postway_domain::{
    AccountId, TenantId,
    key::{IpNetwork, KeyRestrictions},
};
use postway_net::listen::CertificateFingerprint;
use postway_store::StoreError;
use secrecy::SecretString;

use super::scram::{ProvenKey, ScramOffer};

/// Why a sender is not admitted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SmtpDenial {
    /// The key is not valid, or not valid in this way; the text is for its holder.
    #[error("{0}")]
    Refused(String),
    /// The same key may be valid later; the text is for its holder.
    #[error("{0}")]
    Later(String),
    /// The key cannot be checked now.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
}

/// A client whose certificate is accepted in place of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCertificate {
    /// The certificate.
    pub certificate: CertificateName,
    /// The tenant of its mail.
    pub tenant: TenantId,
    /// The account for mail that names none; `None` for the tenant's default.
    pub account: Option<AccountId>,
}

/// How a client's certificate is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateName {
    /// By its SHA-256.
    Fingerprint(CertificateFingerprint),
    /// By a host or an address that a known authority issued it for.
    Name(String),
}

/// A client that needs no key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeylessClient {
    /// The tenant of its mail.
    pub tenant: TenantId,
    /// The account for mail that names none; `None` for the tenant's default.
    pub account: Option<AccountId>,
    /// The setting and the entry by which it needs none, for the log.
    pub by: String,
}

impl From<&OpenNetwork> for KeylessClient {
    fn from(open: &OpenNetwork) -> Self {
        let (tenant, account) = (open.tenant.clone(), open.account.clone());
        Self { tenant, account, by: format!("smtp.open_networks {}", open.network) }
    }
}

impl From<&KnownCertificate> for KeylessClient {
    fn from(known: &KnownCertificate) -> Self {
        let (tenant, account) = (known.tenant.clone(), known.account.clone());
        let name = match &known.certificate {
            CertificateName::Fingerprint(fingerprint) => {
                fingerprint.iter().take(4).map(|octet| format!("{octet:02x}")).collect::<String>() + "…"
            }
            CertificateName::Name(name) => name.clone(),
        };
        Self { tenant, account, by: format!("smtp.client_certificates {name}") }
    }
}

/// A network from which mail is accepted without a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenNetwork {
    /// The network.
    pub network: IpNetwork,
    /// The tenant of its mail.
    pub tenant: TenantId,
    /// The account for mail that names none; `None` for the tenant's default.
    pub account: Option<AccountId>,
}

/// A sender who was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedSender {
    /// The tenant of the mail.
    pub tenant: TenantId,
    /// The restrictions of the key, if it has any.
    pub restrictions: Option<Arc<KeyRestrictions>>,
}

impl AdmittedSender {
    /// A sender without restrictions.
    pub fn unbound(tenant: TenantId) -> Self {
        Self { tenant, restrictions: None }
    }
}

/// Admits senders. It is asked at login, and again for every mail: a key that was revoked meanwhile is
/// refused.
#[async_trait::async_trait]
pub trait SmtpAuthenticator: Send + Sync {
    /// Admits the sender at `peer` with this user name and key.
    async fn admit(&self, username: &str, key: &[u8], peer: IpAddr) -> Result<AdmittedSender, SmtpDenial>;

    /// The data that a SCRAM login under this name is checked against. An unknown name gets an answer that
    /// looks the same.
    async fn scram_offer(&self, username: &str, peer: IpAddr) -> Result<ScramOffer, SmtpDenial>;

    /// Admits the sender at `peer` who has proven this key.
    async fn admit_proven(&self, key: &ProvenKey, peer: IpAddr) -> Result<AdmittedSender, SmtpDenial>;

    /// Counts a wrong proof from `peer`, and returns the denial.
    async fn refuse_proof(&self, peer: IpAddr) -> SmtpDenial;

    /// Admits a client that needs no key, because of its network or its certificate.
    async fn admit_keyless(&self, client: &KeylessClient) -> Result<AdmittedSender, SmtpDenial>;
}

/// What a client presented at login.
#[derive(Debug)]
pub(super) enum SmtpCredentials {
    /// A key that was shown.
    Key {
        /// The user name.
        username: String,
        /// The key itself.
        key: SecretString,
    },
    /// A proof of a key.
    Proven(ProvenKey),
    /// A proof that failed.
    Unproven,
    /// Nothing: the client needs no key.
    Keyless(Arc<KeylessClient>),
}

impl SmtpCredentials {
    /// Checks the credentials of the client at `peer` now.
    pub(super) async fn check_key(
        &self,
        gatekeeper: &dyn SmtpAuthenticator,
        peer: IpAddr,
    ) -> Result<AdmittedSender, SmtpDenial> {
        match self {
            Self::Key { username, key } => {
                use secrecy::ExposeSecret as _;
                gatekeeper.admit(username, key.expose_secret().as_bytes(), peer).await
            }
            Self::Proven(key) => gatekeeper.admit_proven(key, peer).await,
            Self::Unproven => Err(gatekeeper.refuse_proof(peer).await),
            Self::Keyless(client) => gatekeeper.admit_keyless(client).await,
        }
    }
}
