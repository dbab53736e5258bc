//! The dependencies of processing, and the mailbox of a mail.

use std::sync::Arc;

use postway_domain::{Clock, WatchedMailbox, verp::VerpKey};
use postway_intake::Door;
use postway_mime::pec::TrustStore;
use postway_store::{Store, blob::BlobStorage};
use tokio::sync::Semaphore;

use super::{imap_actions::ImapActionRunner, order::ForwardQueues};
use crate::{
    correlate::TenantScope,
    loop_guard::{LoopMarker, MailboxMarks},
    rules::MailboxRuleSet,
    tenant_slots::TenantSlots,
};

/// The budget of large mails in flight, in KiB.
pub(super) const LARGE_KIB_MAX: usize = 128 * 1024;

/// The dependencies of processing.
pub(super) struct ProcessContext {
    pub store: Arc<dyn Store>,
    pub depot: Arc<BlobStorage>,
    pub door: Arc<Door>,
    pub clock: Arc<dyn Clock>,
    pub verp_key: VerpKey,
    pub marker: LoopMarker,
    pub trust: TrustStore,
    pub imap_actions: ImapActionRunner,
    /// Threads for long work.
    pub threads: Arc<TenantSlots>,
    pub large: Semaphore,
    /// The order in which mails are forwarded.
    pub turns: Arc<ForwardQueues>,
}

/// A mailbox and its rules, as they were when its mail was claimed.
pub(super) struct MailboxContext {
    pub mailbox: WatchedMailbox,
    pub rules: MailboxRuleSet,
    /// The marks of mail that is forwarded from it.
    pub marks: MailboxMarks,
}

impl MailboxContext {
    /// How often a mail of this mailbox is tried.
    pub(super) fn attempts_max(&self) -> u32 {
        self.mailbox.settings.attempts_max.max(1)
    }

    /// The tenants on whose messages this mailbox may report.
    pub(super) fn scope(&self) -> TenantScope<'_> {
        TenantScope { tenant: &self.mailbox.tenant, all_tenants: self.mailbox.settings.all_tenants }
    }
}
