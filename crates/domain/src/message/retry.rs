//! When to try again.
//!
//! A policy is a list of delays and a jitter. The n-th transient failure waits the n-th delay, so every delay
//! of the list is used; after one failure more the message is exhausted.

use std::time::Duration;

use rand::Rng;
use serde::{Deserialize, Serialize};

/// Delays between attempts, with a random jitter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Seconds to wait after the first, second, … transient failure.
    pub delays_s: Vec<u32>,
    /// Each delay is multiplied by a random factor between 1 − jitter and 1 + jitter.
    #[serde(default = "RetryPolicy::default_jitter")]
    pub jitter: f64,
}

/// Why a policy is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetryPolicyError {
    /// Too many delays.
    #[error("delays_s may hold at most {} delays", RetryPolicy::DELAYS_MAX)]
    TooMany,
    /// A delay is zero or too long.
    #[error("each of delays_s must be between 1 and {} seconds", RetryPolicy::DELAY_S_MAX)]
    Delay,
    /// The jitter is not a share.
    #[error("jitter must be between 0 and 0.9")]
    Jitter,
}

impl RetryPolicy {
    /// The most delays of a policy.
    pub const DELAYS_MAX: usize = 50;
    /// The longest single delay: seven days.
    pub const DELAY_S_MAX: u32 = 7 * 24 * 3600;

    /// No message that was returned without using a retry waits longer than this.
    const GIVEN_BACK_MAX: Duration = Duration::from_secs(600);

    /// For API transports such as SES: an outage of minutes.
    pub fn api() -> Self {
        Self { delays_s: vec![1, 5, 30, 120, 600], jitter: Self::default_jitter() }
    }

    /// For SMTP: greylisting and full mailboxes need hours.
    pub fn smtp() -> Self {
        let mut policy = Self::api();
        policy.delays_s.extend([1_800, 3_600, 7_200, 14_400, 28_800]);
        policy
    }

    fn default_jitter() -> f64 {
        0.25
    }

    /// Checks a policy that a user configured.
    pub fn check(&self) -> Result<(), RetryPolicyError> {
        if self.delays_s.len() > Self::DELAYS_MAX {
            return Err(RetryPolicyError::TooMany);
        }
        if self.delays_s.iter().any(|s| !(1..=Self::DELAY_S_MAX).contains(s)) {
            return Err(RetryPolicyError::Delay);
        }
        if !(0.0..=0.9).contains(&self.jitter) {
            return Err(RetryPolicyError::Jitter);
        }
        Ok(())
    }

    /// The longest wait for the next attempt, after a retry, a resend or a return.
    pub fn longest(&self) -> Duration {
        let longest_s = f64::from(self.delays_s.iter().copied().max().unwrap_or(0));
        Duration::from_secs_f64(longest_s * (1.0 + self.jitter)).max(Self::GIVEN_BACK_MAX)
    }

    /// How long to wait after the `retries_used + 1`-th transient failure, or `None` when retries have run
    /// out.
    pub fn delay(&self, retries_used: u32, random: &mut impl Rng) -> Option<Duration> {
        let base_s = f64::from(*self.delays_s.get(retries_used as usize)?);
        let factor = 1.0 + self.jitter * random.random_range(-1.0..=1.0);
        Some(Duration::from_secs_f64(base_s * factor))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn every_delay_of_the_smtp_schedule_is_reachable_and_then_none() {
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::smtp() };
        let mut random = StdRng::seed_from_u64(1);
        let delays: Vec<u64> =
            (0..).map_while(|used| policy.delay(used, &mut random)).map(|d| d.as_secs()).collect();
        assert_eq!(delays, [1, 5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800]);
        assert_eq!(RetryPolicy::api().delay(5, &mut random), None);
        assert!(RetryPolicy::api().delay(4, &mut random).is_some(), "the fifth delay is used");
    }

    proptest! {
        #[test]
        fn jitter_stays_within_a_quarter(used in 0u32..10, seed: u64) {
            let policy = RetryPolicy::smtp();
            let base = f64::from(policy.delays_s[used as usize]);
            let delay = policy.delay(used, &mut StdRng::seed_from_u64(seed)).unwrap().as_secs_f64();
            prop_assert!((base * 0.7499..=base * 1.2501).contains(&delay));
        }
    }
}
