//! Who may hand over mail by SMTP; the binary knows.

use std::net::IpAddr;

use postway_domain::TenantId;
use postway_store::StoreError;
use secrecy::SecretString;

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

/// Lets senders in. Asked at login, and again for every mail: a key that was revoked meanwhile opens no more.
#[async_trait::async_trait]
pub trait Gatekeeper: Send + Sync {
    /// For which tenant somebody from `peer` with this name and key sends.
    async fn admit(&self, username: &str, key: &[u8], peer: IpAddr) -> Result<TenantId, Denied>;
}

/// What a client showed to be let in.
#[derive(Debug)]
pub(super) struct Credentials {
    pub(super) username: String,
    pub(super) key: SecretString,
}
