//! What callers send, for the OpenAPI document; never filled. `edit` reads the bodies.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::schema_form::When, setting::oauth::OAuthRequest};

/// An account to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountRequest {
    /// Its id, unique in your tenant; needed when it is made, and fixed then.
    #[schema(example = "relay-1")]
    id: Option<String>,
    /// `smtp` (default), `ses`, `sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`, `http`, or `sandbox`, which
    /// captures mail instead of sending it.
    #[schema(nullable = false, example = "smtp")]
    kind: Option<String>,
    /// The relay's host name or address. Private ones can be set with the admin key alone.
    #[schema(example = "smtp.example.com")]
    host: Option<String>,
    /// The relay's port.
    #[schema(example = 587)]
    port: Option<u16>,
    /// `starttls` (default), `implicit`, `none` or `opportunistic`.
    #[schema(example = "starttls")]
    tls: Option<String>,
    /// Who signs in; the mailbox that sends by Graph or Gmail.
    #[schema(example = "shop")]
    username: Option<String>,
    /// The password: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only, example = "correct horse battery staple")]
    password: Option<String>,
    /// In the place of a password, how it comes by the tokens that it signs in with (XOAUTH2, OAUTHBEARER). `null` removes it.
    oauth: Option<OAuthRequest>,
    /// Whether the password may cross a connection without TLS.
    #[schema(default = false)]
    allow_plaintext_auth: Option<bool>,
    /// More certificate authorities to trust, in PEM form.
    ca_pem: Option<String>,
    /// SES: the AWS region.
    region: Option<String>,
    /// SES: the public half of the key. Without one the server's own AWS key signs, if the admin key made the account.
    access_key_id: Option<String>,
    /// SES: the secret half: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only)]
    secret_access_key: Option<String>,
    /// SES: the configuration set that every mail names.
    configuration_set: Option<String>,
    /// SES: scheme, host and port to call instead of the region's own endpoint.
    endpoint: Option<String>,
    /// SendGrid, Mailgun, Postmark, Resend, and optionally `http`: the key of the API: encrypted at rest, never shown again.
    #[schema(write_only)]
    api_key: Option<String>,
    /// Providers: scheme, host and port to call instead of the provider's own; for `http` the whole address to post to.
    base_url: Option<String>,
    /// Mailgun: the sending domain.
    domain: Option<String>,
    /// Postmark: the message stream; `outbound` when absent.
    message_stream: Option<String>,
    /// The most connections at once, per node, 1 to 500.
    #[schema(default = 10)]
    max_connections: Option<u32>,
    /// The envelope sender, when it is not the mail's From.
    return_path: Option<String>,
    /// The account that sends its mail while its circuit is open or its day is used up.
    fallback: Option<String>,
    /// Certified mail.
    pec: Option<bool>,
    /// What becomes of mail in doubt that says nothing of it: `resend`, or `hold`, which never sends twice. As the tenant says when
    /// absent.
    #[schema(example = "hold")]
    on_doubt: Option<String>,
    /// How much it may send; 0 means no limit. `PATCH` leaves what is not given.
    limits: Option<LimitsRequest>,
    /// How its daily limit grows while it is new.
    warm_up: Option<WarmUpRequest>,
    /// How much receiving domains are sent, per node; `*` stands for every domain that is not named.
    destinations: Option<BTreeMap<String, DestinationRequest>>,
    /// When to try again.
    retry: Option<RetryRequest>,
    /// With `PATCH` and `PUT`: only if the account still has this version.
    #[schema(nullable = false)]
    version: Option<i64>,
}

/// How much an account may send, in any window of that length. 0 and null: no limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitsRequest {
    /// In any sixty seconds.
    per_minute: Option<u32>,
    /// In any sixty minutes.
    per_hour: Option<u32>,
    /// In any twenty-four hours.
    per_day: Option<u32>,
    /// What happens to mail beyond: `defer` (default) or `reject`.
    #[schema(example = "defer")]
    behavior: Option<String>,
}

/// A daily limit that grows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WarmUpRequest {
    /// When the first day begins, as RFC 3339 or Unix seconds; now when absent.
    #[schema(inline)]
    from: Option<When>,
    /// How much may be sent on the first, second, … day; at most 90 days.
    #[schema(example = json!([50, 100, 500]))]
    per_day: Vec<u32>,
}

/// How much one receiving domain is sent. 0: no limit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DestinationRequest {
    /// Mails on the wire at once.
    #[schema(nullable = false)]
    connections: Option<u32>,
    /// Mails begun in any second.
    #[schema(nullable = false)]
    per_second: Option<u32>,
}

/// Delays between attempts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RetryRequest {
    /// Seconds to wait after the first, second, … transient failure.
    #[schema(example = json!([1, 5, 30, 120, 600]))]
    delays_s: Vec<u32>,
    /// How much chance moves each delay: 0.25 means up to a quarter shorter or longer.
    #[schema(nullable = false, default = 0.25)]
    jitter: Option<f64>,
}
