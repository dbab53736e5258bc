//! A hook as the API shows it.

use postway_domain::{ProviderHook, Time};
use serde::Serialize;
use utoipa::ToSchema;

/// The hook of an account, without its token and its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ProviderHook)]
pub(crate) struct ProviderHookView {
    /// The account.
    #[schema(example = "sg")]
    account: String,
    /// The provider that calls it.
    #[schema(example = "sendgrid")]
    provider: &'static str,
    /// SES: the ARNs of the topics that may report.
    topics: Vec<String>,
    /// SES: the emulator of SNS that it accepts instead of Amazon.
    sns_endpoint: Option<String>,
    /// SendGrid: the verification key.
    public_key: Option<String>,
    /// Postmark: the user name.
    username: Option<String>,
    /// Whether it has a secret that proves calls.
    secret_set: bool,
    /// The version, which increases with each change.
    version: i64,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was changed last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
}

impl ProviderHookView {
    pub(super) fn new(hook: &ProviderHook) -> Self {
        Self {
            account: hook.account.as_str().to_owned(),
            provider: hook.provider.as_str(),
            topics: hook.settings.topics.clone(),
            sns_endpoint: hook.settings.sns_endpoint.clone(),
            public_key: hook.settings.public_key.clone(),
            username: hook.settings.username.clone(),
            secret_set: hook.secret.is_some(),
            version: hook.version,
            created_at: hook.created_at,
            updated_at: hook.updated_at,
        }
    }
}

/// A hook with what is shown only once.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProviderHookWithToken {
    #[serde(flatten)]
    pub(super) hook: ProviderHookView,
    /// The URL to give to the provider; a path alone if the server has no `public_url`. It is a secret.
    #[schema(example = "https://mail.example.com/hooks/sendgrid/ph_kM1Xo0…")]
    pub(super) url: String,
    /// The password or signing secret that was made for the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
}
