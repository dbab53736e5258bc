//! What a message is and what may become of it.
//!
//! Pure: no I/O, no async, no clock and no randomness of its own. Time and chance are arguments, so that a
//! simulation can drive everything in here. Every other crate speaks in these types.

pub mod account;
pub mod address;
pub mod destination;
pub mod event;
pub mod failure;
pub mod fairness;
pub mod id;
pub mod key;
pub mod lane;
pub mod limit;
pub mod liveness;
pub mod message;
pub mod retry;
pub mod secret;
pub mod tenant;
pub mod time;

pub use account::{Account, AccountKind, AccountSettings, SesAccount, TlsMode};
pub use address::{EmailAddress, Mailbox};
pub use event::{Event, EventKind};
pub use failure::Failure;
pub use id::{AccountId, ClientId, Incarnation, LeaseToken, MessageUid, TenantId};
pub use key::{ApiKey, KeyDigest, Scope};
pub use lane::{Lane, LaneId};
pub use limit::{AccountLimits, Span};
pub use liveness::Liveness;
pub use message::{Priority, RecipientKind, RecipientStatus, State, Status};
pub use tenant::{Tenant, TenantSettings};
pub use time::{Clock, Time};
