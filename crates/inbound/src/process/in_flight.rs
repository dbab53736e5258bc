//! Mail that this node has in hand: being dealt with, or waiting for what is to be done on its server.
//!
//! It is counted by tenant and by mailbox, so that claims leave room for the others, and it is known until its task has ended, so that a
//! stop gives back what did not end. A process that stops in good order has killed nobody: nothing is counted for that mail.

use std::{collections::HashMap, sync::Arc};

use postway_domain::{LeaseToken, TenantId, Time};
use postway_store::record::{MailboxKey, Routed, ToRoute};
use tokio::task::{Id, JoinError, JoinSet};

use super::{conclusion::given_back, mail::ErrandDue};

/// Errands in hand at the same time.
pub(super) const ERRANDS_MAX: usize = 512;
/// Of one tenant.
pub(super) const ERRANDS_PER_TENANT_MAX: usize = ERRANDS_MAX / 2;

/// What a task of dealing gives: an errand that is left, where there is one.
pub(super) type ErrandLeft = Option<Box<ErrandDue>>;

/// See the module.
#[derive(Default)]
pub(super) struct MailInHand {
    dealing: JoinSet<ErrandLeft>,
    errands: JoinSet<ErrandLeft>,
    of_dealing: HashMap<Id, LeasedMail>,
    of_errands: HashMap<Id, LeasedMail>,
}

/// A mail that is leased to this node.
struct LeasedMail {
    job: Arc<ToRoute>,
    token: LeaseToken,
}

impl MailInHand {
    /// Mails that are being dealt with.
    pub(super) fn dealing(&self) -> usize {
        self.dealing.len()
    }

    /// Begins to deal with a mail.
    pub(super) fn deal(
        &mut self,
        job: Arc<ToRoute>,
        token: LeaseToken,
        task: impl Future<Output = ErrandLeft> + Send + 'static,
    ) {
        let id = self.dealing.spawn(task).id();
        self.of_dealing.insert(id, LeasedMail { job, token });
    }

    /// Whether there is room for an errand of this tenant.
    pub(super) fn has_room_for_errand(&self, tenant: &TenantId) -> bool {
        let of_tenant = self.of_errands.values().filter(|mail| mail.job.key.tenant == *tenant).count();
        self.of_errands.len() < ERRANDS_MAX && of_tenant < ERRANDS_PER_TENANT_MAX
    }

    /// Begins an errand.
    pub(super) fn run_errand(
        &mut self,
        job: Arc<ToRoute>,
        token: LeaseToken,
        task: impl Future<Output = ErrandLeft> + Send + 'static,
    ) {
        let id = self.errands.spawn(task).id();
        self.of_errands.insert(id, LeasedMail { job, token });
    }

    /// Waits for a task to end; the errand it leaves, where there is one. Pends while there is none.
    pub(super) async fn next(&mut self) -> ErrandLeft {
        tokio::select! {
            biased;
            Some(ended) = self.dealing.join_next_with_id() => forget(&mut self.of_dealing, ended),
            Some(ended) = self.errands.join_next_with_id() => forget(&mut self.of_errands, ended),
            else => std::future::pending().await,
        }
    }

    /// A task that has ended by now; the errand it leaves, where there is one.
    pub(super) fn try_next(&mut self) -> Option<ErrandLeft> {
        let dealt = self.dealing.try_join_next_with_id();
        let ended = dealt.map(|ended| forget(&mut self.of_dealing, ended));
        ended.or_else(|| {
            let run = self.errands.try_join_next_with_id();
            run.map(|ended| forget(&mut self.of_errands, ended))
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.dealing.is_empty() && self.errands.is_empty()
    }

    /// What is being dealt with, by tenant.
    pub(super) fn by_tenant(&self) -> HashMap<TenantId, u32> {
        let mut count: HashMap<TenantId, u32> = HashMap::new();
        for mail in self.of_dealing.values() {
            *count.entry(mail.job.key.tenant.clone()).or_default() += 1;
        }
        count
    }

    /// All that is in hand, by mailbox: a mailbox whose server does not answer waits for it, and nobody else.
    pub(super) fn by_mailbox(&self) -> HashMap<MailboxKey, u32> {
        let mut count: HashMap<MailboxKey, u32> = HashMap::new();
        for mail in self.of_dealing.values().chain(self.of_errands.values()) {
            *count.entry(mail.job.key.clone()).or_default() += 1;
        }
        count
    }

    /// Ends all tasks; what gives their mail back.
    pub(super) async fn abort(mut self, now: Time) -> Vec<Routed> {
        self.dealing.shutdown().await;
        self.errands.shutdown().await;
        let left = self.of_dealing.into_values().chain(self.of_errands.into_values());
        left.map(|mail| given_back(&mail.job, mail.token, now)).collect()
    }
}

fn forget(of: &mut HashMap<Id, LeasedMail>, ended: Result<(Id, ErrandLeft), JoinError>) -> ErrandLeft {
    match ended {
        Ok((id, left)) => {
            of.remove(&id);
            left
        }
        Err(error) => {
            of.remove(&error.id());
            // Panics of dealing are caught within it: this is a fault of the loop itself.
            tracing::error!(%error, "dealing with a mail broke off; it is taken back later");
            None
        }
    }
}
