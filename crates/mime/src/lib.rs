//! Bytes to bytes: making mail out of drafts, and making ready-made mail fit to send.
//!
//! Pure: no I/O, no clock and no randomness of its own, so the same input always gives the same bytes. What
//! comes out has CRLF line endings only, no NUL, no line over 998 octets and never a `Bcc` field, whatever went
//! in; what cannot be brought into that form is refused with an error that names the field.
//!
//! - [`addressed`]: mail for APIs that read the recipients from the header.
//! - [`compose`]: a [`Draft`] (fields, text, html, other forms of the text, attachments) becomes an RFC 5322 message.
//! - [`outgoing`]: a message that the user wrote is read ([`inspect_raw`]) and made ours ([`finish_raw`]).
//! - [`deliverability`]: the header fields that mailbox providers ask for.
//! - [`dkim`]: keys, and the signatures made with them. Making a key is the one thing here that uses chance.
//! - [`dissected`]: mail taken apart into the fields that providers' APIs ask for.
//! - [`downgrade`]: mail for a relay that lacks an extension.
//! - [`forwarded`]: mail that came in, sent on: resent as it is, or whole inside another.
//! - [`header`]: which header fields a user may set, and what they may say.
//! - [`html`]: what an html body may not contain, and the text that stands for it.
//! - [`pec`]: receipts and envelopes of certified mail, read, and their signatures judged.
//! - [`received`]: what a received mail is: a bounce, a complaint, an automatic answer, or ordinary mail.
//! - [`reader`]: the one reader of mail that strangers wrote: its parts, fields and contents, within hard limits.
//! - [`reading`]: a mail as a person sees it.
//! - [`template`]: subjects and bodies made of a template and variables.

pub mod addressed;
pub mod compose;
pub mod deliverability;
pub mod dissected;
pub mod dkim;
pub mod downgrade;
pub mod forwarded;
pub mod header;
pub mod html;
pub mod outgoing;
pub mod pec;
pub mod reader;
pub mod reading;
pub mod received;
pub mod reply;
pub mod template;

mod alternative;
mod attachment;
mod body;
mod field;
mod gist;
mod header_text;
mod lines;
mod raw_header;
mod raw_writer;
mod recode;

pub use alternative::{ALTERNATIVES_MAX, Alternative, AlternativeError, AlternativeKind};
pub use attachment::Attachment;
pub use compose::{ComposeError, Composed, Draft, compose};
pub use gist::gist;
pub use header::{HeaderError, check_header, check_subject, reserved_header};
pub use outgoing::{FinishedRaw, RawFinish, RawInfo, Trace, finish_raw, inspect_raw, own_fields};
pub use raw_header::{MARK_CHARS, MARK_FIELD, RawError, is_mark};
pub use raw_writer::RawChange;
