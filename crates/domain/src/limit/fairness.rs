//! Whose turn it is: among tenants, and among the lanes of an account. Pure, so that every node and every database
//! chooses alike.
//!
//! Tenants take turns ([`Turns`]): weighted deficit round robin, with messages as the unit. Inside an account, lanes go
//! by priority, with ageing: each minute of waiting lifts a lane's oldest message by one priority, so low mail is never
//! starved and immediate mail never waits behind a batch that came after it.
//!
//! Turns share what is free; [`places`] bounds what is held. Work that does not end, such as mail to a relay that hangs,
//! would otherwise collect every place turn by turn, and leave none for anybody else.

use std::collections::{HashMap, VecDeque};

use crate::{
    identity::id::TenantId,
    message::{Priority, lane::LaneId},
    tenant::TenantSettings,
    time::Time,
};

/// How many messages a tenant of the default weight may take in one turn.
const TURN_MESSAGES: u32 = 16;

/// Tenants that want to send, in the order of their turns.
#[derive(Debug, Default)]
pub struct Turns {
    ring: VecDeque<TenantId>,
    shares: HashMap<TenantId, Share>,
}

#[derive(Debug)]
struct Share {
    weight: u32,
    /// What is left of earlier turns.
    deficit: u32,
}

impl Turns {
    /// A tenant wants to send. Its place in the ring is its own until it wants no more.
    pub fn join(&mut self, tenant: &TenantId, weight: u32) {
        match self.shares.get_mut(tenant) {
            Some(share) => share.weight = weight,
            None => {
                self.shares.insert(tenant.clone(), Share { weight, deficit: 0 });
                self.ring.push_back(tenant.clone());
            }
        }
    }

    /// How many want to send.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nobody does.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Whose turn it is, and how many messages it may take. It goes to the end of the ring.
    pub fn take(&mut self) -> Option<(TenantId, u32)> {
        let tenant = self.ring.pop_front()?;
        self.ring.push_back(tenant.clone());
        let share = self.shares.get_mut(&tenant)?;
        let quantum = (share.weight.saturating_mul(TURN_MESSAGES) / TenantSettings::WEIGHT_DEFAULT).max(1);
        // A turn that could not be used is kept, but only one: nobody saves up for a flood.
        share.deficit = share.deficit.saturating_add(quantum).min(quantum.saturating_mul(2));
        Some((tenant, share.deficit))
    }

    /// A tenant has used some of its turn.
    pub fn took(&mut self, tenant: &TenantId, messages: u32) {
        if let Some(share) = self.shares.get_mut(tenant) {
            share.deficit = share.deficit.saturating_sub(messages);
        }
    }

    /// A tenant wants no more for now, and loses what it had left.
    pub fn leave(&mut self, tenant: &TenantId) {
        if self.shares.remove(tenant).is_none() {
            return;
        }
        // Whoever leaves has mostly just had its turn.
        match self.ring.back() == Some(tenant) {
            true => drop(self.ring.pop_back()),
            false => self.ring.retain(|one| one != tenant),
        }
    }
}

/// How many times the free places somebody of the default weight may hold.
const PLACES_PER_FREE: usize = 4;

/// How many more places somebody may take who holds `held`, where `free` are free.
///
/// Nobody holds more than a multiple of what stays free, so something always does: one alone ends at four fifths of
/// all places, and each of n at 4 in 4n + 1. Whoever has nothing gets one as long as there is one.
pub fn places(free: usize, held: usize, weight: u32) -> usize {
    let (weight, default) = (weight as usize, TenantSettings::WEIGHT_DEFAULT as usize);
    // The largest n with held + n <= multiple × (free − n), for a multiple that is a fraction of weights.
    let multiple = PLACES_PER_FREE.saturating_mul(weight);
    let more =
        multiple.saturating_mul(free).saturating_sub(held.saturating_mul(default)) / (multiple + default);
    more.max(usize::from(held == 0 && free > 0))
}

/// A lane with work due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueLane {
    /// Which lane.
    pub lane: LaneId,
    /// How urgent.
    pub priority: Priority,
    /// Since when its oldest message is due.
    pub oldest_due_at: Time,
}

/// After this long in the queue a message counts as one priority higher.
pub const AGEING_MS: i64 = 60_000;

/// Puts due lanes in the order in which they are served. Immediate lanes are always first.
pub fn order(lanes: &mut [DueLane], now: Time) {
    lanes.sort_by_key(|lane| {
        let waited_ms = now.as_millis().saturating_sub(lane.oldest_due_at.as_millis()).max(0);
        let lifted = match lane.priority {
            Priority::Immediate => i64::MIN,
            // Ageing never lifts a lane above immediate.
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
    fn serve(turns: &mut Turns, tenants: u32, mut capacity: u32) -> Vec<u32> {
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
        let mut turns = Turns::default();
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
        let mut turns = Turns::default();
        (0..10).for_each(|n| turns.join(&tenant(n), 100));
        serve(&mut turns, 10, 1_000);
        turns.join(&tenant(10), 100);
        let before = (0..11).position(|_| turns.take().unwrap().0 == tenant(10)).unwrap();
        assert!(before <= 10);
    }

    #[test]
    fn nobody_saves_up_for_a_flood_and_the_light_are_not_forgotten() {
        let mut turns = Turns::default();
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
    fn whoever_takes_all_it_may_leaves_places_for_others() {
        let mut held = [0; 3];
        let taken = |held: &[usize; 3]| held.iter().sum::<usize>();
        for one in 0..3 {
            held[one] += places(500 - taken(&held), held[one], WEIGHT);
            assert_eq!(places(500 - taken(&held), held[one], WEIGHT), 0, "it has all it may have");
            assert!(taken(&held) < 500, "{held:?}");
        }
        assert_eq!(held, [400, 80, 16]);
        assert!(places(100, 200, 4 * WEIGHT) > places(100, 200, WEIGHT));
    }

    #[test]
    fn those_who_wait_catch_up_when_places_come_free() {
        let mut held = [400_usize, 0];
        for _ in 0..1_000 {
            held[0] -= 1;
            for one in [0, 1] {
                held[one] += places(500 - held[0] - held[1], held[one], WEIGHT);
            }
        }
        assert!(held[0].abs_diff(held[1]) <= 10, "{held:?}");
    }

    #[test]
    fn a_newcomer_gets_one_of_the_last_places_and_nobody_gets_what_is_not_there() {
        assert_eq!((places(1, 0, 1), places(1, 1, WEIGHT), places(0, 0, WEIGHT)), (1, 0, 0));
    }

    fn lane(name: u8, priority: Priority, due_ms: i64) -> DueLane {
        DueLane { lane: LaneId::from_bytes([name; 16]), priority, oldest_due_at: Time::from_millis(due_ms) }
    }

    #[test]
    fn urgent_lanes_go_first_and_old_ones_catch_up() {
        let now = Time::from_millis(1_000_000);
        let mut lanes = [
            lane(1, Priority::Low, 1_000_000 - 3 * AGEING_MS),
            lane(2, Priority::Normal, 999_000),
            lane(3, Priority::Immediate, 999_999),
            lane(4, Priority::High, 999_500),
        ];
        order(&mut lanes, now);
        let names: Vec<u8> = lanes.iter().map(|lane| lane.lane.as_bytes()[0]).collect();
        assert_eq!(names, [3, 1, 4, 2], "immediate, then the aged low lane, then by priority");
    }
}
