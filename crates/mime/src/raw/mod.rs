//! Ready-made mail: mail that somebody else composed, and that Postway sends.
//!
//! - `header` reads and writes its header field by field; everything else here uses that one reading.
//! - `submission` makes a submitted mail ours, and `writer` writes what it changes.
//! - [`forwarded`] sends received mail on, [`addressed`] prepares mail for APIs that read recipients from the
//!   header.
//! - [`downgrade`] prepares mail for a relay that lacks an extension; `recode` and `ascii_header` encode
//!   bodies and header fields for it.

pub mod addressed;
pub mod downgrade;
pub mod forwarded;

mod ascii_header;
mod header;
mod recode;
mod submission;
mod writer;

pub use header::{LOOP_MARK_CHARS, LOOP_MARK_FIELD, RawError, is_mark};
pub use submission::{FinishedRaw, RawFinish, RawInfo, SmtpTrace, control_fields, finish_raw, inspect_raw};
pub use writer::RawChange;
