//! Bytes to bytes: making mail out of drafts, and making ready-made mail fit to send.
//!
//! Pure: no I/O, no clock and no randomness of its own, so the same input always gives the same bytes. What
//! comes out has CRLF line endings only, no NUL, no line over 998 octets and never a `Bcc` field, whatever went
//! in; what cannot be brought into that form is refused with an error that names the field.
//!
//! - [`addressed`]: mail for APIs that read the recipients from the header.
//! - [`compose`]: a [`Draft`] (fields, text, html, other forms of the text, attachments) becomes an RFC 5322 message.
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

pub mod compose;
pub mod dkim;
pub mod header;
pub mod html;
pub mod pec;
pub mod reader;
pub mod reading;
pub mod received;
pub mod template;

mod raw;
mod wire;

pub use compose::{
    ALTERNATIVES_MAX, Alternative, AlternativeError, AlternativeKind, Attachment, ComposeError, Composed,
    Draft, compose, deliverability,
};
pub use header::{HeaderError, check_header, check_subject, reserved_header};
pub use raw::{
    FinishedRaw, MARK_CHARS, MARK_FIELD, RawChange, RawError, RawFinish, RawInfo, Trace, addressed,
    downgrade, finish_raw, forwarded, inspect_raw, is_mark, own_fields,
};
pub use reading::{dissected, gist, reply};
