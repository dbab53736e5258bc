//! The conditions under which a transaction may lease: suspensions, suppressions, and what is left of limits.

use std::collections::BTreeSet;

use postway_domain::{AccountId, Lane, limit::LimitBehavior};

use crate::{
    admin::{SuppressedAddresses, SuspensionGates},
    queue::{hand_over::HandOver, rate_limit::Allowances},
    record::{AccountKey, AccountWant, ClaimedMessage, LeaseGrant, NewMessage, SendingPermit, WireCommit},
};

/// A slot of a standing claim.
pub(crate) struct StandingSlot {
    pub lease: LeaseGrant,
    pub permit: Option<SendingPermit>,
    /// The sending account, if it is not the lane's.
    pub via: Option<AccountId>,
}

/// What remains of a want after this much of its `room` was filled. Nothing remains if all of it was: there
/// may be older mail that waits for a limit, which newer mail must not overtake.
pub(crate) fn remainder(want: &AccountWant, room: u32, taken: usize) -> AccountWant {
    let taken = u32::try_from(taken).unwrap_or(u32::MAX);
    let left = if taken >= room { 0 } else { want.room.saturating_sub(taken) };
    AccountWant { room: left, ..want.clone() }
}

/// Read once per transaction, and debited by it.
#[derive(Default)]
pub(crate) struct LeaseConditions {
    pub gates: SuspensionGates,
    pub suppressed: SuppressedAddresses,
    pub allowances: Allowances,
    /// The existing accounts of the new messages. They are locked until the transaction ends.
    pub accounts: BTreeSet<AccountKey>,
}

impl LeaseConditions {
    /// Whether a new message has an account to send it, or nothing to send.
    pub fn has_account(&self, message: &NewMessage) -> bool {
        let key =
            || AccountKey { tenant: message.lane.tenant.clone(), account: message.lane.account.clone() };
        message.state.status().is_final() || self.accounts.contains(&key())
    }

    /// A slot of a standing claim, with its permit, for a message that may be sent at once.
    pub fn take_slot(&mut self, handover: &HandOver, message: &NewMessage) -> Option<StandingSlot> {
        let key = AccountKey { tenant: message.lane.tenant.clone(), account: message.lane.account.clone() };
        if !self.gates.pass(&message.lane) {
            return None;
        }
        let is_covered =
            |want: &AccountWant| self.allowances.covers(want) && self.gates.may_send(&want.sender());
        let (lease, want) =
            handover.take(&key, message.lane.destination.as_ref(), message.created_at, is_covered)?;
        // Something is left, so this cannot fail.
        let permit = self.allowances.take(&want.sender()).unwrap_or_default();
        Some(StandingSlot { lease, permit, via: want.via })
    }

    /// How much of a want's capacity may be filled. Mail beyond a rejecting limit is leased too, to be
    /// refused.
    pub fn room(&self, want: &AccountWant) -> u32 {
        // The lanes of a suspended account are closed; an account that stands in has only its own lanes.
        if !self.gates.may_send(&want.sender()) || !self.allowances.is_on_time(&want.sender()) {
            return 0;
        }
        match want.limits.behavior {
            LimitBehavior::Defer => want.room.min(self.allowances.left(&want.sender())),
            LimitBehavior::Reject => want.room,
        }
    }

    /// Whether a lane may be claimed from.
    pub fn pass(&self, lane: &Lane) -> bool {
        self.gates.pass(lane)
    }

    /// Whether a message may leave now: neither its lane nor the account that sends it is suspended.
    pub fn may_leave(&self, commit: &WireCommit) -> bool {
        self.gates.may_leave(commit)
    }

    /// Gives claimed messages their sender and their permits, as far as permits last; the others are over the
    /// limit.
    pub fn permit(&mut self, want: &AccountWant, claimed: &mut [ClaimedMessage]) {
        let sender = want.sender();
        for one in claimed {
            one.via = want.via.clone();
            match self.allowances.take(&sender) {
                Ok(permit) => one.permit = permit,
                Err(_) => one.over_limit = true,
            }
        }
    }

    /// Removes suppressed recipients from claimed messages.
    pub fn suppress(&self, claimed: &mut [ClaimedMessage]) {
        for one in claimed {
            let is_suppressed = |address: &str| self.suppressed.contains(&one.lane, address);
            let out: Vec<u32> = one
                .recipients
                .iter()
                .filter(|recipient| is_suppressed(recipient.address.as_str()))
                .map(|recipient| recipient.position)
                .collect();
            one.recipients.retain(|recipient| !out.contains(&recipient.position));
            one.suppressed = out;
        }
    }
}

#[cfg(test)]
mod tests {
    use postway_domain::AccountLimits;

    use super::*;
    use crate::conformance::sample::{self, Sample, at};

    fn park(handover: &HandOver, per_minute: u32) {
        let limits = AccountLimits { per_minute, ..AccountLimits::default() };
        let want = AccountWant { limits, ..AccountWant::unlimited(sample::relay(), 9, true) };
        handover.park(want, &sample::lease(1, at(0)), at(0));
    }

    /// Another writer may register a standing claim between the reading of limits and the taking of slots.
    #[test]
    fn a_standing_claim_whose_limits_were_not_read_is_not_filled() {
        let (handover, message) = (HandOver::default(), Sample::new(1).build());
        park(&handover, 5);
        assert!(LeaseConditions::default().take_slot(&handover, &message).is_none());
        let mut terms = LeaseConditions::default();
        let read = AccountLimits { per_minute: 9, ..AccountLimits::default() };
        terms.allowances.add(sample::relay(), read, at(0), |_| 0);
        assert!(terms.take_slot(&handover, &message).is_none(), "they were others");
        park(&handover, 9);
        assert!(terms.take_slot(&handover, &message).is_some_and(|slot| slot.permit.is_some()));
        park(&handover, 0);
        assert!(
            LeaseConditions::default()
                .take_slot(&handover, &message)
                .is_some_and(|slot| slot.permit.is_none())
        );
    }

    /// Two jobs of one group may come with an account's old limits and its new ones.
    #[test]
    fn limits_that_change_inside_a_group_count_what_it_took() {
        let mut allowances = Allowances::default();
        let limits = |per_minute| AccountLimits { per_minute, ..AccountLimits::default() };
        allowances.add(sample::relay(), limits(5), at(0), |_| 1);
        for _ in 0..4 {
            allowances.take(&sample::relay()).unwrap();
        }
        assert!(
            !allowances.needs(&sample::relay(), &limits(5)) && allowances.needs(&sample::relay(), &limits(6))
        );
        allowances.add(sample::relay(), limits(6), at(0), |_| 1);
        assert_eq!(allowances.left(&sample::relay()), 1);
    }
}
