//! Watching one mailbox: a session for as long as it holds and nobody else needs its seat, and rounds in it.
//!
//! A round reads the folder from the cursor on, page by page, to its end or to the end of the round, which is bounded in time and in
//! pages; what is left is for the next round, at the end of the line. Each page is registered, and the cursor moved, in one
//! fenced write. A crash anywhere leaves a cursor that says what is durable, and the next round goes on from there. Where
//! somebody else moved the cursor, what they wrote counts.
//!
//! A fault is noted with the mailbox, and the mailbox is left alone for a while. Nothing here touches another mailbox.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use postway_domain::{Clock, InboundState, WatchedMailbox, inbound::Cursor};
use postway_store::{
    Store, StoreError,
    record::{MailboxKey, MailboxNote, Registered, Registration},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    backoff,
    bounded_folder::SeatedFolder,
    page_reader::{Read, ReadFault, Reader, Withheld},
    start_position::{arrived_at, first_cursor},
};
use crate::{
    crash::crash_point,
    imap::{Folder, Listed},
    mail::bounded,
    mailbox_metrics,
    source::{OpenFolder, Source, SourceError},
    tenant_slots::TenantSeats,
};

/// Mails of one page.
const PAGE_MAILS: usize = 100;
/// Pages of one round.
const ROUND_PAGES_MAX: u32 = 100;
/// Rounds of a session begin at least this far apart, whatever news a server has.
const ROUND_EVERY: Duration = Duration::from_millis(250);
/// How long a mailbox with more to read stays away after it gave its seat back.
const BACK_IN_LINE: Duration = Duration::from_secs(1);
/// The longest error that is kept with a mailbox.
const ERROR_CHARS_MAX: usize = 500;
/// Tries of a mailbox that has worked, before a fault of its set-up is taken for one.
const QUICK_TRIES: u32 = 3;
/// The longest wait while the store is away.
const STORE_WAIT_MAX: Duration = Duration::from_secs(30);

/// What all watches share.
pub(super) struct Means {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub source: Arc<dyn Source>,
    pub reader: Reader,
    /// One for each session that may be open.
    pub seats: Arc<TenantSeats>,
}

/// See the module.
pub(super) struct Watch {
    means: Arc<Means>,
    mailbox: WatchedMailbox,
    key: MailboxKey,
    withheld: Withheld,
    faults: u32,
    /// Whether it has been read since this watch began.
    has_worked: bool,
    /// How often the cursor was moved.
    steps: u64,
}

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RoundEnd {
    /// The folder was read to its end.
    CaughtUp,
    /// There is more to read.
    More,
}

enum Fault {
    Source(SourceError),
    Store(StoreError),
    /// The mailbox is no more.
    Gone,
}

impl From<SourceError> for Fault {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Watch {
    pub(super) fn new(means: Arc<Means>, mailbox: WatchedMailbox) -> Self {
        let key = MailboxKey { tenant: mailbox.tenant.clone(), mailbox: mailbox.id.clone() };
        let withheld = Withheld::new();
        Self { means, mailbox, key, withheld, faults: 0, has_worked: false, steps: 0 }
    }

    /// Watches until told to stop.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let session = AssertUnwindSafe(self.session()).catch_unwind();
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = session => ended,
            };
            let wait = match ended {
                Ok(Ok(wait)) => wait,
                Ok(Err(fault)) => self.faulty(fault).await,
                Err(_) => {
                    let what = "reading it failed inside Postway: see the log for the time";
                    self.faulty(Fault::Source(SourceError::setup(what))).await
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Notes what went wrong; how long to wait.
    async fn faulty(&mut self, fault: Fault) -> Duration {
        let (nth, (tenant, mailbox)) = (self.faults, (&self.key.tenant, &self.key.mailbox));
        self.faults = self.faults.saturating_add(1);
        let error = match fault {
            Fault::Source(error) => error,
            Fault::Store(error) => {
                tracing::warn!(%error, %tenant, %mailbox, "a mailbox waits: the store does not take its mail");
                return backoff::wait(nth, false, &mut rand::rng()).min(STORE_WAIT_MAX);
            }
            // Whoever runs the watches will notice.
            Fault::Gone => return STORE_WAIT_MAX,
        };
        // Told once, not at each try, and without the server's own words: they may name somebody, and stand with the mailbox.
        if nth == 0 {
            let is_setup = error.is_setup;
            tracing::warn!(%tenant, %mailbox, is_setup, "a mailbox cannot be read; its error says why");
        }
        let note = MailboxNote {
            key: self.key.clone(),
            at: self.means.clock.now(),
            uid_next: None,
            error: Some(bounded(&error.message, ERROR_CHARS_MAX)),
        };
        if let Err(error) = self.means.store.note_mailbox(note).await {
            tracing::warn!(%error, %tenant, %mailbox, "what is wrong with a mailbox could not be noted");
        }
        // What has worked is more likely being rebuilt than set up wrongly.
        let is_setup = error.is_setup && !(self.has_worked && nth < QUICK_TRIES);
        backoff::wait(nth, is_setup, &mut rand::rng())
    }

    /// One session: rounds until something goes wrong or somebody else needs the seat. How long to stay away then.
    async fn session(&mut self) -> Result<Duration, Fault> {
        let means = self.means.clone();
        let seat = means.seats.take(&self.key.tenant).await;
        let opened = SeatedFolder::open(&*means.source, &self.mailbox, &seat).await?;
        let Some(mut folder) = opened else { return Ok(BACK_IN_LINE) };
        let poll = Duration::from_secs(self.mailbox.settings.poll_seconds.into());
        loop {
            seat.rest(false);
            folder.begin_round();
            let (began, steps) = (Instant::now(), self.steps);
            let end = match self.round(&mut folder).await {
                Ok(end) => end,
                // What came before the end of its time is kept, and who had to make room is not at fault.
                Err(Fault::Source(_)) if folder.was_cut() && (self.steps > steps || seat.is_recalled()) => {
                    return Ok(BACK_IN_LINE);
                }
                Err(fault) => return Err(fault),
            };
            (self.faults, self.has_worked) = (0, true);
            // From here on the seat is the first to be recalled.
            seat.rest(true);
            if end == RoundEnd::CaughtUp {
                folder.wait(poll).await?;
            }
            tokio::select! {
                biased;
                _ = seat.recalled() => {}
                () = tokio::time::sleep_until(began + ROUND_EVERY) => {}
            }
            if seat.is_recalled() {
                folder.leave().await;
                return Ok(if end == RoundEnd::CaughtUp { poll } else { BACK_IN_LINE });
            }
        }
    }

    /// Reads the folder until its end, or the end of the round.
    async fn round(&mut self, folder: &mut SeatedFolder<'_>) -> Result<RoundEnd, Fault> {
        let began = Instant::now();
        let standing = folder.look().await?;
        let mut cursor = self.cursor(folder, standing).await?;
        let end = standing.uid_next.saturating_sub(1);
        let mut pages = 0;
        while cursor.last_uid < end {
            mailbox_metrics::lag(&self.key, end - cursor.last_uid);
            if pages == ROUND_PAGES_MAX || (pages > 0 && folder.is_round_over()) {
                return Ok(RoundEnd::More);
            }
            cursor = self.page(folder, standing, cursor).await?;
            pages += 1;
        }
        mailbox_metrics::lag(&self.key, 0);
        let note = MailboxNote {
            key: self.key.clone(),
            at: self.means.clock.now(),
            uid_next: Some(standing.uid_next),
            error: None,
        };
        self.means.store.note_mailbox(note).await?;
        mailbox_metrics::round(&self.key, began.elapsed());
        Ok(RoundEnd::CaughtUp)
    }

    /// Where to go on: where the store says, or at the beginning where that means nothing in this folder.
    async fn cursor(&mut self, folder: &mut dyn OpenFolder, standing: Folder) -> Result<Cursor, Fault> {
        let end = standing.uid_next.saturating_sub(1);
        let Some((_, state)) = self.means.store.mailbox(&self.key).await? else { return Err(Fault::Gone) };
        let to = match state.cursor {
            Some(cursor) if cursor.uid_validity == standing.uid_validity => return Ok(cursor),
            Some(cursor) => {
                tracing::info!(tenant = %self.key.tenant, mailbox = %self.key.mailbox,
                    "the server gave the mail of a mailbox new UIDs; it is read anew, what is known is passed over");
                self.withheld.clear();
                let uid_validity = standing.uid_validity;
                Cursor { uid_validity, last_uid: 0, old_through: end, ..cursor }
            }
            None => first_cursor(folder, standing, self.mailbox.settings.start).await?,
        };
        self.register(state.cursor, to, standing, Vec::new()).await
    }

    /// Reads and registers one page, or what the round has time for of it; where the cursor is then.
    async fn page(
        &mut self,
        folder: &mut SeatedFolder<'_>,
        standing: Folder,
        cursor: Cursor,
    ) -> Result<Cursor, Fault> {
        let end = standing.uid_next.saturating_sub(1);
        let page = folder.list(cursor.last_uid.saturating_add(1), end, PAGE_MAILS).await?;
        // A server that gets nowhere would be asked for ever.
        let through = page.through.clamp(cursor.last_uid.saturating_add(1), end);
        let (old, mails): (Vec<Listed>, Vec<Listed>) =
            page.mails.into_iter().partition(|mail| is_old(mail, cursor));
        mailbox_metrics::skipped(&self.key, old.len());
        let mut cursor = cursor;
        let mut rest = mails.as_slice();
        loop {
            let Read { mails, answered, fault } = match rest.is_empty() {
                true => Read { mails: Vec::new(), answered: 0, fault: None },
                false => {
                    let (reader, mailbox) = (&self.means.reader, &self.mailbox);
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
                let to = Cursor { last_uid: reached, ..cursor };
                let stands = self.register(Some(cursor), to, standing, mails).await?;
                if stands != to {
                    // Somebody else reads it too; what they wrote counts.
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

    /// Registers mails and moves the cursor; where it stands then.
    async fn register(
        &mut self,
        seen: Option<Cursor>,
        to: Cursor,
        standing: Folder,
        mails: Vec<postway_store::record::NewInbound>,
    ) -> Result<Cursor, Fault> {
        let gone = mails.iter().filter(|mail| mail.state == InboundState::Gone).count();
        let dead = mails.iter().filter(|mail| mail.state == InboundState::Dead).count();
        crash_point("inbound_before_register");
        let registered = self
            .means
            .store
            .register(Registration {
                key: self.key.clone(),
                seen,
                to,
                uid_next: standing.uid_next,
                at: self.means.clock.now(),
                mails,
            })
            .await?;
        crash_point("inbound_after_register");
        match registered {
            Registered::Done { new, known } => {
                self.steps += 1;
                mailbox_metrics::skipped(&self.key, known as usize + gone);
                mailbox_metrics::failed(&self.key, dead);
                tracing::debug!(tenant = %self.key.tenant, mailbox = %self.key.mailbox, new, known, "registered");
                Ok(to)
            }
            Registered::Stale => match self.means.store.mailbox(&self.key).await? {
                Some((_, state))
                    if state.cursor.is_some_and(|at| at.uid_validity == standing.uid_validity) =>
                {
                    Ok(state.cursor.unwrap_or(to))
                }
                Some(_) => {
                    Err(SourceError::passing("somebody else reads this mailbox from another place").into())
                }
                None => Err(Fault::Gone),
            },
        }
    }
}

/// Whether a mail came before watching began.
fn is_old(mail: &Listed, cursor: Cursor) -> bool {
    let before = |not_before| arrived_at(mail).is_some_and(|arrived| arrived < not_before);
    mail.uid <= cursor.old_through && cursor.not_before.is_some_and(before)
}
