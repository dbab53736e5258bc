//! Inbound mail: mailboxes watched over IMAP, and the processing of their mail.
//!
//! Two loops on the store, and the [`Reception`], which takes mail from other servers. The [`Monitor`], on one node at a time, reads mailboxes and registers their mail.
//! The [`MailProcessor`], on every node, processes it: receipts of certified mail and reports about messages
//! are added to the messages' histories, and [`rules`] decide on all other mail.
//!
//! Promises, after any crash: no mail is missed, and none is handled twice. A page of mail and the new cursor
//! are one write, fenced by the old cursor. Mail that was registered before is recognised by its digest, even
//! if the server assigns new UIDs. Forwarded mail goes through the intake under an idempotency key of
//! mailbox, digest and rule. An address is never suppressed because of a report that anybody could have
//! forged.
//!
//! Failures concern one mailbox or one mail: the error is stored with it, for people to read, and all others
//! go on.

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
mod provider_event;
mod reception;
pub mod rules;
mod source;
mod tenant_slots;

pub use postway_mime::pec::{TrustError, TrustStore};

pub use monitor::{Monitor, MonitorNode, MonitorParts};
pub use probe::{MailboxProbeStep, probe};
pub use process::{MailProcessor, MailProcessorParts};
pub use provider_event::{ProviderEventProcessor, ProviderEventProcessorParts};
pub use reception::{Reception, ReceptionParts, SenderCheck, SenderVerdict, SystemSenderCheck};
pub use rules::{RuleTrialResult, check_rule, try_rule};
pub use source::{FolderSource, ImapSource, OpenFolder, SourceError};
