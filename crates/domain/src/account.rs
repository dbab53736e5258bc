//! Accounts: how a tenant's mail leaves.

use serde::{Deserialize, Serialize};

use crate::{
    id::{AccountId, TenantId},
    retry::{RetryPolicy, RetryPolicyError},
    secret::Sealed,
    time::Time,
};

/// Which transport an account uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// A relay spoken to over SMTP.
    Smtp,
    /// Captures mail instead of sending it.
    Sandbox,
}

impl AccountKind {
    /// The word users see.
    pub fn as_str(self) -> &'static str {
        match self {
            AccountKind::Smtp => "smtp",
            AccountKind::Sandbox => "sandbox",
        }
    }
}

/// How a connection to a relay is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsMode {
    /// STARTTLS or nothing.
    #[default]
    Starttls,
    /// TLS from the first byte.
    Implicit,
    /// Plain text.
    None,
    /// STARTTLS when offered. Who answers is checked only where a password is at stake.
    Opportunistic,
}

/// An account's settings, all but its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountSettings {
    /// The transport.
    pub kind: AccountKind,
    /// The relay's host name or address.
    pub host: Option<String>,
    /// The relay's port.
    pub port: Option<u16>,
    /// How the connection is protected.
    pub tls: TlsMode,
    /// Who signs in, if anyone.
    pub username: Option<String>,
    /// Whether the password may cross an unprotected connection.
    #[serde(default)]
    pub allow_plaintext_auth: bool,
    /// More roots to trust for this relay, in PEM form.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// The most connections at once, per node.
    pub max_connections: u32,
    /// The envelope sender, when it is not the mail's From.
    pub return_path: Option<String>,
    /// When to try again.
    pub retry: RetryPolicy,
}

impl AccountSettings {
    /// The most connections an account may have.
    pub const CONNECTIONS_MAX: u32 = 500;
    /// The connections an account has when nothing is said.
    pub const CONNECTIONS_DEFAULT: u32 = 10;

    /// The sandbox: nothing to configure.
    pub fn sandbox() -> Self {
        Self {
            kind: AccountKind::Sandbox,
            host: None,
            port: None,
            tls: TlsMode::None,
            username: None,
            allow_plaintext_auth: false,
            ca_pem: None,
            max_connections: Self::CONNECTIONS_DEFAULT,
            return_path: None,
            retry: RetryPolicy::api(),
        }
    }

    /// What is wrong with these settings: field and message, one entry each.
    pub fn check(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        if self.kind == AccountKind::Smtp {
            match self.host.as_deref() {
                None | Some("") => {
                    wrong.push(("host", "an smtp account needs the host of its relay".to_owned()))
                }
                Some(host) if host.len() > 253 || host.bytes().any(|b| b <= b' ' || b == 127) => {
                    wrong.push(("host", "must be a host name or an IP address".to_owned()));
                }
                Some(_) => {}
            }
            if self.port == Some(0) {
                wrong.push(("port", "must be between 1 and 65535".to_owned()));
            }
        }
        if let Some(username) = &self.username
            && (username.is_empty() || username.len() > 320 || username.chars().any(char::is_control))
        {
            wrong.push(("username", "must be 1 to 320 characters without control characters".to_owned()));
        }
        if !(1..=Self::CONNECTIONS_MAX).contains(&self.max_connections) {
            wrong.push(("max_connections", format!("must be between 1 and {}", Self::CONNECTIONS_MAX)));
        }
        if let Some(path) = &self.return_path
            && path.parse::<crate::EmailAddress>().is_err()
        {
            wrong.push(("return_path", "must be an email address".to_owned()));
        }
        if let Err(error) = self.retry.check() {
            let field = match error {
                RetryPolicyError::Jitter => "retry.jitter",
                RetryPolicyError::TooMany | RetryPolicyError::Delay => "retry.delays_s",
            };
            wrong.push((field, error.to_string()));
        }
        wrong
    }
}

/// An account as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its name in that tenant.
    pub id: AccountId,
    /// How it sends.
    pub settings: AccountSettings,
    /// Its password, encrypted.
    pub secret: Option<Sealed>,
    /// Rises with each change, so that holders of a copy notice.
    pub version: i64,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed last.
    pub updated_at: Time,
}

impl Account {
    /// The place for which this account's secret is sealed.
    pub fn secret_place(tenant: &TenantId, id: &AccountId) -> String {
        format!("account/{tenant}/{id}")
    }
}
