//! Transports: how a composed mail leaves.
//!
//! A transport takes an envelope and a body and returns a [`DeliveryResult`]: the reply to each recipient,
//! and how the transaction ended. It asks the [`WireGate`] once, after the peer has everything but the final
//! dot (for an API, before the request body). It goes on only if the gate has made the wire commit durable,
//! so a crash can leave a message in doubt only if its wire commit is recorded.
//!
//! Transports know nothing about queues, leases or retries.

mod api_call;
mod crash;
mod delivery;
mod fitted_mail;
mod phase_span;
pub mod provider;
mod recipient_list;
pub mod sandbox;
pub mod ses;
pub mod smtp;

pub use api_call::CallTimeouts;
pub(crate) use crash::crash_point;
pub use delivery::{
    DeliveryEnd, DeliveryResult, GateRefused, MailEnvelope, RecipientReply, RelayReply, WireGate,
};
pub(crate) use phase_span::phase;
pub use provider::{ProviderClient, ProviderCredentials, ProviderSettings};
pub use sandbox::SandboxTransport;
pub use ses::{SesClient, SesCredentials, SesSettings};
pub(crate) use smtp::hide_addresses;
pub use smtp::{
    HandshakeMilestones, RelayCredentials, RelayDialer, RelayProtocol, SmtpConnection, SmtpDeadlines,
    SmtpSettings, TcpDialer,
};
