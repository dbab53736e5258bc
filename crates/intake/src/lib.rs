//! The one door: check, compose, store.
//!
//! Everything that becomes a message comes through [`Door`]: one JSON message, a batch of them, a ready-made
//! mail, or a mail that came in and is sent on.
//! In order: the request is parsed, every field is checked and every fault collected, the RFC 5322 bytes are made, and
//! all of it is handed to the store in one call.
//!
//! Promises:
//! - what is answered with a [`Receipt`] is durable; what is answered with a [`Refusal`] has left nothing behind, but a
//!   record of the refusal where a door [asks for one](Door::keep_refused);
//! - a refusal names the field, so that its sender can mend it;
//! - inside, values are right by their types: no address, id or header goes past this crate unchecked;
//! - memory is bounded by the size of the request, whatever its shape, and a message that makes the composer panic is
//!   refused like any other.
//!
//! Not here: who may send (the API's), what becomes of the message (dispatch's), and any SQL.

mod accept;
mod budget;
mod cache;
mod fetch;
mod json;
mod limits;
pub mod outbox;
mod prepare;
mod refusal;
pub mod signing;
pub mod smtp;
mod spool;

pub use accept::{
    batch::{BatchReceipt, RejectedItem},
    compose::{links::Followed, unsubscribe::UnsubscribeLink},
    context::{Receipt, RequestContext},
    door::{Door, DoorParts},
    forward::{ForwardRequest, Given, MadeForward, Make},
    preview::{Preview, PreviewOf},
    raw::RawOptions,
    refused_mail::RefusedMail,
};
pub use budget::{FairBudget, FairShare, weighed};
pub use fetch::{AttachmentFolder, FetchConfig};
pub use json::{JsonBounds, JsonFault, read_object, read_object_beside};
pub use limits::{IDEMPOTENCY_KEY_CHARS_MAX, Limits, VARIABLES};
pub use prepare::{FETCH_DELAY_MAX, Preparer, Preparing};
pub use refusal::{Code, FieldError, Refusal, count_refused};
pub use smtp::proxy;
pub use spool::Spool;
