//! A webhook as JSON, without its secret.

use postway_domain::{Subscriber, Time, WebhookForm};
use serde::Serialize;
use utoipa::ToSchema;

/// A webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookView {
    /// Its id; `client_sync` for the one in the tenant's settings.
    #[schema(example = "wh_0192d3a45b6c7d8e9f0123456789abcd")]
    pub(crate) id: String,
    /// How it is told: `webhook`, or for `client_sync` also `callback` or `sync`.
    #[schema(example = "webhook")]
    kind: &'static str,
    /// Where it is; null for `client_sync`, which is where the tenant's settings say.
    #[schema(example = "https://app.example.com/hooks/mail")]
    pub(crate) url: Option<String>,
    /// In whose words it is called, `postway` or `resend`; null for `client_sync` where its `kind` is another.
    #[schema(example = "postway")]
    form: Option<&'static str>,
    /// Of what it is told: names of events, or `*` for all.
    #[schema(example = json!(["*"]))]
    pub(crate) events: Vec<String>,
    /// What it is for, in your words.
    description: Option<String>,
    /// Whether it is told at all. While it is not, nothing is collected for it.
    pub(crate) active: bool,
    /// Why it is not, where nobody asked for that: it answered 410.
    disabled_reason: Option<String>,
    /// Not called before this time, as it asked.
    #[schema(value_type = Option<String>, format = DateTime)]
    quiet_until: Option<Time>,
    /// Rises with each change.
    version: i64,
    /// When it was made: it is told of what happens from then on.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

/// A webhook with a secret that was made just now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookWithSecret)]
pub(crate) struct WithSecret {
    #[serde(flatten)]
    pub(crate) webhook: WebhookView,
    /// What its calls are signed with. It is shown this once.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=")]
    pub(crate) secret: String,
}

/// A tenant's webhooks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookList {
    /// By id, which is by age.
    pub(super) data: Vec<WebhookView>,
    /// Where to go on, if there are more.
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
