//! What callers send, for the OpenAPI document; never filled. `edit` reads the bodies.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::view::{DestinationView, LimitsView, WarmUpView};
use crate::schema::RetrySchema;

/// An account to make or change. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountRequest {
    /// Its id, unique in your tenant; only when it is made.
    #[schema(example = "relay-1")]
    id: Option<String>,
    /// `smtp` (default), `ses`, or `sandbox`, which captures mail instead of sending it.
    #[schema(example = "smtp")]
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
    /// Who signs in.
    #[schema(example = "shop")]
    username: Option<String>,
    /// The password: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only, example = "correct horse battery staple")]
    password: Option<String>,
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
    /// The most connections at once, per node, 1 to 500.
    #[schema(default = 10)]
    max_connections: Option<u32>,
    /// The envelope sender, when it is not the mail's From.
    return_path: Option<String>,
    /// The account that sends its mail while its circuit is open or its day is used up.
    fallback: Option<String>,
    /// Certified mail.
    pec: Option<bool>,
    /// How much it may send; 0 means no limit. `PATCH` leaves what is not given.
    limits: Option<LimitsView>,
    /// How its daily limit grows while it is new; at most 90 days. `from` is now when absent.
    warm_up: Option<WarmUpView>,
    /// How much receiving domains are sent, per node; `*` stands for every domain that is not named.
    destinations: Option<BTreeMap<String, DestinationView>>,
    /// When to try again.
    retry: Option<RetrySchema>,
}
