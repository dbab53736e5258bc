//! What goes wrong between a source and the gateway.

use postway_store::StoreError;

use crate::refusal::CAPTURES;

/// Why a round came to nothing. None of these loses a row: it stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The address cannot be used.
    #[error("{0}")]
    Address(String),
    /// The database does not answer, or refuses.
    #[error("the source's database: {0}")]
    Source(#[from] sqlx::Error),
    /// It did not answer in time.
    #[error("the source's database did not answer within {0} s")]
    Late(u64),
    /// The tables are not there.
    #[error("{what} is not installed in the source's database: run `postway outbox install`{how}")]
    NotInstalled {
        /// What is missing.
        what: String,
        /// How to call it.
        how: &'static str,
    },
    /// The schema of the outbox cannot be put there.
    #[error("{0}")]
    Unsuited(String),
    /// The gateway's own store.
    #[error("the gateway's store: {0}")]
    Store(#[from] StoreError),
    /// Nobody to send for.
    #[error("there is no tenant {0}: create it, or name another in the source's configuration")]
    NoTenant(String),
    /// The sandbox would capture what is to be sent.
    #[error("{}", CAPTURES)]
    WouldCapture,
    /// A row that is not as it was installed.
    #[error("the source's database gave something unexpected: {0}")]
    Unexpected(String),
    /// Another node works on the same source.
    #[error("another node has written back meanwhile")]
    Overtaken,
}
