//! The outcome of a notification, as the store writes it. Pure.

use std::{sync::Arc, time::Duration};

use postway_domain::{LeaseToken, Time};
use postway_store::record::{NotificationCall, NotificationResult, NotificationState, ToNotify};
use rand::Rng;

use super::{
    message_state::MessageSnapshot,
    retry_schedule::{self, FailureHistory},
};

/// A notification leased to this process.
#[derive(Clone, Debug)]
pub(crate) struct LeasedNotification {
    /// The notification, and its event.
    pub job: ToNotify,
    /// The token of its lease.
    pub token: LeaseToken,
    /// When the lease ends.
    pub until: Time,
    /// The snapshot of its message and the time when it was read; absent if the message must be read before
    /// the call.
    pub snapshot: Option<(Arc<MessageSnapshot>, Time)>,
    /// Whether its subscriber takes other notifications. If so, a failure of this one does not mean that the
    /// subscriber is away.
    pub takes_others: bool,
}

/// The verdict on a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotificationVerdict {
    /// The subscriber acknowledged it.
    Acknowledged,
    /// The call failed; the subscriber may have asked for a wait.
    Failed { asked: Option<Duration> },
    /// The subscriber wants no calls any more: the notification waits until the subscriber is enabled again.
    Unwanted,
    /// The event means nothing to this subscriber.
    Pointless,
    /// Its message is gone.
    Gone,
    /// It was not called.
    GivenBack,
}

impl LeasedNotification {
    fn history(&self, now: Time) -> FailureHistory {
        let ToNotify { tries, created_at, .. } = self.job;
        FailureHistory { tries, age: now.since(created_at), takes_others: self.takes_others }
    }

    /// The outcome for the store.
    pub(crate) fn notified(
        &self,
        verdict: NotificationVerdict,
        call: Option<NotificationCall>,
        tells_history: bool,
        now: Time,
        random: &mut impl Rng,
    ) -> NotificationResult {
        let tries = self.job.tries;
        let waiting = |wait: Duration| (NotificationState::Waiting, Some(now.plus(wait)));
        let (state, due_at) = match verdict {
            NotificationVerdict::Acknowledged | NotificationVerdict::Pointless => {
                (NotificationState::Acknowledged, None)
            }
            NotificationVerdict::Failed { asked } => {
                match retry_schedule::delay(self.history(now), asked, random) {
                    Some(wait) => waiting(wait),
                    None => (NotificationState::Dead, None),
                }
            }
            NotificationVerdict::Unwanted => waiting(retry_schedule::delay_without_end(tries, random)),
            NotificationVerdict::Gone => (NotificationState::Dead, None),
            NotificationVerdict::GivenBack => (NotificationState::Pending, Some(now)),
        };
        let tells_history = tells_history && call.is_some();
        NotificationResult {
            key: self.job.key.clone(),
            token: self.token,
            at: now,
            state,
            due_at,
            call,
            tells_history,
        }
    }
}

/// How a subscriber behaved in a call, or in all calls of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscriberConduct {
    /// It acknowledged.
    Answered,
    /// It did not acknowledge.
    Failed,
    /// It was not called.
    Uncalled,
}

/// The outcome of a batch.
#[derive(Debug)]
pub(crate) struct BatchOutcome {
    /// The outcomes of its notifications, for the store.
    pub notified: Vec<NotificationResult>,
    /// How the subscriber behaved, for the scheduler.
    pub conduct: SubscriberConduct,
    /// Until when the subscriber wants no calls.
    pub quiet_until: Option<Time>,
    /// Whether the subscriber asked to be called again at once, even if there is nothing to deliver.
    pub comes_again: bool,
}

impl BatchOutcome {
    /// The outcome of a batch that was not called.
    pub(crate) fn uncalled(notified: Vec<NotificationResult>, quiet_until: Option<Time>) -> Self {
        Self { notified, conduct: SubscriberConduct::Uncalled, quiet_until, comes_again: false }
    }
}
