//! Who may submit mail over SMTP. The binary implements the decision.

use std::{net::IpAddr, sync::Arc};

use postway_domain::{
    AccountId, TenantId,
    key::{IpNetwork, KeyRestrictions},
};
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

    /// Admits a sender in this network, which needs no key.
    async fn admit_network(&self, open: &OpenNetwork) -> Result<AdmittedSender, SmtpDenial>;
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
    /// Nothing: the client is in this network.
    Network(Arc<OpenNetwork>),
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
            Self::Network(open) => gatekeeper.admit_network(open).await,
        }
    }
}
