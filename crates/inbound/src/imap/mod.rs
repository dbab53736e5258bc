//! A small IMAP client (RFC 3501), which reads a mailbox on somebody else's server.
//!
//! Promises, whatever the server does:
//! - **Memory is bounded.** A response may have 64 KiB with all its literals (`wire::RESPONSE_BYTES_MAX`).
//!   The only exception is the text of a mail that was asked for: the caller sets its limit, and gets it
//!   before the next one is read. The announced length of a literal reserves nothing: buffers grow with what
//!   arrives.
//! - **Time is bounded.** Every step, and every mail, has a deadline for all of it, so that a server gains
//!   nothing by sending a byte a second. Unsolicited responses are counted.
//! - **The server is not trusted.** UIDs that were not asked for, or are given twice, are dropped. A mail
//!   counts as gone only if the server, asked again, does not list it.
//! - **Nothing is searched.** Pages are asked for by UID, and positions in the mailbox are found by
//!   bisection.
//!
//! Names and credentials are sent quoted or as literals, so that nothing in them is read as a command.
//! Credentials cross a plain connection only if the mailbox is set up without TLS.
//!
//! Why not `async-imap`: it allows a literal or a line of half a gigabyte, and does not stream mails. A limit
//! below it could only cut the connection, and never say which mail was too large.
//!
//! Fails with [`MailboxError`], which says whether the settings must change or waiting may help. After any
//! error but a refusal the session is over. Dropping a future half-way, or an unfinished [`MailFetchStream`],
//! ends it as well.
//!
//! ```no_run
//! # use postway_inbound::imap::{ImapConnection, FetchedContent, ImapDeadlines, MailboxError, ImapSession};
//! # async fn example(mailbox: &ImapConnection, tls: &postway_net::TlsClient) -> Result<(), MailboxError> {
//! let mut session = ImapSession::open(mailbox, tls, ImapDeadlines::default()).await?;
//! let folder = session.select("INBOX").await?;
//! let page = session.list(1, folder.uid_next - 1, 500).await?;
//! let mut fetch = session.fetch(&page.mails, 25 << 20);
//! while let Some(mail) = fetch.next().await? {
//!     if let FetchedContent::Mail(raw) = mail.content { /* keep it */ }
//! }
//! // The cursor moves to `page.through`.
//! # Ok(())
//! # }
//! ```

mod capability;
mod change;
mod command;
mod connection;
mod error;
mod fetch;
#[cfg(test)]
mod fuzz;
mod idle;
mod list;
mod open;
mod position;
mod response;
mod session;
mod syntax;
mod utf7;
mod wire;

pub use connection::{ImapConnection, ImapDeadlines, ImapLogin, ImapTlsMode};
pub use error::{ImapFault, MailboxError};
pub use fetch::{FetchedContent, FetchedMail, MailFetchStream};
pub use idle::IdleOutcome;
pub use list::{FolderPage, ListedMail};
pub use session::{FolderStatus, ImapSession};
