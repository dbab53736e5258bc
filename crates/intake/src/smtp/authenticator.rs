//! Who may hand over mail by SMTP; the binary knows.

use std::{net::IpAddr, sync::Arc};

use postway_domain::{
    AccountId, TenantId,
    key::{KeyRestrictions, Network},
};
use postway_store::StoreError;
use secrecy::SecretString;

use super::scram::{ProvenKey, ScramOffer};

/// Why somebody is not let in.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Denied {
    /// No key that opens, or not in this way; the words are for its holder.
    #[error("{0}")]
    Refused(String),
    /// The same key may open later; the words are for its holder.
    #[error("{0}")]
    Later(String),
    /// It cannot be said now.
    #[error(transparent)]
    Unavailable(#[from] StoreError),
}

/// A network from which mail is taken without a key, and whose mail it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenNetwork {
    /// From where.
    pub network: Network,
    /// For whom.
    pub tenant: TenantId,
    /// By which account, where the mail names none; none: the tenant's default.
    pub account: Option<AccountId>,
}

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedSender {
    /// Whose mail it is.
    pub tenant: TenantId,
    /// Whom the key may send from and to that was shown, where it is bound.
    pub restrictions: Option<Arc<KeyRestrictions>>,
}

impl AdmittedSender {
    /// Somebody whom no key binds.
    pub fn unbound(tenant: TenantId) -> Self {
        Self { tenant, restrictions: None }
    }
}

/// Lets senders in. Asked at login, and again for every mail: a key that was revoked meanwhile opens no more.
#[async_trait::async_trait]
pub trait Gatekeeper: Send + Sync {
    /// For whom somebody from `peer` with this name and key sends.
    async fn admit(&self, username: &str, key: &[u8], peer: IpAddr) -> Result<AdmittedSender, Denied>;

    /// What a login by SCRAM under this name is checked against. A name that stands for nobody is answered alike.
    async fn scram_offer(&self, username: &str, peer: IpAddr) -> Result<ScramOffer, Denied>;

    /// For which tenant somebody from `peer` sends who has proven to have this key.
    async fn admit_proven(&self, key: &ProvenKey, peer: IpAddr) -> Result<AdmittedSender, Denied>;

    /// Counts a proof from `peer` that did not hold, and says what to tell.
    async fn refuse_proof(&self, peer: IpAddr) -> Denied;

    /// For which tenant somebody in this network sends without a key.
    async fn admit_network(&self, open: &OpenNetwork) -> Result<AdmittedSender, Denied>;
}

/// What a client showed to be let in.
#[derive(Debug)]
pub(super) enum SmtpCredentials {
    /// A key.
    Key {
        /// The name beside it.
        username: String,
        /// The key itself.
        key: SecretString,
    },
    /// A proof of a key.
    Proven(ProvenKey),
    /// A proof that does not hold.
    Unproven,
    /// Nothing: it is in this network.
    Network(Arc<OpenNetwork>),
}

impl SmtpCredentials {
    /// For which tenant their holder, who is at `peer`, may send now.
    pub(super) async fn judge(
        &self,
        gatekeeper: &dyn Gatekeeper,
        peer: IpAddr,
    ) -> Result<AdmittedSender, Denied> {
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
