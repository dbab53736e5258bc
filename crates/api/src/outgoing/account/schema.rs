//! Request bodies as the OpenAPI document describes them. The structs are never filled; `edit` reads the
//! bodies.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::schema_form::When, setting::oauth::OAuthRequest};

/// An account to create or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountRequest {
    /// The id, unique in your tenant; required on creation, and fixed then.
    #[schema(example = "relay-1")]
    id: Option<String>,
    /// `smtp` (default), `lmtp`, `ses`, `sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`,
    /// `http`, or `sandbox`, which captures mail instead of sending it.
    #[schema(nullable = false, example = "smtp")]
    kind: Option<String>,
    /// The relay's host name or address. Private ones require the admin key.
    #[schema(example = "smtp.example.com")]
    host: Option<String>,
    /// The relay's port.
    #[schema(example = 587)]
    port: Option<u16>,
    /// `starttls` (default), `implicit`, `none` or `opportunistic`.
    #[schema(example = "starttls")]
    tls: Option<String>,
    /// The user name; the sending mailbox for Graph or Gmail.
    #[schema(example = "shop")]
    username: Option<String>,
    /// The password: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only, example = "correct horse battery staple")]
    password: Option<String>,
    /// Instead of a password, how the account obtains the tokens it signs in with (XOAUTH2, OAUTHBEARER).
    /// `null` removes it.
    oauth: Option<OAuthRequest>,
    /// Whether the password may cross a connection without TLS.
    #[schema(default = false)]
    allow_plaintext_auth: Option<bool>,
    /// More certificate authorities to trust, in PEM form.
    ca_pem: Option<String>,
    /// SES: the AWS region.
    region: Option<String>,
    /// SES: the public half of the key. Without one the server's own AWS key is used, if the admin key
    /// created the account.
    access_key_id: Option<String>,
    /// SES: the secret half: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only)]
    secret_access_key: Option<String>,
    /// SES: the configuration set that every mail names.
    configuration_set: Option<String>,
    /// SES: scheme, host and port to call instead of the region's own endpoint.
    endpoint: Option<String>,
    /// SendGrid, Mailgun, Postmark, Resend, and optionally `http`: the key of the API. Encrypted at rest,
    /// never shown again.
    #[schema(write_only)]
    api_key: Option<String>,
    /// Providers: scheme, host and port to call instead of the provider's own; for `http` the complete URL to
    /// post to.
    base_url: Option<String>,
    /// Mailgun: the sending domain.
    domain: Option<String>,
    /// Postmark: the message stream; `outbound` when absent.
    message_stream: Option<String>,
    /// The most connections at once, per node, 1 to 500.
    #[schema(default = 10)]
    max_connections: Option<u32>,
    /// The envelope sender, if it is not the mail's From.
    return_path: Option<String>,
    /// The account that takes over while this one's circuit is open or its daily limit is used up.
    fallback: Option<String>,
    /// Whether it sends certified mail (PEC).
    pec: Option<bool>,
    /// What to do with mail in doubt that does not say: `resend`, or `hold`, which never sends twice. The
    /// tenant's setting applies when absent.
    #[schema(example = "hold")]
    on_doubt: Option<String>,
    /// A proxy that all its connections go through: `socks5://user@host:port` or `http://user@host:port`.
    #[schema(example = "socks5://proxy.example.com:1080")]
    proxy: Option<String>,
    /// The proxy's password: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only)]
    proxy_password: Option<String>,
    /// The address of the server that its connections leave from; only the admin key sets it. Every node
    /// needs that address.
    #[schema(example = "192.0.2.10")]
    source_address: Option<String>,
    /// The reports that it asks relays for, about mail whose sender has no wishes, as parameters of SMTP (RFC
    /// 3461): `NOTIFY` with `NEVER` or a list of `SUCCESS`, `FAILURE` and `DELAY`, and optionally `RET` with
    /// `FULL` or `HDRS`. For `smtp` and `lmtp`.
    #[schema(example = "NOTIFY=SUCCESS,FAILURE RET=HDRS")]
    dsn: Option<String>,
    /// How much it may send; 0 means no limit. `PATCH` keeps absent limits.
    limits: Option<LimitsRequest>,
    /// How its daily limit grows while it is new.
    warm_up: Option<WarmUpRequest>,
    /// Limits per receiving domain and node; `*` applies to every domain that is not named.
    destinations: Option<BTreeMap<String, DestinationRequest>>,
    /// When to retry.
    retry: Option<RetryRequest>,
    /// With `PATCH` and `PUT`: change only if the account still has this version.
    #[schema(nullable = false)]
    version: Option<i64>,
}

/// How much an account may send in any window of that length. 0 and null: no limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsRequest {
    /// In any 60 seconds.
    per_minute: Option<u32>,
    /// In any 60 minutes.
    per_hour: Option<u32>,
    /// In any 24 hours.
    per_day: Option<u32>,
    /// What happens to mail beyond the limit: `defer` (default) or `reject`.
    #[schema(example = "defer")]
    behavior: Option<String>,
}

/// A daily limit that grows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WarmUpRequest {
    /// When the first day begins, as RFC 3339 or Unix seconds; now when absent.
    #[schema(inline)]
    from: Option<When>,
    /// The limit of the first, second, … day; at most 90 days.
    #[schema(example = json!([50, 100, 500]))]
    per_day: Vec<u32>,
}

/// How much one receiving domain is sent. 0: no limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DestinationRequest {
    /// The most simultaneous mails.
    #[schema(nullable = false)]
    connections: Option<u32>,
    /// The most mails begun in any second.
    #[schema(nullable = false)]
    per_second: Option<u32>,
}

/// Delays between attempts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetryRequest {
    /// Seconds to wait after the first, second, … transient failure.
    #[schema(example = json!([1, 5, 30, 120, 600]))]
    delays_s: Vec<u32>,
    /// The random variation of each delay: 0.25 means up to a quarter shorter or longer.
    #[schema(nullable = false, default = 0.25)]
    jitter: Option<f64>,
}
