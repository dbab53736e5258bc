//! Identifiers. Each is parsed once, by intake or the API; from then on its type guarantees that it is valid.

use std::{
    fmt,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use rand::Rng;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::Time;

/// The id of a message: a UUID v7, so ids sort by time of acceptance and cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageUid(Uuid);

/// The id of one life of a process. It is new at each start, so that a lease names the life that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(Uuid);

/// The id of an audit log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditId(Uuid);

/// The id of a browser session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Uuid);

/// The id of a bulk action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BulkActionId(Uuid);

/// The id of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(Uuid);

/// The id of an entry in a tenant's directory of recipients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecipientId(Uuid);

macro_rules! uuid_id {
    ($name:ident) => {
        impl $name {
            /// A new id with the timestamp `now`.
            pub fn new(now: Time, random: &mut impl Rng) -> Self {
                let ms = u64::try_from(now.as_millis()).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(ms, &random.random()).into_uuid())
            }

            /// The lowest id with the timestamp `now`; every later id is greater.
            pub fn first_at(now: Time) -> Self {
                let ms = u64::try_from(now.as_millis()).unwrap_or(0);
                let mut bytes = [0; 16];
                bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
                Self::from_bytes(bytes)
            }

            /// From the 16 bytes a store keeps.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The 16 bytes a store keeps.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdentifier;

            fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidIdentifier("not a UUID".into()))
            }
        }
    };
}

uuid_id!(MessageUid);

/// Generates ids that increase, also within one millisecond and when the clock is set back.
///
/// Each id has 62 random bits, so the next cannot be guessed from the last. The twelve bits between the
/// timestamp and the random bits count within a millisecond; when they are used up, the timestamp advances
/// (RFC 9562, section 6.2).
#[derive(Debug)]
pub struct RisingUids {
    last: Mutex<Option<MessageUid>>,
    /// How far timestamps may be ahead of the clock, in milliseconds.
    ahead_ms_max: u64,
}

impl Default for RisingUids {
    fn default() -> Self {
        Self { last: Mutex::default(), ahead_ms_max: u64::MAX }
    }
}

impl RisingUids {
    /// A generator that follows the clock if it is set back by more than `ahead_ms_max`, so that timestamps
    /// stay close to the time.
    pub fn within(ahead_ms_max: u64) -> Self {
        Self { ahead_ms_max, ..Self::default() }
    }

    /// The next id, with the timestamp `now`, or that of the last id if it is later.
    pub fn next(&self, now: Time, random: &mut impl Rng) -> MessageUid {
        let new = MessageUid::new(now, random).counting_from_below();
        // The value is replaced by one assignment, so a poisoned lock can still be used.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match *last {
            Some(last) if last >= new && last.stamp_ms() - new.stamp_ms() <= self.ahead_ms_max => {
                new.counted_after(last)
            }
            Some(_) | None => new,
        };
        *last = Some(next);
        next
    }
}

/// The largest value of the twelve bits between version and variant of a UUID v7.
const UUID_COUNTER_MAX: u16 = 0x0fff;

impl MessageUid {
    /// The time that this id begins with: that of its message, to the millisecond.
    pub fn time(self) -> Time {
        Time::from_millis(self.stamp_ms() as i64)
    }

    /// The next id: the lowest that is greater.
    pub fn successor(self) -> Self {
        Self::from_bytes(u128::from_be_bytes(*self.as_bytes()).saturating_add(1).to_be_bytes())
    }

    /// The timestamp of this id, in milliseconds.
    fn stamp_ms(self) -> u64 {
        (u128::from_be_bytes(*self.as_bytes()) >> 80) as u64
    }

    fn counter(self) -> u16 {
        let [.., high, low] = self.as_bytes()[..8] else { return 0 };
        u16::from_be_bytes([high, low]) & UUID_COUNTER_MAX
    }

    /// This id with the upper half of its counter cleared, to leave values for later ids.
    fn counting_from_below(self) -> Self {
        self.stamped(self.stamp_ms(), self.counter() >> 1)
    }

    /// These random bits, with the timestamp and counter right after `last`.
    fn counted_after(self, last: Self) -> Self {
        match last.counter() {
            UUID_COUNTER_MAX => self.stamped(last.stamp_ms() + 1, self.counter()),
            counter => self.stamped(last.stamp_ms(), counter + 1),
        }
    }

    /// These random bits, with this timestamp and counter.
    fn stamped(self, ms: u64, counter: u16) -> Self {
        let mut bytes = *self.as_bytes();
        bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(0x7000 | counter).to_be_bytes());
        Self::from_bytes(bytes)
    }
}

uuid_id!(Incarnation);
uuid_id!(AuditId);
uuid_id!(SessionId);
uuid_id!(BulkActionId);
uuid_id!(UserId);
uuid_id!(RecipientId);

/// The secret of one claim. Every later write of the claimed work must show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseToken(i64);

impl LeaseToken {
    /// A random token; it equals an earlier one with a probability of 2⁻⁶³.
    pub fn new(random: &mut impl Rng) -> Self {
        Self(random.random_range(1..=i64::MAX))
    }

    /// The code that a store keeps.
    pub fn as_i64(self) -> i64 {
        self.0
    }

    /// The value of a code that a store keeps.
    pub fn from_i64(value: i64) -> Self {
        Self(value)
    }
}

/// Why an identifier was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidIdentifier(String);

impl InvalidIdentifier {
    /// An identifier that is refused for this reason.
    pub(crate) fn of(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $max:literal, $allowed:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Box<str>);

        impl $name {
            /// The greatest length, in bytes.
            pub const BYTES_MAX: usize = $max;

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdentifier;

            fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
                let accepts: fn(u8) -> bool = $accepts;
                if text.is_empty() || text.len() > Self::BYTES_MAX || !text.bytes().all(accepts) {
                    return Err(InvalidIdentifier(format!(concat!("must be 1 to {} characters of ", $allowed), $max)));
                }
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

name_id!(
    /// A tenant's name.
    TenantId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// An account's name, unique in its tenant.
    AccountId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// The client's own id of a message, unique in its tenant.
    ClientId, 128, "A-Z a-z 0-9 . _ : @ -", |byte| is_word(byte) || matches!(byte, b':' | b'@')
);
name_id!(
    /// The code of a batch, which can be suspended and activated as one.
    BatchCode, 128, "A-Z a-z 0-9 . _ : @ -", |byte| is_word(byte) || matches!(byte, b':' | b'@')
);
name_id!(
    /// The name of a stream, a tenant's kind of mail, unique in its tenant.
    StreamId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// The id of a subscriber, unique in its tenant.
    SubscriberId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// A watched mailbox's name, unique in its tenant.
    MailboxId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// A rule's name, unique in its tenant.
    RuleId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// A route's name, unique in its tenant.
    RouteId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// The id of an entry in a tenant's directory of contacts.
    ContactId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// A template's name, unique in its tenant.
    TemplateName, 128, "A-Z a-z 0-9 . _ -", is_word
);

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn client_ids_keep_to_their_alphabet() {
        assert!("order-1:a@b.c_d".parse::<ClientId>().is_ok());
        for bad in ["", "a b", "a/b", "é", &"x".repeat(129)] {
            assert!(bad.parse::<ClientId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn rising_uids_rise_whatever_the_clock_does() {
        let (uids, mut random) = (RisingUids::default(), StdRng::seed_from_u64(7));
        let times = [1_000, 1_000, 1_000, 900, 1_001, 1_001].map(Time::from_millis);
        let given: Vec<_> = times.iter().map(|now| uids.next(*now, &mut random)).collect();
        assert!(given.is_sorted() && given.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(given[0] >= MessageUid::first_at(times[0]) && given[4] >= MessageUid::first_at(times[4]));
    }

    #[test]
    fn rising_uids_cannot_be_guessed_from_each_other() {
        let (uids, mut random) = (RisingUids::default(), StdRng::seed_from_u64(7));
        let now = Time::from_millis(1_700_000_000_000);
        let given: Vec<_> = (0..10_000).map(|_| uids.next(now, &mut random)).collect();
        assert!(given.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(given.iter().all(|uid| uid.0.get_version_num() == 7), "they are UUIDs of version 7 still");
        // More ids than fit into one millisecond, so some get later timestamps.
        assert!(given[9_999] < MessageUid::first_at(Time::from_millis(now.as_millis() + 10)));
        let chance = |uid: &MessageUid| u64::from_be_bytes(uid.as_bytes()[8..].try_into().unwrap());
        let mut distances: Vec<_> =
            given.windows(2).map(|pair| chance(&pair[1]).wrapping_sub(chance(&pair[0]))).collect();
        distances.sort_unstable();
        distances.dedup();
        assert!(distances.len() > 9_990, "{} distances between neighbours", distances.len());
    }

    #[test]
    fn rising_uids_follow_a_clock_that_is_set_back_further_than_they_may_be_ahead() {
        let (uids, mut random) = (RisingUids::within(1_000), StdRng::seed_from_u64(7));
        let [first, close, far] =
            [10_000, 9_500, 5_000].map(|ms| uids.next(Time::from_millis(ms), &mut random));
        assert!(close > first, "half a second is borne");
        assert_eq!(far.stamp_ms(), 5_000);
    }

    #[test]
    fn uids_sort_by_time() {
        let mut random = StdRng::seed_from_u64(7);
        let early = MessageUid::new(Time::from_millis(1_000), &mut random);
        let late = MessageUid::new(Time::from_millis(2_000), &mut random);
        assert!(early < late);
        assert_eq!(early.to_string().parse::<MessageUid>().unwrap(), early);
    }
}
