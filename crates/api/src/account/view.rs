//! An account as JSON, without its secret.

use postway_domain::{Account, AccountKind, Time, TlsMode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::RetrySchema;

/// An account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountView {
    /// Its id.
    #[schema(example = "relay-1")]
    id: String,
    /// Whose it is.
    tenant: String,
    /// `smtp` or `sandbox`.
    #[schema(value_type = String, example = "smtp")]
    kind: AccountKind,
    /// The relay's host name or address.
    host: Option<String>,
    /// The relay's port.
    port: Option<u16>,
    /// `starttls`, `implicit`, `none` or `opportunistic`.
    #[schema(value_type = String, example = "starttls")]
    tls: TlsMode,
    /// Who signs in.
    username: Option<String>,
    /// Whether there is a password; it is never shown.
    password_set: bool,
    /// Whether the password may cross a connection without TLS.
    allow_plaintext_auth: bool,
    /// More certificate authorities to trust.
    ca_pem: Option<String>,
    /// The most connections at once.
    max_connections: u32,
    /// The envelope sender, when it is not the mail's From.
    return_path: Option<String>,
    /// The account that takes over; not available in this version.
    fallback: Option<String>,
    /// Certified mail; not available in this version.
    pec: bool,
    /// How much it may send; 0 means no limit.
    limits: LimitsView,
    /// When to try again.
    retry: RetrySchema,
    /// Rises with each change.
    version: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// How much an account may send. Not available in this version: always 0, no limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limits)]
pub(crate) struct LimitsView {
    per_minute: u64,
    per_hour: u64,
    per_day: u64,
    /// What happens to mail beyond: `defer` or `reject`.
    #[schema(example = "defer")]
    behavior: &'static str,
}

/// A tenant's accounts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountList {
    /// By id.
    pub(super) data: Vec<AccountView>,
    /// Always null: the list comes whole.
    pub(super) next_cursor: Option<String>,
}

impl From<&Account> for AccountView {
    fn from(account: &Account) -> Self {
        let settings = account.settings.clone();
        Self {
            id: account.id.to_string(),
            tenant: account.tenant.to_string(),
            kind: settings.kind,
            host: settings.host,
            port: settings.port,
            tls: settings.tls,
            username: settings.username,
            password_set: account.secret.is_some(),
            allow_plaintext_auth: settings.allow_plaintext_auth,
            ca_pem: settings.ca_pem,
            max_connections: settings.max_connections,
            return_path: settings.return_path,
            fallback: None,
            pec: false,
            limits: LimitsView { per_minute: 0, per_hour: 0, per_day: 0, behavior: "defer" },
            retry: RetrySchema { delays_s: settings.retry.delays_s, jitter: settings.retry.jitter },
            version: account.version,
            created_at: account.created_at,
            updated_at: account.updated_at,
        }
    }
}
