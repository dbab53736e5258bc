//! Errands on the server of a mailbox: marking mail as read, moving it.
//!
//! They run over short-lived sessions of their own, one for each mailbox, shared by its mails and closed when they have been
//! idle for a while. Each errand can be done twice without harm: a mail that is gone stays gone. A UID means a mail only
//! as long as the folder's UIDVALIDITY is what it was; when it is another, nothing is done.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use postway_domain::WatchedMailbox;
use postway_store::record::{MailboxKey, ToRoute};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use crate::monitor::{OpenFolder, Source, SourceError};

/// Sessions for errands at the same time.
const SESSIONS_MAX: usize = 20;
/// How long a session stays open without errands.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long an errand may take, with opening a session.
const ERRAND_MAX: Duration = Duration::from_secs(90);

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
    seats: Arc<Semaphore>,
}

struct Open {
    folder: Box<dyn OpenFolder>,
    uid_validity: u32,
    /// The version of the mailbox that it was opened with.
    version: i64,
    used_at: Instant,
    _seat: OwnedSemaphorePermit,
}

impl Errands {
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, sessions: Mutex::default(), seats: Arc::new(Semaphore::new(SESSIONS_MAX)) }
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
            // It may have ended while nobody used it.
            open = self.open(mailbox).await?;
            ran = open.run(job, errand).await;
        }
        if !has_ended(&ran) {
            open.used_at = Instant::now();
            *place = Some(open);
        }
        ran
    }

    async fn open(&self, mailbox: &WatchedMailbox) -> Result<Open, SourceError> {
        let seat = self.seats.clone().acquire_owned().await;
        let seat = seat.map_err(|_| SourceError::passing("no session can be opened any more"))?;
        let mut folder = self.source.open(mailbox).await?;
        let uid_validity = folder.look().await?.uid_validity;
        Ok(Open { folder, uid_validity, version: mailbox.version, used_at: Instant::now(), _seat: seat })
    }

    /// Closes sessions that nobody has used for a while; all of them when everything stops.
    pub(super) async fn close_idle(&self, all: bool) {
        let places: Vec<_> = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody uses and that are closed are forgotten.
            sessions.retain(|_, place| {
                Arc::strong_count(place) > 1 || place.try_lock().is_ok_and(|open| open.is_some())
            });
            sessions.values().cloned().collect()
        };
        for place in places {
            let Ok(mut place) = place.try_lock() else { continue };
            if let Some(open) = place.take_if(|open| all || open.used_at.elapsed() >= IDLE_MAX) {
                open.folder.close().await;
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
