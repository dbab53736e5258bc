//! [`PeopleStore`] over SQL.

use async_trait::async_trait;
use postway_domain::{
    User, UserName,
    id::{SessionId, UserId},
};

use super::SqlStore;
use crate::{
    admin::{audit, user_sessions, users},
    error::StoreError,
    port::PeopleStore,
    record::{AuditHead, AuditLine, UserKey, UserSession},
};

#[async_trait]
impl<T: SqlStore> PeopleStore for T {
    async fn user(&self, key: &UserKey) -> Result<Option<User>, StoreError> {
        users::find(&mut *self.reader().await?, key).await
    }

    async fn users(&self, after: Option<&UserName>, limit: u32) -> Result<Vec<User>, StoreError> {
        users::list(&mut *self.reader().await?, after, limit).await
    }

    async fn user_session(&self, id: SessionId) -> Result<Option<UserSession>, StoreError> {
        user_sessions::find(&mut *self.reader().await?, id).await
    }

    async fn user_sessions(&self, user: UserId) -> Result<Vec<UserSession>, StoreError> {
        user_sessions::of_user(&mut *self.reader().await?, user, UserSession::LISTED_MAX).await
    }

    async fn audit_lines(&self, after: i64, limit: u32) -> Result<Vec<AuditLine>, StoreError> {
        audit::lines(&mut *self.reader().await?, after, limit).await
    }

    async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        audit::head(&mut *self.reader().await?).await
    }
}
