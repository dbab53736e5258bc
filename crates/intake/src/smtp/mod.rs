//! SMTP submission: mail from programs that speak SMTP, through the one door.
//!
//! A [`Listener`] takes connections, plain (with STARTTLS where there is a certificate) and under TLS from the first
//! byte. A session is one task: [`conversation`] decides, without any I/O, what each line means and what is answered;
//! `session` moves the bytes and keeps the deadlines; `accept` hands a whole mail to the [`Door`](crate::Door).
//!
//! Promises:
//! - 250 after the final dot means durable, and names the message; any other answer means that nothing was kept;
//! - commands, and the dot that ends a mail, end with CR LF and with nothing else: whoever ends them otherwise is told so
//!   and cut off, so that no two readers of the stream can differ about where a mail ends; a bare LF inside a mail is
//!   written as CR LF, a bare CR is refused;
//! - what was said before TLS began is forgotten, and a password is asked for only under TLS, on this machine, or in a
//!   network that was named for it;
//! - who is behind a proxy is known by what a proxy says that was named, and by nobody else's word;
//! - every mail is let in by its key as it stands then, as a request over HTTP would be;
//! - lines, mails, recipients, errors, sessions, memory and waits are bounded.
//!
//! While there is no store, whoever calls is told to come again (421). Not here: whose keys open ([`Gatekeeper`] asks
//! the binary), and what is wrong with a mail (the door says).

mod accept;
mod authenticator;
mod body;
mod certificate;
mod command;
mod connection_limit;
mod conversation;
mod data;
mod line;
mod listener;
mod login;
mod memory_budget;
mod offline;
mod options;
pub mod proxy;
mod reply;
mod scram;
mod session;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

pub use authenticator::{AdmittedSender, Denied, Gatekeeper, OpenNetwork};
pub use certificate::{CertificateError, CertificateFiles};
pub use command::{Command, Fault, RecipientPath, parse as parse_command};
pub use listener::{BindError, Listener};
pub use offline::{OfflineRules, OfflineSession};
pub use reply::Reply;
pub use scram::{ProvenKey, ScramCandidate, ScramOffer};

use postway_domain::key::Network;

use crate::Door;

/// How a listener is set up.
#[derive(Clone, Debug)]
pub struct SmtpConfig {
    /// Our name, in the greeting and in trace fields.
    pub name: String,
    /// Where to listen in plain text, with STARTTLS where there is a certificate.
    pub listen: Option<SocketAddr>,
    /// Where to listen under TLS.
    pub tls_listen: Option<SocketAddr>,
    /// The certificate and its key.
    pub certificate: Option<CertificateFiles>,
    /// Whether nobody vouches for the certificate. STARTTLS with it is then offered only to those who need it: many programs
    /// go on under TLS wherever it is offered, and give up where they cannot trust it.
    pub certificate_is_own: bool,
    /// Connections at once.
    pub connections_max: usize,
    /// Of them, those of one client: an IPv4 address, or a /64 of IPv6.
    pub connections_per_client_max: usize,
    /// Recipients of one mail; the door's own limit holds as well.
    pub recipients_max: usize,
    /// Bytes of unfinished mail, of all sessions together.
    pub in_flight_bytes_max: usize,
    /// Networks from which a key may be shown without TLS, besides this machine.
    pub plaintext_networks: Vec<Network>,
    /// Networks from which mail is taken without a key; the first that matches decides.
    pub open_networks: Vec<OpenNetwork>,
    /// Proxies, which must say who is behind them.
    pub proxy_networks: Vec<Network>,
    /// How long what may take.
    pub patience: Patience,
}

impl SmtpConfig {
    /// One that listens nowhere yet, with the bounds of the documentation.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            listen: None,
            tls_listen: None,
            certificate: None,
            certificate_is_own: false,
            connections_max: 1_000,
            connections_per_client_max: 100,
            recipients_max: 1_000,
            in_flight_bytes_max: 128 * 1024 * 1024,
            plaintext_networks: Vec::new(),
            open_networks: Vec::new(),
            proxy_networks: Vec::new(),
            patience: Patience::default(),
        }
    }
}

/// How long what may take.
#[derive(Clone, Debug)]
pub struct Patience {
    /// The header of a proxy.
    pub proxy: Duration,
    /// The TLS handshake.
    pub handshake: Duration,
    /// From the connection to a key that opens.
    pub login: Duration,
    /// Between commands, and between pieces of a mail.
    pub idle: Duration,
    /// A whole mail.
    pub mail: Duration,
    /// What follows a key that does not open.
    pub wrong_key: Duration,
    /// What is under way when the listener stops.
    pub drain: Duration,
    /// How often is looked whether the certificate has changed.
    pub certificate: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            proxy: Duration::from_secs(10),
            handshake: Duration::from_secs(30),
            login: Duration::from_secs(120),
            idle: Duration::from_secs(300),
            mail: Duration::from_secs(600),
            wrong_key: Duration::from_secs(1),
            drain: Duration::from_secs(10),
            certificate: Duration::from_secs(2),
        }
    }
}

/// What mail goes to, once there is a store.
#[derive(Clone)]
pub struct Service {
    /// The one way in.
    pub door: Arc<Door>,
    /// Who may use it.
    pub gatekeeper: Arc<dyn Gatekeeper>,
}

impl CertificateFiles {
    /// Both files.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into() }
    }
}
