//! An open folder while a mailbox has a slot: whatever the server does, each call ends when the slot must be
//! given back.
//!
//! The deadlines of the client apply to single answers. A server that meets each of them by a byte, or that
//! always has one more page, would be read for ever. This module ends the round, and gives up a slot that
//! others need.

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::{Time, WatchedMailbox};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::source::{FolderSource, OpenFolder, SourceError};
use crate::{
    imap::{FetchedMail, FolderPage, FolderStatus, ListedMail},
    tenant_slots::TenantSlot,
};

/// How long a round begins new pages and mails. The remaining mail is read in the next round.
const ROUND_READS: Duration = Duration::from_secs(60);
/// How long a round may take in total: one mail of the largest size may arrive slowly.
const ROUND_MAX: Duration = Duration::from_secs(6 * 60);
/// How long a round may go on after its slot was recalled.
const RECALLED_MAX: Duration = Duration::from_secs(30);
/// How long closing the folder may take.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// An open folder with the limits of its round. See the module.
pub(super) struct BoundedFolder<'s> {
    folder: Box<dyn OpenFolder>,
    slot: &'s TenantSlot,
    round_began: Instant,
    was_cut: bool,
}

impl<'s> BoundedFolder<'s> {
    /// Opens the mailbox's folder within the time of a round; `None` if the slot was recalled before it was
    /// open.
    pub(super) async fn open(
        source: &dyn FolderSource,
        mailbox: &WatchedMailbox,
        slot: &'s TenantSlot,
    ) -> Result<Option<Self>, SourceError> {
        let round_began = Instant::now();
        let folder = tokio::select! {
            biased;
            opened = source.open(mailbox) => opened?,
            () = ends(slot, round_began) => {
                return if slot.is_recalled() { Ok(None) } else { Err(SourceError::passing(TOO_SLOW)) };
            }
        };
        Ok(Some(Self { folder, slot, round_began, was_cut: false }))
    }

    /// Begins another round.
    pub(super) fn begin_round(&mut self) {
        self.round_began = Instant::now();
    }

    /// Whether nothing new may begin in this round: its time is over, or the slot was recalled.
    pub(super) fn is_round_over(&self) -> bool {
        self.slot.is_recalled() || self.round_began.elapsed() >= ROUND_READS
    }

    /// Whether a call was cut off because its time was over. Then the folder cannot be used any more.
    pub(super) fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Closes the folder.
    pub(super) async fn leave(self) {
        // Nothing depends on whether the server answers.
        let _ = timeout(CLOSE_MAX, self.folder.close()).await;
    }
}

/// The error of a call that was cut off.
const TOO_SLOW: &str = "the server is too slow: nothing was read in the time of a round";

/// Completes when a round that began at `round_began` must end.
async fn ends(slot: &TenantSlot, round_began: Instant) {
    let recalled = async { sleep_until(slot.recalled().await + RECALLED_MAX).await };
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
            () = ends($self.slot, $self.round_began) => {
                $self.was_cut = true;
                Err(SourceError::passing(TOO_SLOW))
            }
        }
    };
}

#[async_trait]
impl OpenFolder for BoundedFolder<'_> {
    async fn status(&mut self) -> Result<FolderStatus, SourceError> {
        within_round!(self, self.folder.status())
    }

    async fn list(&mut self, first: u32, last: u32, limit: usize) -> Result<FolderPage, SourceError> {
        within_round!(self, self.folder.list(first, last, limit))
    }

    async fn fetch(
        &mut self,
        mails: &[ListedMail],
        mail_bytes_max: usize,
        out: mpsc::Sender<FetchedMail>,
    ) -> Result<(), SourceError> {
        within_round!(self, self.folder.fetch(mails, mail_bytes_max, out))
    }

    async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, SourceError> {
        within_round!(self, self.folder.first_of_newest(count))
    }

    async fn first_since(&mut self, since: Time) -> Result<Option<u32>, SourceError> {
        within_round!(self, self.folder.first_since(since))
    }

    /// Waits between rounds; ends at once when the slot is recalled.
    async fn wait(&mut self, poll: Duration) -> Result<(), SourceError> {
        tokio::select! {
            biased;
            _ = self.slot.recalled() => Ok(()),
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
