//! OAuth 2 grants, for accounts and mailboxes: read from JSON, shown without their secrets.

use postway_domain::oauth::{OAuthGrant, OAuthPreset, OAuthSecrets, OAuthSettings, OAuthUse};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    http::{
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
    },
    setting::callback_url,
    state::AppState,
};

/// A grant to create or change. Absent fields keep their values.
#[derive(Debug, Serialize, ToSchema)]
#[allow(dead_code)]
pub(crate) struct OAuthRequest {
    /// `microsoft` or `google`: fills in `token_url` and `scope`.
    #[schema(example = "microsoft")]
    preset: Option<String>,
    /// `client_credentials`, `refresh_token` or `service_account`; required for a new grant.
    #[schema(nullable = false, example = "client_credentials")]
    grant: Option<String>,
    /// The token endpoint, under https. Changing it requires the secrets again.
    #[schema(example = "https://login.example.com/oauth2/token")]
    token_url: Option<String>,
    /// The client's id; the address of a service account.
    #[schema(nullable = false, example = "5b2f7f5e-0000-4000-8000-3f1f0d6f1c11")]
    client_id: Option<String>,
    /// The requested scopes, separated by spaces.
    scope: Option<String>,
    /// Microsoft: the id or the domain of your directory.
    #[schema(example = "contoso.onmicrosoft.com")]
    directory: Option<String>,
    /// `service_account`: the user it acts for; `username` when absent.
    subject: Option<String>,
    /// The client's secret: encrypted at rest, never shown again. `null` removes it.
    #[schema(write_only)]
    client_secret: Option<String>,
    /// The refresh token of a user's consent: encrypted at rest, never shown again; `postway accounts
    /// authorize` obtains it.
    #[schema(write_only)]
    refresh_token: Option<String>,
    /// The key of a service account, in PEM form: encrypted at rest, never shown again.
    #[schema(write_only)]
    private_key: Option<String>,
}

/// A grant, without its secrets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OAuth)]
pub(crate) struct OAuthView {
    /// `microsoft` or `google`.
    #[schema(value_type = Option<String>, example = "microsoft")]
    preset: Option<OAuthPreset>,
    /// `client_credentials`, `refresh_token` or `service_account`.
    #[schema(value_type = String, example = "client_credentials")]
    grant: OAuthGrant,
    /// The token endpoint.
    token_url: Option<String>,
    /// The client's id.
    client_id: String,
    /// The requested scopes.
    scope: Option<String>,
    /// Microsoft: the directory.
    directory: Option<String>,
    /// `service_account`: the user it acts for.
    subject: Option<String>,
    /// Whether a client secret is set; it is never shown.
    client_secret_set: bool,
    /// Whether a refresh token is set; it is never shown.
    refresh_token_set: bool,
    /// Whether a private key is set; it is never shown.
    private_key_set: bool,
}

impl OAuthView {
    /// A grant's settings as they apply to this purpose.
    pub(crate) fn new(settings: &OAuthSettings, purpose: OAuthUse) -> Self {
        Self {
            preset: settings.preset,
            grant: settings.grant,
            token_url: settings.token_url(),
            client_id: settings.client_id.clone(),
            scope: settings.scope(purpose),
            directory: settings.directory.clone(),
            subject: settings.subject.clone(),
            client_secret_set: settings.client_secret_set,
            refresh_token_set: settings.refresh_token_set,
            private_key_set: settings.private_key_set,
        }
    }
}

/// The change to a grant's secrets: each is kept, removed or replaced.
#[derive(Default)]
pub(crate) struct OAuthSecretsEdit {
    client_secret: Option<Option<String>>,
    refresh_token: Option<Option<String>>,
    private_key: Option<Option<String>>,
}

impl std::fmt::Debug for OAuthSecretsEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OAuthSecretsEdit(***)")
    }
}

impl OAuthSecretsEdit {
    pub(crate) fn apply(self, secrets: &mut OAuthSecrets) {
        let parts = [
            (self.client_secret, &mut secrets.client_secret),
            (self.refresh_token, &mut secrets.refresh_token),
            (self.private_key, &mut secrets.private_key),
        ];
        for (edit, secret) in parts {
            if let Some(edit) = edit {
                *secret = edit;
            }
        }
    }

    pub(crate) fn gives_any(&self) -> bool {
        [&self.client_secret, &self.refresh_token, &self.private_key].into_iter().any(Option::is_some)
    }

    /// The field of a stored secret that is kept.
    pub(crate) fn kept_of(&self, before: &OAuthSettings) -> Option<&'static str> {
        [
            ("oauth.client_secret", before.client_secret_set, &self.client_secret),
            ("oauth.refresh_token", before.refresh_token_set, &self.refresh_token),
            ("oauth.private_key", before.private_key_set, &self.private_key),
        ]
        .into_iter()
        .find(|(_, is_set, edit)| *is_set && edit.is_none())
        .map(|(field, ..)| field)
    }
}

/// Applies `oauth` to a grant; `null` removes it.
pub(crate) fn edit(
    before: Option<&OAuthSettings>,
    value: Value,
    wrong: &mut Vec<FieldError>,
) -> (Option<OAuthSettings>, OAuthSecretsEdit) {
    let mut body = serde_json::Map::new();
    body.insert("oauth".to_owned(), value);
    let mut fields = JsonFieldReader::new(body, wrong);
    match fields.object("oauth", |fields| read(before, fields)) {
        Some((grant, secrets)) => (grant, secrets),
        None => (None, OAuthSecretsEdit::default()),
    }
}

fn read(
    before: Option<&OAuthSettings>,
    fields: &mut JsonFieldReader<'_>,
) -> (Option<OAuthSettings>, OAuthSecretsEdit) {
    for shown in ["client_secret_set", "refresh_token_set", "private_key_set"] {
        fields.take(shown);
    }
    let secrets = OAuthSecretsEdit {
        client_secret: secret(fields, "client_secret", &['\0', '\r', '\n']),
        refresh_token: secret(fields, "refresh_token", &['\0', '\r', '\n']),
        private_key: secret(fields, "private_key", &['\0']),
    };
    let words = "must be client_credentials, refresh_token or service_account";
    let is_said = fields.has("grant");
    let grant = fields.read("grant", words).or(before.map(|before| before.grant));
    let mut settings = match (before.cloned(), grant) {
        (Some(before), Some(grant)) => OAuthSettings { grant, ..before },
        (None, Some(grant)) => OAuthSettings {
            preset: None,
            grant,
            token_url: None,
            client_id: String::new(),
            scope: None,
            directory: None,
            subject: None,
            client_secret_set: false,
            refresh_token_set: false,
            private_key_set: false,
        },
        (_, None) => {
            if !is_said {
                fields.refuse("grant", words);
            }
            for name in ["preset", "token_url", "client_id", "scope", "directory", "subject"] {
                fields.take(name);
            }
            return (None, secrets);
        }
    };
    if fields.has("preset") {
        settings.preset = fields.read("preset", "must be microsoft or google");
    }
    if fields.has("client_id") {
        settings.client_id = fields.text("client_id", OAuthSettings::FIELD_BYTES_MAX).unwrap_or_default();
    }
    let optional = [
        ("token_url", &mut settings.token_url),
        ("scope", &mut settings.scope),
        ("directory", &mut settings.directory),
        ("subject", &mut settings.subject),
    ];
    for (name, value) in optional {
        if fields.has(name) {
            let text = fields.text(name, OAuthSettings::FIELD_BYTES_MAX);
            *value = text.filter(|text| !text.is_empty());
        }
    }
    // A client may send back the values shown for a preset; they stay the preset's.
    settings.forget_preset_values();
    (Some(settings), secrets)
}

fn secret(fields: &mut JsonFieldReader<'_>, name: &str, forbidden: &[char]) -> Option<Option<String>> {
    if !fields.has(name) {
        return None;
    }
    let secret: Option<String> = fields.read(name, "must be a text or null");
    if let Some(text) = &secret {
        let max = OAuthSecrets::BYTES_MAX;
        if !(1..=max).contains(&text.len()) {
            fields.refuse(name, format!("must have 1 to {max} bytes"));
        } else if text.contains(forbidden) {
            fields.refuse(name, "must not contain NUL, CR or LF");
        }
    }
    Some(secret)
}

/// The stored secrets with these changes, checked against their grant, whose flags say which are set.
pub(crate) fn apply_secrets(
    settings: &mut OAuthSettings,
    mut secrets: OAuthSecrets,
    edit: OAuthSecretsEdit,
) -> Result<OAuthSecrets, ApiError> {
    edit.apply(&mut secrets);
    let wrong = settings.check(&secrets);
    if !wrong.is_empty() {
        let wrong = wrong.into_iter().map(|(field, message)| FieldError::new(field, message));
        return Err(ApiError::invalid(wrong.collect()));
    }
    settings.note(&secrets);
    Ok(secrets)
}

/// Refuses a grant whose token endpoint we would not connect to.
pub(crate) fn check_target(app: &AppState, settings: Option<&OAuthSettings>) -> Result<(), ApiError> {
    let Some(url) = settings.and_then(OAuthSettings::token_url) else { return Ok(()) };
    callback_url::check(app, "oauth.token_url", &url).map_err(|wrong| ApiError::invalid(vec![wrong]))
}
