//! Ways out: how a composed mail leaves.
//!
//! A transport takes an envelope and a body and returns a [`Delivery`]: what became of each recipient, and
//! how the transaction ended. It asks the [`WireGate`] once, after everything but the final word is with the
//! peer; only when the gate has made that durable may the final word go out. So a crash can leave in doubt
//! only what the gate recorded.
//!
//! Transports know nothing of queues, leases or retries.

mod api_call;
mod crash;
mod delivery;
mod fitted_mail;
pub mod provider;
mod recipient_list;
pub mod sandbox;
pub mod ses;
pub mod smtp;

pub use api_call::CallTimeouts;
pub(crate) use crash::crash_point;
pub use delivery::{Delivery, DeliveryEnd, Envelope, GateRefused, RecipientReply, Reply, WireGate};
pub use provider::{ProviderClient, ProviderCredentials, ProviderSettings};
pub use sandbox::SandboxTransport;
pub use ses::{SesClient, SesCredentials, SesSettings};
pub use smtp::{Deadlines, Dial, HandshakeMilestones, SmtpConnection, SmtpCredentials, SmtpSettings, Tcp};
