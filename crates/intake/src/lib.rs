//! Intake: the subsystem that accepts mail.
//!
//! Everything that becomes a message passes [`Door`]: one JSON message, a batch of them, a finished mail, or
//! inbound mail that is forwarded. The request is parsed, its references are looked up, every field is
//! checked and every fault collected, the RFC 5322 bytes are composed, and the message goes to the store in
//! one call. Around the door stand the ways mail arrives: [`smtp`], [`outbox`] and the [`SpoolFolder`]. The
//! [`MessagePreparer`] completes messages whose files must be fetched first.
//!
//! Promises:
//! - a [`AcceptReceipt`] means that the message is durable; a [`Refusal`] means that nothing was stored,
//!   except a record of the refusal if the caller [asks for one](Door::record_refused);
//! - a refusal names the field at fault, so that the sender can correct it;
//! - after the checks, values are right by their types: no address, id or header leaves this crate unchecked;
//! - the size of the request bounds the memory, whatever its shape, and a message that makes the composer
//!   panic is refused like any other.
//!
//! Not here: who may send (the API decides), how the message is sent (dispatch), and SQL for the gateway's
//! own database (the store).

mod accept;
mod budget;
mod cache;
mod fetch;
mod hook;
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
    compose::{links::FileLinkTarget, unsubscribe::UnsubscribeLink},
    context::{AcceptReceipt, RequestContext, RequestTrace},
    door::{Door, DoorParts},
    forward::{ComposedForward, ForwardComposer, ForwardNames, ForwardRequest},
    preview::{PreviewTarget, TemplatePreview},
    raw::RawOptions,
    refused_mail::RefusedMail,
    route_trial::{RouteProbe, RouteTrial, TriedRoute, TriedTarget},
    virus_check::VirusVerdict,
};
pub use budget::{FairBudget, FairShare, run_heavy};
pub use fetch::{AttachmentFolder, FetchConfig};
pub use hook::{
    EVENTS_MAX, HOOK_BYTES_MAX, HookCall, HookDoor, HookRefusal, is_sendgrid_key, is_standard_secret,
};
pub use json::{JsonBounds, JsonReadError, read_object, read_object_except};
pub use limits::{IDEMPOTENCY_KEY_CHARS_MAX, IntakeLimits, VARIABLES};
pub use prepare::{FETCH_DELAY_MAX, MessagePreparer, MessagesInPreparation};
pub use refusal::{FieldFault, Refusal, RefusalCode, count_refused};
pub use spool::SpoolFolder;
