//! Names of things. Each is parsed once, at the door; inside, a value is right by its type.

use std::{
    fmt,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use rand::Rng;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::Time;

/// A message's own id: a UUID v7, so ids sort by time of acceptance and cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageUid(Uuid);

/// One life of one process: made anew at each start, so a lease tells which life took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(Uuid);

/// An entry of the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditId(Uuid);

/// One sign-in of a browser, from its key to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Uuid);

/// An entry of a tenant's directory of recipients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecipientId(Uuid);

macro_rules! uuid_id {
    ($name:ident) => {
        impl $name {
            /// A new one, stamped with `now`.
            pub fn new(now: Time, random: &mut impl Rng) -> Self {
                let ms = u64::try_from(now.as_millis()).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(ms, &random.random()).into_uuid())
            }

            /// The lowest that can be stamped with `now` or later: ids are in the order of their stamps.
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
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Uuid::try_parse(text).map(Self).map_err(|_| IdError("not a UUID".into()))
            }
        }
    };
}

uuid_id!(MessageUid);

/// Gives out ids that rise, also within one millisecond and when the clock is set back.
#[derive(Debug, Default)]
pub struct RisingUids(Mutex<Option<MessageUid>>);

impl RisingUids {
    /// The next, stamped with `now` or with the last one's time where that is later.
    pub fn next(&self, now: Time, random: &mut impl Rng) -> MessageUid {
        let new = MessageUid::new(now, random);
        // One assignment leaves it whole, whoever broke off.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match *last {
            Some(last) if last >= new => {
                MessageUid::from_bytes(u128::from_be_bytes(*last.as_bytes()).saturating_add(1).to_be_bytes())
            }
            _ => new,
        };
        *last = Some(next);
        next
    }
}

uuid_id!(Incarnation);
uuid_id!(AuditId);
uuid_id!(SessionId);
uuid_id!(RecipientId);

/// The secret of one claim. Every later write of the claimed work must show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseToken(i64);

impl LeaseToken {
    /// A token that no earlier claim had, but for a chance of one in 2⁶³.
    pub fn new(random: &mut impl Rng) -> Self {
        Self(random.random_range(1..=i64::MAX))
    }

    /// As a store keeps it.
    pub fn as_i64(self) -> i64 {
        self.0
    }

    /// From a store.
    pub fn from_i64(value: i64) -> Self {
        Self(value)
    }
}

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdError(String);

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $max:literal, $allowed:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Box<str>);

        impl $name {
            /// The longest allowed.
            pub const BYTES_MAX: usize = $max;

            /// As text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let accepts: fn(u8) -> bool = $accepts;
                if text.is_empty() || text.len() > Self::BYTES_MAX || !text.bytes().all(accepts) {
                    return Err(IdError(format!(concat!("must be 1 to {} characters of ", $allowed), $max)));
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
    /// The id of somebody who is told what became of messages, unique in its tenant.
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
    /// The id of an entry in a tenant's directory of contacts.
    ContactId, 64, "A-Z a-z 0-9 . _ -", is_word
);
name_id!(
    /// A template's name, unique in its tenant.
    TemplateName, 128, "A-Z a-z 0-9 . _ -", is_word
);

#[cfg(test)]
mod tests {
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
        let (uids, mut random) = (RisingUids::default(), rand::rng());
        let times = [1_000, 1_000, 1_000, 900, 1_001, 1_001].map(Time::from_millis);
        let given: Vec<_> = times.iter().map(|now| uids.next(*now, &mut random)).collect();
        assert!(given.is_sorted() && given.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(given[0] >= MessageUid::first_at(times[0]) && given[4] >= MessageUid::first_at(times[4]));
    }

    #[test]
    fn uids_sort_by_time() {
        let mut random = rand::rng();
        let early = MessageUid::new(Time::from_millis(1_000), &mut random);
        let late = MessageUid::new(Time::from_millis(2_000), &mut random);
        assert!(early < late);
        assert_eq!(early.to_string().parse::<MessageUid>().unwrap(), early);
    }
}
