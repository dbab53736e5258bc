//! Tests renewals with a server that misbehaves on demand and the in-memory store.

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
    oauth::{OAuthGrant, OAuthOwner, OAuthSecrets, OAuthSettings, OAuthState, OAuthUse},
    secret::SecretKey,
};
use postway_net::AddressGuard;
use postway_oauth::{AccessToken, OAuthTokens, OwnedGrant, TokenError, TokenErrorKind, TokenSource};
use postway_store::{
    DirectoryStore, Store,
    memory::MemoryStore,
    record::{ChangeResult, DirectoryChange},
};
use postway_testkit::{ClosedPort, HttpSource, SourceReply};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A clock that only the test advances.
struct Still(AtomicI64);

impl Clock for Still {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// A token server, a store, and the nodes that use both.
struct House {
    server: HttpSource,
    store: Arc<MemoryStore>,
    clock: Arc<Still>,
}

impl House {
    async fn open() -> Self {
        let clock = Arc::new(Still(AtomicI64::new(1_700_000_000_000)));
        Self { server: HttpSource::start().await, store: Arc::new(MemoryStore::shared()), clock }
    }

    fn pass(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    fn node(&self) -> OAuthTokens {
        let key = Arc::new(SecretKey::from_bytes(&[7; SecretKey::BYTES]).unwrap());
        let store: Arc<dyn Store> = self.store.clone();
        OAuthTokens::new(store, self.clock.clone(), key, Arc::new(AddressGuard::with_loopback()))
    }

    fn grant(&self, grant: OAuthGrant) -> OwnedGrant {
        OwnedGrant {
            owner: owner(),
            settings: OAuthSettings {
                preset: None,
                grant,
                token_url: Some(self.server.url("/token")),
                client_id: "client".to_owned(),
                scope: Some("mail.send offline".to_owned()),
                directory: None,
                subject: None,
                client_secret_set: false,
                refresh_token_set: false,
                private_key_set: false,
            },
            secrets: OAuthSecrets {
                client_secret: Some("s3cret".to_owned()),
                refresh_token: (grant == OAuthGrant::RefreshToken).then(|| "refresh-1".to_owned()),
                private_key: None,
            },
            username: "shop@example.com".to_owned(),
            purpose: OAuthUse::Smtp,
            extra_roots_pem: None,
            egress: Default::default(),
        }
    }

    fn source(&self, grant: OAuthGrant) -> TokenSource {
        self.node().source(self.grant(grant))
    }

    fn answers(&self, replies: Vec<SourceReply>) {
        self.server.serve_in_turn("/token", replies);
    }

    /// The forms that were posted so far.
    fn forms(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.into_iter().map(|request| String::from_utf8(request.body).unwrap()).collect()
    }

    async fn state(&self) -> Option<OAuthState> {
        self.store.oauth_state(&owner()).await.unwrap()
    }
}

fn owner() -> OAuthOwner {
    OAuthOwner::account(&"default".parse().unwrap(), &"relay".parse().unwrap())
}

fn token(number: u32) -> Value {
    json!({"access_token": format!("access-{number}"), "token_type": "Bearer", "expires_in": 3600})
}

fn rotated(number: u32) -> Value {
    let mut answer = token(number);
    answer["refresh_token"] = format!("refresh-{}", number + 1).into();
    answer
}

fn ok(answer: &Value) -> SourceReply {
    SourceReply::ok(answer.to_string()).header("content-type", "application/json")
}

fn text(token: &Result<AccessToken, TokenError>) -> &str {
    token.as_ref().unwrap().expose()
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_renewed_before_its_end() {
    let house = House::open().await;
    house.answers(vec![ok(&token(1)), ok(&token(2))]);
    let source = house.source(OAuthGrant::ClientCredentials);
    for _ in 0..3 {
        assert_eq!(text(&source.token().await), "access-1");
    }
    assert_eq!(
        house.forms(),
        ["grant_type=client_credentials&scope=mail.send+offline&client_id=client&client_secret=s3cret"]
    );
    house.pass(3_600 - 301);
    assert_eq!(text(&source.token().await), "access-1");
    house.pass(2);
    assert_eq!(text(&source.token().await), "access-2");
    assert_eq!(house.forms().len(), 2);
}

#[tokio::test]
async fn nodes_that_ask_at_once_share_one_renewal_and_its_token() {
    let house = House::open().await;
    let (gate, held) = ok(&rotated(1)).held();
    house.answers(vec![held, SourceReply::status(500)]);
    let sources = [(); 3].map(|()| house.source(OAuthGrant::RefreshToken));
    let asking = sources.map(|source| tokio::spawn(async move { source.token().await }));
    house.server.wait_for(1, PATIENCE).await;
    gate.send_replace(true);
    for asked in asking {
        assert_eq!(text(&asked.await.unwrap()), "access-1");
    }
    assert_eq!(house.forms().len(), 1, "one of them renewed");
}

#[tokio::test]
async fn a_rotated_refresh_token_is_the_next_one_after_a_restart_too() {
    let house = House::open().await;
    house.answers(vec![ok(&rotated(1)), ok(&rotated(2)), ok(&token(3)), ok(&token(4))]);
    for number in 1..=4 {
        let source = house.source(OAuthGrant::RefreshToken);
        assert_eq!(text(&source.token().await), format!("access-{number}"));
        house.pass(3_600);
    }
    let used: Vec<bool> = house
        .forms()
        .iter()
        .zip(["refresh-1", "refresh-2", "refresh-3", "refresh-3"])
        .map(|(form, token)| form.contains(&format!("refresh_token={token}&")))
        .collect();
    assert_eq!(used, [true; 4], "{:?}", house.forms());
    let sealed = house.state().await.unwrap().tokens.unwrap();
    assert!(!String::from_utf8_lossy(&sealed.0).contains("refresh"), "what is stored is sealed");
}

#[tokio::test]
async fn a_new_client_secret_goes_on_with_the_rotated_refresh_token() {
    let house = House::open().await;
    house.answers(vec![ok(&rotated(1)), ok(&token(2))]);
    assert_eq!(text(&house.source(OAuthGrant::RefreshToken).token().await), "access-1");
    let mut changed = house.grant(OAuthGrant::RefreshToken);
    changed.secrets.client_secret = Some("n3w".to_owned());
    assert_eq!(text(&house.node().source(changed).token().await), "access-2", "the old token is not used");
    assert!(house.forms()[1].contains("refresh_token=refresh-2&"), "{:?}", house.forms());
    let mut other = house.grant(OAuthGrant::RefreshToken);
    other.secrets.refresh_token = Some("another-consent".to_owned());
    house.node().source(other).token().await.unwrap();
    assert!(house.forms()[2].contains("refresh_token=another-consent&"), "{:?}", house.forms());
}

#[tokio::test]
async fn what_a_server_says_instead_of_a_token_is_told_and_bounded() {
    let long = format!("{{\"access_token\": \"{}\"}}", "x".repeat(1_000_000));
    let refusal = json!({"error": "invalid_grant", "error_description": "AADSTS700082: the refresh token has expired\r\nTrace"});
    let refused =
        |status| SourceReply::Whole { status, headers: vec![], body: refusal.to_string().into_bytes() };
    use TokenErrorKind::{Refused, Settings, Unavailable};
    for (reply, kind, says) in [
        (refused(400), Refused, "invalid_grant: AADSTS700082: the refresh token has expired"),
        (refused(200), Refused, "invalid_grant"),
        (refused(503), Unavailable, "invalid_grant"),
        (SourceReply::ok("<html>Sign in</html>"), Settings, "no JSON"),
        (SourceReply::ok("[]"), Settings, "no access_token"),
        (SourceReply::ok("{}"), Settings, "no access_token"),
        (SourceReply::ok("{\"access_token\": \"a\\u0001b\"}"), Settings, "cannot be used"),
        (SourceReply::ok("{\"access_token\": \"\"}"), Settings, "cannot be used"),
        (SourceReply::ok("{\"access_token\": \"t\", \"token_type\": \"mac\"}"), Settings, "bearer"),
        (SourceReply::ok(long), Unavailable, "more than 65536 bytes"),
        (SourceReply::Endless, Unavailable, "more than 65536 bytes"),
        (SourceReply::Cut { declared: 100, body: b"{\"acc".to_vec() }, Unavailable, "broke off"),
        (SourceReply::Raw(b"nonsense\r\n\r\n".to_vec()), Unavailable, "no token"),
        (SourceReply::status(502), Unavailable, "502"),
        (SourceReply::redirect(302, "https://elsewhere.example/"), Settings, "302"),
        (SourceReply::status(404), Settings, "check the token_url"),
    ] {
        let house = House::open().await;
        house.answers(vec![reply.clone()]);
        let error = house.source(OAuthGrant::RefreshToken).token().await.unwrap_err();
        let message = error.to_string();
        assert!(error.kind == kind && message.contains(says), "{reply:?}: {error:?}");
        assert!(message.len() < 500 && !message.contains(['\r', '\n']), "{message}");
        assert!(!message.contains("s3cret") && !message.contains("refresh-1"), "{message}");
        assert_eq!(house.state().await.unwrap().renewing_until, None, "the turn is over: {reply:?}");
    }
}

#[tokio::test]
async fn a_token_without_an_end_is_renewed_soon_and_texts_are_numbers() {
    let house = House::open().await;
    let text_seconds = json!({"access_token": "access-2", "expires_in": "3600"});
    house.answers(vec![ok(&json!({"access_token": "access-1"})), ok(&text_seconds), ok(&token(3))]);
    let source = house.source(OAuthGrant::ClientCredentials);
    assert_eq!(text(&source.token().await), "access-1");
    house.pass(481);
    assert_eq!(text(&source.token().await), "access-2");
    house.pass(3_000);
    assert_eq!(text(&source.token().await), "access-2");
}

#[tokio::test]
async fn while_the_server_is_away_the_old_token_is_good_until_its_end() {
    let house = House::open().await;
    house.answers(vec![ok(&token(1)), SourceReply::status(503)]);
    let source = house.source(OAuthGrant::ClientCredentials);
    assert_eq!(text(&source.token().await), "access-1");
    house.pass(3_500);
    assert_eq!(text(&source.token().await), "access-1");
    for _ in 0..5 {
        assert_eq!(text(&source.token().await), "access-1");
    }
    assert_eq!(house.forms().len(), 2, "a failure stands for a moment");
    house.pass(101);
    assert!(source.token().await.unwrap_err().is_transient());

    let closed = ClosedPort::take();
    let mut grant = house.grant(OAuthGrant::ClientCredentials);
    grant.settings.token_url = Some(format!("http://127.0.0.1:{}/token", closed.port()));
    let error = house.node().source(grant).token().await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_and_a_new_one_is_not_at_fault() {
    let house = House::open().await;
    house.answers(vec![ok(&token(1)), ok(&token(2))]);
    let source = house.source(OAuthGrant::ClientCredentials);
    let first = source.token().await.unwrap();
    assert!(source.another(&first).await.unwrap().is_none(), "it is new: another would be refused as well");
    house.pass(61);
    let second = source.another(&first).await.unwrap().unwrap();
    assert_eq!(second.expose(), "access-2");
    // A caller whose first token was refused as well gets the second one without a request.
    assert_eq!(source.another(&first).await.unwrap().unwrap().expose(), "access-2");
    let other_node = house.source(OAuthGrant::ClientCredentials);
    assert_eq!(other_node.another(&first).await.unwrap().unwrap().expose(), "access-2");
    assert_eq!(house.forms().len(), 2);
    assert!(TokenSource::given("own".into()).another(&first).await.unwrap().is_none());
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_lose_what_was_given() {
    let house = House::open().await;
    let (gate, held) = ok(&rotated(1)).held();
    house.answers(vec![held]);
    let node = house.node();
    let source = node.source(house.grant(OAuthGrant::RefreshToken));
    let asking = tokio::spawn(async move { source.token().await });
    house.server.wait_for(1, PATIENCE).await;
    asking.abort();
    assert!(asking.await.is_err());
    gate.send_replace(true);
    tokio::time::timeout(PATIENCE, node.finish()).await.unwrap();
    let state = house.state().await.unwrap();
    assert!(state.tokens.is_some() && state.renewing_until.is_none());
    assert_eq!(text(&house.source(OAuthGrant::RefreshToken).token().await), "access-1");
    assert_eq!(house.forms().len(), 1);
}

/// A node took the turn and died after the response: the server has marked the refresh token as used.
#[tokio::test]
async fn after_a_death_between_answer_and_store_the_next_node_takes_its_turn_and_tells_what_is_to_be_done() {
    let house = House::open().await;
    let dead = OAuthState {
        owner: owner(),
        tokens: None,
        renewing_until: Some(house.clock.now().plus(Duration::from_secs(45))),
        version: 1,
        updated_at: house.clock.now(),
    };
    let put = DirectoryChange::PutOAuthState(dead, None);
    assert_eq!(house.store.change(put, None).await.unwrap(), ChangeResult::Done);
    let used = json!({"error": "invalid_grant", "error_description": "refresh token already used"});
    house.answers(vec![SourceReply::Whole {
        status: 400,
        headers: vec![],
        body: used.to_string().into_bytes(),
    }]);
    house.pass(46);
    let error = house.source(OAuthGrant::RefreshToken).token().await.unwrap_err();
    assert_eq!(error.kind, TokenErrorKind::Refused);
    assert!(error.to_string().contains("refresh token already used"), "{error}");
    let state = house.state().await.unwrap();
    assert!(state.renewing_until.is_none() && state.version == 3, "{state:?}");
    // A person consents again.
    house.answers(vec![ok(&rotated(7))]);
    let mut grant = house.grant(OAuthGrant::RefreshToken);
    grant.secrets.refresh_token = Some("refresh-7".to_owned());
    assert_eq!(text(&house.node().source(grant).token().await), "access-7");
}

#[tokio::test]
async fn what_could_not_be_stored_is_not_used_and_is_stored_the_next_time() {
    let house = House::open().await;
    let (gate, held) = ok(&rotated(1)).held();
    house.answers(vec![held, SourceReply::status(500)]);
    let node = house.node();
    let source = node.source(house.grant(OAuthGrant::RefreshToken));
    let asking = tokio::spawn({
        let source = source.clone();
        async move { source.token().await }
    });
    house.server.wait_for(1, PATIENCE).await;
    // Another node took the turn meanwhile, and ended it without tokens.
    let mine = house.state().await.unwrap();
    let over = OAuthState { renewing_until: None, version: mine.version + 1, ..mine.clone() };
    let put = DirectoryChange::PutOAuthState(over, Some(mine.version));
    assert_eq!(house.store.change(put, None).await.unwrap(), ChangeResult::Done);
    gate.send_replace(true);
    let error = asking.await.unwrap().unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("could not be stored"), "{error}");
    house.pass(6);
    assert_eq!(text(&source.token().await), "access-1", "stored now, and so used");
    assert_eq!(house.forms().len(), 1);
    assert_eq!(text(&house.source(OAuthGrant::RefreshToken).token().await), "access-1");
}

#[tokio::test]
async fn a_server_that_wants_the_secret_as_a_password_gets_it_so() {
    let house = House::open().await;
    let unknown = json!({"error": "invalid_client"}).to_string().into_bytes();
    house.answers(vec![SourceReply::Whole { status: 401, headers: vec![], body: unknown }, ok(&token(1))]);
    assert_eq!(text(&house.source(OAuthGrant::ClientCredentials).token().await), "access-1");
    let requests = house.server.requests();
    assert_eq!(requests[1].header("authorization"), Some("Basic Y2xpZW50OnMzY3JldA=="));
    assert!(!house.forms()[1].contains("s3cret"));
}

#[tokio::test]
async fn without_consent_nothing_is_requested_and_the_error_says_how_to_consent() {
    let house = House::open().await;
    let mut grant = house.grant(OAuthGrant::RefreshToken);
    grant.secrets.refresh_token = None;
    let error = house.node().source(grant).token().await.unwrap_err();
    assert!(error.kind == TokenErrorKind::Settings && error.to_string().contains("authorize"), "{error}");
    assert!(house.forms().is_empty());
}
