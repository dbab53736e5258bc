//! Which nodes are alive, as one observer sees it.
//!
//! Nodes count their heartbeats in the store. A node is dead if its counter has not moved for [`DEAD_AFTER`]
//! on the observer's own monotonic clock; the clocks of two nodes are never compared. The judgement refers to
//! the observer's last observation: while it could not read the counters, it could not see any of them move.
//! So no node is declared dead for that time, and all get a new chance when it reads again.
//!
//! A node also knows how others must see it ([`NodeVisibility`]): one whose heartbeat has not been stored for
//! [`ISOLATED_AFTER`] begins nothing more, well before any other node may take over its work.

use std::{collections::HashMap, time::Duration};

use crate::identity::id::Incarnation;

/// A node whose counter has not moved for this long is dead.
pub const DEAD_AFTER: Duration = Duration::from_secs(10);
/// A node whose heartbeat has not been stored for this long begins nothing more. Long enough to survive one
/// lost heartbeat, and so much shorter than [`DEAD_AFTER`] that attempts it has begun are on the wire before
/// another node takes over.
pub const ISOLATED_AFTER: Duration = Duration::from_secs(6);
/// How often a node increments its counter and reads those of the others.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// An observer that has not read the counters for this long has missed something.
const OBSERVATION_GAP: Duration = Duration::from_secs(4);

/// When a counter was last seen moving, on the observer's clock.
#[derive(Clone, Copy, Debug)]
struct NodeSighting {
    beat: i64,
    moved_at: Duration,
}

/// The view of one observer. `at` is always a time on its monotonic clock, since an arbitrary start.
#[derive(Debug, Default)]
pub struct NodeLiveness {
    sightings: HashMap<Incarnation, NodeSighting>,
    looked_at: Option<Duration>,
    disturbed_at: Option<Duration>,
}

impl NodeLiveness {
    /// Takes the counters of all registered nodes. Nodes that are no longer registered are forgotten.
    pub fn observe(&mut self, at: Duration, beats: &[(Incarnation, i64)]) {
        let gap = self.looked_at.is_some_and(|looked| at.saturating_sub(looked) > OBSERVATION_GAP);
        if gap {
            self.disturbed_at = Some(at);
        }
        self.looked_at = Some(at);
        let before = std::mem::take(&mut self.sightings);
        for &(incarnation, beat) in beats {
            let seen = before.get(&incarnation).filter(|seen| seen.beat == beat && !gap).copied();
            self.sightings.insert(incarnation, seen.unwrap_or(NodeSighting { beat, moved_at: at }));
        }
        // Nodes met outside the register keep their times.
        for (incarnation, seen) in before {
            if seen.beat == GONE || (seen.beat == UNREGISTERED && !gap) {
                self.sightings.entry(incarnation).or_insert(seen);
            }
        }
    }

    /// Notes an incarnation that has leases but is not registered: it may be about to register, or long gone.
    pub fn meet(&mut self, at: Duration, incarnation: Incarnation) {
        self.sightings.entry(incarnation).or_insert(NodeSighting { beat: UNREGISTERED, moved_at: at });
    }

    /// Notes that an incarnation is certainly gone, because it was an earlier life of this process.
    pub fn bury(&mut self, incarnation: Incarnation) {
        self.sightings.insert(incarnation, NodeSighting { beat: GONE, moved_at: Duration::ZERO });
    }

    /// Whether the incarnation was dead at the last observation. One that was never met is not.
    pub fn is_dead(&self, incarnation: &Incarnation) -> bool {
        let looked = self.looked_at.unwrap_or_default();
        self.sightings
            .get(incarnation)
            .is_some_and(|seen| seen.beat == GONE || looked.saturating_sub(seen.moved_at) >= DEAD_AFTER)
    }

    /// The registered incarnations that were not dead at the last observation.
    pub fn alive(&self) -> Vec<Incarnation> {
        let registered = self.sightings.iter().filter(|(_, seen)| seen.beat >= 0);
        registered.map(|(incarnation, _)| *incarnation).filter(|one| !self.is_dead(one)).collect()
    }

    /// Whether the observer has read without a gap for long enough to judge. After an outage of the store,
    /// the outcomes of attempts under way must be stored before another node takes them over.
    pub fn is_calm(&self, at: Duration) -> bool {
        let looks = self.looked_at.is_none_or(|looked| at.saturating_sub(looked) <= OBSERVATION_GAP);
        looks && self.disturbed_at.is_none_or(|disturbed| at.saturating_sub(disturbed) >= DEAD_AFTER)
    }
}

/// How the other nodes must see this one, as far as it can know. Times are on its own monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeVisibility {
    /// When the last stored heartbeat was begun; no node can have seen it earlier.
    beaten_at: Option<Duration>,
    /// Since when no two heartbeats were too far apart.
    since: Duration,
}

impl NodeVisibility {
    /// Notes that a heartbeat begun at `began` was stored at `landed`.
    pub fn beat(&mut self, began: Duration, landed: Duration) {
        if !self.is_isolated(landed) {
            self.beaten_at = self.beaten_at.max(Some(began));
            return;
        }
        *self = Self { beaten_at: Some(began), since: landed };
    }

    /// Whether a heartbeat was ever stored.
    pub fn has_beaten(&self) -> bool {
        self.beaten_at.is_some()
    }

    /// Whether other nodes may soon take this one for dead, or already have.
    pub fn is_isolated(&self, at: Duration) -> bool {
        self.beaten_at.is_none_or(|beaten| at.saturating_sub(beaten) >= ISOLATED_AFTER)
    }

    /// Whether no other node can have taken this one for dead at any time from `from` to `at`.
    pub fn lasts(&self, from: Duration, at: Duration) -> bool {
        !self.is_isolated(at) && self.since <= from
    }
}

/// The counter of a node that was met and is not registered.
const UNREGISTERED: i64 = -1;
/// The counter of a node that is certainly gone.
const GONE: i64 = -2;

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: u8) -> Incarnation {
        Incarnation::from_bytes([n; 16])
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Observes once a second from `from` to `to`. The counter of the first node moves, that of the second
    /// does not.
    fn look(liveness: &mut NodeLiveness, from: u64, to: u64) {
        for second in from..=to {
            liveness.observe(s(second), &[(node(1), second as i64), (node(2), 7)]);
        }
    }

    #[test]
    fn a_counter_that_stands_still_for_ten_seconds_is_dead() {
        let mut liveness = NodeLiveness::default();
        look(&mut liveness, 0, 9);
        assert!(!liveness.is_dead(&node(2)));
        look(&mut liveness, 10, 10);
        assert!(liveness.is_dead(&node(2)));
        assert_eq!(liveness.alive(), [node(1)]);
        liveness.observe(s(11), &[(node(1), 11), (node(2), 8)]);
        assert!(!liveness.is_dead(&node(2)), "it moved again");
    }

    #[test]
    fn a_gap_in_looking_gives_everybody_a_new_chance() {
        let mut liveness = NodeLiveness::default();
        look(&mut liveness, 0, 9);
        look(&mut liveness, 60, 60);
        assert!(!liveness.is_dead(&node(2)));
        assert!(!liveness.is_calm(s(69)));
        look(&mut liveness, 61, 70);
        assert!(liveness.is_calm(s(70)));
        assert!(liveness.is_dead(&node(2)));
    }

    #[test]
    fn nobody_dies_while_the_observer_does_not_look() {
        let mut liveness = NodeLiveness::default();
        look(&mut liveness, 0, 3);
        assert!(liveness.is_calm(s(7)));
        assert!(!liveness.is_calm(s(8)), "it has not looked for a while");
        assert!(!liveness.is_dead(&node(2)), "however late it is");
        assert_eq!(liveness.alive().len(), 2);
    }

    #[test]
    fn somebody_unregistered_has_ten_seconds_to_register() {
        let mut liveness = NodeLiveness::default();
        look(&mut liveness, 0, 0);
        assert!(!liveness.is_dead(&node(3)), "never met");
        liveness.meet(s(0), node(3));
        look(&mut liveness, 1, 9);
        assert!(!liveness.is_dead(&node(3)));
        look(&mut liveness, 10, 10);
        assert!(liveness.is_dead(&node(3)));
        assert!(!liveness.alive().contains(&node(3)));
    }

    #[test]
    fn a_node_that_cannot_beat_is_isolated_before_anybody_takes_it_for_dead() {
        let mut visibility = NodeVisibility::default();
        assert!(visibility.is_isolated(s(0)), "it has not registered yet");
        visibility.beat(s(1), s(1));
        visibility.beat(s(2), s(4));
        assert!(!visibility.is_isolated(s(7)));
        assert!(visibility.is_isolated(s(8)), "counted from when the beat was begun");
        let mut observer = NodeLiveness::default();
        for second in 2..=8 {
            observer.observe(s(second), &[(node(1), 2)]);
        }
        assert!(!observer.is_dead(&node(1)), "and it landed no earlier than that");
    }

    #[test]
    fn what_was_asked_before_a_gap_is_not_good_after_it() {
        let mut visibility = NodeVisibility::default();
        visibility.beat(s(1), s(2));
        visibility.beat(s(3), s(3));
        assert!(visibility.lasts(s(2), s(8)));
        assert!(!visibility.lasts(s(2), s(9)), "isolated");
        visibility.beat(s(8), s(9));
        assert!(!visibility.is_isolated(s(10)));
        assert!(!visibility.lasts(s(8), s(10)), "another node may have judged it meanwhile");
        assert!(visibility.lasts(s(9), s(10)));
    }

    #[test]
    fn an_earlier_life_is_dead_at_once() {
        let mut liveness = NodeLiveness::default();
        liveness.bury(node(9));
        assert!(liveness.is_dead(&node(9)));
        assert!(liveness.alive().is_empty());
    }
}
