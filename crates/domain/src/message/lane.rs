//! Lanes: what claims choose among.
//!
//! A lane is (tenant, account, priority, batch). A suspension, a used-up limit or an open circuit blocks
//! complete lanes, so that blocked mail is neither rewritten nor scanned.

use aws_lc_rs::digest;

use crate::{
    identity::id::{AccountId, BatchCode, MailboxId, TenantId},
    message::Priority,
};

/// The id of a lane in the store: 16 bytes, computed from the lane itself, so that all nodes agree without
/// asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId([u8; 16]);

impl LaneId {
    /// The value of a code that a store keeps.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// For a store.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Messages that can be blocked only together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// The tenant.
    pub tenant: TenantId,
    /// The account that sends.
    pub account: AccountId,
    /// The priority.
    pub priority: Priority,
    /// The batch, if the messages belong to one.
    pub batch: Option<BatchCode>,
}

impl Lane {
    /// The prefix of batches whose mail is sent in order.
    const ORDERED: &'static str = "mailbox:";

    /// The batch of mail forwarded from a mailbox.
    pub fn batch_of(mailbox: &MailboxId) -> BatchCode {
        let code = format!("{}{mailbox}", Self::ORDERED);
        code.parse().expect("a mailbox's name has nothing that a batch's code may not have")
    }

    /// Whether its messages are sent one after the other, in the order of their acceptance. A message that
    /// waits for a retry does not delay those behind it.
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
