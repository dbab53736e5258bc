//! The connection to a mailbox: address, TLS, login and deadlines.

use std::{fmt, sync::Arc, time::Duration};

use postway_net::{AddressGuard, OutboundProxy};
use secrecy::SecretString;

/// Everything needed to reach a mailbox.
#[derive(Debug, Clone)]
pub struct ImapConnection {
    /// Host name or address literal.
    pub host: String,
    /// TCP port; 993 and 143 are the usual ones.
    pub port: u16,
    /// How the connection is protected.
    pub tls: ImapTlsMode,
    /// The credentials.
    pub login: ImapLogin,
    /// Certificates to trust besides the platform's, in PEM.
    pub extra_roots_pem: Option<String>,
    /// The proxy to connect through; a direct connection if absent.
    pub proxy: Option<OutboundProxy>,
    /// Decides which addresses may be connected to.
    pub guard: Arc<AddressGuard>,
}

/// How a connection is protected. A mailbox always has credentials, so no mode is opportunistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImapTlsMode {
    /// TLS from the first octet.
    Implicit,
    /// TLS by STARTTLS, which is required.
    Starttls,
    /// Plain text: the user's explicit choice.
    None,
}

/// The credentials of a mailbox. Never printed.
#[derive(Clone)]
pub enum ImapLogin {
    /// A password, for AUTHENTICATE PLAIN or LOGIN.
    Password {
        /// The user name, as the server expects it.
        username: String,
        /// The password.
        password: SecretString,
    },
    /// A token, for AUTHENTICATE XOAUTH2.
    OAuth2 {
        /// The user name, as the server expects it.
        username: String,
        /// A bearer token that has not expired.
        token: SecretString,
    },
}

impl fmt::Debug for ImapLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password(hidden)",
            Self::OAuth2 { .. } => "OAuth2(hidden)",
        })
    }
}

/// How long each step may take in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImapDeadlines {
    /// Name lookup and TCP connection, through the proxy if there is one; then the same time again for TLS.
    pub connect: Duration,
    /// One command with all its responses, or the greeting.
    pub reply: Duration,
    /// The transfer of one mail.
    pub mail: Duration,
}

impl Default for ImapDeadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            reply: Duration::from_secs(60),
            mail: Duration::from_secs(5 * 60),
        }
    }
}

impl ImapDeadlines {
    /// The same limit for every step, for tests and probes.
    pub fn uniform(limit: Duration) -> Self {
        Self { connect: limit, reply: limit, mail: limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_printed() {
        let connection = ImapConnection {
            host: "imap.example.org".into(),
            port: 993,
            tls: ImapTlsMode::Implicit,
            login: ImapLogin::Password { username: "bob@example.org".into(), password: "hunter2".into() },
            extra_roots_pem: None,
            proxy: Some("socks5://eve:sesame@proxy.example.org".parse().unwrap()),
            guard: Arc::default(),
        };
        let printed = format!("{connection:?}");
        assert!(
            ["bob", "hunter2", "eve", "sesame"].iter().all(|secret| !printed.contains(secret)),
            "{printed}"
        );
    }
}
