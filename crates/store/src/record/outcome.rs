//! What lists show of messages besides their own rows: outcomes after sending, and the progress of
//! notifications.

use std::collections::BTreeMap;

use postway_domain::{EventKind, MessageUid, Time, id::SubscriberId};

use super::{report::NotificationView, view::RecipientRecord};

/// The outcomes of a message's recipients, and the progress of its notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageOutcomes {
    /// The message.
    pub uid: MessageUid,
    /// The outcomes of its recipients, each once, in no order.
    pub outcomes: Vec<OutcomeView>,
    /// The progress of each subscriber, in no order.
    pub told: Vec<SubscriberProgress>,
}

/// An outcome that some recipients have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeView {
    /// The outcome.
    pub outcome: EventKind,
    /// The bounce of the last of them that has one, as a JSON object.
    pub bounce: Option<String>,
}

/// The progress of one subscriber's notifications about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberProgress {
    /// The subscriber.
    pub subscriber: SubscriberId,
    /// The sequence number of the latest event that it is notified of.
    pub seq: i64,
    /// The progress of all its notifications.
    pub all: NotificationProgress,
    /// The progress of its notifications about bounces.
    pub bounces: NotificationProgress,
}

/// How far notifying has come. The greatest of several values describes all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotificationProgress {
    /// There is nothing to notify of.
    #[default]
    Nothing,
    /// Every notification is settled, the last of them at this time.
    Settled(Time),
    /// A notification is still open.
    Open,
}

impl NotificationProgress {
    /// When the last notification was settled; `None` while one is open, and if there was none.
    pub fn settled_at(self) -> Option<Time> {
        match self {
            NotificationProgress::Settled(at) => Some(at),
            NotificationProgress::Nothing | NotificationProgress::Open => None,
        }
    }
}

impl MessageOutcomes {
    /// Groups outcomes and progress by message.
    pub(crate) fn gather(
        outcomes: impl IntoIterator<Item = (MessageUid, OutcomeView)>,
        told: impl IntoIterator<Item = (MessageUid, SubscriberProgress)>,
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

impl SubscriberProgress {
    /// The progress of each subscriber, from the notifications of one message.
    pub fn gather(notifications: &[NotificationView]) -> Vec<Self> {
        let mut told: BTreeMap<&SubscriberId, Self> = BTreeMap::new();
        for one in notifications {
            let of = told.entry(&one.key.subscriber).or_insert_with(|| Self {
                subscriber: one.key.subscriber.clone(),
                seq: one.key.seq,
                all: NotificationProgress::Nothing,
                bounces: NotificationProgress::Nothing,
            });
            let telling = match one.state.is_settled() {
                true => NotificationProgress::Settled(one.settled_at.unwrap_or(one.created_at)),
                false => NotificationProgress::Open,
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
    /// The distinct outcomes of one message's recipients, given in order.
    pub fn gather(recipients: &[RecipientRecord]) -> Vec<Self> {
        let mut outcomes: BTreeMap<i64, Self> = BTreeMap::new();
        for one in recipients {
            let Some(outcome) = one.outcome else { continue };
            let of = outcomes.entry(outcome.code()).or_insert(Self { outcome, bounce: None });
            of.bounce = one.bounce.clone().or(of.bounce.take());
        }
        outcomes.into_values().collect()
    }
}
