//! OAuth 2: the grants whose tokens sign in to relays and mailboxes.
//!
//! An account or a mailbox names a grant: the token server, the client and the scope. Its secrets are sealed
//! with it. The tokens that the authorization server returns change by the hour. They are stored separately,
//! as an [`OAuthState`], so that a renewed token does not change the account's settings.

use std::{fmt, net::IpAddr};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::{
    identity::{
        id::{AccountId, MailboxId, TenantId},
        secret::SealedSecret,
    },
    time::Time,
};

/// How a token is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthGrant {
    /// With the client's own secret (RFC 6749 4.4).
    ClientCredentials,
    /// With a refresh token that a person's consent gave (RFC 6749 6).
    RefreshToken,
    /// With an assertion signed by a service account's key (RFC 7523), as Google has it.
    ServiceAccount,
}

/// A provider whose addresses and scopes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthPreset {
    /// Microsoft 365 and Exchange Online.
    Microsoft,
    /// Gmail and Google Workspace.
    Google,
}

/// What a token is for. Providers have a scope for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OAuthUse {
    /// Sending by SMTP.
    Smtp,
    /// Reading by IMAP.
    Imap,
    /// Sending by Microsoft Graph.
    Graph,
    /// Sending by Gmail's API.
    Gmail,
}

/// A grant, all but its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthSettings {
    /// The provider whose addresses and scopes fill in what is not set.
    #[serde(default)]
    pub preset: Option<OAuthPreset>,
    /// How a token is asked for.
    pub grant: OAuthGrant,
    /// The token endpoint, unless the preset has one.
    #[serde(default)]
    pub token_url: Option<String>,
    /// The client's id; a service account's address.
    pub client_id: String,
    /// The scope, unless the preset has one.
    #[serde(default)]
    pub scope: Option<String>,
    /// The directory (tenant) at Microsoft.
    #[serde(default)]
    pub directory: Option<String>,
    /// The user that a service account acts for; the user that signs in if absent.
    #[serde(default)]
    pub subject: Option<String>,
    /// Whether there is a client secret.
    #[serde(default)]
    pub client_secret_set: bool,
    /// Whether a person has consented.
    #[serde(default)]
    pub refresh_token_set: bool,
    /// Whether there is a key.
    #[serde(default)]
    pub private_key_set: bool,
}

impl OAuthSettings {
    /// The longest of a grant's fields, in bytes.
    pub const FIELD_BYTES_MAX: usize = 2_048;

    /// The token endpoint.
    pub fn token_url(&self) -> Option<String> {
        self.token_url.clone().or_else(|| Some(self.preset?.address(OAuthEndpoint::Token, self.directory())))
    }

    /// The device authorization endpoint, if the provider has one.
    pub fn device_url(&self) -> Option<String> {
        // Google does not grant the mail scope to devices.
        let preset = self.preset.filter(|preset| *preset == OAuthPreset::Microsoft)?;
        Some(preset.address(OAuthEndpoint::Device, self.directory()))
    }

    /// The page at which a person consents.
    pub fn authorize_url(&self) -> Option<String> {
        Some(self.preset?.address(OAuthEndpoint::Authorize, self.directory()))
    }

    /// The scope for `purpose`.
    pub fn scope(&self, purpose: OAuthUse) -> Option<String> {
        if let Some(scope) = &self.scope {
            return Some(scope.clone());
        }
        let scope = match (self.preset?, self.grant, purpose) {
            // Neither provider grants the other's API, so a scope must be set.
            (OAuthPreset::Microsoft, _, OAuthUse::Gmail) | (OAuthPreset::Google, _, OAuthUse::Graph) => {
                return None;
            }
            (OAuthPreset::Microsoft, OAuthGrant::ClientCredentials, OAuthUse::Graph) => {
                "https://graph.microsoft.com/.default"
            }
            (OAuthPreset::Microsoft, _, OAuthUse::Graph) => {
                "https://graph.microsoft.com/Mail.Send offline_access"
            }
            (OAuthPreset::Microsoft, OAuthGrant::ClientCredentials, _) => {
                "https://outlook.office365.com/.default"
            }
            (OAuthPreset::Google, _, OAuthUse::Gmail) => "https://www.googleapis.com/auth/gmail.send",
            (OAuthPreset::Microsoft, _, OAuthUse::Smtp) => {
                "https://outlook.office.com/SMTP.Send offline_access"
            }
            (OAuthPreset::Microsoft, _, OAuthUse::Imap) => {
                "https://outlook.office.com/IMAP.AccessAsUser.All offline_access"
            }
            (OAuthPreset::Google, _, _) => "https://mail.google.com/",
        };
        Some(scope.to_owned())
    }

    /// Removes values that equal those of the preset.
    pub fn forget_preset_values(&mut self) {
        let bare = Self { token_url: None, scope: None, ..self.clone() };
        if self.token_url.is_some() && self.token_url == bare.token_url() {
            self.token_url = None;
        }
        let uses = [OAuthUse::Smtp, OAuthUse::Imap, OAuthUse::Graph, OAuthUse::Gmail];
        if self.scope.is_some() && uses.into_iter().any(|purpose| self.scope == bare.scope(purpose)) {
            self.scope = None;
        }
    }

    /// Notes which secrets are set.
    pub fn note(&mut self, secrets: &OAuthSecrets) {
        self.client_secret_set = secrets.client_secret.is_some();
        self.refresh_token_set = secrets.refresh_token.is_some();
        self.private_key_set = secrets.private_key.is_some();
    }

    fn directory(&self) -> &str {
        self.directory.as_deref().unwrap_or("organizations")
    }

    /// The faults of a grant and its secrets, as pairs of field and message.
    pub fn check(&self, secrets: &OAuthSecrets) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        let mut refuse = |field, message: &str| wrong.push((field, message.to_owned()));
        let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = |text: &str| (1..=Self::FIELD_BYTES_MAX).contains(&text.len());
        if !fits(&self.client_id) || !is_visible(&self.client_id) {
            refuse("oauth.client_id", "is needed: 1 to 2048 characters of visible ASCII");
        }
        match &self.token_url {
            None if self.preset.is_none() => {
                refuse("oauth.token_url", "is needed, unless preset is microsoft or google");
            }
            Some(url) if !fits(url) || !is_token_url(url) => {
                refuse("oauth.token_url", "must be an https address; http is for this machine alone");
            }
            Some(_) | None => {}
        }
        let is_scope = |scope: &str| fits(scope) && scope.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if self.scope.as_deref().is_some_and(|scope| !is_scope(scope)) {
            refuse(
                "oauth.scope",
                "must be 1 to 2048 characters of visible ASCII, with spaces between scopes",
            );
        }
        let is_directory = |name: &str| {
            (1..=128).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        match (self.preset, self.directory.as_deref()) {
            (Some(OAuthPreset::Microsoft), Some(name)) if !is_directory(name) => {
                refuse("oauth.directory", "must be the id or the domain of a directory at Microsoft");
            }
            (Some(OAuthPreset::Microsoft), None)
                if self.grant == OAuthGrant::ClientCredentials && self.token_url.is_none() =>
            {
                refuse("oauth.directory", "is needed: the id or the domain of your directory at Microsoft");
            }
            (Some(OAuthPreset::Google) | None, Some(_)) => {
                refuse("oauth.directory", "is for the preset microsoft");
            }
            _ => {}
        }
        if let Some(subject) = &self.subject
            && (subject.is_empty() || subject.len() > 320 || subject.chars().any(char::is_control))
        {
            refuse("oauth.subject", "must be 1 to 320 characters without control characters");
        }
        match self.grant {
            OAuthGrant::ClientCredentials if secrets.client_secret.is_none() => {
                refuse("oauth.client_secret", "is needed for the grant client_credentials");
            }
            OAuthGrant::ServiceAccount if secrets.private_key.is_none() => {
                refuse("oauth.private_key", "is needed for the grant service_account");
            }
            // A person's consent may come later: `authorize` brings the refresh token.
            OAuthGrant::ClientCredentials | OAuthGrant::ServiceAccount | OAuthGrant::RefreshToken => {}
        }
        if secrets.private_key.as_deref().is_some_and(|key| !key.contains("-----BEGIN PRIVATE KEY-----")) {
            refuse("oauth.private_key", "must be a PKCS #8 key in PEM form (-----BEGIN PRIVATE KEY-----)");
        }
        wrong
    }

    /// A fingerprint of this grant: access tokens with another fingerprint belong to another grant.
    pub fn fingerprint(&self, secrets: &OAuthSecrets) -> String {
        hash(&(self, secrets))
    }

    /// A fingerprint of the consent behind this grant. It stays the same if only the client's secret or the
    /// scope changes, so that refresh tokens remain valid.
    pub fn consent(&self, secrets: &OAuthSecrets) -> String {
        hash(&(self.grant, &self.client_id, self.token_url(), &secrets.refresh_token))
    }
}

fn hash(parts: &impl Serialize) -> String {
    // Serialising cannot fail: the parts are plain structures of texts.
    let text = serde_json::to_string(parts).unwrap_or_default();
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a token may be requested at `url`. The request has secrets, so it needs TLS, or this machine.
fn is_token_url(url: &str) -> bool {
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains(['@', '#']) {
        return false;
    }
    if let Some(rest) = url.strip_prefix("https://") {
        return !rest.is_empty() && !rest.starts_with(['/', ':', '?']);
    }
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An endpoint of a provider.
#[derive(Clone, Copy)]
enum OAuthEndpoint {
    Token,
    Device,
    Authorize,
}

impl OAuthPreset {
    fn address(self, endpoint: OAuthEndpoint, directory: &str) -> String {
        match self {
            OAuthPreset::Microsoft => {
                let name = match endpoint {
                    OAuthEndpoint::Token => "token",
                    OAuthEndpoint::Device => "devicecode",
                    OAuthEndpoint::Authorize => "authorize",
                };
                format!("https://login.microsoftonline.com/{directory}/oauth2/v2.0/{name}")
            }
            OAuthPreset::Google => match endpoint {
                OAuthEndpoint::Token => "https://oauth2.googleapis.com/token",
                OAuthEndpoint::Device => "https://oauth2.googleapis.com/device/code",
                OAuthEndpoint::Authorize => "https://accounts.google.com/o/oauth2/v2/auth",
            }
            .to_owned(),
        }
    }
}

/// A grant's secrets. Never printed; sealed with their account or mailbox.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthSecrets {
    /// The client's secret; public clients have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The refresh token that consent gave first. Later ones are in the [`OAuthState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// A service account's key, in PEM form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
}

impl OAuthSecrets {
    /// The longest secret, in bytes: more than a key of 4,096 bits needs.
    pub const BYTES_MAX: usize = 16 * 1024;
}

impl fmt::Debug for OAuthSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OAuthSecrets(hidden)")
    }
}

/// The account or mailbox that tokens belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OAuthOwner {
    /// The tenant.
    pub tenant: TenantId,
    /// The account or the mailbox in it: `account/relay-1`, `mailbox/bounces`.
    pub name: String,
}

impl OAuthOwner {
    /// An account's tokens.
    pub fn account(tenant: &TenantId, id: &AccountId) -> Self {
        Self { tenant: tenant.clone(), name: format!("account/{id}") }
    }

    /// A mailbox's tokens.
    pub fn mailbox(tenant: &TenantId, id: &MailboxId) -> Self {
        Self { tenant: tenant.clone(), name: format!("mailbox/{id}") }
    }

    /// The context that these tokens are sealed for.
    pub fn sealing_context(&self) -> String {
        format!("oauth/{}/{}", self.tenant, self.name)
    }
}

/// The tokens that a grant has given so far, as all nodes share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthState {
    /// The owner of the tokens.
    pub owner: OAuthOwner,
    /// The tokens, encrypted; absent before the first renewal.
    pub tokens: Option<SealedSecret>,
    /// Until when one node has the exclusive right to renew.
    pub renewing_until: Option<Time>,
    /// The version, which increases with each write.
    pub version: i64,
    /// When it was last written.
    pub updated_at: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(grant: OAuthGrant) -> OAuthSettings {
        OAuthSettings {
            preset: None,
            grant,
            token_url: Some("https://login.example/token".to_owned()),
            client_id: "client".to_owned(),
            scope: None,
            directory: None,
            subject: None,
            client_secret_set: false,
            refresh_token_set: false,
            private_key_set: false,
        }
    }

    #[test]
    fn a_preset_fills_in_addresses_and_scopes_and_what_is_given_wins() {
        let microsoft = OAuthSettings {
            preset: Some(OAuthPreset::Microsoft),
            token_url: None,
            directory: Some("contoso.example".to_owned()),
            ..settings(OAuthGrant::ClientCredentials)
        };
        let token = "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token";
        assert_eq!(microsoft.token_url().as_deref(), Some(token));
        let all = Some("https://outlook.office365.com/.default".to_owned());
        assert_eq!((microsoft.scope(OAuthUse::Smtp), microsoft.scope(OAuthUse::Imap)), (all.clone(), all));
        let person = OAuthSettings { grant: OAuthGrant::RefreshToken, ..microsoft };
        let imap = "https://outlook.office.com/IMAP.AccessAsUser.All offline_access";
        assert_eq!(person.scope(OAuthUse::Imap).as_deref(), Some(imap));
        let own = OAuthSettings {
            scope: Some("mail".to_owned()),
            token_url: Some("https://x.example/".to_owned()),
            ..person
        };
        assert_eq!(own.scope(OAuthUse::Smtp).as_deref(), Some("mail"));
        assert_eq!(own.token_url().as_deref(), Some("https://x.example/"));
        assert_eq!(settings(OAuthGrant::RefreshToken).scope(OAuthUse::Smtp), None);
    }

    #[test]
    fn secrets_go_out_under_tls_or_stay_on_this_machine() {
        for good in [
            "https://login.example/token?x=1",
            "http://127.0.0.1:9/token",
            "http://localhost/token",
            "http://[::1]:80/t",
        ] {
            assert!(is_token_url(good), "{good}");
        }
        for bad in [
            "http://login.example/token",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://127.0.0.1@evil.example/",
            "https://user@login.example/",
            "https:///token",
            "ftp://x",
            "",
            "https://a b",
        ] {
            assert!(!is_token_url(bad), "{bad}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_grant_is_named() {
        let fields = |settings: &OAuthSettings, secrets: &OAuthSecrets| {
            settings.check(secrets).into_iter().map(|(field, _)| field).collect::<Vec<_>>()
        };
        let none = OAuthSecrets::default();
        let secret = OAuthSecrets { client_secret: Some("s".to_owned()), ..none.clone() };
        let client = settings(OAuthGrant::ClientCredentials);
        assert_eq!(fields(&client, &none), ["oauth.client_secret"]);
        assert_eq!(fields(&client, &secret), [""; 0]);
        assert_eq!(fields(&settings(OAuthGrant::RefreshToken), &none), [""; 0], "consent comes later");
        assert_eq!(fields(&settings(OAuthGrant::ServiceAccount), &none), ["oauth.private_key"]);
        let key = OAuthSecrets { private_key: Some("MIIE".to_owned()), ..none };
        assert_eq!(fields(&settings(OAuthGrant::ServiceAccount), &key), ["oauth.private_key"]);
        let bare = OAuthSettings { token_url: None, client_id: String::new(), ..client.clone() };
        assert_eq!(fields(&bare, &secret), ["oauth.client_id", "oauth.token_url"]);
        let microsoft = OAuthSettings { preset: Some(OAuthPreset::Microsoft), token_url: None, ..client };
        assert_eq!(fields(&microsoft, &secret), ["oauth.directory"]);
        let evil = OAuthSettings { directory: Some("x/../y?z".to_owned()), ..microsoft };
        assert_eq!(fields(&evil, &secret), ["oauth.directory"]);
    }

    #[test]
    fn another_secret_is_another_grant() {
        let of = |refresh_token: &str| {
            let secrets =
                OAuthSecrets { refresh_token: Some(refresh_token.to_owned()), ..OAuthSecrets::default() };
            settings(OAuthGrant::RefreshToken).fingerprint(&secrets)
        };
        let consent = |client_secret: &str| {
            let client_secret = Some(client_secret.to_owned());
            let secrets = OAuthSecrets {
                client_secret,
                refresh_token: Some("r".to_owned()),
                ..OAuthSecrets::default()
            };
            settings(OAuthGrant::RefreshToken).consent(&secrets)
        };
        assert_eq!(consent("old"), consent("new"), "a client's secret may change under a consent");
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
        assert!(
            !format!("{:?}", OAuthSecrets { client_secret: Some("hunter2".into()), ..Default::default() })
                .contains("hunter2")
        );
    }
}
