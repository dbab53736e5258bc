//! People: users, their sessions, and the audit log as a chain.

use async_trait::async_trait;
use postway_domain::{
    User, UserName,
    id::{SessionId, UserId},
};

use crate::{
    error::StoreError,
    record::{AuditHead, AuditLine, UserKey, UserSession},
};

/// Who may operate the gateway, and what was done. All of it is changed through
/// [`super::DirectoryStore::change`].
#[async_trait]
pub trait PeopleStore: Send + Sync {
    /// One user, disabled or not.
    async fn user(&self, key: &UserKey) -> Result<Option<User>, StoreError>;

    /// Users by name, after `after`.
    async fn users(&self, after: Option<&UserName>, limit: u32) -> Result<Vec<User>, StoreError>;

    /// A session that was not ended; its time may be over.
    async fn user_session(&self, id: SessionId) -> Result<Option<UserSession>, StoreError>;

    /// A user's sessions, the newest first: at most [`UserSession::LISTED_MAX`].
    async fn user_sessions(&self, user: UserId) -> Result<Vec<UserSession>, StoreError>;

    /// Lines of the audit log in the order of the chain, after the position `after`. A line that is returned
    /// has all lines before it: none can appear later.
    async fn audit_lines(&self, after: i64, limit: u32) -> Result<Vec<AuditLine>, StoreError>;

    /// Where the chain of the audit log begins and ends.
    async fn audit_head(&self) -> Result<AuditHead, StoreError>;
}
