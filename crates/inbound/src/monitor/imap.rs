//! Folders on IMAP servers: settings and secrets become a connection, a session becomes an open folder.

use std::{str::FromStr, sync::Arc, time::Duration};

use async_trait::async_trait;
use postway_domain::{
    Time, WatchedMailbox,
    mailbox::{MailboxAuth, MailboxSettings, MailboxTls},
    secret::SecretKey,
};
use postway_net::{Guard, Proxy, TlsClient};
use secrecy::SecretString;
use serde::Deserialize;
use tokio::{sync::mpsc, time::Instant};

use super::source::{OpenFolder, Source, SourceError};
use crate::mailbox::{Connection, Deadlines, Fetched, Folder, Listed, Login, Page, Session, TlsMode};

/// Opens folders on IMAP servers.
pub struct ImapSource {
    /// Opens stored passwords and tokens.
    pub secret_key: Arc<SecretKey>,
    /// What mailboxes that a tenant's own key named may connect to.
    pub guard: Arc<Guard>,
    /// One for all connections.
    pub tls: TlsClient,
    /// How long each step may take.
    pub deadlines: Deadlines,
}

impl ImapSource {
    /// With the usual deadlines.
    pub fn new(secret_key: Arc<SecretKey>, guard: Arc<Guard>) -> Self {
        Self { secret_key, guard, tls: TlsClient::new(), deadlines: Deadlines::default() }
    }

    /// How to reach a mailbox.
    pub fn connection(&self, mailbox: &WatchedMailbox) -> Result<Connection, SourceError> {
        let settings = &mailbox.settings;
        let secrets = self.secrets(mailbox)?;
        let (username, missing) = (settings.username.clone(), || {
            SourceError::setup("the mailbox has no password or token: set one")
        });
        let login = match settings.auth {
            MailboxAuth::Password => {
                Login::Password { username, password: secrets.password.ok_or_else(missing)?.into() }
            }
            MailboxAuth::Xoauth2 => {
                let token = secrets.token.or(secrets.password).ok_or_else(missing)?;
                Login::OAuth2 { username, token: token.into() }
            }
        };
        Ok(Connection {
            host: settings.host.clone(),
            port: settings.port,
            tls: match settings.tls {
                MailboxTls::Implicit => TlsMode::Implicit,
                MailboxTls::Starttls => TlsMode::Starttls,
                MailboxTls::None => TlsMode::None,
            },
            login,
            extra_roots_pem: settings.ca_pem.clone(),
            proxy: proxy(settings, secrets.proxy_password.as_deref())?,
            guard: self.guard.clone(),
        })
    }

    fn secrets(&self, mailbox: &WatchedMailbox) -> Result<Secrets, SourceError> {
        let Some(sealed) = &mailbox.secret else { return Ok(Secrets::default()) };
        let place = WatchedMailbox::secret_place(&mailbox.tenant, &mailbox.id);
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

/// What is sealed with a mailbox.
#[derive(Default, Deserialize)]
struct Secrets {
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    proxy_password: Option<String>,
}

fn proxy(settings: &MailboxSettings, password: Option<&str>) -> Result<Option<Proxy>, SourceError> {
    let Some(text) = &settings.proxy else { return Ok(None) };
    let mut url = url::Url::parse(text).map_err(|_| SourceError::setup("the proxy is not a URL"))?;
    if password.is_some() && url.set_password(password).is_err() {
        return Err(SourceError::setup("the proxy's URL cannot hold a password"));
    }
    Proxy::from_str(url.as_str()).map(Some).map_err(|error| SourceError::setup(error.to_string()))
}

#[async_trait]
impl Source for ImapSource {
    async fn open(&self, mailbox: &WatchedMailbox) -> Result<Box<dyn OpenFolder>, SourceError> {
        let connection = self.connection(mailbox)?;
        let session = Session::open(&connection, &self.tls, self.deadlines).await?;
        Ok(Box::new(ImapFolder { session, folder: mailbox.settings.folder.clone() }))
    }
}

struct ImapFolder {
    session: Session,
    folder: String,
}

#[async_trait]
impl OpenFolder for ImapFolder {
    async fn look(&mut self) -> Result<Folder, SourceError> {
        Ok(self.session.select(&self.folder).await?)
    }

    async fn list(&mut self, first: u32, last: u32, limit: usize) -> Result<Page, SourceError> {
        Ok(self.session.list(first, last, limit).await?)
    }

    async fn fetch(
        &mut self,
        mails: &[Listed],
        mail_bytes_max: usize,
        out: mpsc::Sender<Fetched>,
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
            // The server's word is a hint: the folder is looked at in any case.
            match self.session.idle(Instant::now() + poll).await {
                Ok(_) => return Ok(()),
                // It offers IDLE and refuses it: then it is asked like one that does not.
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
