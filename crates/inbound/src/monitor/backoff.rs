//! How long a mailbox is left alone after a fault.

use std::time::Duration;

use rand::Rng;

/// The first wait after a passing fault; it doubles up to the longest.
const FIRST: Duration = Duration::from_secs(1);
/// The first wait if the settings are at fault: nothing changes by itself, and a refused password that is
/// tried too often locks its account.
const FIRST_SETUP: Duration = Duration::from_secs(60);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The wait after the `nth` fault in a row, from 0. It is up to a quarter shorter, so that the mailboxes of
/// one server do not come back together.
pub(super) fn wait(nth: u32, is_setup: bool, random: &mut impl Rng) -> Duration {
    let first = if is_setup { FIRST_SETUP } else { FIRST };
    let wait = first.saturating_mul(1 << nth.min(12)).min(LONGEST);
    wait.mul_f64(1.0 - 0.25 * random.random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_five_minutes_and_begin_longer_where_the_set_up_is_at_fault() {
        let mut random = rand::rng();
        assert!(wait(0, false, &mut random) <= FIRST);
        assert!(wait(0, true, &mut random) >= Duration::from_secs(45));
        for nth in [10, 31, u32::MAX] {
            let long = wait(nth, false, &mut random);
            assert!(long <= LONGEST && long >= LONGEST.mul_f64(0.75), "{long:?}");
        }
    }
}
