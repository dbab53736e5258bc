//! The mails of tokens, made with the tenant's own templates or the built-in ones.

use std::sync::Arc;

use bytes::Bytes;
use postway_domain::{TemplateName, Time, secret::SecretKey};
use postway_mime::template::{TemplateSet, TemplateSource};
use serde_json::{Map, Value, json};

use super::{
    super::{
        OutboxAccounts, OutboxSource,
        accept::MessageOffer,
        error::OutboxError,
        postgres::{TokenRow, TokenVerdict},
    },
    SignedLink, TokenAction, TokenKeys, hex, sha256,
};
use crate::accept::door::Door;

/// Makes the mails of one source's tokens.
pub(in super::super) struct TokenMailer {
    source: OutboxSource,
    accounts: OutboxAccounts,
    /// The keys of every generation of the secret key, the newest first.
    keys: Vec<TokenKeys>,
    builtin: TemplateSet,
}

/// A mail, and the digests that remain of its secrets.
pub(in super::super) struct SealedMail {
    pub offer: MessageOffer,
    pub verdict: TokenVerdict,
}

/// The actions for which the tenant has its own template.
#[derive(Clone, Copy, Debug, Default)]
struct OwnTemplates {
    activation: bool,
    password_recovery: bool,
}

impl TokenMailer {
    /// A mailer for a source with accounts.
    pub(in super::super) fn new(
        source: &OutboxSource,
        accounts: &OutboxAccounts,
        secret_key: &SecretKey,
    ) -> Result<Self, OutboxError> {
        let builtin =
            TemplateSet::new([template(TokenAction::Activation), template(TokenAction::PasswordRecovery)]);
        Ok(Self {
            keys: TokenKeys::generations(source, accounts, secret_key),
            builtin: builtin.map_err(|error| OutboxError::Unexpected(error.to_string()))?,
            source: source.clone(),
            accounts: accounts.clone(),
        })
    }

    /// The client id of a token's mail.
    pub(in super::super) fn client_id(source: &str, nonce: &str) -> String {
        format!("outbox:{source}:token:{nonce}")
    }

    /// The number of generations of the secret key.
    pub(in super::super) fn generations(&self) -> usize {
        self.keys.len()
    }

    /// The mails of these tokens as made with one generation of the secret key; 0 is the newest.
    pub(in super::super) async fn seal(
        &self,
        door: &Arc<Door>,
        rows: &[TokenRow],
        generation: usize,
        now: Time,
    ) -> Result<Vec<SealedMail>, OutboxError> {
        let unknown =
            || OutboxError::Unexpected(format!("there is no generation {generation} of the secret key"));
        let keys = self.keys.get(generation).ok_or_else(unknown)?;
        let own = OwnTemplates {
            activation: self.has_own(door, TokenAction::Activation).await?,
            password_recovery: self.has_own(door, TokenAction::PasswordRecovery).await?,
        };
        Ok(rows.iter().map(|row| self.one(row, keys, own, now)).collect())
    }

    async fn has_own(&self, door: &Door, action: TokenAction) -> Result<bool, OutboxError> {
        let Ok(name) = action.as_str().parse::<TemplateName>() else { return Ok(false) };
        Ok(door.store.template(&self.source.tenant, &name, None).await?.is_some())
    }

    fn one(&self, row: &TokenRow, keys: &TokenKeys, own: OwnTemplates, now: Time) -> SealedMail {
        let secret = row.secret.clone().unwrap_or_else(|| keys.mint.secret(&row.nonce).to_vec());
        let code = row.code.clone().unwrap_or_else(|| keys.mint.code(&row.nonce));
        let client_id = Self::client_id(&self.source.name, &row.nonce);
        let mut verdict = TokenVerdict { id: row.id, ..TokenVerdict::default() };
        let Some(action) = TokenAction::parse(&row.action) else {
            let fault = format!("action: there are no mails for `{}`", row.action);
            return SealedMail { offer: MessageOffer { client_id, message: Err(fault) }, verdict };
        };
        let (path, url) = self.accounts.link(action);
        let tag = keys.link.sign(&path, &secret, &code);
        verdict.secret_hash = Some(hex(&sha256(&secret)));
        verdict.link_hash = Some(hex(&sha256(tag.as_bytes())));
        verdict.code_hash = Some(hex(&keys.mint.code_hash(&row.nonce, &code)));
        let in_hex = hex(&secret);
        let link = format!("{url}?token={}", SignedLink { secret, tag }.write());
        let variables = json!({
            "action": action.as_str(), "login": row.login, "email": row.email, "link": link, "code": code,
            "secret": in_hex,
        });
        let message = self.message(row, action, variables, own, &client_id, now);
        SealedMail { offer: MessageOffer { client_id, message: message.map(Bytes::from) }, verdict }
    }

    fn message(
        &self,
        row: &TokenRow,
        action: TokenAction,
        variables: Value,
        own: OwnTemplates,
        client_id: &str,
        now: Time,
    ) -> Result<String, String> {
        let mut message = json!({
            "id": client_id, "to": [row.email], "priority": "immediate", "sensitive": true,
            "expires_at": row.expires_at(now), "auto_submitted": true, "tags": [action.as_str()],
        });
        for (name, value) in [("from", &self.source.from), ("account", &self.source.account)] {
            if let Some(value) = value {
                message[name] = json!(value);
            }
        }
        let has_own = match action {
            TokenAction::Activation => own.activation,
            TokenAction::PasswordRecovery => own.password_recovery,
        };
        if has_own {
            message["template"] = json!({"name": action.as_str(), "variables": variables});
        } else {
            let Value::Object(variables) = variables else { return Err("it has no variables".to_owned()) };
            self.render(action, &variables, &mut message)?;
        }
        Ok(message.to_string())
    }

    fn render(
        &self,
        action: TokenAction,
        variables: &Map<String, Value>,
        message: &mut Value,
    ) -> Result<(), String> {
        let rendered = self.builtin.render(action.as_str(), variables);
        let rendered = rendered.map_err(|error| format!("template: {error}"))?;
        message["subject"] = json!(rendered.subject);
        message["text"] = json!(rendered.text);
        message["html"] = json!(rendered.html);
        Ok(())
    }
}

impl OutboxAccounts {
    /// The path that a link is signed for, and the link without its token.
    pub(in super::super) fn link(&self, action: TokenAction) -> (String, String) {
        let path = match action {
            TokenAction::Activation => &self.activation_path,
            TokenAction::PasswordRecovery => &self.recovery_path,
        };
        let base = self.link_base_url.trim_end_matches('/');
        let below = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
        let full = below.map_or_else(|| path.clone(), |below| format!("/{below}{path}"));
        (full, format!("{base}{path}"))
    }
}

fn template(action: TokenAction) -> TemplateSource {
    let (subject, html, text) = match action {
        TokenAction::Activation => {
            ("Activate your account", include_str!("activation.html"), include_str!("activation.txt"))
        }
        TokenAction::PasswordRecovery => (
            "Choose a new password",
            include_str!("password_recovery.html"),
            include_str!("password_recovery.txt"),
        ),
    };
    TemplateSource {
        name: action.as_str().to_owned(),
        subject: subject.to_owned(),
        html: Some(html.to_owned()),
        text: Some(text.to_owned()),
        mjml: None,
        layout: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_begin_with_the_base_and_are_signed_for_their_whole_path() {
        let accounts = |base: &str| OutboxAccounts {
            schema: "public".to_owned(),
            link_base_url: base.to_owned(),
            activation_path: "/activate".to_owned(),
            recovery_path: "/recover".to_owned(),
            link_key: None,
        };
        let link = |base: &str| accounts(base).link(TokenAction::Activation);
        assert_eq!(
            link("https://a.example"),
            ("/activate".to_owned(), "https://a.example/activate".to_owned())
        );
        assert_eq!(
            link("https://a.example/app/"),
            ("/app/activate".to_owned(), "https://a.example/app/activate".to_owned())
        );
    }

    #[test]
    fn the_templates_that_come_with_the_program_have_login_link_and_code() {
        let set =
            TemplateSet::new([template(TokenAction::Activation), template(TokenAction::PasswordRecovery)])
                .unwrap();
        let variables = json!({"login": "ada<b>", "email": "a@example.net", "link": "https://a.example/x?token=t", "code": "01234"});
        for action in [TokenAction::Activation, TokenAction::PasswordRecovery] {
            let made = set.render(action.as_str(), variables.as_object().unwrap()).unwrap();
            // Slashes are escaped too, which is harmless in html.
            let (html, text) = (made.html.unwrap().replace("&#x2f;", "/"), made.text.unwrap());
            for part in ["01234", "https://a.example/x?token=t"] {
                assert!(html.contains(part) && text.contains(part), "{part}\n{html}\n{text}");
            }
            assert!(html.contains("ada&lt;b&gt;") && text.contains("ada<b>"), "{html}");
            assert!(postway_mime::html::check(&html).is_ok());
        }
    }
}
