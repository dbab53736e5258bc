//! SMTP to one relay: our own client, because per-recipient replies, the relay's queue id and the moment of
//! the final dot all matter here, and no ready client gives all three.
//!
//! | file | holds |
//! |---|---|
//! | `settings` | where to connect, how to sign in, how long to wait |
//! | `dial` | who connects: the network, or a simulation of it |
//! | `wire` | bytes: buffered reads, bounded replies, writes, each with a deadline |
//! | `reply` | the reply parser |
//! | `capability` | what EHLO offered |
//! | `connection` | the life of a connection: open, reuse, quit |
//! | `handshake` | greeting, EHLO, STARTTLS, AUTH |
//! | `bearer` | AUTH with a token |
//! | `deliver` | one mail transaction |
//! | `judge` | its decisions that need no connection |
//! | `body` | dot-stuffing, and the refusal of bare line ends |
//! | `provider_id` | the relay's own name for the mail |
//!
//! Bounds: a reply has at most 64 KiB and 128 lines, and a deadline for its whole; a peer that sends a byte a
//! second, an endless line or nothing is cut off and classified.

mod bearer;
mod body;
mod capability;
mod connection;
mod deliver;
mod dial;
mod handshake;
mod judge;
mod provider_id;
mod reply;
mod settings;
mod wire;

pub(super) use bearer::no_token;
pub use connection::SmtpConnection;
pub use dial::{Dial, Tcp};
pub use handshake::Milestones;
pub use settings::{Credentials, Deadlines, SmtpSettings};
