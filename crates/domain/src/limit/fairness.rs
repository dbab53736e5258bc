//! Fairness: whose turn it is, among tenants and among the lanes of an account. Pure, so that every node and
//! every database decides alike.
//!
//! Tenants take turns ([`TenantTurns`]): weighted deficit round robin, with messages as the unit. Inside an
//! account, lanes are ordered by priority with ageing: each minute of waiting raises a lane's oldest message
//! by one priority, so that low priority is never starved and immediate mail never waits behind a batch that
//! came after it.
//!
//! Turns divide free slots; [`grantable_slots`] bounds the slots in use. Without the bound, work that does
//! not end, such as mail to a relay that hangs, would collect every slot turn by turn.

use std::collections::{HashMap, VecDeque};

use crate::{
    identity::id::TenantId,
    message::{MessagePriority, lane::LaneId},
    tenant::TenantSettings,
    time::Time,
};

/// How many messages a tenant of the default weight may take in one turn.
const TURN_MESSAGES: u32 = 16;

/// The tenants that want to send, in the order of their turns.
#[derive(Debug, Default)]
pub struct TenantTurns {
    ring: VecDeque<TenantId>,
    shares: HashMap<TenantId, TurnShare>,
}

#[derive(Debug)]
struct TurnShare {
    weight: u32,
    /// The messages left over from earlier turns.
    deficit: u32,
}

impl TenantTurns {
    /// Adds a tenant that wants to send. It keeps its position in the ring until it leaves.
    pub fn join(&mut self, tenant: &TenantId, weight: u32) {
        match self.shares.get_mut(tenant) {
            Some(share) => share.weight = weight,
            None => {
                self.shares.insert(tenant.clone(), TurnShare { weight, deficit: 0 });
                self.ring.push_back(tenant.clone());
            }
        }
    }

    /// The number of tenants that want to send.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether no tenant wants to send.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The tenant whose turn it is, and how many messages it may take. It moves to the end of the ring.
    pub fn take(&mut self) -> Option<(TenantId, u32)> {
        let tenant = self.ring.pop_front()?;
        self.ring.push_back(tenant.clone());
        let share = self.shares.get_mut(&tenant)?;
        let quantum = (share.weight.saturating_mul(TURN_MESSAGES) / TenantSettings::WEIGHT_DEFAULT).max(1);
        // One unused turn carries over, but no more, so that no tenant saves up for a flood.
        share.deficit = share.deficit.saturating_add(quantum).min(quantum.saturating_mul(2));
        Some((tenant, share.deficit))
    }

    /// Notes that a tenant has used a part of its turn.
    pub fn took(&mut self, tenant: &TenantId, messages: u32) {
        if let Some(share) = self.shares.get_mut(tenant) {
            share.deficit = share.deficit.saturating_sub(messages);
        }
    }

    /// Removes a tenant that wants no more for now. It loses what was left of its turns.
    pub fn leave(&mut self, tenant: &TenantId) {
        if self.shares.remove(tenant).is_none() {
            return;
        }
        // A tenant that leaves has usually just had its turn, so it is the last.
        match self.ring.back() == Some(tenant) {
            true => drop(self.ring.pop_back()),
            false => self.ring.retain(|one| one != tenant),
        }
    }
}

/// A tenant of the default weight may use this many times the free slots.
const SLOTS_PER_FREE: usize = 4;

/// How many more slots a holder that uses `in_use` may take when `free` are free.
///
/// A holder may use at most a multiple of the slots that stay free, so some always stay free: a single holder
/// ends at four fifths of all slots, and each of n holders at 4 in 4n + 1. A holder that uses none gets one
/// as long as one is free.
pub fn grantable_slots(free: usize, in_use: usize, weight: u32) -> usize {
    let (weight, default) = (weight as usize, TenantSettings::WEIGHT_DEFAULT as usize);
    // The largest n with in_use + n <= multiple × (free − n), for a multiple that is a fraction of weights.
    let multiple = SLOTS_PER_FREE.saturating_mul(weight);
    let more =
        multiple.saturating_mul(free).saturating_sub(in_use.saturating_mul(default)) / (multiple + default);
    more.max(usize::from(in_use == 0 && free > 0))
}

/// A lane with work due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueLane {
    /// The lane.
    pub lane: LaneId,
    /// Its priority.
    pub priority: MessagePriority,
    /// When its oldest message became due.
    pub oldest_due_at: Time,
}

/// After each such time in the queue a message counts as one priority higher.
pub const AGEING_MS: i64 = 60_000;

/// Sorts due lanes into the order in which they are served. Immediate lanes are always first.
pub fn order(lanes: &mut [DueLane], now: Time) {
    lanes.sort_by_key(|lane| {
        let waited_ms = now.as_millis().saturating_sub(lane.oldest_due_at.as_millis()).max(0);
        let lifted = match lane.priority {
            MessagePriority::Immediate => i64::MIN,
            // Ageing never raises a lane to immediate.
            priority => (priority.code() - waited_ms / AGEING_MS).max(1),
        };
        (lifted, lane.oldest_due_at, lane.lane)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(n: u32) -> TenantId {
        format!("t{n}").parse().unwrap()
    }

    /// Serves `capacity` messages to tenants that all want endlessly; how many each got.
    fn serve(turns: &mut TenantTurns, tenants: u32, mut capacity: u32) -> Vec<u32> {
        let mut served = vec![0; tenants as usize];
        while capacity > 0 {
            let (who, quota) = turns.take().unwrap();
            let taken = quota.min(capacity);
            turns.took(&who, taken);
            capacity -= taken;
            served[(0..tenants).position(|n| tenant(n) == who).unwrap()] += taken;
        }
        served
    }

    #[test]
    fn tenants_are_served_by_their_weights() {
        let mut turns = TenantTurns::default();
        for (n, weight) in [(0, 100), (1, 300), (2, 100)] {
            turns.join(&tenant(n), weight);
        }
        let served = serve(&mut turns, 3, 10_000);
        for (n, expected) in [2_000u32, 6_000, 2_000].into_iter().enumerate() {
            assert!(served[n].abs_diff(expected) <= 64, "{served:?}");
        }
    }

    #[test]
    fn a_tenant_that_comes_late_waits_one_round_at_most() {
        let mut turns = TenantTurns::default();
        (0..10).for_each(|n| turns.join(&tenant(n), 100));
        serve(&mut turns, 10, 1_000);
        turns.join(&tenant(10), 100);
        let before = (0..11).position(|_| turns.take().unwrap().0 == tenant(10)).unwrap();
        assert!(before <= 10);
    }

    #[test]
    fn no_tenant_saves_up_for_a_flood_and_light_ones_are_not_forgotten() {
        let mut turns = TenantTurns::default();
        turns.join(&tenant(0), 1);
        for _ in 0..100 {
            turns.take();
        }
        let (_, quota) = turns.take().unwrap();
        assert_eq!(quota, 2);
        turns.leave(&tenant(0));
        assert!(turns.is_empty() && turns.take().is_none());
    }

    const WEIGHT: u32 = TenantSettings::WEIGHT_DEFAULT;

    #[test]
    fn a_holder_that_takes_all_it_may_leaves_slots_for_others() {
        let mut held = [0; 3];
        let taken = |held: &[usize; 3]| held.iter().sum::<usize>();
        for one in 0..3 {
            held[one] += grantable_slots(500 - taken(&held), held[one], WEIGHT);
            assert_eq!(grantable_slots(500 - taken(&held), held[one], WEIGHT), 0, "it has all it may have");
            assert!(taken(&held) < 500, "{held:?}");
        }
        assert_eq!(held, [400, 80, 16]);
        assert!(grantable_slots(100, 200, 4 * WEIGHT) > grantable_slots(100, 200, WEIGHT));
    }

    #[test]
    fn those_who_wait_catch_up_when_slots_become_free() {
        let mut held = [400_usize, 0];
        for _ in 0..1_000 {
            held[0] -= 1;
            for one in [0, 1] {
                held[one] += grantable_slots(500 - held[0] - held[1], held[one], WEIGHT);
            }
        }
        assert!(held[0].abs_diff(held[1]) <= 10, "{held:?}");
    }

    #[test]
    fn a_newcomer_gets_one_of_the_last_slots_and_no_slot_is_granted_twice() {
        assert_eq!(
            (grantable_slots(1, 0, 1), grantable_slots(1, 1, WEIGHT), grantable_slots(0, 0, WEIGHT)),
            (1, 0, 0)
        );
    }

    fn lane(name: u8, priority: MessagePriority, due_ms: i64) -> DueLane {
        DueLane { lane: LaneId::from_bytes([name; 16]), priority, oldest_due_at: Time::from_millis(due_ms) }
    }

    #[test]
    fn urgent_lanes_go_first_and_old_ones_catch_up() {
        let now = Time::from_millis(1_000_000);
        let mut lanes = [
            lane(1, MessagePriority::Low, 1_000_000 - 3 * AGEING_MS),
            lane(2, MessagePriority::Normal, 999_000),
            lane(3, MessagePriority::Immediate, 999_999),
            lane(4, MessagePriority::High, 999_500),
        ];
        order(&mut lanes, now);
        let names: Vec<u8> = lanes.iter().map(|lane| lane.lane.as_bytes()[0]).collect();
        assert_eq!(names, [3, 1, 4, 2], "immediate, then the aged low lane, then by priority");
    }
}
