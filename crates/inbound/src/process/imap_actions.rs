//! Errands on the server of a mailbox: marking mail as read, moving it.
//!
//! They are run after a mail's own work, and hold none of the places in which mail is dealt with: a server that never answers delays
//! the mail of its own mailbox. Their mail is settled behind them, so a crash in between has it dealt with once more: what was sent is
//! found by its key, and the errand is done again.
//!
//! They run over short-lived sessions of their own, one for each mailbox, shared by its mails and closed when they have been
//! idle for a while, or when others need a session; tenants share the sessions. Each errand can be done twice without harm: a mail that is gone stays gone. A UID means a mail only
//! as long as the folder's UIDVALIDITY is what it was; when it is another, nothing is done.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use postway_domain::{TenantId, WatchedMailbox};
use postway_store::record::{MailboxKey, ToRoute};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout},
};

use crate::{
    source::{OpenFolder, Source, SourceError},
    tenant_slots::{TenantSeat, TenantSeats},
};

/// Sessions for errands at the same time.
const SESSIONS_MAX: usize = 20;
/// Of one tenant.
const SESSIONS_PER_TENANT_MAX: usize = SESSIONS_MAX / 2;
/// How long a session stays open without errands.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long an errand may take, with opening a session and waiting for it.
pub(super) const ERRAND_MAX: Duration = Duration::from_secs(90);

/// What is to be done on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Errand {
    pub marks_seen: bool,
    pub moves_to: Option<String>,
}

impl Errand {
    pub(super) fn is_empty(&self) -> bool {
        !self.marks_seen && self.moves_to.is_none()
    }
}

/// How an errand went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    Done,
    /// The server gave UIDs anew: which mail it is cannot be told any more.
    Unknowable,
}

/// See the module.
pub(super) struct Errands {
    source: Arc<dyn Source>,
    sessions: Mutex<HashMap<MailboxKey, Arc<AsyncMutex<Option<Open>>>>>,
    seats: Arc<TenantSeats>,
}

struct Open {
    folder: Box<dyn OpenFolder>,
    uid_validity: u32,
    /// The version of the mailbox that it was opened with.
    version: i64,
    used_at: Instant,
    /// Held as long as the session is open.
    _seat: TenantSeat,
}

impl Errands {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        let seats = TenantSeats::new(SESSIONS_MAX, SESSIONS_PER_TENANT_MAX);
        Self { source, sessions: Mutex::default(), seats }
    }

    /// Does an errand for a mail.
    pub(super) async fn run(
        &self,
        mailbox: &WatchedMailbox,
        job: &ToRoute,
        errand: &Errand,
    ) -> Result<Ran, SourceError> {
        let ran = timeout(ERRAND_MAX, self.run_in_session(mailbox, job, errand)).await;
        ran.unwrap_or_else(|_| Err(SourceError::passing("the server took too long to mark or move a mail")))
    }

    async fn run_in_session(
        &self,
        mailbox: &WatchedMailbox,
        job: &ToRoute,
        errand: &Errand,
    ) -> Result<Ran, SourceError> {
        let place = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.entry(job.key.clone()).or_default().clone()
        };
        let mut place = place.lock().await;
        let was_open = place.as_ref().is_some_and(|open| open.version == mailbox.version);
        // Taken out while it is used: a future dropped half-way leaves no broken session behind.
        let mut open = match place.take().filter(|_| was_open) {
            Some(open) => open,
            None => self.open(mailbox).await?,
        };
        let mut ran = open.run(job, errand).await;
        let has_ended = |ran: &Result<Ran, SourceError>| ran.as_ref().is_err_and(|error| !error.is_usable);
        if was_open && has_ended(&ran) {
            // It may have ended while nobody used it. Its seat is given back before another is asked for.
            drop(open);
            open = self.open(mailbox).await?;
            ran = open.run(job, errand).await;
        }
        if !has_ended(&ran) && !self.seats.is_crowded() {
            open.used_at = Instant::now();
            *place = Some(open);
        }
        ran
    }

    async fn open(&self, mailbox: &WatchedMailbox) -> Result<Open, SourceError> {
        let mut waiting = std::pin::pin!(self.seats.take(&mailbox.tenant));
        let seat = tokio::select! {
            biased;
            seat = &mut waiting => seat,
            // Sessions that nobody uses make room: those of others only where all are taken.
            () = self.close_idle(Duration::ZERO, Some(&mailbox.tenant).filter(|_| !self.seats.is_full())) => {
                waiting.await
            }
        };
        let mut folder = self.source.open(mailbox).await?;
        let uid_validity = folder.look().await?.uid_validity;
        Ok(Open { folder, uid_validity, version: mailbox.version, used_at: Instant::now(), _seat: seat })
    }

    /// Closes sessions that nobody has used for this long, of one tenant or of all.
    pub(super) async fn close_idle(&self, idle: Duration, of: Option<&TenantId>) {
        let places: Vec<_> = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody uses and that are closed are forgotten.
            sessions.retain(|_, place| {
                Arc::strong_count(place) > 1 || place.try_lock().is_ok_and(|open| open.is_some())
            });
            let named = sessions.iter().filter(|(key, _)| of.is_none_or(|tenant| key.tenant == *tenant));
            named.map(|(_, place)| place.clone()).collect()
        };
        for place in places {
            let Ok(mut place) = place.try_lock() else { continue };
            if let Some(open) = place.take_if(|open| open.used_at.elapsed() >= idle) {
                let Open { folder, _seat: seat, .. } = open;
                drop(seat);
                folder.close().await;
            }
        }
    }
}

impl Open {
    async fn run(&mut self, job: &ToRoute, errand: &Errand) -> Result<Ran, SourceError> {
        if self.uid_validity != job.uid_validity {
            return Ok(Ran::Unknowable);
        }
        if errand.marks_seen {
            self.folder.mark_seen(job.imap_uid).await?;
        }
        if let Some(folder) = &errand.moves_to {
            self.folder.move_to(job.imap_uid, folder).await?;
        }
        Ok(Ran::Done)
    }
}
