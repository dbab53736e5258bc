//! Lanes: what a claim chooses among.
//!
//! A lane is (tenant, account, priority, batch). Whatever holds mail back — a suspension, a used-up limit, an open
//! circuit — gates whole lanes, so held mail is neither rewritten nor scanned.

use aws_lc_rs::digest;

use crate::{
    identity::id::{AccountId, BatchCode, MailboxId, TenantId},
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
    /// How batches begin whose mail leaves in order.
    const ORDERED: &'static str = "mailbox:";

    /// The batch of what is forwarded from a mailbox.
    pub fn batch_of(mailbox: &MailboxId) -> BatchCode {
        let code = format!("{}{mailbox}", Self::ORDERED);
        code.parse().expect("a mailbox's name has nothing that a batch's code may not have")
    }

    /// Whether its mail leaves one after the other, in the order in which it was accepted. What has to be tried again later
    /// holds up nothing behind it.
    pub fn is_ordered(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.as_str().starts_with(Self::ORDERED))
    }

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
    fn what_a_mailbox_forwards_is_in_order_and_other_mail_is_not() {
        let lane = |batch: Option<BatchCode>| Lane {
            tenant: "t".parse().unwrap(),
            account: "a".parse().unwrap(),
            priority: Priority::Normal,
            batch,
        };
        let longest: MailboxId = "m".repeat(64).parse().unwrap();
        assert!(lane(Some(Lane::batch_of(&longest))).is_ordered());
        assert!(!lane(Some("news".parse().unwrap())).is_ordered() && !lane(None).is_ordered());
    }

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
