//! Sign-in with tokens.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use postway_dispatch::{
    probe::AccountProber,
    transport::{RelayCredentials, SmtpSettings},
};
use postway_domain::{
    Account, AccountKind, AccountSettings, Clock, RelayTlsMode, SendFailure, Time,
    failure::{FailureCategory, FailurePhase},
    oauth::{OAuthGrant, OAuthOwner, OAuthSecrets, OAuthSettings, OAuthUse},
    secret::SecretKey,
};
use postway_net::AddressGuard;
use postway_oauth::{OAuthTokens, OwnedGrant, TokenSource};
use postway_store::memory::MemoryStore;
use postway_testkit::{HttpSource, SinkAction, SinkVerb, SmtpSink, SourceReply};

use super::{assert_accepted, open, send, settings};

struct Still(AtomicI64);

impl Clock for Still {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}

fn secret_key() -> Arc<SecretKey> {
    Arc::new(SecretKey::from_bytes(&[7; 32]).unwrap())
}

fn tokens(clock: &Arc<Still>) -> OAuthTokens {
    let guard = Arc::new(AddressGuard::with_loopback());
    OAuthTokens::new(Arc::new(MemoryStore::shared()), clock.clone(), secret_key(), guard)
}

fn grant(server: &HttpSource) -> OAuthSettings {
    OAuthSettings {
        preset: None,
        grant: OAuthGrant::ClientCredentials,
        token_url: Some(server.url("/token")),
        client_id: "client".to_owned(),
        scope: None,
        directory: None,
        subject: None,
        client_secret_set: true,
        refresh_token_set: false,
        private_key_set: false,
    }
}

fn secrets() -> OAuthSecrets {
    OAuthSecrets { client_secret: Some("s3cret".to_owned()), ..OAuthSecrets::default() }
}

fn source(server: &HttpSource, clock: &Arc<Still>) -> TokenSource {
    tokens(clock).source(OwnedGrant {
        owner: OAuthOwner::account(&"default".parse().unwrap(), &"relay".parse().unwrap()),
        settings: grant(server),
        secrets: secrets(),
        username: "bob".to_owned(),
        purpose: OAuthUse::Smtp,
        extra_roots_pem: None,
        egress: Default::default(),
    })
}

fn by_token(sink: &SmtpSink, source: &TokenSource) -> SmtpSettings {
    let credentials = RelayCredentials::Token { username: "bob".to_owned(), source: source.clone() };
    SmtpSettings { credentials: Some(credentials), allow_plaintext_auth: true, ..settings(sink) }
}

fn ok(token: &str, seconds: u32) -> SourceReply {
    SourceReply::ok(format!(r#"{{"access_token":"{token}","expires_in":{seconds}}}"#))
}

async fn sink(mechanisms: &str, token: &str) -> SmtpSink {
    SmtpSink::builder().auth("bob", token).auth_mechanisms(mechanisms).start().await
}

async fn refused(settings: &SmtpSettings) -> SendFailure {
    let failure = open(settings).await.unwrap_err();
    assert!(failure.is_account() && failure.phase == FailurePhase::Auth, "{failure:?}");
    failure
}

#[tokio::test]
async fn a_token_signs_in_by_either_mechanism_whatever_its_length() {
    for (mechanisms, token) in [
        ("PLAIN XOAUTH2", "ya29.token".to_owned()),
        ("PLAIN OAUTHBEARER", "ya29.token".to_owned()),
        ("XOAUTH2 OAUTHBEARER", "x".repeat(11_000)),
    ] {
        let sink = sink(mechanisms, &token).await;
        let source = TokenSource::given(token.clone().into());
        assert_accepted(&send(&mut open(&by_token(&sink, &source)).await.unwrap()).await);
        assert_eq!(sink.mails()[0].user.as_deref(), Some("bob"), "{mechanisms}");
    }
}

#[tokio::test]
async fn the_reasons_of_a_refusal_are_heard_out_and_the_token_is_not_told() {
    for mechanisms in ["XOAUTH2", "OAUTHBEARER"] {
        let sink = sink(mechanisms, "right-token").await;
        let failure = refused(&by_token(&sink, &TokenSource::given("wrong-token".into()))).await;
        assert_eq!((failure.code.as_ref(), failure.category), ("smtp_535", FailureCategory::Authentication));
        assert!(failure.message.contains(r#""status":"400""#), "{}", failure.message);
        assert!(!failure.message.contains("wrong-token"), "{}", failure.message);
    }
    let failure = refused(&by_token(&sink("PLAIN LOGIN", "x").await, &TokenSource::given("t".into()))).await;
    assert_eq!(failure.code, "auth_mechanism_unsupported");
}

#[tokio::test]
async fn a_token_that_was_withdrawn_is_renewed_once_and_then_the_account_is_at_fault() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    server.serve_in_turn("/token", vec![ok("token-1", 3_600), ok("token-2", 3_600)]);
    let (source, first) = (source(&server, &clock), sink("XOAUTH2", "token-1").await);
    assert_accepted(&send(&mut open(&by_token(&first, &source)).await.unwrap()).await);
    let second = sink("XOAUTH2", "token-2").await;
    clock.0.fetch_add(61_000, Ordering::SeqCst);
    assert_accepted(&send(&mut open(&by_token(&second, &source)).await.unwrap()).await);
    assert_eq!((server.requests().len(), second.ledger().connections), (2, 2));
    // A relay that refuses the newest token as well is not asked a third time.
    let third = sink("XOAUTH2", "token-3").await;
    assert_eq!(refused(&by_token(&third, &source)).await.code, "smtp_535");
    assert_eq!((server.requests().len(), third.ledger().connections), (2, 1));
    clock.0.fetch_add(61_000, Ordering::SeqCst);
    let gone = SourceReply::Whole {
        status: 400,
        headers: vec![],
        body: br#"{"error":"invalid_grant","error_description":"consent was withdrawn"}"#.to_vec(),
    };
    server.serve("/token", gone);
    let failure = refused(&by_token(&third, &source)).await;
    assert_eq!(failure.code, "oauth_refused");
    let message = &failure.message;
    assert!(
        message.contains("authentication failed") && message.contains("consent was withdrawn"),
        "{message}"
    );
}

#[tokio::test]
async fn without_a_token_the_relay_is_not_connected_to() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    let sink = sink("XOAUTH2", "token").await;
    for (reply, code) in [
        (SourceReply::status(503), "oauth_unavailable"),
        (SourceReply::ok("<html>"), "oauth_settings"),
        (SourceReply::ok(r#"{"error":"invalid_client"}"#), "oauth_refused"),
    ] {
        server.serve("/token", reply);
        assert_eq!(refused(&by_token(&sink, &source(&server, &clock))).await.code, code);
    }
    assert_eq!(sink.ledger().connections, 0);
}

#[tokio::test]
async fn a_connection_is_not_used_beyond_the_end_of_its_token() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    server.serve_in_turn("/token", vec![ok("token", 0)]);
    let relay = sink("XOAUTH2", "token").await;
    let mut connection = open(&by_token(&relay, &source(&server, &clock))).await.unwrap();
    assert!(!connection.is_reusable(), "its token has ended");
    let lasting = open(&by_token(&relay, &TokenSource::given("token".into()))).await;
    assert!(lasting.unwrap().is_reusable());
}

#[tokio::test]
async fn a_sign_in_that_passes_later_asks_for_no_other_token() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    server.serve("/token", ok("token", 3_600));
    let busy = SinkAction::reply("454 4.7.0 Temporary authentication failure");
    let relay = SmtpSink::builder()
        .auth("bob", "token")
        .auth_mechanisms("XOAUTH2")
        .once(SinkVerb::Auth, busy)
        .start()
        .await;
    let source = source(&server, &clock);
    source.token().await.unwrap();
    clock.0.fetch_add(61_000, Ordering::SeqCst);
    assert!(open(&by_token(&relay, &source)).await.unwrap_err().is_transient());
    assert_accepted(&send(&mut open(&by_token(&relay, &source)).await.unwrap()).await);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_trial_of_an_account_tells_what_its_grant_lacks() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    let sink = sink("XOAUTH2", "token").await;
    let (tenant, id) = ("default".parse().unwrap(), "relay".parse().unwrap());
    let place = Account::grant_sealing_context(&tenant, &id);
    let text = r#"{"client_secret":"s3cret"}"#;
    let account = Account {
        settings: AccountSettings {
            kind: AccountKind::Smtp,
            host: Some("127.0.0.1".to_owned()),
            port: Some(sink.port()),
            tls: RelayTlsMode::None,
            username: Some("bob".to_owned()),
            allow_plaintext_auth: true,
            oauth: Some(grant(&server)),
            ..AccountSettings::sandbox()
        },
        secret: Some(secret_key().seal(&place, text).unwrap()),
        tenant,
        id,
        version: 1,
        created_at: Time::from_millis(0),
        updated_at: Time::from_millis(0),
    };
    let guard = Arc::new(AddressGuard::with_loopback());
    let probe = async |account: &Account| {
        let tokens = tokens(&clock);
        let prober = AccountProber::new(secret_key(), clock.clone(), guard.clone(), tokens, "client.example");
        let steps = prober.probe(account).await;
        steps.into_iter().map(|step| (step.name, step.outcome.err())).collect::<Vec<_>>()
    };
    server.serve("/token", SourceReply::ok(r#"{"error":"invalid_scope"}"#));
    let steps = probe(&account).await;
    let [("auth", Some(failure))] = steps.as_slice() else { panic!("{steps:?}") };
    assert!(failure.message.contains("invalid_scope"), "{}", failure.message);
    server.serve("/token", ok("token", 3_600));
    assert_eq!(probe(&account).await, [("connect", None), ("tls", None), ("auth", None)]);
}
