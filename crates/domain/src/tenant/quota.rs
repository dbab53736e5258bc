//! A tenant's daily quota: how much mail it may hand over in a day.
//!
//! A day is a calendar day of UTC. A message counts when it is accepted, with its size and its recipients;
//! one that is refused, or repeats an earlier one, does not.

use serde::{Deserialize, Serialize};

use crate::time::Time;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// How much a tenant may hand over in a day. What is absent is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DailyQuota {
    /// Messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Bytes of mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Recipients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipients: Option<u64>,
}

/// An amount of mail: of a day, or of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailAmount {
    /// Messages.
    pub messages: u64,
    /// Bytes of mail.
    pub bytes: u64,
    /// Recipients.
    pub recipients: u64,
}

/// A day, counted from the first of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaDay(pub i64);

impl QuotaDay {
    /// The day of this time.
    pub fn of(time: Time) -> Self {
        Self(time.as_millis().div_euclid(DAY_MS))
    }

    /// When the next day begins.
    pub fn end(self) -> Time {
        Time::from_millis((self.0 + 1).saturating_mul(DAY_MS))
    }
}

impl MailAmount {
    /// The amount applied to each of its numbers, with those of another amount.
    fn combine(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            messages: with(self.messages, other.messages),
            bytes: with(self.bytes, other.bytes),
            recipients: with(self.recipients, other.recipients),
        }
    }

    /// Both amounts together.
    pub fn plus(self, other: Self) -> Self {
        self.combine(other, u64::saturating_add)
    }

    /// What is left of this amount without the other.
    pub fn without(self, other: Self) -> Self {
        self.combine(other, u64::saturating_sub)
    }

    /// What both have.
    pub fn shared(self, other: Self) -> Self {
        self.combine(other, u64::min)
    }
}

impl DailyQuota {
    /// The largest value of each bound.
    pub const VALUE_MAX: u64 = 1 << 53;
    /// The parts of a quota, in per cent, at which an operator is warned.
    pub const WARNINGS: [u8; 2] = [80, 100];
    /// A node leases this part of a quota at a time, in per cent.
    const CHUNK_PERCENT: u64 = 1;

    /// Whether nothing is bounded.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The bounds with their names.
    pub fn bounds(&self) -> [(&'static str, Option<u64>); 3] {
        [("messages", self.messages), ("bytes", self.bytes), ("recipients", self.recipients)]
    }

    /// The amount in what is bounded; only that is counted.
    pub fn bounded(&self, amount: MailAmount) -> MailAmount {
        MailAmount {
            messages: self.messages.map_or(0, |_| amount.messages),
            bytes: self.bytes.map_or(0, |_| amount.bytes),
            recipients: self.recipients.map_or(0, |_| amount.recipients),
        }
    }

    /// Whether this amount is within it.
    pub fn covers(&self, used: MailAmount) -> bool {
        self.first_exceeded(used).is_none()
    }

    /// The name and the value of the first bound that this amount is beyond.
    pub fn first_exceeded(&self, used: MailAmount) -> Option<(&'static str, u64)> {
        let used = [used.messages, used.bytes, used.recipients];
        let bounds = self.bounds().into_iter().zip(used);
        bounds
            .filter_map(|((name, bound), used)| Some((name, bound?, used)))
            .find_map(|(name, bound, used)| (used > bound).then_some((name, bound)))
    }

    /// How much a node leases besides what it needs at once. A quota below a hundred is leased exactly.
    pub fn chunk(&self) -> MailAmount {
        let part = |bound: Option<u64>| bound.map_or(0, |bound| bound / 100 * Self::CHUNK_PERCENT);
        MailAmount {
            messages: part(self.messages),
            bytes: part(self.bytes),
            recipients: part(self.recipients),
        }
    }

    /// The highest level of [`Self::WARNINGS`] that this amount has reached; 0 if none.
    pub fn warning(&self, used: MailAmount) -> u8 {
        let used = [used.messages, used.bytes, used.recipients];
        let reached = |level: u8| {
            let mut bounds = self.bounds().into_iter().zip(used);
            bounds.any(|((_, bound), used)| {
                bound.is_some_and(|bound| u128::from(used) * 100 >= u128::from(bound) * u128::from(level))
            })
        };
        Self::WARNINGS.into_iter().filter(|level| reached(*level)).max().unwrap_or(0)
    }

    /// The faults of these bounds, as pairs of field and message.
    pub(super) fn check(&self) -> Vec<(&'static str, String)> {
        let named = [
            ("daily_quota.messages", self.messages),
            ("daily_quota.bytes", self.bytes),
            ("daily_quota.recipients", self.recipients),
        ];
        let is_wrong = |bound: u64| !(1..=Self::VALUE_MAX).contains(&bound);
        let wrong = named.into_iter().filter(|(_, bound)| bound.is_some_and(is_wrong));
        wrong.map(|(name, _)| (name, "must be at least 1, or absent for no bound".to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(messages: u64, bytes: u64, recipients: u64) -> MailAmount {
        MailAmount { messages, bytes, recipients }
    }

    #[test]
    fn a_day_is_one_of_utc() {
        let day = QuotaDay::of(Time::from_millis(DAY_MS * 20_000 + 1));
        assert_eq!((day, day.end()), (QuotaDay(20_000), Time::from_millis(DAY_MS * 20_001)));
        assert_eq!(QuotaDay::of(day.end()), QuotaDay(20_001));
        assert_eq!(QuotaDay::of(Time::from_millis(-1)), QuotaDay(-1));
    }

    #[test]
    fn each_bound_counts_for_itself() {
        let quota = DailyQuota { messages: Some(100), bytes: None, recipients: Some(250) };
        assert!(quota.covers(amount(100, u64::MAX, 250)));
        assert_eq!(quota.first_exceeded(amount(101, 0, 251)), Some(("messages", 100)));
        assert_eq!(quota.first_exceeded(amount(1, 0, 251)), Some(("recipients", 250)));
        assert_eq!(quota.chunk(), amount(1, 0, 2));
        assert!(!quota.is_unlimited() && DailyQuota::default().is_unlimited());
        for (used, level) in [
            (amount(79, 0, 0), 0),
            (amount(80, 0, 0), 80),
            (amount(1, 0, 250), 100),
            (amount(99, 0, 249), 80),
        ] {
            assert_eq!(quota.warning(used), level, "{used:?}");
        }
        assert_eq!(DailyQuota::default().warning(amount(9, 9, 9)), 0);
    }
}
