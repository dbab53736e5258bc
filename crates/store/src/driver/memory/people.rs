//! Users, their sessions, and the chain of the audit log.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postway_domain::{
    Time, User, UserName,
    id::{SessionId, UserId},
};

use super::{MemoryStore, admin::done_if};
use crate::{
    error::StoreError,
    port::PeopleStore,
    record::{AuditEntry, AuditHead, AuditLine, ChangeResult, UserKey, UserSession},
};

/// Users by id, and their sessions.
#[derive(Default)]
pub(super) struct UserTable {
    users: BTreeMap<UserId, User>,
    sessions: BTreeMap<SessionId, UserSession>,
}

impl UserTable {
    pub fn create(&mut self, user: User) -> ChangeResult {
        let is_taken = self.users.values().any(|other| {
            other.id == user.id
                || other.name == user.name
                || (user.identity.is_some() && other.identity == user.identity)
        });
        if !is_taken {
            self.users.insert(user.id, user);
        }
        done_if(!is_taken, ChangeResult::Exists)
    }

    pub fn update(&mut self, user: User, expected: i64) -> ChangeResult {
        if !user.is_full_admin() && self.is_last_admin(user.id) {
            return ChangeResult::InUse;
        }
        let has_identity =
            |other: &User| other.id != user.id && user.identity.is_some() && other.identity == user.identity;
        if self.users.values().any(has_identity) {
            return ChangeResult::Exists;
        }
        match self.users.get_mut(&user.id) {
            Some(stored) if stored.version == expected => {
                let (id, is_disabled) = (user.id, user.disabled_at.is_some());
                // The name never changes.
                *stored = User { name: stored.name.clone(), created_at: stored.created_at, ..user };
                if is_disabled {
                    self.end_all(id);
                }
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Stale,
        }
    }

    pub fn delete(&mut self, id: UserId) -> ChangeResult {
        if self.is_last_admin(id) {
            return ChangeResult::InUse;
        }
        self.end_all(id);
        done_if(self.users.remove(&id).is_some(), ChangeResult::Missing)
    }

    fn is_last_admin(&self, id: UserId) -> bool {
        let mut admins = self.users.values().filter(|user| user.is_full_admin());
        admins.next().is_some_and(|first| first.id == id) && admins.next().is_none()
    }

    pub fn begin(&mut self, session: UserSession) -> ChangeResult {
        let is_new = !self.sessions.contains_key(&session.id);
        self.sessions.entry(session.id).or_insert(session);
        done_if(is_new, ChangeResult::Exists)
    }

    pub fn touch(&mut self, id: SessionId, at: Time) -> ChangeResult {
        match self.sessions.get_mut(&id) {
            Some(session) if session.seen_at < at => {
                session.seen_at = at;
                ChangeResult::Done
            }
            Some(_) | None => ChangeResult::Missing,
        }
    }

    pub fn end(&mut self, id: SessionId) -> ChangeResult {
        done_if(self.sessions.remove(&id).is_some(), ChangeResult::Missing)
    }

    pub fn end_all(&mut self, user: UserId) -> ChangeResult {
        let before = self.sessions.len();
        self.sessions.retain(|_, session| session.user != user);
        done_if(self.sessions.len() < before, ChangeResult::Missing)
    }

    pub fn forget(&mut self, now: Time) {
        self.sessions.retain(|_, session| session.ends_at > now);
    }

    fn find(&self, key: &UserKey) -> Option<User> {
        let mut found = self.users.values().filter(|user| match key {
            UserKey::Id(id) => user.id == *id,
            UserKey::Name(name) => user.name == *name,
            UserKey::Identity(identity) => user.identity.as_ref() == Some(identity),
            UserKey::Email(email) => user.email.as_ref() == Some(email),
        });
        let first = found.next()?;
        found.next().is_none().then(|| first.clone())
    }
}

/// The audit log.
pub(super) struct AuditTable {
    lines: Vec<AuditLine>,
    head: AuditHead,
}

impl Default for AuditTable {
    fn default() -> Self {
        Self { lines: Vec::new(), head: AuditHead { position: 0, digest: [0; 32], trimmed: 0 } }
    }
}

impl AuditTable {
    /// The entries in the order of ids.
    pub fn entries(&self) -> Vec<&AuditEntry> {
        let mut entries: Vec<&AuditEntry> = self.lines.iter().map(|line| &line.entry).collect();
        entries.sort_by_key(|entry| entry.id);
        entries
    }

    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut AuditEntry> {
        self.lines.iter_mut().map(|line| &mut line.entry)
    }

    pub fn record(&mut self, entry: AuditEntry) {
        let entry = AuditEntry { salt: Some(entry.salt.unwrap_or_default()), ..entry };
        let line = entry.into_line(self.head.position, self.head.digest);
        (self.head.position, self.head.digest) = (line.position, line.digest);
        self.lines.push(line);
    }

    /// See [`crate::RetentionStore::trim_audit`].
    pub fn trim(&mut self, before: Time, limit: u32) -> u32 {
        let oldest = self.lines.iter().take(limit as usize);
        let old = oldest.take_while(|line| line.entry.at < before).count();
        if let Some(last) = self.lines.drain(..old).next_back() {
            self.head.trimmed = last.position;
        }
        old as u32
    }
}

#[async_trait]
impl PeopleStore for MemoryStore {
    async fn user(&self, key: &UserKey) -> Result<Option<User>, StoreError> {
        Ok(self.tables()?.directory.people.find(key))
    }

    async fn users(&self, after: Option<&UserName>, limit: u32) -> Result<Vec<User>, StoreError> {
        let tables = self.tables()?;
        let users = tables.directory.people.users.values();
        let mut later: Vec<User> =
            users.filter(|user| after.is_none_or(|after| user.name > *after)).cloned().collect();
        later.sort_by(|a, b| a.name.cmp(&b.name));
        later.truncate(limit as usize);
        Ok(later)
    }

    async fn user_session(&self, id: SessionId) -> Result<Option<UserSession>, StoreError> {
        Ok(self.tables()?.directory.people.sessions.get(&id).cloned())
    }

    async fn user_sessions(&self, user: UserId) -> Result<Vec<UserSession>, StoreError> {
        let tables = self.tables()?;
        let sessions = tables.directory.people.sessions.values().rev();
        let own = sessions.filter(|session| session.user == user);
        Ok(own.take(UserSession::LISTED_MAX as usize).cloned().collect())
    }

    async fn audit_lines(&self, after: i64, limit: u32) -> Result<Vec<AuditLine>, StoreError> {
        let tables = self.tables()?;
        let later = tables.directory.audit.lines.iter().filter(|line| line.position > after);
        Ok(later.take(limit as usize).cloned().collect())
    }

    async fn audit_head(&self) -> Result<AuditHead, StoreError> {
        Ok(self.tables()?.directory.audit.head)
    }
}
