//! A tenant as JSON, without its secrets.

use postway_domain::{
    Tenant, Time,
    tenant::{CallbackForm, LargeFiles, Remote, RemoteAuth},
};
use serde::Serialize;
use utoipa::ToSchema;

/// A tenant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(crate) struct TenantView {
    /// Its id.
    #[schema(example = "acme")]
    id: String,
    /// Its name for people.
    #[schema(example = "Acme Ltd")]
    name: String,
    /// Whether all its mail is held.
    suspended: bool,
    /// Since when.
    #[schema(value_type = Option<String>, format = DateTime)]
    suspended_since: Option<Time>,
    /// The account its mail takes when it names none.
    default_account: Option<String>,
    /// Its share where tenants compete, against the others' weights.
    weight: u32,
    /// Bounds of what it may send; null means the gateway's own.
    content: ContentView,
    /// How many days finished messages are kept; null means the gateway's own.
    retention_days: Option<u32>,
    /// Where its delivery reports go.
    client_sync: Option<RemoteView>,
    /// Where attachments named by `endpoint` are fetched.
    attachment_endpoint: Option<RemoteView>,
    /// How its reports are written: `event` or `batch`.
    #[schema(value_type = String, example = "event")]
    callback_form: CallbackForm,
    /// What becomes of attachments too large to mail: `reject`, `warn` or `link`.
    #[schema(value_type = String, example = "reject")]
    large_files: LargeFiles,
    /// The domain its bounces come back to.
    bounce_domain: Option<String>,
    /// Rises with each change.
    version: i64,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// Bounds of composed mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentLimits)]
pub(crate) struct ContentView {
    /// The longest subject, in characters.
    subject_chars: Option<u32>,
    /// The largest HTML part, in bytes.
    html_bytes: Option<u32>,
    /// The largest message, in bytes.
    message_bytes: Option<u32>,
}

/// Somewhere of the tenant's own to call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Remote)]
pub(crate) struct RemoteView {
    /// The address.
    #[schema(example = "https://app.example.com")]
    url: String,
    /// A path under it.
    path: Option<String>,
    /// How to sign in there.
    auth: RemoteAuthView,
}

/// How to sign in somewhere.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RemoteAuth)]
pub(crate) struct RemoteAuthView {
    /// `none`, `bearer` or `basic`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "bearer")]
    kind: RemoteAuth,
    /// Who signs in, with `basic`.
    username: Option<String>,
    /// Whether there is a token or password; it is never shown.
    has_secret: bool,
}

/// A page of tenants.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantList {
    /// By id.
    pub(super) data: Vec<TenantView>,
    /// Give this as `cursor` for the next; null at the end.
    pub(super) next_cursor: Option<String>,
}

impl TenantView {
    pub(super) fn new(tenant: &Tenant, suspended_since: Option<Time>) -> Self {
        let settings = tenant.settings.clone();
        Self {
            id: tenant.id.to_string(),
            name: tenant.name.clone(),
            suspended: suspended_since.is_some(),
            suspended_since,
            default_account: tenant.default_account.as_ref().map(ToString::to_string),
            weight: settings.weight,
            content: ContentView {
                subject_chars: settings.content.subject_chars,
                html_bytes: settings.content.html_bytes,
                message_bytes: settings.content.message_bytes,
            },
            retention_days: settings.retention_days,
            client_sync: settings.client_sync.map(RemoteView::from),
            attachment_endpoint: settings.attachment_endpoint.map(RemoteView::from),
            callback_form: settings.callback_form,
            large_files: settings.large_files,
            bounce_domain: settings.bounce_domain,
            version: tenant.version,
            created_at: tenant.created_at,
            updated_at: tenant.updated_at,
        }
    }
}

impl From<Remote> for RemoteView {
    fn from(Remote { url, path, auth, username }: Remote) -> Self {
        // A way of signing in is stored only together with its secret.
        let has_secret = auth != RemoteAuth::None;
        Self { url, path, auth: RemoteAuthView { kind: auth, username, has_secret } }
    }
}
