//! Lanes: what claims choose among.
//!
//! A lane is (tenant, account, priority, batch, limited receiving domains). A suspension, a used-up limit, a
//! busy destination or an open circuit blocks complete lanes, so that blocked mail is neither rewritten nor
//! scanned.

use aws_lc_rs::digest;

use crate::{
    identity::id::{AccountId, BatchCode, MailboxId, TenantId},
    message::{DestinationGroup, MessagePriority},
};

/// The id of a lane in the store: 16 bytes, computed from the lane itself, so that all nodes agree without
/// asking.
///
/// The first bytes come from the tenant, the next ones from the account: the lanes of an account, and those
/// of a tenant, are neighbours in every index that is led by the id ([`LaneRange`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId([u8; 16]);

/// How many bytes of an id come from the tenant, and how many from the account.
const TENANT_BYTES: usize = 4;
const ACCOUNT_BYTES: usize = 3;

impl LaneId {
    /// The value of a code that a store keeps.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// For a store.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The id behind this one, unless it is the last.
    pub fn next(self) -> Option<Self> {
        u128::from_be_bytes(self.0).checked_add(1).map(|number| Self(number.to_be_bytes()))
    }
}

/// The ids between which all lanes of an account, of a tenant, or of everybody lie.
///
/// Two tenants, or two accounts, may share a range: their bytes are digests. Whoever walks a range checks the
/// words of each lane that it finds there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneRange {
    /// The lowest id that a lane of the range can have.
    pub first: LaneId,
    /// The highest.
    pub last: LaneId,
}

impl LaneRange {
    /// All lanes.
    pub const ALL: Self = Self { first: LaneId([0; 16]), last: LaneId([0xff; 16]) };

    /// The lanes of a tenant.
    pub fn of_tenant(tenant: &TenantId) -> Self {
        Self::led_by(&digest_of(&[tenant.as_str()])[..TENANT_BYTES])
    }

    /// The lanes of an account.
    pub fn of_account(tenant: &TenantId, account: &AccountId) -> Self {
        Self::led_by(&account_lead(tenant, account))
    }

    fn led_by(lead: &[u8]) -> Self {
        let mut range = Self::ALL;
        range.first.0[..lead.len()].copy_from_slice(lead);
        range.last.0[..lead.len()].copy_from_slice(lead);
        range
    }

    /// Whether an id lies in the range.
    pub fn contains(&self, id: LaneId) -> bool {
        (self.first..=self.last).contains(&id)
    }
}

/// The bytes with which the ids of an account's lanes begin.
fn account_lead(tenant: &TenantId, account: &AccountId) -> [u8; TENANT_BYTES + ACCOUNT_BYTES] {
    let mut lead = [0; TENANT_BYTES + ACCOUNT_BYTES];
    lead[..TENANT_BYTES].copy_from_slice(&digest_of(&[tenant.as_str()])[..TENANT_BYTES]);
    let of_account = digest_of(&[tenant.as_str(), account.as_str()]);
    lead[TENANT_BYTES..].copy_from_slice(&of_account[..ACCOUNT_BYTES]);
    lead
}

/// SHA-256 over words, each with its length before it.
fn digest_of(words: &[&str]) -> [u8; 32] {
    let mut hash = digest::Context::new(&digest::SHA256);
    for word in words {
        hash.update(&(word.len() as u32).to_be_bytes());
        hash.update(word.as_bytes());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(hash.finish().as_ref());
    digest
}

/// Messages that can be blocked only together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// The tenant.
    pub tenant: TenantId,
    /// The account that sends.
    pub account: AccountId,
    /// The priority.
    pub priority: MessagePriority,
    /// The batch, if the messages belong to one.
    pub batch: Option<BatchCode>,
    /// The receiving domains that limit it, if some do.
    pub destination: Option<DestinationGroup>,
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

    /// This lane for mail to a group of limited domains. What is in order stays in one lane.
    pub fn to_destination(self, destination: Option<DestinationGroup>) -> Self {
        let destination = destination.filter(|_| !self.is_ordered());
        Self { destination, ..self }
    }

    /// This lane's id: bytes of its tenant, bytes of its account, then a truncated SHA-256 over all of its
    /// parts.
    pub fn id(&self) -> LaneId {
        let batch = self.batch.as_ref().map_or("", BatchCode::as_str);
        let mut hash = digest::Context::new(&digest::SHA256);
        // A lane without limited domains has the id that it had before there were lanes with them.
        let destination = self.destination.as_ref().map(DestinationGroup::as_str);
        let words: Vec<&str> =
            [self.tenant.as_str(), self.account.as_str(), batch].into_iter().chain(destination).collect();
        hash.update(&digest_of(&words));
        hash.update(&[self.priority as u8]);
        let lead = account_lead(&self.tenant, &self.account);
        let mut id = [0; 16];
        id[..lead.len()].copy_from_slice(&lead);
        id[lead.len()..].copy_from_slice(&hash.finish().as_ref()[..16 - lead.len()]);
        LaneId(id)
    }

    /// The id that programs before schema step 19 give this lane: a digest without order. What waits under it
    /// is moved to [`Lane::id`].
    pub fn earlier_id(&self) -> LaneId {
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
            priority: MessagePriority::Normal,
            batch,
            destination: None,
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
            priority: MessagePriority::Normal,
            batch: None,
            destination: None,
        };
        assert_ne!(lane("ab", "c").id(), lane("a", "bc").id());
        assert_eq!(lane("a", "b").id(), lane("a", "b").id());
    }

    #[test]
    fn limited_domains_make_a_lane_of_the_same_account_and_none_of_what_is_in_order() {
        let lane = |batch: Option<&str>| Lane {
            tenant: "t".parse().unwrap(),
            account: "a".parse().unwrap(),
            priority: MessagePriority::Normal,
            batch: batch.map(|batch| batch.parse().unwrap()),
            destination: None,
        };
        let gmail: DestinationGroup = "gmail.com".parse().unwrap();
        let limited = lane(None).to_destination(Some(gmail.clone()));
        assert_ne!(limited.id(), lane(None).id());
        assert_ne!(limited.id(), lane(Some("gmail.com")).id());
        assert!(LaneRange::of_account(&limited.tenant, &limited.account).contains(limited.id()));
        assert_eq!(limited.to_destination(None).id(), lane(None).id());
        assert_eq!(lane(Some("mailbox:a")).to_destination(Some(gmail)).destination, None);
        let hex: String = lane(None).id().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "c508c99ea95c5578acb89373d5cfecc1", "the id of a lane in which mail waits already");
    }

    #[test]
    fn lanes_of_an_account_and_of_a_tenant_lie_together() {
        let lane = |tenant: &str, account: &str, batch: usize| Lane {
            tenant: tenant.parse().unwrap(),
            account: account.parse().unwrap(),
            priority: if batch.is_multiple_of(2) { MessagePriority::Normal } else { MessagePriority::Low },
            batch: Some(format!("b{batch}").parse().unwrap()),
            destination: None,
        };
        let of_account = LaneRange::of_account(&"t".parse().unwrap(), &"a".parse().unwrap());
        let of_tenant = LaneRange::of_tenant(&"t".parse().unwrap());
        let mut ids = std::collections::BTreeSet::new();
        for batch in 0..1_000 {
            let (own, sibling, other) =
                (lane("t", "a", batch).id(), lane("t", "b", batch).id(), lane("u", "a", batch).id());
            assert!(of_account.contains(own) && of_tenant.contains(own));
            assert!(!of_account.contains(sibling) && of_tenant.contains(sibling));
            assert!(!of_tenant.contains(other) && LaneRange::ALL.contains(other));
            ids.extend([own, sibling, other]);
        }
        assert_eq!(ids.len(), 3_000);
        assert!(of_account.first.next() > Some(of_account.first) && LaneRange::ALL.last.next().is_none());
    }
}
