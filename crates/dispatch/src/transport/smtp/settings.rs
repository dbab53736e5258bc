//! The settings of a connection: where to connect, how to sign in, how long to wait.

use std::{fmt, sync::Arc, time::Duration};

pub use postway_domain::RelayTlsMode;
use postway_net::{AddressGuard, EgressPath};
use postway_oauth::TokenSource;
use secrecy::SecretString;

use super::dial::{RelayDialer, TcpDialer};

/// The protocol that a server speaks. They differ in the greeting and in what follows the final dot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RelayProtocol {
    /// SMTP (RFC 5321): one reply to the dot, for all recipients.
    #[default]
    Smtp,
    /// LMTP (RFC 2033): a reply for each accepted recipient.
    Lmtp,
}

impl RelayProtocol {
    /// The command that opens a session and asks for the extensions.
    pub(super) fn hello(self) -> &'static str {
        match self {
            Self::Smtp => "EHLO",
            Self::Lmtp => "LHLO",
        }
    }
}

/// Everything needed to open a connection to a relay.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// Host name or address literal.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// What the server speaks.
    pub protocol: RelayProtocol,
    /// How the connection is protected.
    pub tls: RelayTlsMode,
    /// The credentials; without them the client does not sign in.
    pub credentials: Option<RelayCredentials>,
    /// Send credentials even without TLS, or without a check of the relay's certificate.
    pub allow_plaintext_auth: bool,
    /// The name for EHLO: a domain name or an address literal.
    pub ehlo_name: String,
    /// How long each phase may take.
    pub deadlines: SmtpDeadlines,
    /// Certificates to trust besides the platform's, in PEM.
    pub extra_roots_pem: Option<String>,
    /// The addresses that may be connected to; the default allows public ones.
    pub guard: Arc<AddressGuard>,
    /// The path of the connection.
    pub egress: EgressPath,
    /// Opens the connection.
    pub dial: Arc<dyn RelayDialer>,
}

impl SmtpSettings {
    /// Settings for a relay without sign-in, named `localhost` in EHLO, with the default deadlines.
    pub fn new(host: impl Into<String>, port: u16, tls: RelayTlsMode) -> Self {
        Self {
            host: host.into(),
            port,
            protocol: RelayProtocol::default(),
            tls,
            credentials: None,
            allow_plaintext_auth: false,
            ehlo_name: "localhost".to_owned(),
            deadlines: SmtpDeadlines::default(),
            extra_roots_pem: None,
            guard: Arc::default(),
            egress: EgressPath::default(),
            dial: Arc::new(TcpDialer),
        }
    }
}

/// A user name with a password or a token source. Neither is ever printed.
#[derive(Clone)]
pub enum RelayCredentials {
    /// Signs in by AUTH PLAIN or LOGIN.
    Password {
        /// The user name, as the relay wants it.
        username: String,
        /// The password.
        password: SecretString,
    },
    /// Signs in by AUTH XOAUTH2 or OAUTHBEARER.
    Token {
        /// The user name, as the relay wants it.
        username: String,
        /// The source of its tokens.
        source: TokenSource,
    },
}

impl fmt::Debug for RelayCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayCredentials(hidden)")
    }
}

/// How long each phase may take in total, so that a peer that sends a byte a second gains nothing. RFC 5321
/// 4.5.3.2 asks for several minutes; a relay that needs more than one for a greeting or a command is better
/// tried again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmtpDeadlines {
    /// Name lookup and TCP connection.
    pub connect: Duration,
    /// TLS handshake.
    pub tls: Duration,
    /// The greeting.
    pub greeting: Duration,
    /// One command's reply.
    pub command: Duration,
    /// All replies from MAIL to the last RCPT together.
    pub envelope: Duration,
    /// The reply to DATA.
    pub data: Duration,
    /// One block of the body.
    pub body_block: Duration,
    /// The complete body.
    pub body: Duration,
    /// The final dot and its reply. Long, because giving up here means doubt.
    pub dot: Duration,
}

impl Default for SmtpDeadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            tls: Duration::from_secs(30),
            greeting: Duration::from_secs(60),
            command: Duration::from_secs(60),
            envelope: Duration::from_secs(5 * 60),
            data: Duration::from_secs(2 * 60),
            body_block: Duration::from_secs(3 * 60),
            body: Duration::from_secs(10 * 60),
            dot: Duration::from_secs(10 * 60),
        }
    }
}

impl SmtpDeadlines {
    /// The same short limit for every phase; for tests and probes.
    pub fn uniform(limit: Duration) -> Self {
        Self {
            connect: limit,
            tls: limit,
            greeting: limit,
            command: limit,
            envelope: limit,
            data: limit,
            body_block: limit,
            body: limit,
            dot: limit,
        }
    }

    /// The longest time that one transaction can take on an open connection, without the gate's own time. A
    /// lease must last longer.
    pub fn transaction_max(&self) -> Duration {
        self.envelope + self.data + self.body + self.dot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_printed() {
        let mut settings = SmtpSettings::new("relay.example.org", 587, RelayTlsMode::Starttls);
        settings.credentials = Some(RelayCredentials::Password {
            username: "bob@example.org".into(),
            password: "hunter2".into(),
        });
        let printed = format!("{settings:?}");
        assert!(!printed.contains("bob") && !printed.contains("hunter2"), "{printed}");
    }
}
