//! What lists say of messages beyond themselves: what became of them, and who was told.

use std::collections::BTreeMap;

use postway_domain::{EventKind, MessageUid, Time, id::SubscriberId};

use super::{report::NotificationView, view::RecipientView};

/// What became of a message, and who was told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Which.
    pub uid: MessageUid,
    /// What its recipients came to, each outcome once, in no order.
    pub outcomes: Vec<OutcomeView>,
    /// How it stands with each subscriber, in no order.
    pub told: Vec<Told>,
}

/// An outcome that some recipients have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeView {
    /// Which.
    pub outcome: EventKind,
    /// The bounce of the last of them that has one, as a JSON object.
    pub bounce: Option<String>,
}

/// How it stands with what one subscriber is told of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Who.
    pub subscriber: SubscriberId,
    /// The place of the latest event that it is told of.
    pub seq: i64,
    /// Of all that it is told.
    pub all: Telling,
    /// Of bounces.
    pub bounces: Telling,
}

/// How far telling has come. The greatest of several is how it stands with all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Telling {
    /// There is nothing to tell.
    #[default]
    Nothing,
    /// All is settled, the last of it at this time.
    Settled(Time),
    /// Something is still to be told.
    Open,
}

impl Telling {
    /// When the last of it was settled; none while something is open, and where there was nothing.
    pub fn settled_at(self) -> Option<Time> {
        match self {
            Telling::Settled(at) => Some(at),
            Telling::Nothing | Telling::Open => None,
        }
    }
}

impl Fate {
    /// Puts what was found to its messages.
    pub(crate) fn gather(
        outcomes: impl IntoIterator<Item = (MessageUid, OutcomeView)>,
        told: impl IntoIterator<Item = (MessageUid, Told)>,
    ) -> Vec<Self> {
        let mut fates: BTreeMap<MessageUid, Self> = BTreeMap::new();
        let empty = |uid| Self { uid, outcomes: Vec::new(), told: Vec::new() };
        for (uid, outcome) in outcomes {
            fates.entry(uid).or_insert_with(|| empty(uid)).outcomes.push(outcome);
        }
        for (uid, one) in told {
            fates.entry(uid).or_insert_with(|| empty(uid)).told.push(one);
        }
        fates.into_values().collect()
    }
}

impl Told {
    /// Of the notifications of one message.
    pub fn gather(notifications: &[NotificationView]) -> Vec<Self> {
        let mut told: BTreeMap<&SubscriberId, Self> = BTreeMap::new();
        for one in notifications {
            let of = told.entry(&one.key.subscriber).or_insert_with(|| Self {
                subscriber: one.key.subscriber.clone(),
                seq: one.key.seq,
                all: Telling::Nothing,
                bounces: Telling::Nothing,
            });
            let telling = match one.state.is_settled() {
                true => Telling::Settled(one.settled_at.unwrap_or(one.created_at)),
                false => Telling::Open,
            };
            of.seq = of.seq.max(one.key.seq);
            of.all = of.all.max(telling);
            if one.kind == EventKind::Bounced {
                of.bounces = of.bounces.max(telling);
            }
        }
        told.into_values().collect()
    }
}

impl OutcomeView {
    /// Of the recipients of one message, in order.
    pub fn gather(recipients: &[RecipientView]) -> Vec<Self> {
        let mut outcomes: BTreeMap<i64, Self> = BTreeMap::new();
        for one in recipients {
            let Some(outcome) = one.outcome else { continue };
            let of = outcomes.entry(outcome.code()).or_insert(Self { outcome, bounce: None });
            of.bounce = one.bounce.clone().or(of.bounce.take());
        }
        outcomes.into_values().collect()
    }
}
