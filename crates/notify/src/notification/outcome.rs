//! What comes of a notification, as the store writes it. Pure.

use std::{sync::Arc, time::Duration};

use postway_domain::{LeaseToken, Time};
use postway_store::record::{Call, NotificationState, Notified, ToNotify};
use rand::Rng;

use super::{
    message_state::Standing,
    retry_schedule::{self, FailureHistory},
};

/// A notification leased to this process.
#[derive(Clone, Debug)]
pub(crate) struct Leased {
    /// Which, and of what.
    pub job: ToNotify,
    /// The secret of its lease.
    pub token: LeaseToken,
    /// When the lease ends.
    pub until: Time,
    /// Its message as it stood when it was leased, and when that was; absent where it must be read alone.
    pub standing: Option<(Arc<Standing>, Time)>,
    /// Whether its subscriber takes other notifications: if this one fails, it is not the subscriber that is away.
    pub takes_others: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The subscriber has it.
    Acknowledged,
    /// The call failed; the subscriber may have asked for a wait.
    Failed { asked: Option<Duration> },
    /// The subscriber wants no calls any more: it waits until somebody switches the subscriber on.
    Unwanted,
    /// There is nothing to tell this subscriber about it.
    Pointless,
    /// Its message is gone.
    Gone,
    /// It was not called.
    GivenBack,
}

impl Leased {
    fn history(&self, now: Time) -> FailureHistory {
        let ToNotify { tries, created_at, .. } = self.job;
        FailureHistory { tries, age: now.since(created_at), takes_others: self.takes_others }
    }

    /// What the store writes.
    pub(crate) fn notified(
        &self,
        verdict: Verdict,
        call: Option<Call>,
        tells_history: bool,
        now: Time,
        random: &mut impl Rng,
    ) -> Notified {
        let tries = self.job.tries;
        let waiting = |wait: Duration| (NotificationState::Waiting, Some(now.plus(wait)));
        let (state, due_at) = match verdict {
            Verdict::Acknowledged | Verdict::Pointless => (NotificationState::Acknowledged, None),
            Verdict::Failed { asked } => match retry_schedule::delay(self.history(now), asked, random) {
                Some(wait) => waiting(wait),
                None => (NotificationState::Dead, None),
            },
            Verdict::Unwanted => waiting(retry_schedule::delay_for_good(tries, random)),
            Verdict::Gone => (NotificationState::Dead, None),
            Verdict::GivenBack => (NotificationState::Pending, Some(now)),
        };
        let tells_history = tells_history && call.is_some();
        Notified { key: self.job.key.clone(), token: self.token, at: now, state, due_at, call, tells_history }
    }
}

/// How a subscriber behaved in a call, or in the calls of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// It took what it was told.
    Answered,
    /// It did not.
    Failed,
    /// It was not called.
    Uncalled,
}

/// What came of a batch.
#[derive(Debug)]
pub(crate) struct Told {
    /// For the store.
    pub notified: Vec<Notified>,
    /// For the subscriber's turn.
    pub conduct: Conduct,
    /// Until when it wants no calls.
    pub quiet_until: Option<Time>,
    /// Whether it asked to be called again now, though there may be nothing to tell.
    pub comes_again: bool,
}

impl Told {
    /// Of a batch that was not called.
    pub(crate) fn uncalled(notified: Vec<Notified>, quiet_until: Option<Time>) -> Self {
        Self { notified, conduct: Conduct::Uncalled, quiet_until, comes_again: false }
    }
}
