//! Routes: a tenant's rules that choose the account of a message that names none.
//!
//! Routes apply in the order of their position, then of their id, and the first that matches decides. A route
//! matches if each of its conditions does; one without conditions matches all mail. If it names several
//! accounts, their weights say how much of the mail each gets, and the uid of a message decides among them, so
//! that the same message always goes the same way.

use serde::{Deserialize, Serialize};

use crate::{
    address::pattern::DomainPattern,
    identity::id::{AccountId, BatchCode, MessageUid, RouteId, TenantId},
    message::MessagePriority,
    tenant::stream::MailStream,
    time::Time,
};

/// A tenant's rule that chooses an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRoute {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its name.
    pub id: RouteId,
    /// The position; lower ones come first.
    pub position: i64,
    /// Whether it is active.
    pub active: bool,
    /// The conditions and the accounts.
    pub content: RouteContent,
    /// The version, which increases with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl MailRoute {
    /// The most routes of a tenant.
    pub const PER_TENANT_MAX: usize = 100;
    /// The longest description, in characters.
    pub const DESCRIPTION_CHARS_MAX: usize = 1_000;
    /// The highest position, and the lowest below zero.
    pub const POSITION_MAX: i64 = 1_000_000;
}

/// The content of a route, stored as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteContent {
    /// A description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The conditions.
    #[serde(rename = "match")]
    pub conditions: RouteConditions,
    /// The accounts to choose from.
    pub accounts: Vec<RouteTarget>,
}

impl RouteContent {
    /// The most accounts of a route.
    pub const ACCOUNTS_MAX: usize = 20;
}

/// The conditions of a route. A list that is empty matches all mail, any other matches if one of its entries
/// does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteConditions {
    /// The domain of the author.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sender_domains: Vec<DomainPattern>,
    /// A tag of the message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The batch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<String>,
    /// The stream, by which the batch begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<String>,
    /// The codes of priorities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<i64>,
    /// The domains of the recipients: each of them must match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipient_domains: Vec<DomainPattern>,
}

/// An account of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteTarget {
    /// The account.
    pub account: AccountId,
    /// How much of the mail it gets, compared with the other accounts of the route.
    #[serde(default = "RouteTarget::default_weight")]
    pub weight: u32,
}

impl RouteTarget {
    /// The highest weight.
    pub const WEIGHT_MAX: u32 = 1_000;

    fn default_weight() -> u32 {
        1
    }
}

/// What routes compare of a message.
#[derive(Clone, Debug, Default)]
pub struct RouteFacts<'m> {
    /// The domain of the author, in lower case and as A-labels.
    pub sender_domain: Option<&'m str>,
    /// The domains of the recipients, likewise.
    pub recipient_domains: Vec<&'m str>,
    /// The tags.
    pub tags: &'m [String],
    /// The batch.
    pub batch: Option<&'m BatchCode>,
    /// The priority.
    pub priority: MessagePriority,
}

/// A condition of a route, as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteCondition {
    /// The domain of the author.
    SenderDomain,
    /// A tag.
    Tag,
    /// The batch.
    Batch,
    /// The stream.
    Stream,
    /// The priority.
    Priority,
    /// The domains of all recipients.
    RecipientDomain,
}

impl RouteCondition {
    /// All conditions.
    pub const ALL: [Self; 6] =
        [Self::SenderDomain, Self::Tag, Self::Batch, Self::Stream, Self::Priority, Self::RecipientDomain];

    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SenderDomain => "sender_domain",
            Self::Tag => "tag",
            Self::Batch => "batch",
            Self::Stream => "stream",
            Self::Priority => "priority",
            Self::RecipientDomain => "recipient_domain",
        }
    }
}

impl RouteConditions {
    /// The most entries of one list.
    pub const LIST_MAX: usize = 100;

    /// Whether a condition is set, and if it is, whether it holds for this message.
    pub fn holds(&self, condition: RouteCondition, facts: &RouteFacts<'_>) -> Option<bool> {
        let any = |patterns: &[DomainPattern], domain: &str| patterns.iter().any(|one| one.matches(domain));
        let (is_set, holds) = match condition {
            RouteCondition::SenderDomain => (
                !self.sender_domains.is_empty(),
                facts.sender_domain.is_some_and(|domain| any(&self.sender_domains, domain)),
            ),
            RouteCondition::Tag => {
                (!self.tags.is_empty(), facts.tags.iter().any(|tag| self.tags.contains(tag)))
            }
            RouteCondition::Batch => (
                !self.batches.is_empty(),
                facts.batch.is_some_and(|batch| self.batches.iter().any(|one| one == batch.as_str())),
            ),
            RouteCondition::Stream => (
                !self.streams.is_empty(),
                facts.batch.is_some_and(|batch| {
                    let stream = MailStream::name_in(batch.as_str());
                    self.streams.iter().any(|one| one == stream)
                }),
            ),
            RouteCondition::Priority => {
                (!self.priorities.is_empty(), self.priorities.contains(&facts.priority.code()))
            }
            RouteCondition::RecipientDomain => (
                !self.recipient_domains.is_empty(),
                !facts.recipient_domains.is_empty()
                    && facts.recipient_domains.iter().all(|domain| any(&self.recipient_domains, domain)),
            ),
        };
        is_set.then_some(holds)
    }

    /// Whether all conditions hold for this message.
    pub fn match_all(&self, facts: &RouteFacts<'_>) -> bool {
        RouteCondition::ALL.into_iter().all(|condition| self.holds(condition, facts).unwrap_or(true))
    }

    /// The conditions that are set.
    pub fn set(&self) -> impl Iterator<Item = RouteCondition> {
        let nothing = RouteFacts::default();
        RouteCondition::ALL.into_iter().filter(move |one| self.holds(*one, &nothing).is_some())
    }
}

/// Chooses among weights by the uid of a message, and gives the index. `None` if all weights are 0.
///
/// Several choices may be made for one message, because an account that cannot send is left out; `round`
/// tells them apart, so that its mail is spread over the others by their weights.
pub fn choose_by_weight(weights: &[u32], uid: MessageUid, round: u64) -> Option<usize> {
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let mut point = digest_of(uid, round).checked_rem(total)?;
    weights.iter().position(|weight| {
        let is_here = point < u64::from(*weight);
        point = point.saturating_sub(u64::from(*weight));
        is_here
    })
}

/// A number that is spread evenly over all uids and rounds (the finaliser of SplitMix64).
fn digest_of(uid: MessageUid, round: u64) -> u64 {
    let uid = u128::from_be_bytes(*uid.as_bytes());
    [(uid >> 64) as u64, uid as u64, round].into_iter().fold(0, |state: u64, part| {
        let mut mixed = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: u128) -> MessageUid {
        MessageUid::from_bytes(number.to_be_bytes())
    }

    #[test]
    fn every_condition_that_is_set_must_hold() {
        let batch: BatchCode = "newsletter:2026-11".parse().unwrap();
        let tags = ["promo".to_owned()];
        let facts = RouteFacts {
            sender_domain: Some("news.example.com"),
            recipient_domains: vec!["a.example", "b.example"],
            tags: &tags,
            batch: Some(&batch),
            priority: MessagePriority::Low,
        };
        for (conditions, holds) in [
            (r#"{}"#, true),
            (r#"{"sender_domains":["*.example.com"]}"#, true),
            (r#"{"sender_domains":["example.com"]}"#, false),
            (r#"{"tags":["sale","promo"]}"#, true),
            (r#"{"tags":["sale"]}"#, false),
            (r#"{"batches":["newsletter:2026-11"]}"#, true),
            (r#"{"batches":["newsletter"]}"#, false),
            (r#"{"streams":["newsletter"]}"#, true),
            (r#"{"streams":["news"]}"#, false),
            (r#"{"priorities":[3]}"#, true),
            (r#"{"priorities":[0,1]}"#, false),
            (r#"{"recipient_domains":["a.example","b.example"]}"#, true),
            (r#"{"recipient_domains":["a.example"]}"#, false),
            (r#"{"tags":["promo"],"priorities":[0]}"#, false),
        ] {
            let read: RouteConditions = serde_json::from_str(conditions).unwrap();
            assert_eq!(read.match_all(&facts), holds, "{conditions}");
            assert_eq!(serde_json::to_string(&read).unwrap(), conditions, "stored as it was read");
        }
    }

    #[test]
    fn a_message_of_which_nothing_is_known_meets_no_condition() {
        let all: RouteConditions = serde_json::from_str(
            r#"{"sender_domains":["a.example"],"tags":["t"],"batches":["b"],"streams":["s"],
                "priorities":[1],"recipient_domains":["a.example"]}"#,
        )
        .unwrap();
        for condition in RouteCondition::ALL {
            assert_eq!(all.holds(condition, &RouteFacts::default()), Some(false), "{}", condition.as_str());
        }
        assert_eq!(all.set().count(), 6);
        assert_eq!(RouteConditions::default().set().count(), 0);
    }

    #[test]
    fn weights_divide_the_mail_and_a_repeat_chooses_the_same() {
        let mut counts = [0; 3];
        for number in 0..40_000 {
            let chosen = choose_by_weight(&[3, 1, 0], uid(number), 0).unwrap();
            assert_eq!(choose_by_weight(&[3, 1, 0], uid(number), 0), Some(chosen));
            counts[chosen] += 1;
        }
        assert!((29_400..30_600).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
        assert_eq!(choose_by_weight(&[], uid(1), 0), None);
        assert_eq!(choose_by_weight(&[0, 0], uid(1), 0), None);
    }

    #[test]
    fn the_mail_of_an_account_that_is_left_out_is_spread_by_the_other_weights() {
        let mut counts = [0; 2];
        for number in 0..60_000 {
            if choose_by_weight(&[1, 1, 1], uid(number), 0) == Some(0) {
                counts[choose_by_weight(&[1, 1], uid(number), 1).unwrap()] += 1;
            }
        }
        let [first, second] = counts;
        assert!((first as i64 - second as i64).abs() < 800, "{counts:?}");
    }
}
