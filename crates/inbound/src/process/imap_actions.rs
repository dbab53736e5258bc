//! Actions on the server of a mailbox: marking mail as read, and moving it.
//!
//! Actions run after the rest of a mail's processing and take none of its slots: a server that never answers
//! delays only the mail of its own mailbox. The mail's outcome is written after its actions, so that a crash
//! in between repeats the processing: mail that was sent is recognised by its key, and the actions are done
//! again.
//!
//! Actions use short-lived sessions of their own, one for each mailbox, shared by its mails and closed after
//! some idle time or when others need a session; tenants share the sessions. Each action can be repeated
//! without harm: a mail that is gone stays gone. A UID identifies a mail only as long as the folder's
//! UIDVALIDITY is the same; if that has changed, nothing is done.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use postway_domain::{TenantId, WatchedMailbox};
use postway_store::record::{MailToProcess, MailboxKey};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout},
};

use crate::{
    source::{FolderSource, OpenFolder, SourceError},
    tenant_slots::{TenantSlot, TenantSlots},
};

/// The most sessions at the same time.
const SESSIONS_MAX: usize = 20;
/// The most sessions of one tenant.
const SESSIONS_PER_TENANT_MAX: usize = SESSIONS_MAX / 2;
/// How long a session stays open without actions.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long the actions of a mail may take, including waiting for a session and opening it.
pub(super) const ACTIONS_TIMEOUT: Duration = Duration::from_secs(90);

/// The actions for one mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImapActions {
    pub marks_seen: bool,
    pub moves_to: Option<String>,
}

impl ImapActions {
    pub(super) fn is_empty(&self) -> bool {
        !self.marks_seen && self.moves_to.is_none()
    }
}

/// How the actions of a mail ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImapActionsEnd {
    Done,
    /// The server assigned new UIDs: the mail cannot be identified any more.
    Unknowable,
}

/// Runs actions. See the module.
pub(super) struct ImapActionRunner {
    source: Arc<dyn FolderSource>,
    sessions: Mutex<HashMap<MailboxKey, Arc<AsyncMutex<Option<ActionSession>>>>>,
    slots: Arc<TenantSlots>,
}

struct ActionSession {
    folder: Box<dyn OpenFolder>,
    uid_validity: u32,
    /// The version of the mailbox when the session was opened.
    version: i64,
    used_at: Instant,
    /// Taken as long as the session is open.
    _slot: TenantSlot,
}

impl ImapActionRunner {
    pub(super) fn new(source: Arc<dyn FolderSource>) -> Self {
        let slots = TenantSlots::new(SESSIONS_MAX, SESSIONS_PER_TENANT_MAX);
        Self { source, sessions: Mutex::default(), slots }
    }

    /// Runs the actions of a mail.
    pub(super) async fn run(
        &self,
        mailbox: &WatchedMailbox,
        job: &MailToProcess,
        actions: &ImapActions,
    ) -> Result<ImapActionsEnd, SourceError> {
        let ended = timeout(ACTIONS_TIMEOUT, self.run_in_session(mailbox, job, actions)).await;
        ended.unwrap_or_else(|_| Err(SourceError::passing("the server took too long to mark or move a mail")))
    }

    async fn run_in_session(
        &self,
        mailbox: &WatchedMailbox,
        job: &MailToProcess,
        actions: &ImapActions,
    ) -> Result<ImapActionsEnd, SourceError> {
        let cell = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.entry(job.key.clone()).or_default().clone()
        };
        let mut cell = cell.lock().await;
        let was_open = cell.as_ref().is_some_and(|open| open.version == mailbox.version);
        // Taken out while in use: a cancelled future leaves no broken session behind.
        let mut open = match cell.take().filter(|_| was_open) {
            Some(open) => open,
            None => self.open(mailbox).await?,
        };
        let mut ended = open.run(job, actions).await;
        let is_over =
            |ended: &Result<ImapActionsEnd, SourceError>| ended.as_ref().is_err_and(|error| !error.is_usable);
        if was_open && is_over(&ended) {
            // The session may have ended while it was idle. Its slot is given back before another is taken.
            drop(open);
            open = self.open(mailbox).await?;
            ended = open.run(job, actions).await;
        }
        if !is_over(&ended) && !self.slots.is_crowded() {
            open.used_at = Instant::now();
            *cell = Some(open);
        }
        ended
    }

    async fn open(&self, mailbox: &WatchedMailbox) -> Result<ActionSession, SourceError> {
        let mut waiting = std::pin::pin!(self.slots.take(&mailbox.tenant));
        let slot = tokio::select! {
            biased;
            slot = &mut waiting => slot,
            // Idle sessions are closed to free slots; those of other tenants only if all slots are taken.
            () = self.close_idle(Duration::ZERO, Some(&mailbox.tenant).filter(|_| !self.slots.is_full())) => {
                waiting.await
            }
        };
        let mut folder = self.source.open(mailbox).await?;
        let uid_validity = folder.status().await?.uid_validity;
        Ok(ActionSession {
            folder,
            uid_validity,
            version: mailbox.version,
            used_at: Instant::now(),
            _slot: slot,
        })
    }

    /// Closes sessions that were idle for `idle`, of one tenant or of all.
    pub(super) async fn close_idle(&self, idle: Duration, of: Option<&TenantId>) {
        let cells: Vec<_> = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            // Closed sessions that no task uses are removed.
            sessions.retain(|_, cell| {
                Arc::strong_count(cell) > 1 || cell.try_lock().is_ok_and(|open| open.is_some())
            });
            let named = sessions.iter().filter(|(key, _)| of.is_none_or(|tenant| key.tenant == *tenant));
            named.map(|(_, cell)| cell.clone()).collect()
        };
        for cell in cells {
            let Ok(mut cell) = cell.try_lock() else { continue };
            if let Some(open) = cell.take_if(|open| open.used_at.elapsed() >= idle) {
                let ActionSession { folder, _slot: slot, .. } = open;
                drop(slot);
                folder.close().await;
            }
        }
    }
}

impl ActionSession {
    async fn run(
        &mut self,
        job: &MailToProcess,
        actions: &ImapActions,
    ) -> Result<ImapActionsEnd, SourceError> {
        if self.uid_validity != job.uid_validity {
            return Ok(ImapActionsEnd::Unknowable);
        }
        if actions.marks_seen {
            self.folder.mark_seen(job.imap_uid).await?;
        }
        if let Some(folder) = &actions.moves_to {
            self.folder.move_to(job.imap_uid, folder).await?;
        }
        Ok(ImapActionsEnd::Done)
    }
}
