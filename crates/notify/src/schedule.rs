//! When a call that failed is made again, and when it is given up.

use std::time::Duration;

use rand::Rng;

/// The waits after each failed call, in seconds: nine calls in about 42 hours, the first of them at once.
const DELAYS_S: [u64; 8] = [5, 60, 5 * 60, 30 * 60, 2 * 3_600, 5 * 3_600, 10 * 3_600, 24 * 3_600];
/// The longest wait that a subscriber may ask for.
pub(crate) const ASKED_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Waits are up to this part longer, so that what failed together does not come again together.
const JITTER: f64 = 0.1;

/// How long to wait after a call failed that was made after `tries` others; `None` when there is no further call. Never
/// sooner than the subscriber `asked` for.
pub(crate) fn delay(tries: i64, asked: Option<Duration>, random: &mut impl Rng) -> Option<Duration> {
    let seconds = usize::try_from(tries).ok().and_then(|tries| DELAYS_S.get(tries))?;
    let wait = Duration::from_secs(*seconds).mul_f64(1.0 + JITTER * random.random::<f64>());
    Some(wait.max(asked.unwrap_or_default().min(ASKED_MAX)))
}

/// The same for a notification that is not given up.
pub(crate) fn delay_for_good(tries: i64, random: &mut impl Rng) -> Duration {
    delay(tries.clamp(0, DELAYS_S.len() as i64 - 1), None, random).unwrap_or(ASKED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_waits_follow_the_first_call_and_then_none() {
        let mut random = rand::rng();
        for (tries, seconds) in DELAYS_S.iter().enumerate() {
            let wait = delay(tries as i64, None, &mut random).unwrap();
            let least = Duration::from_secs(*seconds);
            assert!(wait >= least && wait <= least.mul_f64(1.0 + JITTER), "{tries}: {wait:?}");
        }
        assert_eq!(delay(DELAYS_S.len() as i64, None, &mut random), None);
        assert!(delay_for_good(100, &mut random) >= Duration::from_secs(24 * 3_600));
    }

    #[test]
    fn what_was_asked_for_lengthens_a_wait_but_not_for_ever() {
        let mut random = rand::rng();
        let hour = Duration::from_secs(3_600);
        assert_eq!(delay(0, Some(hour), &mut random), Some(hour));
        assert!(delay(4, Some(Duration::from_secs(1)), &mut random).unwrap() >= 2 * hour);
        assert_eq!(delay(0, Some(1_000 * hour), &mut random), Some(ASKED_MAX));
    }
}
