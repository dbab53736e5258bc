//! Notifications: applications learn the outcomes of their mail.
//!
//! The subsystem is a loop on the store. The [`FeedSequencer`](sequencer) turns events into notifications,
//! one for each event and subscriber. Each notification is called until its subscriber acknowledges it, in
//! order for each message; no subscriber waits for another.
//!
//! Promises: only the subscriber's own answer acknowledges a notification; every call of a notification
//! carries the same id; no credential reaches the delivery log or a log line. A subscriber that is away is
//! probed now and then, and when it is back everything that waited for it is delivered. A notification that
//! has waited for a week is dead, and an operator may send it again. No tenant has more than its share of
//! calls, so that no tenant waits for another's receivers.

mod crash;
mod deliver;
mod notification;
mod runner;
mod scheduler;
mod sequencer;
mod signature;

pub use deliver::{
    RECEIVED_FILE_BYTES_MAX, RECEIVED_HEADER_BYTES_MAX, RECEIVED_TEXT_BYTES_MAX, ReceivedFile, ReceivedMail,
    ReceivedMailReader, ReceivedPerson, WebhookTestResult, call_test,
};
pub use runner::{Notifier, NotifierParts};
pub use sequencer::NotifierNode;
pub use signature::{UnreadableSecret, WebhookSecret, signatures};
