//! An open folder while a mailbox has a seat: whatever the server does, each call ends when the seat must be given back.
//!
//! The deadlines of the client are for single answers. A server that meets each of them by a byte, or that always has one page more,
//! would be read for ever; here is the end of a round, and the end of a seat that others need.

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::{Time, WatchedMailbox};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::source::{OpenFolder, Source, SourceError};
use crate::{
    imap::{Fetched, Folder, Listed, Page},
    tenant_slots::TenantSeat,
};

/// How long a round begins new pages and mails. What is left is read in the next round.
const ROUND_READS: Duration = Duration::from_secs(60);
/// How long a round may take in all: one mail of the largest size may come slowly.
const ROUND_MAX: Duration = Duration::from_secs(6 * 60);
/// How long a round may go on once somebody else needs the seat.
const RECALLED_MAX: Duration = Duration::from_secs(30);
/// How long the goodbye may take.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct SeatedFolder<'s> {
    folder: Box<dyn OpenFolder>,
    seat: &'s TenantSeat,
    round_began: Instant,
    was_cut: bool,
}

impl<'s> SeatedFolder<'s> {
    /// Opens the mailbox's folder within the time of a round; none where somebody else needed the seat before it was open.
    pub(super) async fn open(
        source: &dyn Source,
        mailbox: &WatchedMailbox,
        seat: &'s TenantSeat,
    ) -> Result<Option<Self>, SourceError> {
        let round_began = Instant::now();
        let folder = tokio::select! {
            biased;
            opened = source.open(mailbox) => opened?,
            () = ends(seat, round_began) => {
                return if seat.is_recalled() { Ok(None) } else { Err(SourceError::passing(TOO_SLOW)) };
            }
        };
        Ok(Some(Self { folder, seat, round_began, was_cut: false }))
    }

    /// Begins another round.
    pub(super) fn begin_round(&mut self) {
        self.round_began = Instant::now();
    }

    /// Whether nothing new is to be begun in this round: it has had its time, or somebody else needs the seat.
    pub(super) fn is_round_over(&self) -> bool {
        self.seat.is_recalled() || self.round_began.elapsed() >= ROUND_READS
    }

    /// Whether a call was broken off because its time was over. Then the folder is of no further use.
    pub(super) fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Says goodbye.
    pub(super) async fn leave(self) {
        // Nothing depends on whether the server hears it.
        let _ = timeout(CLOSE_MAX, self.folder.close()).await;
    }
}

/// What a call that was broken off fails with.
const TOO_SLOW: &str = "the server is too slow: nothing was read in the time of a round";

/// Pends until a round that began then must be over.
async fn ends(seat: &TenantSeat, round_began: Instant) {
    let recalled = async { sleep_until(seat.recalled().await + RECALLED_MAX).await };
    tokio::select! {
        biased;
        () = sleep_until(round_began + ROUND_MAX) => {}
        () = recalled => {}
    }
}

/// Runs a call of the folder to its end or to the end of the round.
macro_rules! within_round {
    ($self:ident, $call:expr) => {
        tokio::select! {
            biased;
            answered = $call => answered,
            () = ends($self.seat, $self.round_began) => {
                $self.was_cut = true;
                Err(SourceError::passing(TOO_SLOW))
            }
        }
    };
}

#[async_trait]
impl OpenFolder for SeatedFolder<'_> {
    async fn look(&mut self) -> Result<Folder, SourceError> {
        within_round!(self, self.folder.look())
    }

    async fn list(&mut self, first: u32, last: u32, limit: usize) -> Result<Page, SourceError> {
        within_round!(self, self.folder.list(first, last, limit))
    }

    async fn fetch(
        &mut self,
        mails: &[Listed],
        mail_bytes_max: usize,
        out: mpsc::Sender<Fetched>,
    ) -> Result<(), SourceError> {
        within_round!(self, self.folder.fetch(mails, mail_bytes_max, out))
    }

    async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, SourceError> {
        within_round!(self, self.folder.first_of_newest(count))
    }

    async fn first_since(&mut self, since: Time) -> Result<Option<u32>, SourceError> {
        within_round!(self, self.folder.first_since(since))
    }

    /// Between rounds: ends at once when somebody else needs the seat.
    async fn wait(&mut self, poll: Duration) -> Result<(), SourceError> {
        tokio::select! {
            biased;
            _ = self.seat.recalled() => Ok(()),
            waited = self.folder.wait(poll) => waited,
        }
    }

    async fn mark_seen(&mut self, uid: u32) -> Result<(), SourceError> {
        within_round!(self, self.folder.mark_seen(uid))
    }

    async fn move_to(&mut self, uid: u32, folder: &str) -> Result<(), SourceError> {
        within_round!(self, self.folder.move_to(uid, folder))
    }

    async fn close(self: Box<Self>) {
        self.leave().await;
    }
}
