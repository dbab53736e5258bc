//! SMTP submission: mail from programs that speak SMTP.
//!
//! A [`SmtpListener`] accepts connections in plain text (with STARTTLS if there is a certificate) and under
//! TLS. Each session is one task: [`conversation`] decides, without any I/O, what each line means and how it
//! is answered; `session` moves the bytes and watches the deadlines; `accept` hands a complete mail to the
//! [`Door`](crate::Door).
//!
//! Promises:
//! - 250 after the final dot means that the mail is durable, and names the message; any other reply means
//!   that nothing was stored;
//! - commands, and the dot that ends a mail, end with CR LF only: a client that ends them otherwise gets a
//!   reply and is disconnected, so that no two readers of the stream can disagree about where a mail ends; a
//!   bare LF inside a mail becomes CR LF, and a bare CR is refused;
//! - everything said before TLS began is forgotten, and a password is accepted only under TLS, on this
//!   machine, or in a network that was configured for it;
//! - the client behind a proxy is known only through the header of a configured proxy, or through XCLIENT from a
//!   configured server;
//! - the key is checked again for every mail, as for a request over HTTP;
//! - lines, mails, recipients, errors, sessions, memory and waits are bounded.
//!
//! While there is no store, clients are asked to come back later (421). Not here: whether a key is valid (the
//! binary implements [`SmtpAuthenticator`]), and what is wrong with a mail (the door says).

mod accept;
mod authenticator;
mod body;
mod client_rules;
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
mod reception;
mod reply;
mod scram;
mod session;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc, time::Duration};

pub use authenticator::{
    AdmittedSender, CertificateName, KeylessClient, KnownCertificate, OpenNetwork, SmtpAuthenticator,
    SmtpDenial,
};
pub use command::{RecipientPath, SmtpCommand, SmtpCommandError, parse as parse_command};
pub use listener::{SmtpBindError, SmtpListener};
pub use offline::{OfflineRules, OfflineSession};
pub use reception::{ReceptionClient, ReceptionDesk, ReceptionMail};
pub use reply::SubmissionReply;
pub use scram::{ProvenKey, ScramCandidate, ScramOffer};

use postway_domain::key::IpNetwork;
use postway_net::listen::{ClientAuthorities, ServerCertificate};

use crate::Door;

/// The configuration of a listener.
#[derive(Clone, Debug)]
pub struct SmtpConfig {
    /// The name of this server, in the greeting and in trace fields.
    pub name: String,
    /// The address to listen on in plain text, with STARTTLS if there is a certificate.
    pub listen: Option<SocketAddr>,
    /// The address to listen on under TLS.
    pub tls_listen: Option<SocketAddr>,
    /// The certificate, whose files somebody else watches.
    pub certificate: Option<Arc<ServerCertificate>>,
    /// Whether the certificate is self-signed. STARTTLS is then offered only to clients that need it: many
    /// programs use TLS whenever it is offered, and give up if they cannot trust the certificate.
    pub certificate_is_own: bool,
    /// The most connections at once.
    pub connections_max: usize,
    /// The most connections of one client: an IPv4 address, or an IPv6 /64.
    pub connections_per_client_max: usize,
    /// The most recipients of one mail; the door's own limit applies as well.
    pub recipients_max: usize,
    /// The most bytes of unfinished mail, of all sessions together.
    pub in_flight_bytes_max: usize,
    /// Networks from which a key may be shown without TLS, besides this machine.
    pub plaintext_networks: Vec<IpNetwork>,
    /// Networks from which mail is accepted without a key; the first that matches applies.
    pub open_networks: Vec<OpenNetwork>,
    /// Networks of proxies, which must send a PROXY header.
    pub proxy_networks: Vec<IpNetwork>,
    /// How long a client of the reception waits for the greeting; one that speaks earlier is cut off.
    pub greeting_delay: Duration,
    /// Networks of servers that may name their client by XCLIENT.
    pub xclient_networks: Vec<IpNetwork>,
    /// Certificates of clients that need no key.
    pub client_certificates: Vec<KnownCertificate>,
    /// The authorities whose certificates are known by name.
    pub client_authorities: Option<ClientAuthorities>,
    /// The timeouts of a session.
    pub timeouts: SmtpTimeouts,
}

impl SmtpConfig {
    /// A configuration without addresses, with the limits of the documentation.
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
            greeting_delay: Duration::ZERO,
            xclient_networks: Vec::new(),
            client_certificates: Vec::new(),
            client_authorities: None,
            timeouts: SmtpTimeouts::default(),
        }
    }
}

/// The timeouts of a session.
#[derive(Clone, Debug)]
pub struct SmtpTimeouts {
    /// The header of a proxy.
    pub proxy: Duration,
    /// The TLS handshake.
    pub handshake: Duration,
    /// From the connection to a valid key.
    pub login: Duration,
    /// Between commands, and between pieces of a mail.
    pub idle: Duration,
    /// A complete mail.
    pub mail: Duration,
    /// The delay after a wrong key.
    pub wrong_key: Duration,
    /// Running sessions when the listener stops.
    pub drain: Duration,
}

impl Default for SmtpTimeouts {
    fn default() -> Self {
        Self {
            proxy: Duration::from_secs(10),
            handshake: Duration::from_secs(30),
            login: Duration::from_secs(120),
            idle: Duration::from_secs(300),
            mail: Duration::from_secs(600),
            wrong_key: Duration::from_secs(1),
            drain: Duration::from_secs(10),
        }
    }
}

/// What the sessions of a listener are for.
#[derive(Clone)]
pub enum SmtpPurpose {
    /// Submission by clients with a key.
    Submission(SmtpService),
    /// Reception of mail from other servers.
    Reception(Arc<dyn ReceptionDesk>),
}

impl From<SmtpService> for SmtpPurpose {
    fn from(service: SmtpService) -> Self {
        Self::Submission(service)
    }
}

impl From<Arc<dyn ReceptionDesk>> for SmtpPurpose {
    fn from(desk: Arc<dyn ReceptionDesk>) -> Self {
        Self::Reception(desk)
    }
}

/// What sessions of submission need once there is a store.
#[derive(Clone)]
pub struct SmtpService {
    /// Accepts mail.
    pub door: Arc<Door>,
    /// Decides who may send.
    pub gatekeeper: Arc<dyn SmtpAuthenticator>,
}
