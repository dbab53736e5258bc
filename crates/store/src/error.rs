//! What can go wrong behind the port, in the words a caller can act on.

/// Why the store could not do it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is away, full or overloaded: nothing was acknowledged, try again later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// A statement took longer than it may, on a database that works. It was undone; the same call may take as long again.
    #[error("the database took too long over a statement: {0}")]
    TooSlow(String),
    /// The connection was lost with the answer to a commit, and whether it is durable could not be found out. A caller who
    /// repeats the call under the same id or key gets one of it.
    #[error("whether it was stored is not known: {0}; repeat the call under the same id or idempotency key")]
    Unsettled(String),
    /// Another transaction was in the way (deadlock, serialization failure, lock timeout) and this one was undone. The
    /// writers try again by themselves; a caller sees it only when that did not help.
    #[error("the database is busy with conflicting work: {0}")]
    Conflict(String),
    /// The database refused or returned something that this program does not understand.
    #[error("the database answered something unexpected: {0}")]
    Unexpected(String),
    /// Another process holds this store.
    #[error("{0}")]
    Locked(String),
    /// A copy into this database has begun and not ended.
    #[error("a copy into this database is not finished: finish it with `postway migrate copy`, then start")]
    HalfCopied,
    /// The schema is newer than this program.
    #[error(
        "the database schema is at version {found}, this program knows version {known}: use a newer postway"
    )]
    SchemaTooNew {
        /// What the database has.
        found: i64,
        /// The newest this program knows.
        known: i64,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anyone doing anything.
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
