//! Errors of the store, classified by what a caller can do about them.

/// Why a call to the store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is unreachable, full or overloaded. Nothing was acknowledged; try again later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// A statement took longer than allowed, on a database that works. It was undone; the same call may take
    /// as long again.
    #[error("the database took too long over a statement: {0}")]
    TooSlow(String),
    /// The connection was lost before the answer to a commit arrived, and it could not be found out whether
    /// the commit is durable. A caller that repeats the call under the same id or key gets one message.
    #[error("whether it was stored is not known: {0}; repeat the call under the same id or idempotency key")]
    Unsettled(String),
    /// Another transaction was in the way (deadlock, serialization failure, lock timeout) and this one was
    /// undone. The writers try again by themselves; a caller sees this error only if that did not help.
    #[error("the database is busy with conflicting work: {0}")]
    Conflict(String),
    /// The database refused or returned something that this program does not understand.
    #[error("the database answered something unexpected: {0}")]
    Unexpected(String),
    /// Another process has this store open.
    #[error("{0}")]
    Locked(String),
    /// A transfer into this database has begun and not ended.
    #[error("a copy into this database is not finished: finish it with `postway migrate copy`, then start")]
    HalfCopied,
    /// The schema is newer than this program.
    #[error(
        "the database schema is at version {found}, this program knows version {known}: use a newer postway"
    )]
    SchemaTooNew {
        /// The version of the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without any intervention.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::Unavailable(_)
            | StoreError::TooSlow(_)
            | StoreError::Unsettled(_)
            | StoreError::Conflict(_)
            | StoreError::Locked(_) => true,
            StoreError::Unexpected(_) | StoreError::HalfCopied | StoreError::SchemaTooNew { .. } => false,
        }
    }
}
