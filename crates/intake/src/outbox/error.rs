//! Errors between a source and the gateway.

use postway_store::StoreError;

/// Why a batch failed. No row is lost: it stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The address cannot be used.
    #[error("{0}")]
    Address(String),
    /// The database does not answer, or refuses.
    #[error("the source's database: {0}")]
    Source(#[from] sqlx::Error),
    /// The database did not answer in time.
    #[error("the source's database did not answer within {0} s")]
    Late(u64),
    /// The tables are missing.
    #[error("{what} is not installed in the source's database: run `postway outbox install`{how}")]
    NotInstalled {
        /// The table that is missing.
        what: String,
        /// The options of `postway outbox install`.
        how: &'static str,
    },
    /// The outbox cannot be installed like this.
    #[error("{0}")]
    Unsuited(String),
    /// The gateway's own store failed.
    #[error("the gateway's store: {0}")]
    Store(#[from] StoreError),
    /// The tenant of the source does not exist.
    #[error("there is no tenant {0}: create it, or name another in the source's configuration")]
    NoTenant(String),
    /// The database returned an unexpected value.
    #[error("the source's database gave something unexpected: {0}")]
    Unexpected(String),
    /// Another node has served the same source meanwhile.
    #[error("another node has written back meanwhile")]
    Overtaken,
}
