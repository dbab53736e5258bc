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
use postway_store::record::{MailToProcess, MailboxKey};
use tokio::{sync::Notify, time::timeout};

/// How long a mail waits for earlier ones.
const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// The mails in flight, in their order.
#[derive(Default)]
pub(super) struct ForwardQueues {
    queues: Mutex<HashMap<MailboxKey, VecDeque<MessageUid>>>,
    on_left: Notify,
}

/// A mail's position in the queue of its mailbox; dropping it leaves the queue.
pub(super) struct ForwardTurn {
    turns: Arc<ForwardQueues>,
    key: MailboxKey,
    uid: MessageUid,
}

impl ForwardQueues {
    fn queues(&self) -> MutexGuard<'_, HashMap<MailboxKey, VecDeque<MessageUid>>> {
        // Every critical section leaves the queues consistent.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a mail to the queue. Called in the order of arrival.
    pub(super) fn join(self: &Arc<Self>, job: &MailToProcess) -> ForwardTurn {
        self.queues().entry(job.key.clone()).or_default().push_back(job.uid);
        ForwardTurn { turns: self.clone(), key: job.key.clone(), uid: job.uid }
    }

    /// Waits until all earlier mails have left the queue.
    pub(super) async fn wait(&self, job: &MailToProcess) {
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

    fn is_first(&self, job: &MailToProcess) -> bool {
        let queues = self.queues();
        let queue = queues.get(&job.key);
        // A mail that never joined waits for no other.
        queue.is_none_or(|queue| queue.front() == Some(&job.uid) || !queue.contains(&job.uid))
    }
}

impl Drop for ForwardTurn {
    fn drop(&mut self) {
        let mut queues = self.turns.queues();
        if let Some(queue) = queues.get_mut(&self.key) {
            queue.retain(|uid| *uid != self.uid);
            if queue.is_empty() {
                queues.remove(&self.key);
            }
        }
        drop(queues);
        self.turns.on_left.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use postway_domain::{InboundState, Time};
    use postway_store::record::StoredBody;

    use super::*;

    fn job(mailbox: &str) -> MailToProcess {
        let now = Time::from_millis(0);
        MailToProcess {
            uid: MessageUid::new(now, &mut rand::rng()),
            key: MailboxKey { tenant: "t".parse().unwrap(), mailbox: mailbox.parse().unwrap() },
            folder: "INBOX".to_owned(),
            uid_validity: 1,
            imap_uid: 1,
            digest: [0; 32],
            body: StoredBody::EMPTY,
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
        let (turns, jobs) = (Arc::new(ForwardQueues::default()), [job("a"), job("a"), job("b")]);
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
