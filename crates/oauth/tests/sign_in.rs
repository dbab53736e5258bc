//! Signing in at an OpenID provider: a real one, and one that lies.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use postway_domain::{Clock, Time};
use postway_net::{
    AddressGuard,
    http::{HttpClient, HttpSettings},
};
use postway_oauth::oidc::{OidcError, OidcProvider, OidcSettings};
use postway_testkit::OidcServer;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The provider's tokens are dated by its own clock.
struct WallClock;

impl Clock for WallClock {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Time {
        Time::from_millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
    }
}

fn provider(issuer: &str, client: &str) -> OidcProvider {
    let settings = OidcSettings {
        issuer: issuer.to_owned(),
        client_id: client.to_owned(),
        client_secret: Some(format!("{client}-secret").into()),
        scopes: String::new(),
    };
    let http = HttpClient::new(Arc::new(AddressGuard::with_loopback()), HttpSettings::default());
    OidcProvider::new(settings, http, Arc::new(WallClock))
}

/// Reads the head of a request, and answers with this body.
async fn answer(browser: &mut TcpStream, body: &str) -> String {
    let mut head = vec![0; 16_384];
    let length = browser.read(&mut head).await.unwrap();
    let written = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    browser.write_all(written.as_bytes()).await.unwrap();
    String::from_utf8_lossy(&head[..length]).into_owned()
}

#[tokio::test]
async fn a_person_signs_in_at_a_real_provider_and_a_code_works_once() {
    let server = tokio::task::spawn_blocking(OidcServer::shared).await.unwrap();
    let issuer = server.url("");
    let provider = provider(&issuer, "person");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let back = format!("http://localhost:{}/", listener.local_addr().unwrap().port());
    let begun = provider.begin(&back).await.unwrap();
    let browser = async {
        let (mut browser, _) = listener.accept().await.unwrap();
        let head = answer(&mut browser, "").await;
        let query = head.strip_prefix("GET /?").unwrap().split(' ').next().unwrap().to_owned();
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect::<Vec<(String, String)>>()
    };
    let (query, _) =
        tokio::join!(tokio::time::timeout(PATIENCE, browser), server.consent("ada", &begun.url, ""));
    let query = query.unwrap();
    let given = |name: &str| query.iter().find(|(found, _)| found == name).unwrap().1.clone();
    assert_eq!(given("state"), begun.state);
    let other = provider.begin(&back).await.unwrap();
    let code = given("code");
    // A code that another browser began is of no use without its verifier.
    let stolen = provider.redeem(&code, &other.verifier, &begun.nonce, &back).await;
    assert!(matches!(stolen, Err(OidcError::Refused(_))), "{stolen:?}");
    let proven = provider.redeem(&code, &begun.verifier, &begun.nonce, &back).await.unwrap();
    assert_eq!((&proven.claims["sub"], &proven.claims["aud"]), (&json!("ada"), &json!("person")));
    let again = provider.redeem(&code, &begun.verifier, &begun.nonce, &back).await;
    assert!(matches!(again, Err(OidcError::Refused(_))), "{again:?}");
    let logout = provider.logout_url("http://localhost/").await.unwrap();
    assert!(
        logout.starts_with(&server.url("/session/end")) && logout.contains("client_id=person"),
        "{logout}"
    );
}

/// What the lying provider says.
#[derive(Default)]
struct Lies {
    keys: Value,
    id_token: String,
    /// The issuer that its document names; the right one if empty.
    issuer: String,
}

/// A provider that says what the test says.
struct LyingProvider {
    issuer: String,
    lies: Arc<Mutex<Lies>>,
    keys_read: Arc<AtomicUsize>,
}

impl LyingProvider {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (lies, keys_read) = (Arc::new(Mutex::new(Lies::default())), Arc::new(AtomicUsize::new(0)));
        let (told, at, counted) = (lies.clone(), issuer.clone(), keys_read.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (told, at, counted) = (told.clone(), at.clone(), counted.clone());
                tokio::spawn(async move {
                    let mut seen = [0; 4_096];
                    let length = client.peek(&mut seen).await.unwrap();
                    let line = String::from_utf8_lossy(&seen[..length]).into_owned();
                    let body = {
                        let lies = told.lock().unwrap();
                        if line.starts_with("GET /keys") {
                            counted.fetch_add(1, Ordering::SeqCst);
                            lies.keys.to_string()
                        } else if line.starts_with("POST /token") {
                            json!({"access_token": "a", "id_token": lies.id_token}).to_string()
                        } else {
                            let issuer = if lies.issuer.is_empty() { &at } else { &lies.issuer };
                            json!({
                                "issuer": issuer, "authorization_endpoint": format!("{at}/auth"),
                                "token_endpoint": format!("{at}/token"), "jwks_uri": format!("{at}/keys"),
                            })
                            .to_string()
                        }
                    };
                    answer(&mut client, &body).await;
                });
            }
        });
        Self { issuer, lies, keys_read }
    }

    fn tell(&self, keys: &[&SigningPair], id_token: String) {
        let mut lies = self.lies.lock().unwrap();
        lies.keys = json!({"keys": keys.iter().map(|pair| pair.public()).collect::<Vec<_>>()});
        lies.id_token = id_token;
    }

    fn claims(&self, change: Value) -> Value {
        let now = WallClock.now().as_millis() / 1_000;
        let mut claims = json!({"iss": self.issuer, "aud": "postway", "sub": "1", "nonce": "n", "iat": now, "exp": now + 60});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }
}

/// A key pair with its id.
struct SigningPair {
    id: String,
    pkcs8: Vec<u8>,
    public: Vec<u8>,
}

impl SigningPair {
    fn make(id: &str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&aws_lc_rs::rand::SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        Self {
            id: id.to_owned(),
            pkcs8: pkcs8.as_ref().to_vec(),
            public: pair.public_key().as_ref().to_vec(),
        }
    }

    fn public(&self) -> Value {
        let x = BASE64_URL_SAFE_NO_PAD.encode(&self.public);
        json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.id, "use": "sig", "alg": "EdDSA"})
    }

    fn sign(&self, kid: &str, claims: &Value) -> String {
        let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::EdDSA) };
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_ed_der(&self.pkcs8)).unwrap()
    }
}

#[tokio::test]
async fn what_a_lying_provider_says_signs_nobody_in() {
    let lying = LyingProvider::start().await;
    let provider = provider(&lying.issuer, "postway");
    let redeem = async || provider.redeem("code", "verifier", "n", "http://localhost/").await;
    let (ours, theirs) = (SigningPair::make("1"), SigningPair::make("1"));
    lying.tell(&[&ours], ours.sign("1", &lying.claims(json!({}))));
    assert_eq!(redeem().await.unwrap().claims["sub"], "1");
    let now = WallClock.now().as_millis() / 1_000;
    for change in [
        json!({"aud": "another"}),
        json!({"iss": "https://another.example"}),
        json!({"exp": now - 120, "iat": now - 300}),
        json!({"nonce": "another"}),
    ] {
        lying.tell(&[&ours], ours.sign("1", &lying.claims(change.clone())));
        let refused = redeem().await;
        assert!(matches!(refused, Err(OidcError::Token(_))), "{change}: {refused:?}");
    }
    // Another key under the same id, a public key used as a secret, and no signature at all.
    let claims = lying.claims(json!({}));
    let hmac = jsonwebtoken::encode(
        &Header { kid: Some("1".to_owned()), ..Header::new(Algorithm::HS256) },
        &claims,
        &EncodingKey::from_secret(&ours.public),
    )
    .unwrap();
    let encode = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = format!("{}.{}.", encode(json!({"alg": "none", "kid": "1"})), encode(claims.clone()));
    for token in [theirs.sign("1", &claims), hmac, unsigned, "a.b.c".to_owned(), String::new()] {
        lying.tell(&[&ours], token.clone());
        let refused = redeem().await;
        assert!(matches!(refused, Err(OidcError::Token(_))), "{token}: {refused:?}");
    }
}

#[tokio::test]
async fn a_logout_token_is_believed_as_it_was_signed_and_an_id_token_is_none() {
    let lying = LyingProvider::start().await;
    let provider = provider(&lying.issuer, "postway");
    let (ours, theirs) = (SigningPair::make("1"), SigningPair::make("1"));
    let id_token = ours.sign("1", &lying.claims(json!({})));
    lying.tell(&[&ours], id_token.clone());
    let mut claims = lying.claims(json!({
        "jti": "7", "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
    }));
    claims.as_object_mut().unwrap().remove("nonce");
    let logout = ours.sign("1", &claims);
    assert_eq!(provider.read_logout(&logout).await.unwrap(), "1");
    for token in [id_token, theirs.sign("1", &claims), "a.b.c".to_owned(), String::new()] {
        let refused = provider.read_logout(&token).await;
        assert!(matches!(refused, Err(OidcError::Token(_))), "{token}: {refused:?}");
    }
    // And it signs nobody in.
    lying.tell(&[&ours], logout);
    let refused = provider.redeem("code", "verifier", "n", "http://localhost/").await;
    assert!(matches!(refused, Err(OidcError::Token(_))), "{refused:?}");
}

#[tokio::test]
async fn a_provider_that_changes_its_key_goes_on_and_unknown_keys_are_not_looked_up_without_end() {
    let lying = LyingProvider::start().await;
    let provider = provider(&lying.issuer, "postway");
    let redeem = async || provider.redeem("code", "verifier", "n", "http://localhost/").await;
    let (old, new) = (SigningPair::make("old"), SigningPair::make("new"));
    let claims = lying.claims(json!({}));
    lying.tell(&[&old], old.sign("old", &claims));
    redeem().await.unwrap();
    redeem().await.unwrap();
    assert_eq!(lying.keys_read.load(Ordering::SeqCst), 1, "keys are kept");
    lying.tell(&[&new], new.sign("new", &claims));
    redeem().await.unwrap();
    assert_eq!(lying.keys_read.load(Ordering::SeqCst), 2, "the new key was fetched");
    // The old key is not published any more.
    lying.tell(&[&new], old.sign("old", &claims));
    assert!(matches!(redeem().await, Err(OidcError::Token(_))));
    for number in 0..200 {
        lying.tell(&[&new], new.sign(&format!("unknown-{number}"), &claims));
        assert!(matches!(redeem().await, Err(OidcError::Token(_))));
    }
    assert!(lying.keys_read.load(Ordering::SeqCst) <= 5, "{:?}", lying.keys_read);
    // Whoever has the right key is not kept out by that.
    lying.tell(&[&new], new.sign("new", &claims));
    redeem().await.unwrap();
}

#[tokio::test]
async fn a_provider_under_another_name_or_away_is_not_available() {
    let lying = LyingProvider::start().await;
    lying.lies.lock().unwrap().issuer = format!("{}/", lying.issuer);
    let refused = provider(&lying.issuer, "postway").begin("http://localhost/").await;
    assert!(
        matches!(&refused, Err(OidcError::Unavailable(why)) if why.contains("to the letter")),
        "{refused:?}"
    );
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let away = provider(&format!("http://{nobody}"), "postway").begin("http://localhost/").await;
    assert!(matches!(away, Err(OidcError::Unavailable(_))), "{away:?}");
}
