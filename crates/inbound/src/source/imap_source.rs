//! Folders on IMAP servers: turns settings and secrets into a connection, and a session into an open folder.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{
    Time, WatchedMailbox,
    mailbox::{MailboxAuth, MailboxSettings, MailboxTls},
    oauth::{OAuthOwner, OAuthSecrets, OAuthUse},
    secret::SecretKey,
};
use postway_net::{AddressGuard, EgressPath, OutboundProxy, TlsClient};
use postway_oauth::{AccessToken, OAuthTokens, OwnedGrant, TokenSource};
use secrecy::SecretString;
use serde::Deserialize;
use tokio::{sync::mpsc, time::Instant};

use super::{FolderSource, OpenFolder, SourceError};
use crate::imap::{
    FetchedMail, FolderPage, FolderStatus, ImapConnection, ImapDeadlines, ImapFault, ImapLogin, ImapSession,
    ImapTlsMode, ListedMail, MailboxError,
};

/// Opens folders on IMAP servers.
pub struct ImapSource {
    /// Opens stored passwords and tokens.
    pub secret_key: Arc<SecretKey>,
    /// Decides what mailboxes that were set up with a tenant's own key may connect to.
    pub guard: Arc<AddressGuard>,
    /// The TLS client of all connections.
    pub tls: TlsClient,
    /// How long each step may take.
    pub deadlines: ImapDeadlines,
    /// Provides the tokens of grants.
    tokens: Option<OAuthTokens>,
}

/// How to reach a mailbox, with the token of its login.
pub struct MailboxAccess {
    /// The connection.
    pub connection: ImapConnection,
    token: Option<(TokenSource, AccessToken)>,
}

impl MailboxAccess {
    fn with(self, token: &AccessToken) -> Self {
        let mut access = self;
        if let ImapLogin::OAuth2 { token: given, .. } = &mut access.connection.login {
            *given = token.expose().into();
        }
        access
    }

    /// Connects, establishes TLS and signs in; tries once more with another token if the token is refused,
    /// because it may have been revoked early.
    pub async fn open(self, tls: &TlsClient, deadlines: ImapDeadlines) -> Result<ImapSession, MailboxError> {
        let refusal = match ImapSession::open(&self.connection, tls, deadlines).await {
            Err(error) if matches!(error.fault, ImapFault::LoginRefused(_)) => error,
            opened => return opened,
        };
        let Some((source, refused)) = self.token.clone() else { return Err(refusal) };
        match (source.another(&refused).await, refusal) {
            (Ok(Some(another)), _) => {
                ImapSession::open(&self.with(&another).connection, tls, deadlines).await
            }
            (Err(error), MailboxError { server, fault: ImapFault::LoginRefused(words) }) => {
                Err(MailboxError { server, fault: ImapFault::LoginRefused(format!("{words}; then {error}")) })
            }
            (Ok(None) | Err(_), refusal) => Err(refusal),
        }
    }
}

impl ImapSource {
    /// A source with the usual deadlines.
    pub fn new(secret_key: Arc<SecretKey>, guard: Arc<AddressGuard>) -> Self {
        Self { secret_key, guard, tls: TlsClient::new(), deadlines: ImapDeadlines::default(), tokens: None }
    }

    /// Adds tokens, for mailboxes that have a grant.
    pub fn with_tokens(self, tokens: OAuthTokens) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// How to reach a mailbox, with a valid token if it has a grant.
    pub async fn access(&self, mailbox: &WatchedMailbox) -> Result<MailboxAccess, SourceError> {
        let secrets = self.secrets(mailbox)?;
        let Some(grant) = &mailbox.settings.oauth else {
            return Ok(MailboxAccess { connection: self.connection(mailbox, secrets)?, token: None });
        };
        let tokens =
            self.tokens.as_ref().ok_or_else(|| SourceError::setup("tokens cannot be asked for here"))?;
        let source = tokens.source(OwnedGrant {
            owner: OAuthOwner::mailbox(&mailbox.tenant, &mailbox.id),
            settings: grant.clone(),
            secrets: secrets.oauth.clone().unwrap_or_default(),
            username: mailbox.settings.username.clone(),
            purpose: OAuthUse::Imap,
            extra_roots_pem: mailbox.settings.ca_pem.clone(),
            egress: EgressPath::through(proxy(&mailbox.settings, secrets.proxy_password.as_deref())?),
        });
        let token = source.token().await.map_err(|error| match error.is_transient() {
            true => SourceError::passing(error.to_string()),
            false => SourceError::setup(error.to_string()),
        })?;
        let secrets = MailboxSecrets { token: Some(token.expose().to_owned()), ..secrets };
        Ok(MailboxAccess { connection: self.connection(mailbox, secrets)?, token: Some((source, token)) })
    }

    fn connection(
        &self,
        mailbox: &WatchedMailbox,
        secrets: MailboxSecrets,
    ) -> Result<ImapConnection, SourceError> {
        let settings = &mailbox.settings;
        let (username, missing) = (settings.username.clone(), || {
            SourceError::setup("the mailbox has no password or token: set one")
        });
        let login = match settings.auth {
            MailboxAuth::Password => {
                ImapLogin::Password { username, password: secrets.password.ok_or_else(missing)?.into() }
            }
            MailboxAuth::Xoauth2 => {
                let token = secrets.token.or(secrets.password).ok_or_else(missing)?;
                ImapLogin::OAuth2 { username, token: token.into() }
            }
        };
        Ok(ImapConnection {
            host: settings.host.clone(),
            port: settings.port,
            tls: match settings.tls {
                MailboxTls::Implicit => ImapTlsMode::Implicit,
                MailboxTls::Starttls => ImapTlsMode::Starttls,
                MailboxTls::None => ImapTlsMode::None,
            },
            login,
            extra_roots_pem: settings.ca_pem.clone(),
            proxy: proxy(settings, secrets.proxy_password.as_deref())?,
            guard: self.guard.clone(),
        })
    }

    fn secrets(&self, mailbox: &WatchedMailbox) -> Result<MailboxSecrets, SourceError> {
        let Some(sealed) = &mailbox.secret else { return Ok(MailboxSecrets::default()) };
        let place = WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id);
        let text: SecretString = self
            .secret_key
            .open(&place, sealed)
            .map_err(|error| SourceError::setup(error.to_string()))?
            .into();
        // The error is not repeated: it may quote the secret.
        serde_json::from_str(secrecy::ExposeSecret::expose_secret(&text))
            .map_err(|_| SourceError::setup("the mailbox's stored secret cannot be read: set it again"))
    }
}

/// The sealed secrets of a mailbox.
#[derive(Default, Deserialize)]
struct MailboxSecrets {
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    proxy_password: Option<String>,
    #[serde(default)]
    oauth: Option<OAuthSecrets>,
}

fn proxy(settings: &MailboxSettings, password: Option<&str>) -> Result<Option<OutboundProxy>, SourceError> {
    let Some(text) = &settings.proxy else { return Ok(None) };
    let proxy = OutboundProxy::with_password(text, password);
    proxy.map(Some).map_err(|error| SourceError::setup(error.to_string()))
}

#[async_trait]
impl FolderSource for ImapSource {
    async fn open(&self, mailbox: &WatchedMailbox) -> Result<Box<dyn OpenFolder>, SourceError> {
        let access = self.access(mailbox).await?;
        let session = access.open(&self.tls, self.deadlines).await?;
        Ok(Box::new(ImapFolder { session, folder: mailbox.settings.folder.clone() }))
    }
}

struct ImapFolder {
    session: ImapSession,
    folder: String,
}

#[async_trait]
impl OpenFolder for ImapFolder {
    async fn status(&mut self) -> Result<FolderStatus, SourceError> {
        Ok(self.session.select(&self.folder).await?)
    }

    async fn list(&mut self, first: u32, last: u32, limit: usize) -> Result<FolderPage, SourceError> {
        Ok(self.session.list(first, last, limit).await?)
    }

    async fn fetch(
        &mut self,
        mails: &[ListedMail],
        mail_bytes_max: usize,
        out: mpsc::Sender<FetchedMail>,
    ) -> Result<(), SourceError> {
        let mut fetch = self.session.fetch(mails, mail_bytes_max);
        while let Some(fetched) = fetch.next().await? {
            if out.send(fetched).await.is_err() {
                return Err(SourceError::passing("reading the mail was broken off"));
            }
        }
        Ok(())
    }

    async fn first_of_newest(&mut self, count: u32) -> Result<Option<u32>, SourceError> {
        Ok(self.session.first_of_newest(count).await?)
    }

    async fn first_since(&mut self, since: Time) -> Result<Option<u32>, SourceError> {
        let since = jiff::Timestamp::from_millisecond(since.as_millis())
            .map_err(|_| SourceError::setup("the time to start from is out of range"))?;
        Ok(self.session.first_since(since).await?)
    }

    async fn wait(&mut self, poll: Duration) -> Result<(), SourceError> {
        if self.session.has_idle() {
            // The server's answer is only a hint: the folder is read in any case.
            match self.session.idle(Instant::now() + poll).await {
                Ok(_) => return Ok(()),
                // A server that offers IDLE and refuses it is polled.
                Err(error) if error.leaves_session_usable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        tokio::time::sleep(poll).await;
        Ok(())
    }

    async fn mark_seen(&mut self, uid: u32) -> Result<(), SourceError> {
        Ok(self.session.mark_seen(uid).await?)
    }

    async fn move_to(&mut self, uid: u32, folder: &str) -> Result<(), SourceError> {
        Ok(self.session.move_to(uid, folder).await?)
    }

    async fn close(self: Box<Self>) {
        self.session.logout().await;
    }
}
