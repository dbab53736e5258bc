//! Where mail is read from: a folder on a server, as the monitor and the router see it.
//!
//! The one in use is [`ImapSource`](ImapSource); tests have their own, so that reading, cursors and crashes can be
//! tested without a server.

mod imap_source;

use std::time::Duration;

use async_trait::async_trait;
use postway_domain::{Time, WatchedMailbox};
use tokio::sync::mpsc;

use crate::imap::{Fetched, Folder, Listed, MailboxError, Page};

pub use self::imap_source::ImapSource;

/// Opens folders.
#[async_trait]
pub trait Source: Send + Sync {
    /// Connects, signs in and opens the mailbox's folder.
    async fn open(&self, mailbox: &WatchedMailbox) -> Result<Box<dyn OpenFolder>, SourceError>;
}

/// A folder that is open. After an error that is not [`SourceError::is_usable`] it is of no further use.
#[async_trait]
pub trait OpenFolder: Send {
    /// The folder as it is now.
    async fn look(&mut self) -> Result<Folder, SourceError>;

    /// The mails of lowest UID in this range, at most `limit` of them; says how far it got, which is always further.
    async fn list(&mut self, first: u32, last: u32, limit: usize) -> Result<Page, SourceError>;

    /// Gives out each of these mails exactly once, or fails. None larger than `mail_bytes_max` is read.
    async fn fetch(
        &mut self,
        mails: &[Listed],
        mail_bytes_max: usize,
        out: mpsc::Sender<Fetched>,
    ) -> Result<(), SourceError>;

    /// The UID of the first of the newest mails.
    async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, SourceError>;

    /// The UID of the first mail that came then or later.
    async fn first_since(&mut self, since: Time) -> Result<Option<u32>, SourceError>;

    /// Waits until there may be news: until the server tells, or for so long where it does not tell by itself.
    async fn wait(&mut self, poll: Duration) -> Result<(), SourceError>;

    /// Marks a mail as read.
    async fn mark_seen(&mut self, uid: u32) -> Result<(), SourceError>;

    /// Moves a mail to another folder.
    async fn move_to(&mut self, uid: u32, folder: &str) -> Result<(), SourceError>;

    /// Says goodbye.
    async fn close(self: Box<Self>);
}

/// A folder could not be used. Reads as a sentence for whoever set the mailbox up; holds no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// What went wrong.
    pub message: String,
    /// Whether the set-up is at fault, so that waiting alone cannot help.
    pub is_setup: bool,
    /// Whether the folder can be used further: the server understood and said no.
    pub is_usable: bool,
}

impl SourceError {
    /// A fault of the set-up.
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
