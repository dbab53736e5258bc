//! What a message is and what may become of it.
//!
//! Pure: no I/O, no async, no clock and no randomness of its own. Time and chance are arguments, so that a
//! simulation can drive everything in here. Every other crate speaks in these types.

pub mod account;
pub mod address;
pub mod address_pattern;
pub mod client;
pub mod contact;
pub mod destination;
pub mod dkim_key;
pub mod dns;
pub mod dsn;
pub mod event;
pub mod failure;
pub mod fairness;
pub mod id;
pub mod inbound;
pub mod key;
pub mod known_recipient;
pub mod lane;
pub mod limit;
pub mod liveness;
pub mod mailbox;
pub mod message;
pub mod oauth;
pub mod provider_account;
pub mod reference;
pub mod retry;
pub mod rule;
pub mod scram;
pub mod secret;
pub mod spoken_time;
pub mod stream;
pub mod subscriber;
pub mod suppression;
pub mod template;
pub mod tenant;
pub mod time;
pub mod verp;
pub mod webhook_form;

pub use account::{Account, AccountKind, AccountSettings, SesAccount, TlsMode};
pub use address::{EmailAddress, Mailbox};
pub use contact::Contact;
pub use dkim_key::{DkimAlgorithm, DkimKey};
pub use event::{Event, EventKind};
pub use failure::Failure;
pub use id::{AccountId, ClientId, Incarnation, LeaseToken, MessageUid, RecipientId, TemplateName, TenantId};
pub use inbound::InboundState;
pub use key::{ApiKey, KeyDigest, Scope};
pub use known_recipient::{KnownRecipient, PersonalDigest, RecipientKey};
pub use lane::{Lane, LaneId, LaneRange};
pub use limit::{AccountLimits, Span};
pub use liveness::Liveness;
pub use mailbox::WatchedMailbox;
pub use message::{Priority, RecipientKind, RecipientStatus, State, Status};
pub use rule::Rule;
pub use stream::MailStream;
pub use subscriber::{Subscriber, SubscriberKind};
pub use template::Template;
pub use tenant::{Tenant, TenantSettings};
pub use time::{Clock, Time};
pub use webhook_form::WebhookForm;
