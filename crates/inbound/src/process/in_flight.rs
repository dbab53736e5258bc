//! The mail that this node has in flight: being processed, or waiting for actions on its server.
//!
//! It is counted by tenant and mailbox, so that claims leave capacity for the others. It is known until its
//! task has ended, so that a stop can give back what did not end. A process that stops in good order was not
//! killed by its mail, so nothing is counted against that mail.

use std::{collections::HashMap, sync::Arc};

use postway_domain::{LeaseToken, TenantId, Time};
use postway_store::record::{InboundMailResult, MailToProcess, MailboxKey};
use tokio::task::{Id, JoinError, JoinSet};

use super::{conclusion::given_back, mail::PendingImapActions};

/// The most mails that wait for their actions at the same time.
pub(super) const ACTIONS_IN_FLIGHT_MAX: usize = 512;
/// The most of them of one tenant.
pub(super) const ACTIONS_PER_TENANT_MAX: usize = ACTIONS_IN_FLIGHT_MAX / 2;

/// The result of a processing task: the actions that are left, if any.
pub(super) type ActionsLeft = Option<Box<PendingImapActions>>;

/// The mail in flight. See the module.
#[derive(Default)]
pub(super) struct MailInFlight {
    processing: JoinSet<ActionsLeft>,
    imap_actions: JoinSet<ActionsLeft>,
    processing_mails: HashMap<Id, InFlightMail>,
    action_mails: HashMap<Id, InFlightMail>,
}

/// A mail that is leased to this node.
struct InFlightMail {
    job: Arc<MailToProcess>,
    token: LeaseToken,
}

impl MailInFlight {
    /// How many mails are being processed.
    pub(super) fn processing(&self) -> usize {
        self.processing.len()
    }

    /// Begins to process a mail.
    pub(super) fn process_mail(
        &mut self,
        job: Arc<MailToProcess>,
        token: LeaseToken,
        task: impl Future<Output = ActionsLeft> + Send + 'static,
    ) {
        let id = self.processing.spawn(task).id();
        self.processing_mails.insert(id, InFlightMail { job, token });
    }

    /// Whether there is capacity for the actions of another mail of this tenant.
    pub(super) fn has_capacity_for_actions(&self, tenant: &TenantId) -> bool {
        let of_tenant = self.action_mails.values().filter(|mail| mail.job.key.tenant == *tenant).count();
        self.action_mails.len() < ACTIONS_IN_FLIGHT_MAX && of_tenant < ACTIONS_PER_TENANT_MAX
    }

    /// Begins the actions of a mail.
    pub(super) fn run_actions(
        &mut self,
        job: Arc<MailToProcess>,
        token: LeaseToken,
        task: impl Future<Output = ActionsLeft> + Send + 'static,
    ) {
        let id = self.imap_actions.spawn(task).id();
        self.action_mails.insert(id, InFlightMail { job, token });
    }

    /// Waits for a task to end; returns the actions that are left, if any. Never completes while there is no
    /// task.
    pub(super) async fn next(&mut self) -> ActionsLeft {
        tokio::select! {
            biased;
            Some(ended) = self.processing.join_next_with_id() => forget(&mut self.processing_mails, ended),
            Some(ended) = self.imap_actions.join_next_with_id() => forget(&mut self.action_mails, ended),
            else => std::future::pending().await,
        }
    }

    /// Returns the result of a task that has already ended.
    pub(super) fn try_next(&mut self) -> Option<ActionsLeft> {
        let processed = self.processing.try_join_next_with_id();
        let ended = processed.map(|ended| forget(&mut self.processing_mails, ended));
        ended.or_else(|| {
            let run = self.imap_actions.try_join_next_with_id();
            run.map(|ended| forget(&mut self.action_mails, ended))
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processing.is_empty() && self.imap_actions.is_empty()
    }

    /// The number of mails being processed, by tenant.
    pub(super) fn by_tenant(&self) -> HashMap<TenantId, u32> {
        let mut count: HashMap<TenantId, u32> = HashMap::new();
        for mail in self.processing_mails.values() {
            *count.entry(mail.job.key.tenant.clone()).or_default() += 1;
        }
        count
    }

    /// The number of mails in flight, by mailbox: a server that does not answer holds up only its own
    /// mailbox.
    pub(super) fn by_mailbox(&self) -> HashMap<MailboxKey, u32> {
        let mut count: HashMap<MailboxKey, u32> = HashMap::new();
        for mail in self.processing_mails.values().chain(self.action_mails.values()) {
            *count.entry(mail.job.key.clone()).or_default() += 1;
        }
        count
    }

    /// Aborts all tasks; returns the records that give their mail back.
    pub(super) async fn abort(mut self, now: Time) -> Vec<InboundMailResult> {
        self.processing.shutdown().await;
        self.imap_actions.shutdown().await;
        let left = self.processing_mails.into_values().chain(self.action_mails.into_values());
        left.map(|mail| given_back(&mail.job, mail.token, now)).collect()
    }
}

fn forget(of: &mut HashMap<Id, InFlightMail>, ended: Result<(Id, ActionsLeft), JoinError>) -> ActionsLeft {
    match ended {
        Ok((id, left)) => {
            of.remove(&id);
            left
        }
        Err(error) => {
            of.remove(&error.id());
            // Panics of processing are caught inside it: this is a fault of the loop itself.
            tracing::error!(%error, "processing a mail broke off; it is reclaimed later");
            None
        }
    }
}
