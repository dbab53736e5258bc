//! Signing in at a provider: what the page's calls make of whom the provider has proven. The protocol itself
//! is tested in `postway-oauth`.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::{body::Body, http::Request};
use postway_api::{AwayFailure, AwaySignIn, ProviderSignIn, RequestOrigin, SignInProvider};
use postway_domain::UserRole;
use serde_json::{Map, Value, json};

use crate::support::{Answer, Api};

/// A provider that proves whomever the test says.
#[derive(Default)]
struct ToldProvider(Mutex<Option<Value>>);

#[async_trait]
impl SignInProvider for ToldProvider {
    fn issuer(&self) -> &str {
        "https://id.example"
    }

    async fn begin(&self, redirect_uri: &str) -> Result<AwaySignIn, AwayFailure> {
        Ok(AwaySignIn {
            url: format!("https://id.example/auth?redirect_uri={redirect_uri}"),
            state: "the-state".to_owned(),
            nonce: "the-nonce".to_owned(),
            verifier: "the-verifier".to_owned(),
        })
    }

    async fn redeem(
        &self,
        code: &str,
        begun: &AwaySignIn,
        _: &str,
    ) -> Result<Map<String, Value>, AwayFailure> {
        assert_eq!((begun.nonce.as_str(), begun.verifier.as_str()), ("the-nonce", "the-verifier"));
        match (code, self.0.lock().unwrap().clone()) {
            ("good", Some(claims)) => Ok(claims.as_object().unwrap().clone()),
            ("away", _) => Err(AwayFailure::Unavailable("away".to_owned())),
            _ => Err(AwayFailure::Refused("no".to_owned())),
        }
    }

    async fn read_logout(&self, token: &str) -> Result<String, AwayFailure> {
        match token.split_once(' ') {
            Some(("over", subject)) => Ok(subject.to_owned()),
            _ if token == "away" => Err(AwayFailure::Unavailable("away".to_owned())),
            _ => Err(AwayFailure::Refused("no".to_owned())),
        }
    }

    async fn logout_url(&self, back: &str) -> Option<String> {
        Some(format!("https://id.example/end?back={back}"))
    }
}

struct Office {
    api: Api,
    provider: Arc<ToldProvider>,
}

impl Office {
    async fn open(just_in_time: bool) -> Self {
        let provider = Arc::new(ToldProvider::default());
        let api = Api::start().await.with_provider(ProviderSignIn {
            provider: provider.clone(),
            name: "Example".to_owned(),
            redirect_url: "https://mail.example/v1/session/oidc/callback".to_owned(),
            role_claim: Some("roles".to_owned()),
            roles: [("ops".to_owned(), UserRole::Operator), ("chiefs".to_owned(), UserRole::Admin)].into(),
            default_role: None,
            tenants_claim: Some("tenants".to_owned()),
            default_tenants: Vec::new(),
            just_in_time,
        });
        Self { api, provider }
    }

    async fn get(&self, path: &str, cookie: &str) -> Answer {
        let request = Request::get(path).header("host", "mail.example").header("cookie", cookie);
        self.api.ask(request.body(Body::empty()).unwrap()).await
    }

    /// What the provider posts about somebody.
    async fn tell(&self, form: &'static str, from: &str) -> Answer {
        let origin = RequestOrigin::direct(from.parse().unwrap());
        let request = Request::post("/v1/session/oidc/logout").extension(origin);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.api.ask(request.body(Body::from(form)).unwrap()).await
    }

    /// Begins a sign-in; the cookie that carries it.
    async fn begin(&self) -> String {
        let answer = self.get("/v1/session/oidc", "").await;
        assert_eq!(answer.status, 303);
        assert!(answer.headers["location"].to_str().unwrap().starts_with("https://id.example/auth?"));
        let set = answer.headers["set-cookie"].to_str().unwrap();
        assert!(
            set.starts_with("__Host-postway_away=") && set.contains("HttpOnly; SameSite=Lax; Secure"),
            "{set}"
        );
        set.split(';').next().unwrap().to_owned()
    }

    /// Signs this person in; where the browser ends, and its session cookie.
    async fn sign_in(&self, claims: Value) -> (String, Option<String>) {
        *self.provider.0.lock().unwrap() = Some(claims);
        let away = self.begin().await;
        self.finish("code=good&state=the-state", &away).await
    }

    async fn finish(&self, query: &str, cookie: &str) -> (String, Option<String>) {
        let answer = self.get(&format!("/v1/session/oidc/callback?{query}"), cookie).await;
        assert_eq!(answer.status, 303, "{:?}", answer.body);
        let set = answer.headers.get_all("set-cookie").iter().map(|set| set.to_str().unwrap());
        let session = set.filter(|set| set.starts_with("__Host-postway_session="));
        let session = session.map(|set| set.split(';').next().unwrap().to_owned()).next();
        (answer.headers["location"].to_str().unwrap().to_owned(), session)
    }
}

fn ada(roles: Value) -> Value {
    json!({
        "sub": "1", "preferred_username": "Ada", "name": "Ada Lovelace", "email": "ada@example.net",
        "email_verified": true, "roles": roles, "tenants": ["default"],
    })
}

#[tokio::test]
async fn a_person_becomes_a_user_just_in_time_and_has_the_role_that_the_provider_gives() {
    let office = Office::open(true).await;
    assert_eq!(office.get("/v1/session/ways", "").await.ok(200)["provider"], "Example");
    let (ends, session) = office.sign_in(ada(json!(["ops"]))).await;
    assert_eq!(ends, "/");
    let shown = office.get("/v1/session", &session.unwrap()).await.ok(200);
    assert_eq!(
        (&shown["user"], &shown["role"], &shown["way"]),
        (&json!("ada"), &json!("operator"), &json!("oidc"))
    );
    let stored = office.api.get("/v1/users/ada").await.ok(200);
    assert_eq!((&stored["issuer"], &stored["subject"]), (&json!("https://id.example"), &json!("1")));
    // The next sign-in brings what the provider says then; without a role nobody is signed in.
    let (_, session) = office.sign_in(ada(json!(["ops", "chiefs"]))).await;
    let first = session.unwrap();
    assert_eq!(office.get("/v1/session", &first).await.ok(200)["role"], "admin");
    assert_eq!(office.sign_in(ada(json!([]))).await, ("/#/refused/no_role".to_owned(), None));
    office.api.patch("/v1/users/ada", json!({"disabled": true})).await.ok(200);
    assert_eq!(office.sign_in(ada(json!(["ops"]))).await.0, "/#/refused/disabled");
    office.get("/v1/session", &first).await.refused(401, "unauthorized");
    // A name that is taken is never taken over.
    let mut twin = ada(json!(["ops"]));
    twin["sub"] = json!("2");
    twin["email_verified"] = json!(false);
    let (ends, session) = office.sign_in(twin).await;
    assert_eq!(ends, "/");
    assert_eq!(office.get("/v1/session", &session.unwrap()).await.ok(200)["user"], "ada@example.net");
    let out = office.get("/v1/session/oidc/logout", "").await;
    assert_eq!(out.headers["location"], "https://id.example/end?back=https://mail.example/");
}

#[tokio::test]
async fn what_the_provider_takes_away_ends_open_sessions_and_forged_tokens_end_none() {
    let office = Office::open(true).await;
    let is_open = async |session: &str| office.get("/v1/session", session).await.status == 200;
    let (_, session) = office.sign_in(ada(json!(["ops"]))).await;
    let session = session.unwrap();
    for (form, status) in
        [("", 400), ("logout_token=forged", 400), ("logout_token=away", 503), ("logout_token=over+2", 200)]
    {
        assert_eq!(office.tell(form, "192.0.2.1").await.status, status, "{form}");
        assert!(is_open(&session).await, "{form}");
    }
    let over = office.tell("logout_token=over+1", "192.0.2.1").await;
    assert_eq!((over.status.as_u16(), over.headers["cache-control"].to_str().unwrap()), (200, "no-store"));
    assert!(!is_open(&session).await);
    assert_eq!(office.tell("logout_token=over+1", "192.0.2.1").await.status, 200, "again does no harm");
    // Who has no role any more at the next sign-in loses the sessions of other browsers.
    let (_, session) = office.sign_in(ada(json!(["ops"]))).await;
    let session = session.unwrap();
    assert_eq!(office.sign_in(ada(json!([]))).await.0, "/#/refused/no_role");
    assert!(!is_open(&session).await);
    let log = office.api.get("/v1/audit").await.ok(200);
    let why = |one: &Value| (one["action"] == "user.sign_out").then(|| one["detail"]["why"].clone());
    let why: Vec<Value> = log["data"].as_array().unwrap().iter().filter_map(why).collect();
    assert_eq!(
        why,
        [json!("no_role"), json!("logout_token")],
        "where none was open there is nothing to note"
    );
    // A stranger who tries many is held up, and the provider is not.
    let mut held = 0;
    for _ in 0..40 {
        held += usize::from(office.tell("logout_token=forged", "203.0.113.7").await.status == 429);
    }
    assert!(held >= 25, "{held}");
    assert_eq!(office.tell("logout_token=over+1", "192.0.2.1").await.status, 200);
    let without = Api::start().await;
    let request = Request::post("/v1/session/oidc/logout").body(Body::from("logout_token=over+1")).unwrap();
    without.ask(request).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_user_who_is_expected_is_found_by_an_address_that_the_provider_verified() {
    let office = Office::open(false).await;
    assert_eq!(office.sign_in(ada(json!(["ops"]))).await.0, "/#/refused/no_user");
    let expected =
        json!({"name": "lovelace", "role": "viewer", "tenants": ["default"], "email": "Ada@Example.net"});
    office.api.post("/v1/users", expected).await.ok(201);
    let mut unverified = ada(json!(["ops"]));
    unverified["email_verified"] = json!(false);
    assert_eq!(office.sign_in(unverified).await.0, "/#/refused/no_user");
    let (ends, session) = office.sign_in(ada(json!(["ops"]))).await;
    assert_eq!(ends, "/");
    assert_eq!(office.get("/v1/session", &session.unwrap()).await.ok(200)["user"], "lovelace");
    // Bound once: another person with that address is not this user.
    let mut thief = ada(json!(["chiefs"]));
    thief["sub"] = json!("3");
    assert_eq!(office.sign_in(thief).await.0, "/#/refused/no_user");
}

#[tokio::test]
async fn an_answer_that_this_browser_did_not_ask_for_opens_nothing() {
    let office = Office::open(true).await;
    *office.provider.0.lock().unwrap() = Some(ada(json!(["ops"])));
    let away = office.begin().await;
    for (query, cookie, word) in [
        ("code=good&state=the-state", "", "expired"),
        ("code=good&state=the-state", "__Host-postway_away=AAAA", "expired"),
        ("code=good&state=another", away.as_str(), "expired"),
        ("code=good", away.as_str(), "expired"),
        ("error=access_denied&state=the-state", away.as_str(), "refused"),
        ("code=bad&state=the-state", away.as_str(), "refused"),
        ("code=away&state=the-state", away.as_str(), "unavailable"),
    ] {
        let (ends, session) = office.finish(query, cookie).await;
        assert_eq!((ends, session), (format!("/#/refused/{word}"), None), "{query}");
    }
    // The session cookie's seal is no key for this one, and the other way round.
    let misused = away.replace("postway_away", "postway_session");
    office.get("/v1/session", &misused).await.refused(401, "unauthorized");
    office.api.clock.forward_ms(10 * 60 * 1_000);
    assert_eq!(office.finish("code=good&state=the-state", &away).await.0, "/#/refused/expired");
    let without = Api::start().await;
    let request = Request::get("/v1/session/oidc").body(Body::empty()).unwrap();
    without.ask(request).await.refused(404, "not_found");
}
