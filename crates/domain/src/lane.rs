//! Lanes: what a claim chooses among.
//!
//! A lane is (tenant, account, priority, batch). Whatever holds mail back — a suspension, a used-up limit, an open
//! circuit — gates whole lanes, so held mail is neither rewritten nor scanned.

use aws_lc_rs::digest;

use crate::{
    id::{AccountId, BatchCode, TenantId},
    message::Priority,
};

/// The 16 bytes that stand for a lane in the store. Made from the lane itself, so every node makes the same id
/// without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId([u8; 16]);

impl LaneId {
    /// From a store.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// For a store.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Mail that waits for the same things.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// Whose mail.
    pub tenant: TenantId,
    /// Sent by which account.
    pub account: AccountId,
    /// How urgent.
    pub priority: Priority,
    /// Part of which batch, if any.
    pub batch: Option<BatchCode>,
}

impl Lane {
    /// This lane's id: a truncated SHA-256 over its length-prefixed parts.
    pub fn id(&self) -> LaneId {
        let mut hash = digest::Context::new(&digest::SHA256);
        let batch = self.batch.as_ref().map_or("", BatchCode::as_str);
        for part in [self.tenant.as_str(), self.account.as_str(), batch] {
            hash.update(&(part.len() as u32).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.update(&[self.priority as u8]);
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finish().as_ref()[..16]);
        LaneId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_with_shifted_parts_differ() {
        let lane = |tenant: &str, account: &str| Lane {
            tenant: tenant.parse().unwrap(),
            account: account.parse().unwrap(),
            priority: Priority::Normal,
            batch: None,
        };
        assert_ne!(lane("ab", "c").id(), lane("a", "bc").id());
        assert_eq!(lane("a", "b").id(), lane("a", "b").id());
    }
}
