//! A webhook as JSON, without its secret.

use postway_domain::{Subscriber, Time, WebhookForm};
use serde::Serialize;
use utoipa::ToSchema;

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookView {
    /// The id; `client_sync` for the one in the tenant's settings.
    #[schema(example = "wh_0192d3a45b6c7d8e9f0123456789abcd")]
    pub(crate) id: String,
    /// The protocol: `webhook`, or for `client_sync` also `callback` or `sync`.
    #[schema(example = "webhook")]
    kind: &'static str,
    /// The URL; null for `client_sync`, whose URL is in the tenant's settings.
    #[schema(example = "https://app.example.com/hooks/mail")]
    pub(crate) url: Option<String>,
    /// The format of its calls, `postway`, `resend` or `postmark`; null for a `client_sync` of another `kind`.
    #[schema(example = "postway")]
    form: Option<&'static str>,
    /// The events: a list of names, or `*` for all.
    #[schema(example = json!(["*"]))]
    pub(crate) events: Vec<String>,
    /// The purpose.
    description: Option<String>,
    /// Whether it is called at all. While it is inactive, no notifications are created for it.
    pub(crate) active: bool,
    /// Why it was deactivated automatically: it answered 410.
    disabled_reason: Option<String>,
    /// When it may be called again, as it requested.
    #[schema(value_type = Option<String>, format = DateTime)]
    quiet_until: Option<Time>,
    /// Increases with each change.
    version: i64,
    /// When it was created: it gets events from then on.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Time,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A webhook with a secret that was just generated.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookWithSecret)]
pub(crate) struct WebhookWithSecret {
    #[serde(flatten)]
    pub(crate) webhook: WebhookView,
    /// The secret that signs its calls. It is shown only once.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=")]
    pub(crate) secret: String,
}

/// A tenant's webhooks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    /// The webhooks by id, which is by age.
    pub(super) data: Vec<WebhookView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

impl From<Subscriber> for WebhookView {
    fn from(webhook: Subscriber) -> Self {
        let events = if webhook.events.0.is_empty() { vec!["*".to_owned()] } else { webhook.events.0 };
        Self {
            id: webhook.id.to_string(),
            kind: webhook.kind.as_str(),
            form: webhook.kind.form().map(WebhookForm::as_str),
            url: Some(webhook.url).filter(|url| !url.is_empty()),
            events,
            description: webhook.description,
            active: webhook.active,
            disabled_reason: webhook.disabled_reason,
            quiet_until: webhook.quiet_until,
            version: webhook.version,
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }
}
