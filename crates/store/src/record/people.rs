//! People in the store: how a user is found, the sessions of browsers, and the audit log as a chain.

use aws_lc_rs::digest::{Context, SHA256, digest};
use postway_domain::{
    Time, UserName,
    id::{SessionId, UserId},
    user::UserIdentity,
};

use super::AuditEntry;

/// How a user is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserKey {
    /// By its id.
    Id(UserId),
    /// By its name.
    Name(UserName),
    /// By who it is at a provider.
    Identity(UserIdentity),
    /// By its address, as it was written; an address that several users have names none.
    Email(String),
}

/// A browser session of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSession {
    /// Its id.
    pub id: SessionId,
    /// The user.
    pub user: UserId,
    /// When it began.
    pub began_at: Time,
    /// When it ends by itself.
    pub ends_at: Time,
    /// Roughly when it was last used.
    pub seen_at: Time,
    /// How the user signed in: `password`, `passkey`, `oidc`, `invitation`.
    pub way: String,
    /// From which address.
    pub address: Option<String>,
    /// With which browser, as it says.
    pub agent: Option<String>,
}

impl UserSession {
    /// The most sessions of a user that are listed.
    pub const LISTED_MAX: u32 = 500;
}

/// The digest of a line of the audit log, which covers the line before.
pub type AuditDigest = [u8; 32];

/// A line of the audit log with its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// What it says.
    pub entry: AuditEntry,
    /// Its place; each line has the next one.
    pub position: i64,
    /// The digest of the line before.
    pub previous: AuditDigest,
    /// The digest of this line.
    pub digest: AuditDigest,
    /// The digest of what it is about, with its salt: [`AuditEntry::target_digest`].
    pub target_digest: AuditDigest,
}

/// Where the chain of the audit log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// The last position; 0 before the first line.
    pub position: i64,
    /// The digest of the last line.
    pub digest: AuditDigest,
    /// The last position that retention has removed; 0 if it has removed none.
    pub trimmed: i64,
}

impl AuditEntry {
    /// The digest of what the entry is about. The salt goes with an erased address, so that the address
    /// cannot be guessed from what stays.
    pub fn target_digest(salt: &[u8; 16], target: &str) -> AuditDigest {
        let mut context = Context::new(&SHA256);
        context.update(salt);
        context.update(target.as_bytes());
        bytes_of(context.finish().as_ref())
    }

    /// The digest of this entry as the line at `position`, after the line with the digest `previous`. Each
    /// field is preceded by its length, so that no two entries have the same bytes.
    pub fn line_digest(
        &self,
        position: i64,
        previous: &AuditDigest,
        target_digest: &AuditDigest,
    ) -> AuditDigest {
        let mut bytes = b"postway audit line 1\n".to_vec();
        bytes.extend_from_slice(previous);
        bytes.extend_from_slice(&position.to_be_bytes());
        bytes.extend_from_slice(self.id.as_bytes());
        bytes.extend_from_slice(&self.at.as_millis().to_be_bytes());
        let mut field = |text: Option<&str>| match text {
            None => bytes.push(0),
            Some(text) => {
                bytes.push(1);
                bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        };
        field(Some(&self.actor));
        field(self.tenant.as_ref().map(|tenant| tenant.as_str()));
        field(Some(&self.action));
        field(self.request_id.as_deref());
        field(self.detail.as_deref());
        bytes.extend_from_slice(target_digest);
        bytes_of(digest(&SHA256, &bytes).as_ref())
    }

    /// The line that follows the line at `last` with the digest `previous`.
    pub(crate) fn into_line(self, last: i64, previous: AuditDigest) -> AuditLine {
        let position = last + 1;
        let target_digest = Self::target_digest(&self.salt.unwrap_or_default(), &self.target);
        let digest = self.line_digest(position, &previous, &target_digest);
        AuditLine { entry: self, position, previous, digest, target_digest }
    }
}

impl AuditLine {
    /// Whether the line is what its digest says. An erased address is no fault: its salt is gone, and only
    /// entries about suppressions have such.
    pub fn is_intact(&self) -> bool {
        let says = self.entry.line_digest(self.position, &self.previous, &self.target_digest);
        let is_target = match &self.entry.salt {
            Some(salt) => AuditEntry::target_digest(salt, &self.entry.target) == self.target_digest,
            None => self.entry.action.starts_with("suppression."),
        };
        says == self.digest && is_target
    }
}

fn bytes_of(digest: &[u8]) -> AuditDigest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest);
    bytes
}

#[cfg(test)]
mod tests {
    use postway_domain::id::AuditId;

    use super::*;

    fn entry() -> AuditEntry {
        AuditEntry {
            id: AuditId::from_bytes([7; 16]),
            at: Time::from_millis(1_700_000_000_000),
            actor: "user:ada".to_owned(),
            tenant: Some("default".parse().unwrap()),
            action: "suppression.create".to_owned(),
            target: "bob@example.net".to_owned(),
            request_id: None,
            detail: Some("{}".to_owned()),
            salt: Some([3; 16]),
        }
    }

    #[test]
    fn a_changed_line_is_not_intact() {
        let line = entry().into_line(4, [9; 32]);
        assert_eq!((line.position, line.is_intact()), (5, true));
        let changes: [fn(&mut AuditLine); 11] = [
            |line| line.entry.actor = "admin".to_owned(),
            |line| line.entry.action = "suppression.delete".to_owned(),
            |line| line.entry.target = "eve@example.net".to_owned(),
            |line| line.entry.tenant = None,
            |line| line.entry.at = Time::from_millis(1),
            |line| line.entry.id = AuditId::from_bytes([8; 16]),
            |line| line.entry.detail = None,
            // A field that moves into its neighbour.
            |line| (line.entry.request_id, line.entry.detail) = (Some("{}".to_owned()), None),
            |line| line.position = 6,
            |line| line.previous = [8; 32],
            |line| line.target_digest = [8; 32],
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut changed = line.clone();
            change(&mut changed);
            assert!(!changed.is_intact(), "change {number}");
        }
    }

    #[test]
    fn an_erased_address_is_no_fault_and_nothing_else_is_erased() {
        let mut erased = entry().into_line(0, [0; 32]);
        (erased.entry.target, erased.entry.salt) = ("digest".to_owned(), None);
        assert!(erased.is_intact());
        let mut other = AuditEntry { action: "key.create".to_owned(), ..entry() }.into_line(0, [0; 32]);
        assert!(other.is_intact());
        (other.entry.target, other.entry.salt) = ("else".to_owned(), None);
        assert!(!other.is_intact());
    }
}
