//! Tokens of a real OAuth 2 server, on a real Dovecot that asks that server about them.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use postway_domain::{
    Clock, Time, WatchedMailbox,
    mailbox::{MailboxAuth, MailboxTls, WatchStart},
    oauth::{OAuthGrant, OAuthSettings},
};
use postway_inbound::{FolderSource, ImapSource, imap::ImapLogin, probe};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_oauth::{OAuthTokens, flow::ConsentClient};
use postway_store::memory::MemoryStore;
use postway_testkit::{Dovecot, OidcServer};
use serde_json::json;

use super::{mail, secret_key};

struct Still(AtomicI64);

impl Clock for Still {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}

fn http() -> HttpClient {
    HttpClient::new(Arc::new(AddressGuard::with_loopback()), HttpSettings::default())
}

/// A person of this name consents; returns their refresh token.
async fn consent(server: &OidcServer, login: &str) -> String {
    let person = ConsentClient {
        token_url: server.url("/token"),
        client_id: "person".to_owned(),
        client_secret: Some("person-secret".into()),
        scope: Some("openid offline_access mail".to_owned()),
    };
    let device = person.begin_device(&http(), &server.url("/device/auth")).await.unwrap();
    server.consent(login, &device.verification_uri, &device.user_code).await;
    person.finish_device(&http(), &device).await.unwrap()
}

fn mailbox(server: &OidcServer, dovecot: &Dovecot, user: &str, refresh_token: &str) -> WatchedMailbox {
    let mut mailbox = super::mailbox(WatchStart::Beginning, &[]);
    let settings = &mut mailbox.settings;
    (settings.host, settings.port, settings.tls) = ("127.0.0.1".to_owned(), dovecot.port(), MailboxTls::None);
    (settings.username, settings.auth) = (user.to_owned(), MailboxAuth::Xoauth2);
    settings.oauth = Some(OAuthSettings {
        preset: None,
        grant: OAuthGrant::RefreshToken,
        token_url: Some(server.url("/token")),
        client_id: "person".to_owned(),
        scope: Some("mail".to_owned()),
        directory: None,
        subject: None,
        client_secret_set: true,
        refresh_token_set: true,
        private_key_set: false,
    });
    let secrets = json!({"oauth": {"client_secret": "person-secret", "refresh_token": refresh_token}});
    let place = WatchedMailbox::sealing_context(&mailbox.tenant, &mailbox.id);
    mailbox.secret = Some(secret_key().seal(&place, &secrets.to_string()).unwrap());
    mailbox
}

#[tokio::test]
async fn a_mailbox_is_read_with_tokens_that_are_renewed_and_a_withdrawn_consent_is_told() {
    let server = tokio::task::spawn_blocking(OidcServer::shared).await.unwrap();
    let url = server.introspection_url();
    let dovecot = tokio::task::spawn_blocking(move || Dovecot::start_with_tokens(&url)).await.unwrap();
    dovecot.append("ada", "INBOX", &mail(1));
    let mailbox = mailbox(server, &dovecot, "ada", &consent(server, "ada").await);
    let clock = Arc::new(Still(AtomicI64::new(1_700_000_000_000)));
    let tokens = OAuthTokens::new(
        Arc::new(MemoryStore::shared()),
        clock.clone(),
        Arc::new(secret_key()),
        Arc::new(AddressGuard::with_loopback()),
    );
    let source =
        ImapSource::new(Arc::new(secret_key()), Arc::new(AddressGuard::with_loopback())).with_tokens(tokens);
    let mut folder = source.open(&mailbox).await.unwrap();
    assert_eq!(folder.status().await.unwrap().exists, 1);
    folder.close().await;
    assert!(probe(&source, &mailbox).await.iter().all(|step| step.ok));

    // Another person's mailbox is not opened by ada's token.
    let mut other = mailbox.clone();
    other.settings.username = "bob".to_owned();
    let refused = source.open(&other).await.err().unwrap();
    assert!(refused.is_setup && refused.message.contains("login refused"), "{refused}");

    // The token is revoked early: Dovecot refuses it, and another is requested.
    let withdrawn = token_of(&source, &mailbox).await;
    withdraw(server, withdrawn.clone()).await;
    clock.0.fetch_add(61_000, Ordering::SeqCst);
    source.open(&mailbox).await.unwrap().close().await;
    assert_ne!(token_of(&source, &mailbox).await, withdrawn);

    // The consent ends with it if its refresh token is used a second time.
    clock.0.fetch_add(3_600_000, Ordering::SeqCst);
    let steps = {
        let forgetful = OAuthTokens::new(
            Arc::new(MemoryStore::shared()),
            clock.clone(),
            Arc::new(secret_key()),
            Arc::new(AddressGuard::with_loopback()),
        );
        let source = ImapSource::new(Arc::new(secret_key()), Arc::new(AddressGuard::with_loopback()))
            .with_tokens(forgetful);
        probe(&source, &mailbox).await
    };
    let last = steps.last().unwrap();
    assert!(!last.ok && last.message.contains("invalid_grant"), "{steps:?}");
}

/// The token that would be used for the mailbox now.
async fn token_of(source: &ImapSource, mailbox: &WatchedMailbox) -> String {
    use secrecy::ExposeSecret;
    match source.access(mailbox).await.unwrap().connection.login {
        ImapLogin::OAuth2 { token, .. } => token.expose_secret().to_owned(),
        ImapLogin::Password { .. } => panic!("the mailbox has a grant"),
    }
}

async fn withdraw(server: &OidcServer, token: String) {
    let request = postway_net::http::SendRequest {
        url: postway_net::http::parse_url(&server.url("/withdraw")).unwrap(),
        body: token.into(),
        content_type: "text/plain".to_owned(),
        headers: Vec::new(),
        auth: Default::default(),
        timeout: super::PATIENCE,
        answer_bytes_max: 1_000,
    };
    assert!(http().send(&request).await.unwrap().is_success());
}
