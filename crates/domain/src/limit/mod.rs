//! Sending limits that are never exceeded: at most N messages in *any* window of a length, over all nodes.
//!
//! Use is counted in buckets that are short against the window. A permit is debited when a message is leased,
//! and must be used before the end of the next bucket. Its bucket counts until every moment at which the
//! permit may have been used is outside the window. So for any window of sends, the debit of the latest of
//! them has seen all the others.

pub mod destination;
pub mod destination_room;
pub mod fairness;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The length of a limited window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitSpan {
    /// Sixty seconds.
    Minute = 1,
    /// Sixty minutes.
    Hour = 2,
    /// Twenty-four hours, sliding.
    Day = 3,
}

impl LimitSpan {
    /// Every value.
    pub const ALL: [LimitSpan; 3] = [LimitSpan::Minute, LimitSpan::Hour, LimitSpan::Day];

    /// The code that a store keeps.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The value of a code that a store keeps.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|span| span.code() == code)
    }

    /// The word, as in `per_minute`.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitSpan::Minute => "minute",
            LimitSpan::Hour => "hour",
            LimitSpan::Day => "day",
        }
    }

    fn window_ms(self) -> i64 {
        match self {
            LimitSpan::Minute => 60_000,
            LimitSpan::Hour => 3_600_000,
            LimitSpan::Day => 86_400_000,
        }
    }

    fn bucket_ms(self) -> i64 {
        match self {
            LimitSpan::Minute => 2_000,
            LimitSpan::Hour => 60_000,
            LimitSpan::Day => 900_000,
        }
    }

    /// The bucket in which a debit at this time is counted.
    pub fn bucket(self, at: Time) -> i64 {
        at.as_millis().div_euclid(self.bucket_ms())
    }

    /// The oldest bucket that still counts at this time.
    pub fn oldest_counted(self, at: Time) -> i64 {
        // A permit of bucket b is used before (b + 2) × bucket, and counts for one window after that. One
        // more bucket allows for nodes whose clocks differ a little.
        (at.as_millis() - self.window_ms()).div_euclid(self.bucket_ms()) - 2
    }

    /// The latest bucket in which any node can have debited by this time; the clocks of nodes may differ a
    /// little.
    pub fn latest(self, at: Time) -> i64 {
        self.bucket(at) + 1
    }

    /// How many buckets cover `ms` milliseconds.
    pub fn buckets(self, ms: i64) -> i64 {
        ms.div_euclid(self.bucket_ms()) + i64::from(ms.rem_euclid(self.bucket_ms()) > 0)
    }

    /// When a bucket stops counting.
    pub fn counts_until(self, bucket: i64) -> Time {
        Time::from_millis((bucket + 3) * self.bucket_ms() + self.window_ms())
    }

    /// The time by which a permit debited now must be used.
    pub fn use_by(self, at: Time) -> Time {
        Time::from_millis((self.bucket(at) + 2) * self.bucket_ms())
    }
}

/// What happens to mail that exceeds the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitBehavior {
    /// It waits.
    #[default]
    Defer,
    /// It fails.
    Reject,
}

/// How much an account may send; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccountLimits {
    /// In any sixty seconds.
    pub per_minute: u32,
    /// In any sixty minutes.
    pub per_hour: u32,
    /// In any twenty-four hours.
    pub per_day: u32,
    /// What happens to mail that exceeds a limit.
    pub behavior: LimitBehavior,
}

impl AccountLimits {
    /// The limit over a span, if there is one.
    pub fn over(&self, span: LimitSpan) -> Option<u32> {
        let limit = match span {
            LimitSpan::Minute => self.per_minute,
            LimitSpan::Hour => self.per_hour,
            LimitSpan::Day => self.per_day,
        };
        (limit > 0).then_some(limit)
    }

    /// The spans that are limited.
    pub fn spans(&self) -> impl Iterator<Item = LimitSpan> {
        LimitSpan::ALL.into_iter().filter(|span| self.over(*span).is_some())
    }

    /// Whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        self.spans().next().is_none()
    }

    /// How many more may be leased, given the use over each limited span.
    pub fn left(&self, used: impl Fn(LimitSpan) -> i64) -> u32 {
        let left = |span| {
            let limit = i64::from(self.over(span).unwrap_or(u32::MAX));
            u32::try_from(limit.saturating_sub(used(span)).max(0)).unwrap_or(u32::MAX)
        };
        self.spans().map(left).min().unwrap_or(u32::MAX)
    }

    /// The time by which a message leased now must begin, if anything is limited.
    pub fn use_by(&self, now: Time) -> Option<Time> {
        self.spans().map(|span| span.use_by(now)).min()
    }

    /// The limits that contradict each other, as pairs of field and message.
    pub fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        for (field, longer, shorter) in [
            ("limits.per_hour", self.per_hour, self.per_minute),
            ("limits.per_day", self.per_day, self.per_hour.max(self.per_minute)),
        ] {
            if longer > 0 && longer < shorter {
                wrong.push((field, format!("must not be below the limit of a shorter time, {shorter}")));
            }
        }
        wrong
    }
}

/// A daily limit that grows, because receivers distrust a new account that sends much at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUpPlan {
    /// When the first day begins.
    pub from: Time,
    /// The limit on the first, second, … day. After the last day the account's own limit applies.
    pub per_day: Vec<u32>,
}

impl WarmUpPlan {
    /// The most days a plan may have.
    pub const DAYS_MAX: usize = 90;

    /// The plan's limit at `now`; `None` once the plan has ended.
    pub fn today(&self, now: Time) -> Option<u32> {
        let day = now.since(self.from).as_secs() / Duration::from_secs(86_400).as_secs();
        self.per_day.get(usize::try_from(day).unwrap_or(usize::MAX)).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn what_is_left_is_the_least_of_all_spans() {
        let limits = AccountLimits { per_minute: 10, per_day: 100, ..AccountLimits::default() };
        assert_eq!(limits.left(|_| 0), 10);
        assert_eq!(limits.left(|span| if span == LimitSpan::Day { 97 } else { 0 }), 3);
        assert_eq!(limits.left(|_| 1_000), 0);
        assert_eq!(AccountLimits::default().left(|_| 1_000), u32::MAX);
    }

    #[test]
    fn limits_that_contradict_each_other_are_named() {
        let limits = AccountLimits { per_minute: 10, per_hour: 5, per_day: 7, ..AccountLimits::default() };
        let fields: Vec<_> = limits.check().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["limits.per_hour", "limits.per_day"]);
        assert!(AccountLimits { per_hour: 5, ..AccountLimits::default() }.check().is_empty());
    }

    #[test]
    fn a_warm_up_ends_with_its_last_day() {
        let plan = WarmUpPlan { from: at(0), per_day: vec![50, 100] };
        assert_eq!(plan.today(at(86_399_999)), Some(50));
        assert_eq!(plan.today(at(86_400_000)), Some(100));
        assert_eq!(plan.today(at(2 * 86_400_000)), None);
    }

    proptest! {
        /// Debits at random times, each used at any moment it may be: no window of sends is ever too full.
        #[test]
        fn no_window_of_sends_exceeds_the_limit(
            steps in prop::collection::vec((0i64..9_000, 1u32..8, 0.0f64..1.0), 1..200),
            limit in 1u32..20,
        ) {
            let span = LimitSpan::Minute;
            let limits = AccountLimits { per_minute: limit, ..AccountLimits::default() };
            let mut used: BTreeMap<i64, i64> = BTreeMap::new();
            let mut sends = Vec::new();
            let mut now = 1_000_000;
            for (pause, want, late) in steps {
                now += pause;
                let counted: i64 = used.range(span.oldest_counted(at(now))..).map(|(_, count)| count).sum();
                let granted = want.min(limits.left(|_| counted));
                *used.entry(span.bucket(at(now))).or_default() += i64::from(granted);
                let latest = span.use_by(at(now)).as_millis() - 1;
                let sent_at = now + ((latest - now) as f64 * late) as i64;
                sends.extend(std::iter::repeat_n(sent_at, granted as usize));
            }
            sends.sort_unstable();
            for (first, from) in sends.iter().enumerate() {
                let within = sends[first..].iter().take_while(|sent| **sent < from + 60_000).count();
                prop_assert!(within <= limit as usize, "{within} in a minute from {from}");
            }
            for (bucket, _) in used {
                let end = span.counts_until(bucket);
                prop_assert!(span.oldest_counted(end) > bucket);
                prop_assert!(span.oldest_counted(at(end.as_millis() - 1)) <= bucket);
            }
        }
    }
}
