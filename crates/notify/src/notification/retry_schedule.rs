//! When a failed call is repeated, and when a notification is given up.
//!
//! A subscriber that is away gets a week: its notifications are called ever less often, and nothing needs to
//! be done if it comes back within that time. A notification that fails alone, while its subscriber takes
//! others, gets two days: later events of the same message wait for it.

use std::time::Duration;

use rand::Rng;

/// The waits after the first failed calls, in seconds. The first call is made at once.
const DELAYS_S: [u64; 5] = [5, 60, 5 * 60, 30 * 60, 2 * 3_600];
/// The wait after every later call.
const DELAY_LAST_S: u64 = 3 * 3_600;
/// The least time for which a notification is called while its subscriber takes nothing.
const AWAY_LASTS: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The least time for which a notification is called while its subscriber takes others.
const ALONE_LASTS: Duration = Duration::from_secs(2 * 24 * 3_600);
/// The least number of calls in that case: a notification that was sent again on request is already old.
const ALONE_TRIES_MIN: i64 = 9;
/// The least number of calls while the subscriber takes nothing; the waits between them add up to
/// [`AWAY_LASTS`].
const AWAY_TRIES_MIN: i64 = away_tries();
/// The longest wait that a subscriber may ask for.
pub(crate) const ASKED_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The largest fraction by which a wait is lengthened, so that calls that failed together are not repeated
/// together.
const JITTER: f64 = 0.1;

const fn away_tries() -> i64 {
    let (mut tries, mut waited_s) = (1, 0);
    while waited_s < AWAY_LASTS.as_secs() {
        waited_s += if tries <= DELAYS_S.len() { DELAYS_S[tries - 1] } else { DELAY_LAST_S };
        tries += 1;
    }
    tries as i64
}

/// The history of a notification whose call failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureHistory {
    /// The number of calls before this one.
    pub tries: i64,
    /// The age of the notification.
    pub age: Duration,
    /// Whether its subscriber takes other notifications.
    pub takes_others: bool,
}

impl FailureHistory {
    /// Both the time and the calls must be used up: neither many calls in a row nor a long pause of this
    /// program ends it early.
    fn is_over(self) -> bool {
        let (lasts, tries_min) = match self.takes_others {
            true => (ALONE_LASTS, ALONE_TRIES_MIN),
            false => (AWAY_LASTS, AWAY_TRIES_MIN),
        };
        self.tries + 1 >= tries_min && self.age >= lasts
    }
}

/// The wait after a failed call, at least the wait that the subscriber `asked` for; `None` if there is no
/// further call.
pub(crate) fn delay(
    history: FailureHistory,
    asked: Option<Duration>,
    random: &mut impl Rng,
) -> Option<Duration> {
    (!history.is_over()).then(|| wait(history.tries, random).max(asked.unwrap_or_default().min(ASKED_MAX)))
}

/// The wait after a failed call of a notification that is never given up.
pub(crate) fn delay_without_end(tries: i64, random: &mut impl Rng) -> Duration {
    wait(tries, random)
}

fn wait(tries: i64, random: &mut impl Rng) -> Duration {
    let listed = usize::try_from(tries).ok().and_then(|tries| DELAYS_S.get(tries));
    let seconds = listed.copied().unwrap_or(DELAY_LAST_S);
    Duration::from_secs(seconds).mul_f64(1.0 + JITTER * random.random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn history(tries: i64, age: Duration, takes_others: bool) -> FailureHistory {
        FailureHistory { tries, age, takes_others }
    }

    /// Makes calls on time until there are no more; returns their number and the time they took.
    fn followed(takes_others: bool) -> (i64, Duration) {
        let (mut tries, mut age) = (0, Duration::ZERO);
        while let Some(wait) = delay(history(tries, age, takes_others), None, &mut rand::rng()) {
            (tries, age) = (tries + 1, age + wait);
        }
        (tries + 1, age)
    }

    #[test]
    fn waits_grow_to_some_hours_and_then_stay() {
        let mut random = rand::rng();
        let waits_s = DELAYS_S.into_iter().chain([DELAY_LAST_S; 3]);
        for (tries, seconds) in (0..).zip(waits_s) {
            let wait = delay(history(tries, Duration::ZERO, false), None, &mut random).unwrap();
            let least = Duration::from_secs(seconds);
            assert!(wait >= least && wait <= least.mul_f64(1.0 + JITTER), "{tries}: {wait:?}");
        }
        assert!(delay_without_end(10_000, &mut random) >= Duration::from_secs(DELAY_LAST_S));
    }

    #[test]
    fn a_subscriber_that_is_away_is_called_for_a_week_and_few_times() {
        let (tries, age) = followed(false);
        assert!(age >= AWAY_LASTS && age < 9 * 24 * HOUR, "{age:?}");
        assert_eq!(tries, AWAY_TRIES_MIN);
        assert!(tries < 70, "{tries}");
    }

    #[test]
    fn what_fails_alone_is_given_up_after_two_days() {
        let (tries, age) = followed(true);
        assert!(age >= ALONE_LASTS && age < ALONE_LASTS + 4 * HOUR, "{age:?}");
        assert!(tries >= ALONE_TRIES_MIN);
    }

    #[test]
    fn neither_many_calls_nor_a_great_age_end_it_alone() {
        let random = &mut rand::rng();
        for takes_others in [true, false] {
            assert!(delay(history(1_000, HOUR, takes_others), None, random).is_some());
            assert!(delay(history(0, 1_000 * 24 * HOUR, takes_others), None, random).is_some());
            assert!(delay(history(1_000, 1_000 * 24 * HOUR, takes_others), None, random).is_none());
        }
    }

    #[test]
    fn what_was_asked_for_lengthens_a_wait_but_not_for_ever() {
        let random = &mut rand::rng();
        let first = history(0, Duration::ZERO, false);
        assert_eq!(delay(first, Some(HOUR), random), Some(HOUR));
        assert!(
            delay(FailureHistory { tries: 4, ..first }, Some(Duration::from_secs(1)), random).unwrap()
                >= 2 * HOUR
        );
        assert_eq!(delay(first, Some(1_000 * HOUR), random), Some(ASKED_MAX));
    }
}
