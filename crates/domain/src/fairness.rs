//! Which lane next. Pure, so that every database chooses alike.
//!
//! Inside an account, lanes go by priority, with ageing: each minute of waiting lifts a lane's oldest message by one
//! priority, so low mail is never starved and immediate mail never waits behind a batch that came after it.

use crate::{lane::LaneId, message::Priority, time::Time};

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
