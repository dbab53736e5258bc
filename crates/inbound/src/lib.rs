//! Mail that comes in: mailboxes watched over IMAP, and what is done with their mail.
//!
//! Two loops on the store. The [`Monitor`], on one node at a time, reads mailboxes and registers their mail; the
//! [`Router`], on every node, deals with it: receipts of certified mail and reports about messages become part of their
//! histories, and [`rules`] say what is done with the rest.
//!
//! Promises, whatever crashes and whenever: no mail is missed and none is handled twice. A page of mail and the cursor behind it
//! are one write, fenced by the cursor; mail that was here before is known by its digest, also where the server gives all
//! UIDs anew; what is sent on goes through the one door under a key made of mailbox, digest and rule. Nobody is
//! suppressed for a report that anybody could have written.
//!
//! Fails one mailbox and one mail at a time: errors stand with them, for people to read, and the others go on.

mod correlate;
mod crash;
mod forward;
pub mod imap;
mod loop_guard;
mod mail;
mod mailbox_metrics;
mod monitor;
pub mod offline;
mod probe;
mod process;
pub mod rules;
mod source;
mod tenant_slots;

pub use imap as mailbox;

pub use postway_mime::pec::{TrustError, TrustStore};

pub use monitor::{Monitor, MonitorParts, Node};
pub use probe::{Step, probe};
pub use process::{Router, RouterParts};
pub use rules::{Trial, check_rule, try_rule};
pub use source::{ImapSource, OpenFolder, Source, SourceError};
