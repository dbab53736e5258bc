//! Bounce numbers, as Postmark's users know them.
//!
//! A bounce belongs to one recipient of one message and has no number of its own here. The number is made of
//! the second in which the message was accepted and a digest of message and recipient; so it leads back to a
//! few messages, and by the digest to one recipient. It fits into 53 bits, which every client accepts as a
//! whole number.

use postway_domain::{MessageUid, Time};

/// The epoch of the numbers: 2020-01-01.
const BEGIN_S: i64 = 1_577_836_800;
/// Bits of the digest; the others hold some 34 years of seconds.
const DIGEST_BITS: u32 = 23;
const SECONDS_BITS: u32 = 30;

/// The number of a bounce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PostmarkBounceId(u64);

impl PostmarkBounceId {
    /// The number for the recipient at this position of a message accepted at that time.
    pub(super) fn new(accepted_at: Time, uid: MessageUid, place: usize) -> Self {
        let seconds = (accepted_at.as_seconds() - BEGIN_S).clamp(0, (1 << SECONDS_BITS) - 1) as u64;
        Self((seconds << DIGEST_BITS) | digest(uid, place))
    }

    /// Parses the number that a user sends.
    pub(super) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number < 1 << (SECONDS_BITS + DIGEST_BITS)).map(Self)
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    /// The second in which its message was accepted, as a half-open interval.
    pub(super) fn second(self) -> (Time, Time) {
        let begin = (BEGIN_S + (self.0 >> DIGEST_BITS) as i64) * 1_000;
        (Time::from_millis(begin), Time::from_millis(begin + 1_000))
    }

    /// Whether it may be the number of this recipient.
    pub(super) fn is_of(self, uid: MessageUid, place: usize) -> bool {
        self.0 & ((1 << DIGEST_BITS) - 1) == digest(uid, place)
    }
}

/// FNV-1a, folded: it must be evenly distributed, not secret.
fn digest(uid: MessageUid, place: usize) -> u64 {
    let place = (place as u64).to_be_bytes();
    let hash = uid.as_bytes().iter().chain(&place).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash ^ (hash >> DIGEST_BITS) ^ (hash >> (2 * DIGEST_BITS))) & ((1 << DIGEST_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leads_back_and_fits_into_53_bits() {
        let at = Time::from_millis(1_700_000_000_123);
        let uid = |n: u8| MessageUid::from_bytes([n; 16]);
        let id = PostmarkBounceId::new(at, uid(7), 2);
        assert_eq!(PostmarkBounceId::parse(&id.number().to_string()), Some(id));
        assert!(id.number() > 0 && id.number() < 1 << 53);
        let (since, until) = id.second();
        assert!(since <= at && at < until);
        assert!(id.is_of(uid(7), 2) && !id.is_of(uid(7), 1) && !id.is_of(uid(8), 2));
        for bad in ["", "-1", "x", "9007199254740992", "1.5"] {
            assert_eq!(PostmarkBounceId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_messages_of_a_batch_have_numbers_of_their_own() {
        let uid = |n: u16| {
            let mut bytes = [3; 16];
            bytes[14..].copy_from_slice(&n.to_be_bytes());
            MessageUid::from_bytes(bytes)
        };
        let mut digests: Vec<_> = (0..500).map(|n| digest(uid(n), 0)).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 500);
    }
}
