//! Turns bytes into bytes: composes mail from drafts, prepares ready-made mail for sending, and reads mail
//! that others wrote.
//!
//! The crate is pure: it does no I/O and uses neither a clock nor randomness, so the same input always gives
//! the same bytes. Mail that it writes has CRLF line endings only, no NUL, no line over 998 octets and never
//! a `Bcc` field. Input that cannot be brought into that form is refused with an error that names the field.
//!
//! - [`addressed`]: prepares mail for APIs that read the recipients from the header.
//! - [`compose`]: makes an RFC 5322 message of a [`MailDraft`]: fields, text, html, alternatives,
//!   attachments.
//! - [`deliverability`]: makes the header fields that mailbox providers ask for.
//! - [`dkim`]: makes keys and signatures. Making a key is the one function here that uses randomness.
//! - [`dissected`]: takes mail apart into the fields that providers' APIs ask for.
//! - [`domain_report`]: reads DMARC aggregate reports and TLS reports.
//! - [`downgrade`]: prepares mail for a relay that lacks an extension.
//! - [`forwarded`]: sends received mail on, unchanged behind `Resent-` fields or inside a new mail.
//! - [`header`]: checks which header fields a user may set, and their values.
//! - [`html`]: checks html bodies for scripts, and makes plain text of them.
//! - [`pec`]: reads receipts and envelopes of certified mail, and verifies their signatures.
//! - [`received`]: tells bounces, complaints, automatic answers and ordinary mail apart.
//! - [`reader`]: reads mail that strangers wrote, within hard limits: its parts, fields and contents.
//! - [`reading`]: shows a mail as a person sees it.
//! - [`template`]: renders subjects and bodies from a template and variables.

pub mod compose;
pub mod dkim;
pub mod domain_report;
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
    ALTERNATIVES_MAX, AlternativeError, AlternativeKind, BodyAlternative, ComposeError, ComposedMail,
    MailAttachment, MailDraft, compose, deliverability,
};
pub use header::{HeaderError, check_header, check_subject, reserved_header};
pub use raw::{
    FinishedRaw, LOOP_MARK_CHARS, LOOP_MARK_FIELD, RawChange, RawError, RawFinish, RawInfo, SmtpTrace,
    addressed, control_fields, downgrade, finish_raw, forwarded, inspect_raw, is_mark,
};
pub use reading::{dissected, gist, reply};
