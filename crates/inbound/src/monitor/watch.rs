//! Watches one mailbox: one session, for as long as it works and no other mailbox needs its slot, with rounds
//! in it.
//!
//! A round reads the folder from the cursor on, page by page, to its end or to the end of the round, which is
//! bounded in time and pages. The remaining mail is left to the next round, behind the other waiting
//! mailboxes. Each page is registered, and the cursor moved, in one fenced write. After a crash the cursor
//! says what is durable, and the next round continues there. If another node moved the cursor, its writes
//! count.
//!
//! A fault is stored with the mailbox, and the mailbox is left alone for a while. Nothing here touches
//! another mailbox.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use postway_domain::{Clock, InboundState, WatchedMailbox, inbound::FolderCursor};
use postway_store::{
    Store, StoreError,
    record::{MailboxKey, MailboxNote, MailboxPage, RegistrationResult},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    backoff,
    bounded_folder::BoundedFolder,
    page_reader::{PageReadResult, PageReader, ReadFault, Withheld},
    start_position::{arrived_at, first_cursor},
};
use crate::{
    crash::crash_point,
    imap::{FolderStatus, ListedMail},
    mail::bounded,
    mailbox_metrics,
    source::{FolderSource, OpenFolder, SourceError},
    tenant_slots::TenantSlots,
};

/// The most mails of one page.
const PAGE_MAILS: usize = 100;
/// The most pages of one round.
const ROUND_PAGES_MAX: u32 = 100;
/// The shortest time between two rounds of a session, however much news the server has.
const ROUND_EVERY: Duration = Duration::from_millis(250);
/// How long a mailbox with more to read waits after it gave its slot back.
const BACK_IN_LINE: Duration = Duration::from_secs(1);
/// The longest error that is stored with a mailbox.
const ERROR_CHARS_MAX: usize = 500;
/// How often a mailbox that has worked is tried before a fault counts as a fault of its settings.
const QUICK_TRIES: u32 = 3;
/// The longest wait while the store is away.
const STORE_WAIT_MAX: Duration = Duration::from_secs(30);

/// The dependencies of all watches.
pub(super) struct WatchContext {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub source: Arc<dyn FolderSource>,
    pub reader: PageReader,
    /// One slot for each session that may be open.
    pub slots: Arc<TenantSlots>,
}

/// The watch of one mailbox. See the module.
pub(super) struct MailboxWatch {
    context: Arc<WatchContext>,
    mailbox: WatchedMailbox,
    key: MailboxKey,
    withheld: Withheld,
    faults: u32,
    /// Whether the mailbox has been read since this watch began.
    has_worked: bool,
    /// How often the cursor was moved.
    steps: u64,
}

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchRoundEnd {
    /// The folder was read to its end.
    CaughtUp,
    /// There is more to read.
    More,
}

enum WatchFault {
    Source(SourceError),
    Store(StoreError),
    /// The mailbox was deleted.
    Gone,
}

impl From<SourceError> for WatchFault {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<StoreError> for WatchFault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl MailboxWatch {
    pub(super) fn new(context: Arc<WatchContext>, mailbox: WatchedMailbox) -> Self {
        let key = MailboxKey { tenant: mailbox.tenant.clone(), mailbox: mailbox.id.clone() };
        let withheld = Withheld::new();
        Self { context, mailbox, key, withheld, faults: 0, has_worked: false, steps: 0 }
    }

    /// Watches until the token is cancelled.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let session = AssertUnwindSafe(self.session()).catch_unwind();
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = session => ended,
            };
            let wait = match ended {
                Ok(Ok(wait)) => wait,
                Ok(Err(fault)) => self.note_fault(fault).await,
                Err(_) => {
                    let what = "reading it failed inside Postway: see the log for the time";
                    self.note_fault(WatchFault::Source(SourceError::setup(what))).await
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Stores a fault; returns how long to wait.
    async fn note_fault(&mut self, fault: WatchFault) -> Duration {
        let (nth, (tenant, mailbox)) = (self.faults, (&self.key.tenant, &self.key.mailbox));
        self.faults = self.faults.saturating_add(1);
        let error = match fault {
            WatchFault::Source(error) => error,
            WatchFault::Store(error) => {
                tracing::warn!(%error, %tenant, %mailbox, "a mailbox waits: the store does not take its mail");
                return backoff::wait(nth, false, &mut rand::rng()).min(STORE_WAIT_MAX);
            }
            // The monitor ends this watch soon.
            WatchFault::Gone => return STORE_WAIT_MAX,
        };
        // Logged once, not at each try, and without the server's text, which may name a person; the text is
        // stored with the mailbox.
        if nth == 0 {
            let is_setup = error.is_setup;
            tracing::warn!(%tenant, %mailbox, is_setup, "a mailbox cannot be read; its error says why");
        }
        let note = MailboxNote {
            key: self.key.clone(),
            at: self.context.clock.now(),
            uid_next: None,
            error: Some(bounded(&error.message, ERROR_CHARS_MAX)),
        };
        if let Err(error) = self.context.store.note_mailbox(note).await {
            tracing::warn!(%error, %tenant, %mailbox, "the error of a mailbox could not be stored");
        }
        // A mailbox that has worked is more likely being rebuilt than misconfigured.
        let is_setup = error.is_setup && !(self.has_worked && nth < QUICK_TRIES);
        backoff::wait(nth, is_setup, &mut rand::rng())
    }

    /// Runs one session: rounds until something fails or the slot is recalled. Returns how long to stay away.
    async fn session(&mut self) -> Result<Duration, WatchFault> {
        let context = self.context.clone();
        let slot = context.slots.take(&self.key.tenant).await;
        let opened = BoundedFolder::open(&*context.source, &self.mailbox, &slot).await?;
        let Some(mut folder) = opened else { return Ok(BACK_IN_LINE) };
        let poll = Duration::from_secs(self.mailbox.settings.poll_seconds.into());
        loop {
            slot.set_idle(false);
            folder.begin_round();
            let (began, steps) = (Instant::now(), self.steps);
            let end = match self.round(&mut folder).await {
                Ok(end) => end,
                // What was read in time is kept, and a recalled slot is not a fault.
                Err(WatchFault::Source(_))
                    if folder.was_cut() && (self.steps > steps || slot.is_recalled()) =>
                {
                    return Ok(BACK_IN_LINE);
                }
                Err(fault) => return Err(fault),
            };
            (self.faults, self.has_worked) = (0, true);
            // From here on this slot is recalled first.
            slot.set_idle(true);
            if end == WatchRoundEnd::CaughtUp {
                folder.wait(poll).await?;
            }
            tokio::select! {
                biased;
                _ = slot.recalled() => {}
                () = tokio::time::sleep_until(began + ROUND_EVERY) => {}
            }
            if slot.is_recalled() {
                folder.leave().await;
                return Ok(if end == WatchRoundEnd::CaughtUp { poll } else { BACK_IN_LINE });
            }
        }
    }

    /// Reads the folder to its end, or to the end of the round.
    async fn round(&mut self, folder: &mut BoundedFolder<'_>) -> Result<WatchRoundEnd, WatchFault> {
        let began = Instant::now();
        let folder_status = folder.status().await?;
        let mut cursor = self.cursor(folder, folder_status).await?;
        let end = folder_status.uid_next.saturating_sub(1);
        let mut pages = 0;
        while cursor.last_uid < end {
            mailbox_metrics::lag(&self.key, end - cursor.last_uid);
            if pages == ROUND_PAGES_MAX || (pages > 0 && folder.is_round_over()) {
                return Ok(WatchRoundEnd::More);
            }
            cursor = self.page(folder, folder_status, cursor).await?;
            pages += 1;
        }
        mailbox_metrics::lag(&self.key, 0);
        let note = MailboxNote {
            key: self.key.clone(),
            at: self.context.clock.now(),
            uid_next: Some(folder_status.uid_next),
            error: None,
        };
        self.context.store.note_mailbox(note).await?;
        mailbox_metrics::round(&self.key, began.elapsed());
        Ok(WatchRoundEnd::CaughtUp)
    }

    /// The cursor to continue from: the stored one, or a new one if the stored one does not apply to this
    /// folder.
    async fn cursor(
        &mut self,
        folder: &mut dyn OpenFolder,
        folder_status: FolderStatus,
    ) -> Result<FolderCursor, WatchFault> {
        let end = folder_status.uid_next.saturating_sub(1);
        let Some((_, state)) = self.context.store.mailbox(&self.key).await? else {
            return Err(WatchFault::Gone);
        };
        let to = match state.cursor {
            Some(cursor) if cursor.uid_validity == folder_status.uid_validity => return Ok(cursor),
            Some(cursor) => {
                tracing::info!(tenant = %self.key.tenant, mailbox = %self.key.mailbox,
                    "the server gave the mail of a mailbox new UIDs; it is read anew, what is known is passed over");
                self.withheld.clear();
                let uid_validity = folder_status.uid_validity;
                FolderCursor { uid_validity, last_uid: 0, old_through: end, ..cursor }
            }
            None => first_cursor(folder, folder_status, self.mailbox.settings.start).await?,
        };
        self.register(state.cursor, to, folder_status, Vec::new()).await
    }

    /// Reads and registers one page, or as much of it as the round has time for; returns the new cursor.
    async fn page(
        &mut self,
        folder: &mut BoundedFolder<'_>,
        folder_status: FolderStatus,
        cursor: FolderCursor,
    ) -> Result<FolderCursor, WatchFault> {
        let end = folder_status.uid_next.saturating_sub(1);
        let page = folder.list(cursor.last_uid.saturating_add(1), end, PAGE_MAILS).await?;
        // Forces progress, so that a server cannot make the round endless.
        let through = page.through.clamp(cursor.last_uid.saturating_add(1), end);
        let (old, mails): (Vec<ListedMail>, Vec<ListedMail>) =
            page.mails.into_iter().partition(|mail| is_old(mail, cursor));
        mailbox_metrics::skipped(&self.key, old.len());
        let mut cursor = cursor;
        let mut rest = mails.as_slice();
        loop {
            let PageReadResult { mails, answered, fault } = match rest.is_empty() {
                true => PageReadResult { mails: Vec::new(), answered: 0, fault: None },
                false => {
                    let (reader, mailbox) = (&self.context.reader, &self.mailbox);
                    reader.read(folder, mailbox, rest, &mut self.withheld).await
                }
            };
            rest = &rest[answered..];
            let reached = match (rest.is_empty(), mails.last()) {
                (true, _) => through,
                (false, Some(last)) => last.imap_uid,
                (false, None) => cursor.last_uid,
            };
            if reached > cursor.last_uid {
                let to = FolderCursor { last_uid: reached, ..cursor };
                let stands = self.register(Some(cursor), to, folder_status, mails).await?;
                if stands != to {
                    // Another node reads the mailbox too; its writes count.
                    return Ok(stands);
                }
                cursor = to;
            }
            match fault {
                Some(ReadFault::Source(error)) => return Err(error.into()),
                Some(ReadFault::Store(error)) => return Err(error.into()),
                None if rest.is_empty() => return Ok(cursor),
                None if answered > 0 && folder.is_round_over() => return Ok(cursor),
                None if answered == 0 => {
                    return Err(
                        SourceError::passing("the server did not answer for a mail it had listed").into()
                    );
                }
                None => {}
            }
        }
    }

    /// Registers mails and moves the cursor; returns the cursor after the write.
    async fn register(
        &mut self,
        seen: Option<FolderCursor>,
        to: FolderCursor,
        folder_status: FolderStatus,
        mails: Vec<postway_store::record::NewInbound>,
    ) -> Result<FolderCursor, WatchFault> {
        let gone = mails.iter().filter(|mail| mail.state == InboundState::Gone).count();
        let dead = mails.iter().filter(|mail| mail.state == InboundState::Dead).count();
        crash_point("inbound_before_register");
        let registered = self
            .context
            .store
            .register(MailboxPage {
                key: self.key.clone(),
                seen,
                to,
                uid_next: folder_status.uid_next,
                at: self.context.clock.now(),
                mails,
            })
            .await?;
        crash_point("inbound_after_register");
        match registered {
            RegistrationResult::Done { new, known } => {
                self.steps += 1;
                mailbox_metrics::skipped(&self.key, known as usize + gone);
                mailbox_metrics::failed(&self.key, dead);
                tracing::debug!(tenant = %self.key.tenant, mailbox = %self.key.mailbox, new, known, "registered");
                Ok(to)
            }
            RegistrationResult::Stale => match self.context.store.mailbox(&self.key).await? {
                Some((_, state))
                    if state.cursor.is_some_and(|at| at.uid_validity == folder_status.uid_validity) =>
                {
                    Ok(state.cursor.unwrap_or(to))
                }
                Some(_) => {
                    Err(SourceError::passing("another node reads this mailbox from another position").into())
                }
                None => Err(WatchFault::Gone),
            },
        }
    }
}

/// Whether a mail arrived before the watch began.
fn is_old(mail: &ListedMail, cursor: FolderCursor) -> bool {
    let before = |not_before| arrived_at(mail).is_some_and(|arrived| arrived < not_before);
    mail.uid <= cursor.old_through && cursor.not_before.is_some_and(before)
}
