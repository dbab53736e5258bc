//! The mails of a mailbox are forwarded in the order in which they arrived.
//!
//! Many mails are checked by the rules at once, but forwarded in turn. A mail whose processing takes long, or
//! ends without forwarding, holds up the others only for a bounded time.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use postway_domain::MessageUid;
use postway_store::record::{MailboxKey, ToRoute};
use tokio::{sync::Notify, time::timeout};

/// How long a mail waits for earlier ones.
const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// The mails in flight, in their order.
#[derive(Default)]
pub(super) struct MailTurns {
    lines: Mutex<HashMap<MailboxKey, VecDeque<MessageUid>>>,
    on_left: Notify,
}

/// A mail's position in the queue of its mailbox; dropping it leaves the queue.
pub(super) struct MailTurn {
    turns: Arc<MailTurns>,
    key: MailboxKey,
    uid: MessageUid,
}

impl MailTurns {
    fn lines(&self) -> MutexGuard<'_, HashMap<MailboxKey, VecDeque<MessageUid>>> {
        // Every critical section leaves the queues consistent.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a mail to the queue. Called in the order of arrival.
    pub(super) fn join(self: &Arc<Self>, job: &ToRoute) -> MailTurn {
        self.lines().entry(job.key.clone()).or_default().push_back(job.uid);
        MailTurn { turns: self.clone(), key: job.key.clone(), uid: job.uid }
    }

    /// Waits until all earlier mails have left the queue.
    pub(super) async fn wait(&self, job: &ToRoute) {
        let first = async {
            loop {
                // Registered before the check, so that no departure is missed.
                let mut left = pin!(self.on_left.notified());
                left.as_mut().enable();
                if self.is_first(job) {
                    return;
                }
                left.await;
            }
        };
        if timeout(TURN_WAIT_MAX, first).await.is_err() {
            tracing::debug!(uid = %job.uid, "a mail is sent on before one that came earlier and takes long");
        }
    }

    fn is_first(&self, job: &ToRoute) -> bool {
        let lines = self.lines();
        let line = lines.get(&job.key);
        // A mail that never joined waits for no other.
        line.is_none_or(|line| line.front() == Some(&job.uid) || !line.contains(&job.uid))
    }
}

impl Drop for MailTurn {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        if let Some(line) = lines.get_mut(&self.key) {
            line.retain(|uid| *uid != self.uid);
            if line.is_empty() {
                lines.remove(&self.key);
            }
        }
        drop(lines);
        self.turns.on_left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use postway_domain::{InboundState, Time};
    use postway_store::record::Body;

    use super::*;

    fn job(mailbox: &str) -> ToRoute {
        let now = Time::from_millis(0);
        ToRoute {
            uid: MessageUid::new(now, &mut rand::rng()),
            key: MailboxKey { tenant: "t".parse().unwrap(), mailbox: mailbox.parse().unwrap() },
            folder: "INBOX".to_owned(),
            uid_validity: 1,
            imap_uid: 1,
            digest: [0; 32],
            body: Body::EMPTY,
            before: InboundState::Received,
            tries: 0,
            lost_leases: 0,
            arrived_at: None,
            created_at: now,
            messages: Vec::new(),
            follow_up: None,
            reminders: 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_waits_for_those_before_it_in_its_mailbox_and_not_for_ever() {
        let (turns, jobs) = (Arc::new(MailTurns::default()), [job("a"), job("a"), job("b")]);
        let [first, second, _third] = jobs.each_ref().map(|job| turns.join(job));
        assert!(turns.wait(&jobs[0]).now_or_never().is_some());
        assert!(turns.wait(&jobs[2]).now_or_never().is_some(), "another mailbox");
        let mut waits = Box::pin(turns.wait(&jobs[1]));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(first);
        assert!(waits.now_or_never().is_some());
        let fourth = job("a");
        let _turn = turns.join(&fourth);
        turns.wait(&fourth).await;
        drop(second);
        assert!(turns.wait(&job("a")).now_or_never().is_some(), "it never joined");
    }
}
