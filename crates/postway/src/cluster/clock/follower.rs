//! How far another node's clock is from ours, by its heartbeats.
//!
//! A beat is read some time after it was written, and how long after is unknown: two loops of a second may
//! keep their phase for hours. But it was written after the poll that still read the previous beat. So each
//! beat bounds the distance on both sides, and only a distance that no bound allows to be small moves a
//! clock, by the least that explains what was heard. Whatever the phase, clocks that go alike are left alone,
//! and nothing adds up over restarts.

use std::collections::VecDeque;

use postway_domain::Time;

/// Measurements that are kept.
const SAMPLES: usize = 16;
/// Clocks that differ by less are left alone.
const NEAR_MS: i64 = 500;

/// What the beats so far say about the distance of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockDistance {
    /// Too few beats.
    Unknown,
    /// The clocks may well be alike.
    Near,
    /// The other clock is at least this many milliseconds ahead of ours; negative if it is behind.
    Off(i64),
}

/// Follows one node's clock.
#[derive(Debug, Default)]
pub struct ClockFollower {
    /// The least and the most that each beat allows.
    bounds: VecDeque<(i64, i64)>,
    last: Option<(i64, Time)>,
}

impl ClockFollower {
    /// Notes a poll: the node's counter and the time it wrote by its own clock, read between our two times.
    pub fn hear(&mut self, beat: i64, its_now: Time, (asked, answered): (Time, Time)) {
        let before = self.last.replace((beat, asked));
        let Some((_, polled_at)) = before.filter(|(last, _)| *last != beat) else { return };
        let since = |ours: Time| its_now.as_millis().saturating_sub(ours.as_millis());
        self.bounds.push_back((since(answered), since(polled_at)));
        if self.bounds.len() > SAMPLES {
            self.bounds.pop_front();
        }
    }

    /// The distance, once `enough` beats are known.
    pub fn distance(&self, enough: usize) -> ClockDistance {
        if self.bounds.len() < enough { ClockDistance::Unknown } else { Self::within(self.bounds.iter()) }
    }

    /// The distance by the last beat alone.
    pub fn last(&self) -> ClockDistance {
        Self::within(self.bounds.iter().rev().take(1))
    }

    fn within<'b>(bounds: impl Iterator<Item = &'b (i64, i64)> + Clone) -> ClockDistance {
        let least = bounds.clone().map(|(least, _)| *least).max();
        // The widest bound: a beat that took long to be written was made before the poll that did not read it
        // yet.
        let most = bounds.map(|(_, most)| *most).max();
        match (least, most) {
            (Some(least), _) if least > NEAR_MS => ClockDistance::Off(least),
            (_, Some(most)) if most < -NEAR_MS => ClockDistance::Off(most),
            (Some(least), Some(most)) if most - least <= NEAR_MS => ClockDistance::Near,
            _ => ClockDistance::Unknown,
        }
    }

    /// Drops the measurements against an earlier time of ours.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// Follows a node whose clock is `ahead_ms` ahead, and whose beats are read `age_ms` after they were
    /// written.
    fn heard(ahead_ms: i64, age_ms: impl Fn(i64) -> i64) -> ClockFollower {
        let mut follower = ClockFollower::default();
        for n in 0..50 {
            let now = n * 1_000;
            follower.hear(n, at(now - age_ms(n) + ahead_ms), (at(now), at(now)));
        }
        follower
    }

    #[test]
    fn quick_looks_tell_the_distance_once_the_counter_moves() {
        let mut follower = ClockFollower::default();
        follower.hear(1, at(0), (at(60_000), at(60_000)));
        follower.hear(1, at(0), (at(60_950), at(60_950)));
        assert_eq!(follower.distance(1), ClockDistance::Unknown, "it may be an old beat");
        follower.hear(2, at(1_000), (at(61_000), at(61_000)));
        assert_eq!(follower.distance(1), ClockDistance::Off(-59_950));
        assert_eq!(follower.distance(2), ClockDistance::Unknown, "one beat may have been long on its way");
    }

    #[test]
    fn clocks_that_go_alike_are_left_alone_whatever_the_phase_of_two_loops() {
        for age in (0..1_000).step_by(50) {
            assert!(
                !matches!(heard(0, |_| age).distance(8), ClockDistance::Off(_)),
                "{age} ms old, all of them"
            );
        }
        let distance = heard(0, |n| (n * 37) % 1_000).distance(8);
        assert!(!matches!(distance, ClockDistance::Off(_)), "{distance:?}");
        // One that was held up between saying the time and writing it.
        let distance = heard(0, |n| if n == 40 { 3_000 } else { 10 }).distance(8);
        assert!(!matches!(distance, ClockDistance::Off(_)), "{distance:?}");
    }

    #[test]
    fn a_distance_is_known_to_a_second_from_either_side() {
        for (ahead, age) in [(90_000, 10), (90_000, 900), (-90_000, 10), (-90_000, 900)] {
            let ClockDistance::Off(by) = heard(ahead, |_| age).distance(8) else {
                panic!("{ahead} ms is far")
            };
            assert!((by - ahead).abs() <= 1_000 && by.abs() <= ahead.abs(), "{by} of {ahead}");
        }
    }
}
