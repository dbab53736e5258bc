//! The SMTP and LMTP client: delivers mail to one relay over a connection that is used again and again.
//!
//! It is our own because three things matter here that no available client gives together: the reply to each
//! recipient, the queue id in the reply to the final dot, and control over the moment at which that dot is
//! written (`docs/adr/0001-own-smtp-client.md`).
//!
//! # A transaction
//!
//! ```text
//! us     MAIL, RCPT, RCPT, DATA   in one packet if the relay offers PIPELINING (RFC 2920)
//! relay  one reply each           a refused recipient does not stop the others
//! us     the body                 dot-stuffed, bare line ends refused
//!        the gate                 the wire commit becomes durable; nothing final is on the wire yet
//! us     the final dot            the point of no return
//! relay  the reply to the dot     with the relay's own id for the mail
//! ```
//!
//! What is known after a failure depends on the dot alone:
//!
//! | failure | result |
//! |---|---|
//! | before the first byte of the dot | not sent; safe to try again |
//! | gate refused | not sent; the connection is dropped, so the relay discards the body |
//! | a well-formed refusal of the dot | not sent |
//! | any byte of the dot written, no well-formed reply | in doubt |
//!
//! With LMTP (RFC 2033) there is a reply for each accepted recipient after the dot. Each of them decides
//! about its recipient alone; if the connection dies among them, those without a reply are in doubt.
//!
//! # Promises
//!
//! - Replies never shift: an unexpected reply, or one too many, makes the connection unusable.
//! - A future that is dropped half-way leaves a connection that refuses further use.
//! - Credentials are sent only under TLS with a verified certificate, unless the account allows otherwise.
//! - Every wait has a deadline, and every reply a bound (64 KiB, 128 lines). A peer that sends a byte a
//!   second, an endless line or nothing at all is cut off, and the failure is classified.
//!
//! # Files
//!
//! | file | content |
//! |---|---|
//! | `settings` | where to connect, how to sign in, how long to wait |
//! | `dial` | opens the connection: TCP, or a simulated network |
//! | `handshake` | greeting, EHLO, STARTTLS, AUTH |
//! | `bearer` | AUTH with a token |
//! | `capability` | the extensions that EHLO offered |
//! | `connection` | the life of a connection: open, reuse, quit |
//! | `deliver` | one mail transaction |
//! | `answers` | the replies after the dot: one, or one for each recipient |
//! | `dialogue` | what both sides said, if the attempt failed |
//! | `judge` | the decisions of a transaction that need no connection |
//! | `body` | dot-stuffing, and the refusal of bare line ends |
//! | `wire` | buffered reads, bounded replies and writes, each with a deadline |
//! | `reply` | the reply parser |
//! | `provider_id` | the relay's id for the mail, read from its reply to the dot |

mod answers;
mod bearer;
mod body;
mod capability;
mod connection;
mod deliver;
mod dial;
mod dialogue;
mod handshake;
mod judge;
mod provider_id;
mod reply;
mod settings;
mod wire;

pub(super) use bearer::no_token;
pub use connection::SmtpConnection;
pub use dial::{RelayDialer, TcpDialer};
pub(crate) use dialogue::hide_addresses;
pub use handshake::HandshakeMilestones;
pub use settings::{RelayCredentials, RelayProtocol, SmtpDeadlines, SmtpSettings};
