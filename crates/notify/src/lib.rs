//! Telling: applications learn what became of their mail.
//!
//! A loop on the store like every room. What happened is made into notifications, one for each event and subscriber
//! ([`Sequencer`](sequencer)); each is called until its subscriber has it, in order for each message, and no subscriber
//! waits for another.
//!
//! Promises: nothing is acknowledged but by the subscriber's own word; every call of a notification carries the same id;
//! no credential reaches the delivery log or a log line. A subscriber that is away is probed now and then, and when it is
//! back all that waited for it is told; what waited for a week is dead and left for people to send again. No tenant has more
//! than its share of calls, so none waits for another's receivers.

mod crash;
mod deliver;
mod notification;
mod runner;
mod scheduler;
mod sequencer;
mod signature;

pub use deliver::{Tested, call_test};
pub use runner::{Notifier, NotifierParts};
pub use sequencer::Node;
pub use signature::{UnreadableSecret, WebhookSecret, signatures};
