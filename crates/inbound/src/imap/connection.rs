//! Where a mailbox is, how to sign in, how long to wait.

use std::{fmt, sync::Arc, time::Duration};

use postway_net::{Guard, Proxy};
use secrecy::SecretString;

/// Everything needed to reach a mailbox.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Host name or address literal.
    pub host: String,
    /// TCP port; 993 and 143 are the usual ones.
    pub port: u16,
    /// How the connection is protected.
    pub tls: TlsMode,
    /// Who to sign in as.
    pub login: Login,
    /// Certificates to trust besides the platform's, in PEM.
    pub extra_roots_pem: Option<String>,
    /// What to connect through; directly when absent.
    pub proxy: Option<Proxy>,
    /// Which addresses may be connected to.
    pub guard: Arc<Guard>,
}

/// How a connection is protected. A mailbox always has credentials, so that nothing here is opportunistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// TLS from the first octet.
    Implicit,
    /// TLS after STARTTLS, or not at all.
    Starttls,
    /// Plain text: the user's explicit choice.
    None,
}

/// Who to sign in as. Never printed.
#[derive(Clone)]
pub enum Login {
    /// By AUTHENTICATE PLAIN or LOGIN.
    Password {
        /// The user name, as the server wants it.
        username: String,
        /// Its password.
        password: SecretString,
    },
    /// By AUTHENTICATE XOAUTH2.
    OAuth2 {
        /// The user name, as the server wants it.
        username: String,
        /// A bearer token that has not expired.
        token: SecretString,
    },
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password(hidden)",
            Self::OAuth2 { .. } => "OAuth2(hidden)",
        })
    }
}

/// How long each step may take, as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Name lookup and TCP connection, through the proxy if there is one; then the same again for TLS.
    pub connect: Duration,
    /// One command with all its responses, or the greeting.
    pub reply: Duration,
    /// One mail on its way here.
    pub mail: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            reply: Duration::from_secs(60),
            mail: Duration::from_secs(5 * 60),
        }
    }
}

impl Deadlines {
    /// The same short limit for every step; for tests and probes.
    pub fn uniform(limit: Duration) -> Self {
        Self { connect: limit, reply: limit, mail: limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_printed() {
        let connection = Connection {
            host: "imap.example.org".into(),
            port: 993,
            tls: TlsMode::Implicit,
            login: Login::Password { username: "bob@example.org".into(), password: "hunter2".into() },
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
