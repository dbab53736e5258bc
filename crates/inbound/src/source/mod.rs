//! The source of mail: a folder on a server, as the monitor and the processor see it.
//!
//! Production uses [`ImapSource`]; tests have sources of their own, so that reading, cursors and crashes can
//! be tested without a server.

mod imap_source;

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::{Time, WatchedMailbox};
use tokio::sync::mpsc;

use crate::imap::{FetchedMail, FolderPage, FolderStatus, ListedMail, MailboxError};

pub use self::imap_source::ImapSource;

/// Opens folders.
#[async_trait]
pub trait FolderSource: Send + Sync {
    /// Connects, signs in and opens the mailbox's folder.
    async fn open(&self, mailbox: &WatchedMailbox) -> Result<Box<dyn OpenFolder>, SourceError>;
}

/// An open folder. After an error that is not [`SourceError::is_usable`] it cannot be used any more.
#[async_trait]
pub trait OpenFolder: Send {
    /// The current status of the folder.
    async fn status(&mut self) -> Result<FolderStatus, SourceError>;

    /// Lists the mails with the lowest UIDs in this range, at most `limit`. The page says how far it reaches,
    /// and always makes progress.
    async fn list(&mut self, first: u32, last: u32, limit: usize) -> Result<FolderPage, SourceError>;

    /// Sends exactly one result for each of these mails, or fails. No mail larger than `mail_bytes_max` is
    /// read.
    async fn fetch(
        &mut self,
        mails: &[ListedMail],
        mail_bytes_max: usize,
        out: mpsc::Sender<FetchedMail>,
    ) -> Result<(), SourceError>;

    /// The UID of the first of the newest `count` mails.
    async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, SourceError>;

    /// The UID of the first mail that arrived at `since` or later.
    async fn first_since(&mut self, since: Time) -> Result<Option<u32>, SourceError>;

    /// Waits until there may be new mail: until the server reports some, or for `poll` if it does not report
    /// by itself.
    async fn wait(&mut self, poll: Duration) -> Result<(), SourceError>;

    /// Marks a mail as read.
    async fn mark_seen(&mut self, uid: u32) -> Result<(), SourceError>;

    /// Moves a mail to another folder.
    async fn move_to(&mut self, uid: u32, folder: &str) -> Result<(), SourceError>;

    /// Logs out.
    async fn close(self: Box<Self>);
}

/// A folder could not be used. The text is a sentence for the person who set the mailbox up, and contains no
/// credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// What went wrong.
    pub message: String,
    /// Whether the settings are at fault, so that waiting alone cannot help.
    pub is_setup: bool,
    /// Whether the folder can be used further: the server understood and refused.
    pub is_usable: bool,
}

impl SourceError {
    /// A fault of the settings.
    pub fn setup(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_setup: true, is_usable: false }
    }

    /// A fault that may pass.
    pub fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_setup: false, is_usable: false }
    }
}

impl From<MailboxError> for SourceError {
    fn from(error: MailboxError) -> Self {
        Self {
            message: error.to_string(),
            is_setup: error.is_setup(),
            is_usable: error.leaves_session_usable(),
        }
    }
}
