//! A mailbox on somebody else's server, read over IMAP (RFC 3501) by a small client of our own.
//!
//! Promises, whatever the server does:
//! - **Memory is bounded.** A response may have 64 KiB with all its literals (`wire::RESPONSE_BYTES_MAX`); the one
//!   exception is the text of a mail that was asked for, which may have as many as the caller allows and is handed over
//!   before the next is read. A literal's announced length reserves nothing: buffers grow with what arrives.
//! - **Time is bounded.** Every step, and every mail, ends at a deadline for the whole of it, so that a byte a second
//!   gains nothing; responses that nobody asked for are counted.
//! - **Nothing is believed.** UIDs outside of what was asked for, or given twice, are dropped; a mail counts as gone only
//!   when the server, asked again, does not list it.
//! - **Nothing is searched.** Pages are asked for by UID, places in the mailbox are found by halving it.
//!
//! Names and credentials go out quoted or as literals, so that nothing in them is read as a command. Credentials cross a
//! plain connection only where the mailbox is set up without TLS.
//!
//! Why not `async-imap`: it allows a literal half a gigabyte and a line as much, and streams no mail; a bound below it
//! could only cut the connection, never say which mail was too large.
//!
//! Fails with [`MailboxError`], which says whether the set-up must change or waiting may help. After any error but a
//! refusal the session is over. A future dropped half-way, an unfinished [`Fetch`] too, ends it as well.
//!
//! ```no_run
//! # use postway_inbound::imap::{Connection, Content, Deadlines, MailboxError, Session};
//! # async fn example(mailbox: &Connection, tls: &postway_net::TlsClient) -> Result<(), MailboxError> {
//! let mut session = Session::open(mailbox, tls, Deadlines::default()).await?;
//! let folder = session.select("INBOX").await?;
//! let page = session.list(1, folder.uid_next - 1, 500).await?;
//! let mut fetch = session.fetch(&page.mails, 25 << 20);
//! while let Some(mail) = fetch.next().await? {
//!     if let Content::Mail(raw) = mail.content { /* keep it */ }
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

pub use connection::{Connection, Deadlines, Login, TlsMode};
pub use error::{Fault, MailboxError};
pub use fetch::{Content, Fetch, Fetched};
pub use idle::Woken;
pub use list::{Listed, Page};
pub use session::{Folder, Session};
