//! Reads the settings of a hook: which fields each provider needs.

use postway_domain::{
    HookProvider, ProviderHook,
    hook::{HookProof, HookSettings},
};
use postway_intake::{is_sendgrid_key, is_standard_secret};
use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;
use utoipa::ToSchema;

use crate::http::{error::FieldError, json_fields::JsonFieldReader};

/// The longest ARN of a topic, key or secret, in characters.
const TEXT_CHARS_MAX: usize = 1_024;

/// The settings of a hook. Unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderHookRequest {
    /// The provider; by default the account's own. An SMTP account must name it.
    #[schema(example = "sendgrid")]
    provider: Option<String>,
    /// SES: the ARNs of the SNS topics that may report.
    topics: Option<Vec<String>>,
    /// SES: an emulator of SNS, such as LocalStack, whose certificates are accepted instead of Amazon's.
    sns_endpoint: Option<String>,
    /// SendGrid: the verification key of the signed event webhook.
    #[schema(example = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…")]
    public_key: Option<String>,
    /// Postmark: the user name; `postway` when absent.
    username: Option<String>,
    /// Mailgun: the HTTP webhook signing key. Resend: the signing secret. Postmark and `http`: made here when
    /// absent.
    secret: Option<String>,
    /// Change it only if this is its version.
    version: Option<i64>,
}

/// What a request asks for.
pub(super) struct ProviderHookEdit {
    pub provider: HookProvider,
    pub settings: HookSettings,
    pub secret: Option<String>,
    pub version: Option<i64>,
}

/// Reads a request. Fields that are absent keep their value while the provider stays the same.
pub(super) fn read(
    body: Map<String, Value>,
    fallback: Option<HookProvider>,
    current: Option<&ProviderHook>,
) -> Result<ProviderHookEdit, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let words = HookProvider::ALL.map(HookProvider::as_str).join(", ");
    let named: Option<String> = fields.text("provider", 32);
    let provider = named.as_deref().map_or(fallback, HookProvider::from_word);
    if provider.is_none() {
        fields.refuse("provider", format!("name the provider that reports: {words}"));
    }
    let before = current.filter(|hook| Some(hook.provider) == provider);
    let mut settings = before.map(|hook| hook.settings.clone()).unwrap_or_default();
    if let Some(topics) = fields.read::<Vec<String>>("topics", "must be a list of ARNs") {
        settings.topics = topics;
    }
    for (name, kept) in [
        ("sns_endpoint", &mut settings.sns_endpoint),
        ("public_key", &mut settings.public_key),
        ("username", &mut settings.username),
    ] {
        if let Some(text) = fields.text(name, TEXT_CHARS_MAX) {
            *kept = Some(text).filter(|text| !text.is_empty());
        }
    }
    let secret = fields.text("secret", TEXT_CHARS_MAX).filter(|secret| !secret.is_empty());
    let version = fields.read("version", "must be a whole number");
    if let Some(provider) = provider {
        check(&mut fields, provider, &settings, secret.as_deref());
    }
    fields.finish("is not a field of a hook");
    match provider {
        Some(provider) if wrong.is_empty() => Ok(ProviderHookEdit { provider, settings, secret, version }),
        _ => Err(wrong),
    }
}

/// Refuses fields that the provider does not have, and misses those that it needs.
fn check(
    fields: &mut JsonFieldReader<'_>,
    provider: HookProvider,
    settings: &HookSettings,
    secret: Option<&str>,
) {
    let proof = provider.proof();
    let foreign = [
        ("topics", HookProof::Certificate, !settings.topics.is_empty()),
        ("sns_endpoint", HookProof::Certificate, settings.sns_endpoint.is_some()),
        ("public_key", HookProof::PublicKey, settings.public_key.is_some()),
        ("username", HookProof::Password, settings.username.is_some()),
    ];
    for (name, of, is_given) in foreign {
        if is_given && proof != of {
            fields.refuse(name, format!("is not a setting of {}", provider.as_str()));
        }
    }
    match proof {
        HookProof::Certificate => {
            let is_arn = |topic: &String| {
                topic.len() <= 256 && topic.starts_with("arn:aws") && topic.contains(":sns:")
            };
            if settings.topics.is_empty() || settings.topics.len() > HookSettings::TOPICS_MAX {
                fields
                    .refuse("topics", format!("name 1 to {} topics by their ARNs", HookSettings::TOPICS_MAX));
            } else if !settings.topics.iter().all(is_arn) {
                fields.refuse("topics", "must be ARNs like arn:aws:sns:eu-west-1:123456789012:bounces");
            }
            if secret.is_some() {
                fields.refuse("secret", "SNS signs by its certificate: it has no secret");
            }
            let is_origin = |text: &String| {
                Url::parse(text).is_ok_and(|url| {
                    matches!(url.scheme(), "http" | "https") && url.path() == "/" && url.query().is_none()
                })
            };
            if !settings.sns_endpoint.iter().all(is_origin) {
                fields.refuse(
                    "sns_endpoint",
                    "must be an address without a path, such as http://127.0.0.1:4566",
                );
            }
        }
        HookProof::PublicKey => {
            if !settings.public_key.as_deref().is_some_and(is_sendgrid_key) {
                let hint = "must be the verification key that SendGrid shows under Signed Event Webhook";
                fields.refuse("public_key", hint);
            }
            if secret.is_some() {
                fields.refuse("secret", "SendGrid signs with its own key: give its `public_key`");
            }
        }
        HookProof::Password => {
            if settings.username.as_deref().is_some_and(|name| name.contains(':')) {
                fields.refuse("username", "must not contain a colon");
            }
        }
        HookProof::SigningSecret => {
            if secret.is_some_and(|secret| !is_standard_secret(secret)) {
                fields.refuse("secret", "must be whsec_ and at least 16 bytes in base64");
            }
        }
        HookProof::SigningKey => {}
    }
}

/// Whether calls of this provider are proven by a secret.
pub(super) fn needs_secret(provider: HookProvider) -> bool {
    match provider.proof() {
        HookProof::Certificate | HookProof::PublicKey => false,
        HookProof::SigningKey | HookProof::Password | HookProof::SigningSecret => true,
    }
}

/// Where to find the secret of a provider.
pub(super) fn secret_hint(provider: HookProvider) -> &'static str {
    match provider {
        HookProvider::Mailgun => "is needed: the HTTP webhook signing key of Mailgun",
        HookProvider::Resend => "is needed: the signing secret that Resend shows for the webhook",
        HookProvider::Ses | HookProvider::Sendgrid | HookProvider::Postmark | HookProvider::Http => {
            "is needed"
        }
    }
}
