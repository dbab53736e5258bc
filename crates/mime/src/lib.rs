//! Bytes to bytes: making mail out of drafts, and making ready-made mail fit to send.
//!
//! Pure: no I/O, no clock and no randomness of its own, so the same input always gives the same bytes. What
//! comes out has CRLF line endings only, no NUL, no line over 998 octets and never a `Bcc` field, whatever went
//! in; what cannot be brought into that form is refused with an error that names the field.
//!
//! - [`compose`]: a [`Draft`] (fields, text, html, attachments) becomes an RFC 5322 message.
//! - [`outgoing`]: a message that the user wrote is read ([`inspect_raw`]) and made ours ([`finish_raw`]).
//! - [`header`]: which header fields a user may set, and what they may say.

pub mod compose;
pub mod header;
pub mod outgoing;

mod attachment;
mod body;
mod field;
mod lines;

pub use attachment::Attachment;
pub use compose::{ComposeError, Composed, Draft, compose};
pub use header::{HeaderError, check_header, check_subject, reserved_header};
pub use outgoing::{RawError, RawInfo, finish_raw, inspect_raw};
