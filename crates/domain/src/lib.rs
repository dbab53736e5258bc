//! The words of Postway as types: what a message is, and what can happen to it.
//!
//! Pure: no I/O, no async, no clock and no source of randomness. Time and randomness are arguments, so that a
//! simulation can drive everything in here. Every other crate speaks in these types. `README.md` beside this
//! crate lists the folders.

pub mod account;
pub mod address;
pub mod compat;
pub mod failure;
pub mod identity;
pub mod inbound;
pub mod limit;
pub mod liveness;
pub mod message;
pub mod subscriber;
pub mod tenant;
pub mod time;

// The short paths that other crates use.
pub use account::{dkim_key, egress, oauth, provider as provider_account};
pub use address::{dns, pattern as address_pattern, suppression};
pub use compat as reference;
pub use identity::{attachment_link, client, id, key, scram, sealed_copy, secret, user};
pub use inbound::{domain_report, provider_hook as hook, rule, watched_mailbox as mailbox};
pub use limit::{destination, destination_room, fairness};
pub use message::{dsn, event, lane, retry, verp};
pub use subscriber::webhook_form;
pub use tenant::{contact, known_recipient, locale, quota, route, stream, template};
pub use time::spoken_time;

pub use account::{Account, AccountKind, AccountSettings, RelayTlsMode, SesAccount};
pub use address::{EmailAddress, NamedAddress};
pub use contact::Contact;
pub use destination_room::DestinationRoom;
pub use dkim_key::{DkimAlgorithm, DkimKey};
pub use event::{EventKind, MessageEvent};
pub use failure::SendFailure;
pub use hook::{HookProvider, ProviderEventState, ProviderHook};
pub use id::{AccountId, ClientId, Incarnation, LeaseToken, MessageUid, RecipientId, TemplateName, TenantId};
pub use inbound::InboundState;
pub use key::{ApiKey, KeyDigest, KeyScope};
pub use known_recipient::{KnownRecipient, PersonalDigest, RecipientKey};
pub use lane::{Lane, LaneId, LaneRange};
pub use limit::{AccountLimits, LimitSpan};
pub use liveness::NodeLiveness;
pub use locale::MailLocale;
pub use mailbox::WatchedMailbox;
pub use message::{
    DestinationGroup, MessagePriority, MessageState, MessageStatus, RecipientKind, RecipientStatus,
};
pub use route::MailRoute;
pub use rule::InboundRule;
pub use stream::MailStream;
pub use subscriber::{Subscriber, SubscriberKind};
pub use template::Template;
pub use tenant::{Tenant, TenantSettings};
pub use time::{Clock, Time};
pub use user::{User, UserName, UserRole, UserTenants};
pub use webhook_form::WebhookForm;
