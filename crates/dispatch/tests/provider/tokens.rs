//! Providers with tokens, which may be revoked before they expire.

use super::*;
use std::sync::atomic::{AtomicI64, Ordering};

use postway_domain::{
    failure::FailurePhase,
    oauth::{OAuthGrant, OAuthOwner, OAuthSecrets, OAuthSettings, OAuthUse},
    secret::SecretKey,
};
use postway_oauth::{OAuthTokens, OwnedGrant};
use postway_store::memory::MemoryStore;
use postway_testkit::{HttpSource, SourceReply};

const SEND: &str = "/v1.0/users/shop@example.net/sendMail";

/// A clock that stops until it is moved.
struct Still(AtomicI64);

impl Clock for Still {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }
}

fn graph(server: &HttpSource, clock: &Arc<Still>) -> ProviderClient {
    let (guard, clock) = (Arc::new(AddressGuard::with_loopback()), clock.clone());
    let secret_key = Arc::new(SecretKey::from_bytes(&[7; 32]).unwrap());
    let tokens = OAuthTokens::new(Arc::new(MemoryStore::new()), clock.clone(), secret_key, guard);
    let source = tokens.source(OwnedGrant {
        owner: OAuthOwner::account(&"default".parse().unwrap(), &"graph".parse().unwrap()),
        settings: OAuthSettings {
            preset: None,
            grant: OAuthGrant::ClientCredentials,
            token_url: Some(server.url("/token")),
            client_id: "c".to_owned(),
            scope: None,
            directory: None,
            subject: None,
            client_secret_set: true,
            refresh_token_set: false,
            private_key_set: false,
        },
        secrets: OAuthSecrets { client_secret: Some("s".to_owned()), ..OAuthSecrets::default() },
        username: "shop@example.net".to_owned(),
        purpose: OAuthUse::Graph,
        extra_roots_pem: None,
        egress: Default::default(),
    });
    let url = server.url("").trim_end_matches('/').to_owned();
    let credentials = ProviderCredentials::Token(source);
    let settings = ProviderSettings { credentials, ..settings(AccountKind::Graph, url) };
    ProviderClient::new(settings, clock).unwrap()
}

fn token(text: &str) -> SourceReply {
    SourceReply::ok(format!(r#"{{"access_token":"{text}","expires_in":3600}}"#))
}

fn taken_by_graph() -> SourceReply {
    SourceReply::Whole {
        status: 202,
        headers: vec![("request-id".to_owned(), "g-1".to_owned())],
        body: Vec::new(),
    }
}

fn withdrawn() -> SourceReply {
    let body = br#"{"error":{"code":"InvalidAuthenticationToken","message":"withdrawn"}}"#.to_vec();
    SourceReply::Whole { status: 401, headers: Vec::new(), body }
}

#[tokio::test]
async fn a_token_that_was_withdrawn_is_exchanged_once_in_the_same_attempt() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    server.serve_in_turn("/token", vec![token("token-1"), token("token-2")]);
    server.serve_in_turn(SEND, vec![taken_by_graph(), withdrawn(), taken_by_graph()]);
    let client = graph(&server, &clock);
    assert_eq!(accepted(send(&client).await.end), "g-1");
    clock.0.fetch_add(61_000, Ordering::SeqCst);
    let (delivery, gate) = send_mail(&client, ONE, BODY).await;
    assert_eq!(accepted(delivery.end), "g-1");
    assert_eq!((gate.commits, gate.begins), (1, 2), "one permission, and each call was let begin");
    let requests = server.requests();
    let shown: Vec<_> = requests.iter().filter(|request| request.path == SEND).collect();
    let shown: Vec<_> = shown.iter().filter_map(|request| request.header("authorization")).collect();
    assert_eq!(shown, ["Bearer token-1", "Bearer token-1", "Bearer token-2"]);
}

#[tokio::test]
async fn a_new_token_that_is_refused_is_the_accounts_fault_and_is_not_exchanged() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    server.serve("/token", token("token-1"));
    server.serve(SEND, withdrawn());
    let failure = not_sent(send(&graph(&server, &clock)).await.end);
    assert!(failure.is_account(), "{failure}");
    assert_eq!((failure.code.as_ref(), server.requests().len()), ("provider_access_denied", 2));
}

#[tokio::test]
async fn without_a_token_nothing_is_called_and_the_gate_is_not_asked() {
    let (server, clock) = (HttpSource::start().await, Arc::new(Still(AtomicI64::new(0))));
    let refusal = br#"{"error":"invalid_client","error_description":"no"}"#.to_vec();
    server.serve("/token", SourceReply::Whole { status: 401, headers: Vec::new(), body: refusal });
    server.serve(SEND, taken_by_graph());
    let (delivery, gate) = send_mail(&graph(&server, &clock), ONE, BODY).await;
    let failure = not_sent(delivery.end);
    assert_eq!((failure.code.as_ref(), failure.phase), ("oauth_refused", FailurePhase::Auth));
    assert_eq!(gate.commits, 0);
    assert!(server.requests().iter().all(|request| request.path == "/token"));
}
