//! Tests with a real OAuth 2 server, which rotates refresh tokens and revokes a consent whose old token is
//! used again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use postway_domain::{
    Clock, Time,
    oauth::{OAuthGrant, OAuthOwner, OAuthSecrets, OAuthSettings, OAuthUse},
    secret::SecretKey,
};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_oauth::{OAuthTokens, OwnedGrant, TokenErrorKind, flow::ConsentClient};
use postway_store::memory::MemoryStore;
use postway_testkit::OidcServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const PATIENCE: Duration = Duration::from_secs(60);

struct Still(AtomicI64);

impl Clock for Still {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}

struct House {
    server: &'static OidcServer,
    store: Arc<MemoryStore>,
    clock: Arc<Still>,
    guard: Arc<AddressGuard>,
}

impl House {
    async fn open() -> Self {
        let server = tokio::task::spawn_blocking(OidcServer::shared).await.unwrap();
        let clock = Arc::new(Still(AtomicI64::new(1_700_000_000_000)));
        let guard = Arc::new(AddressGuard::with_loopback());
        Self { server, store: Arc::new(MemoryStore::shared()), clock, guard }
    }

    fn http(&self) -> HttpClient {
        HttpClient::new(self.guard.clone(), HttpSettings::default())
    }

    fn node(&self) -> OAuthTokens {
        let key = Arc::new(SecretKey::from_bytes(&[7; SecretKey::BYTES]).unwrap());
        OAuthTokens::new(self.store.clone(), self.clock.clone(), key, self.guard.clone())
    }

    fn person(&self) -> ConsentClient {
        ConsentClient {
            token_url: self.server.url("/token"),
            client_id: "person".to_owned(),
            client_secret: Some("person-secret".into()),
            scope: Some("openid offline_access mail".to_owned()),
        }
    }

    fn grant(&self, client: &str, refresh_token: Option<String>) -> OwnedGrant {
        let grant = match refresh_token {
            Some(_) => OAuthGrant::RefreshToken,
            None => OAuthGrant::ClientCredentials,
        };
        OwnedGrant {
            owner: OAuthOwner::account(&"default".parse().unwrap(), &client.parse().unwrap()),
            settings: OAuthSettings {
                preset: None,
                grant,
                token_url: Some(self.server.url("/token")),
                client_id: client.to_owned(),
                scope: Some("mail".to_owned()),
                directory: None,
                subject: None,
                client_secret_set: true,
                refresh_token_set: refresh_token.is_some(),
                private_key_set: false,
            },
            secrets: OAuthSecrets {
                client_secret: Some(format!("{client}-secret")),
                refresh_token,
                private_key: None,
            },
            username: "ada".to_owned(),
            purpose: OAuthUse::Smtp,
            extra_roots_pem: None,
            egress: Default::default(),
        }
    }
}

#[tokio::test]
async fn a_machine_gets_tokens_by_its_own_secret_and_a_wrong_one_is_named() {
    let house = House::open().await;
    let source = house.node().source(house.grant("machine", None));
    let token = source.token().await.unwrap();
    assert!(token.left(house.clock.now()) > Duration::from_secs(3_500));
    let mut wrong = house.grant("machine", None);
    wrong.secrets.client_secret = Some("guessed".to_owned());
    let error = house.node().source(wrong).token().await.unwrap_err();
    assert_eq!(error.kind, TokenErrorKind::Refused);
    assert!(error.to_string().contains("invalid_client"), "{error}");
}

#[tokio::test]
async fn a_person_consents_on_a_device_and_the_refresh_tokens_that_follow_are_each_used_once() {
    let house = House::open().await;
    let (person, http) = (house.person(), house.http());
    let device = person.begin_device(&http, &house.server.url("/device/auth")).await.unwrap();
    let (consented, said) = tokio::join!(
        tokio::time::timeout(PATIENCE, person.finish_device(&http, &device)),
        house.server.consent("ada", &device.verification_uri, &device.user_code),
    );
    assert!(said.contains("Sign-in Success"), "{said}");
    let first = consented.unwrap().unwrap();
    let grant = || house.grant("person", Some(first.clone()));
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(house.node().source(grant()).token().await.unwrap().expose().to_owned());
        house.clock.0.fetch_add(3_600_000, Ordering::SeqCst);
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 3, "each was renewed by the refresh token of the one before");
    // A node that died before it stored the new token would use the old one again.
    let forgetful = OAuthTokens::new(
        Arc::new(MemoryStore::shared()),
        house.clock.clone(),
        Arc::new(SecretKey::from_bytes(&[7; SecretKey::BYTES]).unwrap()),
        house.guard.clone(),
    );
    let error = forgetful.source(grant()).token().await.unwrap_err();
    assert_eq!(error.kind, TokenErrorKind::Refused);
    assert!(error.to_string().contains("invalid_grant"), "{error}");
    let error = house.node().source(grant()).token().await.unwrap_err();
    assert!(error.to_string().contains("invalid_grant"), "the server has ended the consent: {error}");
}

#[tokio::test]
async fn a_person_consents_in_a_browser_that_comes_back_here() {
    let house = House::open().await;
    let (person, http) = (house.person(), house.http());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let back = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let consent = person.begin_code(&house.server.url("/auth"), &back).unwrap();
    let browser = async {
        let (mut browser, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 8_192];
        let length = browser.read(&mut head).await.unwrap();
        browser
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let head = String::from_utf8(head[..length].to_vec()).unwrap();
        head.strip_prefix("GET /?").unwrap().split(' ').next().unwrap().to_owned()
    };
    let (query, _) = tokio::join!(
        tokio::time::timeout(PATIENCE, browser),
        house.server.consent("ada", consent.url.as_str(), ""),
    );
    let query = query.unwrap();
    let other = person.begin_code(&house.server.url("/auth"), &back).unwrap();
    assert!(other.code_of(&query).is_err(), "what another consent began is not taken");
    let code = consent.code_of(&query).unwrap();
    let refresh_token = person.finish_code(&http, &consent, code.clone()).await.unwrap();
    house.node().source(house.grant("person", Some(refresh_token))).token().await.unwrap();
    let again = person.finish_code(&http, &consent, code).await.unwrap_err();
    assert!(again.to_string().contains("invalid_grant"), "{again}");
}
