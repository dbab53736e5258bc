//! Copies of sent mail that are stored in tenants' archives.

use postway_domain::{MessageUid, TenantId, Time};

/// A stored copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedMail {
    /// The tenant.
    pub tenant: TenantId,
    /// The message.
    pub uid: MessageUid,
    /// Where it is, below the root of the blobs.
    pub path: String,
    /// Its size in bytes, as it is stored.
    pub size: u64,
    /// The digest of its bytes, as they are stored.
    pub digest: [u8; 32],
    /// Whether it is encrypted.
    pub is_sealed: bool,
    /// When it was stored.
    pub archived_at: Time,
    /// When it is deleted; `None` if never.
    pub expires_at: Option<Time>,
}

/// A filter for stored copies of a tenant. All given conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveFilter {
    /// Only messages accepted at this time or later.
    pub since: Option<Time>,
    /// Only messages accepted before this time.
    pub until: Option<Time>,
}

/// How many copies wait for a tenant's archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveBacklog {
    /// The tenant.
    pub tenant: TenantId,
    /// How many, counted up to [`ArchiveBacklog::COUNTED_MAX`].
    pub waiting: i64,
    /// Since when the oldest of the counted ones waits.
    pub oldest: Option<Time>,
}

impl ArchiveBacklog {
    /// The most that are counted.
    pub const COUNTED_MAX: u32 = 10_000;
}
