//! People: invited, signed in with password and code, held to their role and tenants, signed out everywhere.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use aws_lc_rs::hmac;
use axum::{
    body::Body,
    http::{HeaderName, Request},
};
use data_encoding::BASE32_NOPAD;
use postway_api::RequestOrigin;
use postway_domain::{Clock, MessageState, RecipientStatus};
use postway_store::PeopleStore;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

const PASSWORD: &str = "correct horse battery";

/// The code that an authenticator app shows for this secret, `steps` steps of thirty seconds from now.
pub fn code(api: &Api, secret: &str, steps: i64) -> String {
    let key = BASE32_NOPAD.decode(secret.as_bytes()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &key);
    let step = api.clock.now().as_millis() / 30_000 + steps;
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag[19] & 0xf);
    let word = u32::from_be_bytes([tag[at] & 0x7f, tag[at + 1], tag[at + 2], tag[at + 3]]);
    format!("{:06}", word % 1_000_000)
}

/// A browser in which somebody is signed in.
pub struct Person {
    pub cookie: String,
    pub csrf: String,
    pub secret: String,
    pub recovery_codes: Vec<String>,
}

impl Person {
    /// Creates a user, and accepts its invitation.
    pub async fn made(api: &Api, name: &str, role: &str, tenants: Value) -> Self {
        let user = json!({"name": name, "role": role, "tenants": tenants});
        api.post("/v1/users", user).await.ok(201);
        let invited = api.post(&format!("/v1/users/{name}/invitation"), json!({})).await.ok(201);
        Self::enrolled(api, invited["invitation"].as_str().unwrap()).await
    }

    /// Accepts an invitation.
    pub async fn enrolled(api: &Api, invitation: &str) -> Self {
        let offered = open(api, "/v1/session/invitation", json!({"invitation": invitation})).await.ok(200);
        let secret = offered["secret"].as_str().unwrap().to_owned();
        assert!(offered["otpauth_url"].as_str().unwrap().contains(&secret));
        let body =
            json!({"enrollment": offered["enrollment"], "password": PASSWORD, "code": code(api, &secret, 0)});
        let answer = open(api, "/v1/session/invitation", body).await;
        let json = answer.ok(200);
        let codes = json["recovery_codes"].as_array().unwrap().iter();
        Self {
            cookie: cookies(&answer),
            csrf: json["session"]["csrf_token"].as_str().unwrap().to_owned(),
            secret,
            recovery_codes: codes.map(|code| code.as_str().unwrap().to_owned()).collect(),
        }
    }

    pub async fn ask(&self, api: &Api, method: &str, path: &str, body: &str) -> Answer {
        self.ask_with(api, method, path, body, &[]).await
    }

    pub async fn ask_with(
        &self,
        api: &Api,
        method: &str,
        path: &str,
        body: &str,
        more: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("cookie", &self.cookie);
        request = request.header("x-csrf-token", &self.csrf).header("content-type", "application/json");
        for (name, value) in more {
            request = request.header(name.parse::<HeaderName>().unwrap(), *value);
        }
        api.ask(request.body(Body::from(body.to_owned())).unwrap()).await
    }
}

/// The cookies that an answer sets.
fn cookies(answer: &Answer) -> String {
    let set = answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    let pairs: Vec<&str> = set
        .inspect(|set| assert!(set.contains("HttpOnly; SameSite=Strict; Secure"), "{set}"))
        .map(|set| set.split(';').next().unwrap())
        .collect();
    pairs.join("; ")
}

/// Asks from a browser that is signed in nowhere.
async fn open(api: &Api, path: &str, body: Value) -> Answer {
    open_from(api, path, body, None, "").await
}

async fn open_from(api: &Api, path: &str, body: Value, from: Option<&str>, cookie: &str) -> Answer {
    let mut request = Request::post(path).header("host", "mail.example.org").header("cookie", cookie);
    if let Some(address) = from {
        request = request.extension(RequestOrigin::direct(address.parse().unwrap()));
    }
    api.ask(request.body(Body::from(body.to_string())).unwrap()).await
}

fn tried(name: &str, password: &str, code: &str) -> Value {
    json!({"user": name, "password": password, "code": code})
}

async fn sign_in(api: &Api, name: &str, password: &str, code: &str) -> Answer {
    open(api, "/v1/session", tried(name, password, code)).await
}

#[tokio::test]
async fn a_person_signs_in_with_password_and_code_and_each_code_opens_once() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "operator", json!(["default"])).await;
    let shown = ada.ask(&api, "GET", "/v1/session", "").await.ok(200);
    assert_eq!(
        (&shown["user"], &shown["role"], &shown["tenant"]),
        (&json!("ada"), &json!("operator"), &json!("default"))
    );
    assert_eq!((&shown["admin"], &shown["scopes"]), (&json!(false), &json!(["send", "read"])));
    // The code of the enrolment is used up, and so is an earlier one.
    for steps in [0, -1] {
        sign_in(&api, "ada", PASSWORD, &code(&api, &ada.secret, steps)).await.refused(401, "unauthorized");
    }
    let next = code(&api, &ada.secret, 1);
    let other_node = api.beside(None);
    let both =
        tokio::join!(sign_in(&api, "Ada", PASSWORD, &next), sign_in(&other_node, "ada", PASSWORD, &next));
    let mut statuses = [both.0.status.as_u16(), both.1.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401], "one code, two nodes, one session");
    api.clock.forward_ms(60_000);
    let fresh = || code(&api, &ada.secret, 0);
    for (name, password, code) in [
        ("ada", "wrong horse battery", fresh()),
        ("nobody", PASSWORD, fresh()),
        ("ada", PASSWORD, "000000".to_owned()),
        ("ada", PASSWORD, String::new()),
        ("ada", "", fresh()),
        ("a b", PASSWORD, fresh()),
    ] {
        sign_in(&api, name, password, &code).await.refused(401, "unauthorized");
    }
    let again = sign_in(&api, "ada", PASSWORD, &fresh()).await;
    again.ok(200);
    assert!(cookies(&again).contains("__Host-postway_session="));
    // A lost device: each recovery code opens once.
    let recovery = &ada.recovery_codes[3];
    sign_in(&api, "ada", PASSWORD, &recovery.to_uppercase()).await.ok(200);
    sign_in(&api, "ada", PASSWORD, recovery).await.refused(401, "unauthorized");
    assert_eq!(api.get("/v1/users/ada").await.ok(200)["recovery_codes"], 9);
    for body in [json!({"user": "ada"}), json!({"user": "ada", "password": "x", "code": "y", "key": "z"})] {
        assert_eq!(open(&api, "/v1/session", body).await.wrong_fields(), ["key"]);
    }
}

#[tokio::test]
async fn an_invitation_opens_once_for_its_user_and_ends_earlier_sessions() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "viewer", json!(["default"])).await;
    let invite = async || {
        let made = api.post("/v1/users/ada/invitation", json!({})).await.ok(201);
        assert!(made["path"].as_str().unwrap().ends_with(made["invitation"].as_str().unwrap()));
        made["invitation"].as_str().unwrap().to_owned()
    };
    let (older, newer) = (invite().await, invite().await);
    let accept = async |invitation: &str| {
        open(&api, "/v1/session/invitation", json!({"invitation": invitation})).await
    };
    accept(&older).await.refused(403, "forbidden");
    accept("AAAA").await.refused(403, "forbidden");
    let offered = accept(&newer).await.ok(200);
    let secret = offered["secret"].as_str().unwrap();
    let confirm = async |password: &str, code: &str| {
        let body = json!({"enrollment": offered["enrollment"], "password": password, "code": code});
        open(&api, "/v1/session/invitation", body).await
    };
    let right = code(&api, secret, 0);
    assert_eq!(confirm("short", &right).await.wrong_fields(), ["password"]);
    assert_eq!(confirm(PASSWORD, "000000").await.wrong_fields(), ["code"]);
    ada.ask(&api, "GET", "/v1/stats", "").await.ok(200);
    confirm("another horse battery", &right).await.ok(200);
    ada.ask(&api, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    confirm("a third horse battery", &right).await.refused(403, "forbidden");
    accept(&newer).await.refused(403, "forbidden");
    // One that lies about too long, or is of who was disabled meanwhile.
    let late = invite().await;
    api.clock.forward_ms(7 * 24 * 60 * 60 * 1_000);
    accept(&late).await.refused(403, "forbidden");
    let last = invite().await;
    api.patch("/v1/users/ada", json!({"disabled": true})).await.ok(200);
    accept(&last).await.refused(403, "forbidden");
    api.post("/v1/users/ada/invitation", json!({})).await.refused(409, "conflict");
}

/// Asks until the answer has this status; it must be so within seconds.
async fn until_status(what: &str, status: u16, ask: impl AsyncFn() -> u16) {
    let began = Instant::now();
    while ask().await != status {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}: {:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_role_taken_away_in_mid_session_and_a_sign_out_hold_on_every_node_within_seconds() {
    let api = Api::start().await;
    let other_node = api.beside(None);
    let ada = Person::made(&api, "ada", "manager", json!(null)).await;
    let entry = json!({"address": "bob@example.net"}).to_string();
    let add = async |node: &Api| ada.ask(node, "POST", "/v1/suppressions", &entry).await.status.as_u16();
    assert_eq!((add(&api).await, add(&other_node).await), (201, 201));
    api.patch("/v1/users/ada", json!({"role": "viewer"})).await.ok(200);
    assert_eq!(add(&api).await, 403, "here at once");
    until_status("the other node believes the old role", 403, async || add(&other_node).await).await;
    // Signed out everywhere, by herself.
    let stats = async |node: &Api| ada.ask(node, "GET", "/v1/stats", "").await.status.as_u16();
    assert_eq!((stats(&api).await, stats(&other_node).await), (200, 200));
    assert_eq!(ada.ask(&api, "DELETE", "/v1/sessions", "").await.status, 204);
    assert_eq!(stats(&api).await, 401);
    until_status("the other node goes on", 401, async || stats(&other_node).await).await;
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one_and_all() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "viewer", json!(["default"])).await;
    let eve = Person::made(&api, "eve", "viewer", json!(["default"])).await;
    let second = sign_in(&api, "ada", PASSWORD, &code(&api, &ada.secret, 1)).await;
    let second = Person {
        cookie: cookies(&second),
        csrf: second.ok(200)["csrf_token"].as_str().unwrap().to_owned(),
        ..ada_of(&ada)
    };
    let listed = ada.ask(&api, "GET", "/v1/sessions", "").await.ok(200);
    let sessions = listed["data"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    let ways: Vec<&str> = sessions.iter().map(|one| one["way"].as_str().unwrap()).collect();
    assert!(ways.contains(&"invitation") && ways.contains(&"password"), "{ways:?}");
    let other = sessions.iter().find(|one| one["current"] == false).unwrap()["id"].as_str().unwrap();
    let path = format!("/v1/sessions/{other}");
    // A stranger learns nothing of it, and ends nothing.
    eve.ask(&api, "DELETE", &path, "").await.refused(404, "not_found");
    second.ask(&api, "GET", "/v1/stats", "").await.ok(200);
    assert_eq!(ada.ask(&api, "DELETE", &path, "").await.status, 204);
    ada.ask(&api, "DELETE", &path, "").await.refused(404, "not_found");
    second.ask(&api, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    // An admin sees and ends those of others.
    let of_ada = api.get("/v1/users/ada/sessions").await.ok(200);
    assert_eq!(of_ada["data"].as_array().unwrap().len(), 1);
    assert_eq!(api.delete("/v1/users/ada/sessions").await, 204);
    ada.ask(&api, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    eve.ask(&api, "GET", "/v1/stats", "").await.ok(200);
    // Signing out ends the session, also for a copy of its cookie; a forged change needs the token.
    let without = Person { csrf: String::new(), ..ada_of(&eve) };
    without.ask(&api, "DELETE", "/v1/sessions", "").await.refused(403, "forbidden");
    assert_eq!(eve.ask(&api, "DELETE", "/v1/session", "").await.status, 204);
    eve.ask(&api, "GET", "/v1/stats", "").await.refused(401, "unauthorized");
    api.get("/v1/sessions").await.refused(403, "forbidden");
}

/// The same browser again.
fn ada_of(person: &Person) -> Person {
    Person {
        cookie: person.cookie.clone(),
        csrf: person.csrf.clone(),
        secret: person.secret.clone(),
        recovery_codes: Vec::new(),
    }
}

#[tokio::test]
async fn a_thousand_wrong_passwords_lock_neither_the_person_nor_the_operator_out() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "operator", json!(["default"])).await;
    let (wrong, throttled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for number in 0..1_000_u32 {
        // From ever new addresses, so that only the account's own tries are bounded.
        let from = std::net::Ipv4Addr::from_bits(0xc633_6400 + number).to_string();
        let body = tried("ada", "wrong horse battery", "123456");
        match open_from(&api, "/v1/session", body, Some(&from), "").await.status.as_u16() {
            401 => wrong.fetch_add(1, Ordering::Relaxed),
            429 => throttled.fetch_add(1, Ordering::Relaxed),
            other => panic!("{other}"),
        };
    }
    assert!(wrong.into_inner() <= 15 && throttled.into_inner() >= 985);
    let next = || tried("ada", PASSWORD, &code(&api, &ada.secret, 1));
    // From elsewhere she must wait; from her own browser she signs in.
    let refused = open_from(&api, "/v1/session", next(), Some("192.0.2.9"), "").await;
    refused.refused(429, "too_many_requests");
    assert!(refused.headers.contains_key("retry-after"));
    open_from(&api, "/v1/session", next(), Some("192.0.2.9"), &ada.cookie).await.ok(200);
    // The session goes on, and the admin key opens.
    ada.ask(&api, "GET", "/v1/stats", "").await.ok(200);
    api.get("/v1/stats").await.ok(200);
    // One address is bounded as well, whatever names it tries.
    let mut seen = 0;
    for number in 0..50 {
        let body = tried(&format!("name-{number}"), "wrong horse battery", "123456");
        seen +=
            usize::from(open_from(&api, "/v1/session", body, Some("203.0.113.5"), "").await.status == 401);
    }
    assert!((5..=12).contains(&seen), "{seen}");
}

#[tokio::test]
async fn names_are_in_the_audit_log_on_the_history_in_explain_and_on_keys() {
    let api = Api::start().await;
    let ada = Person::made(&api, "ada", "admin", json!(["default"])).await;
    api.stored("m-1", MessageState::Failed, &[("bob@example.net", RecipientStatus::Failed)]).await;
    ada.ask(&api, "POST", "/v1/messages/m-1/retry", "").await.ok(200);
    let events = ada.ask(&api, "GET", "/v1/messages/m-1/events", "").await.ok(200);
    let acts = events["data"].as_array().unwrap().iter().filter(|event| event["data"]["by"] == "operator");
    assert_eq!(acts.map(|event| event["data"]["actor"].clone()).collect::<Vec<_>>(), ["user:ada"]);
    let explained = ada.ask(&api, "GET", "/v1/messages/m-1/explain", "").await.ok(200);
    assert_eq!(
        (&explained["acted"]["actor"], &explained["acted"]["type"]),
        (&json!("user:ada"), &json!("replayed"))
    );
    let entry = json!({"address": "bob@example.net"}).to_string();
    assert_eq!(ada.ask(&api, "POST", "/v1/suppressions", &entry).await.status, 201);
    let made = ada.ask(&api, "POST", "/v1/tenants/default/keys", r#"{"name":"shop"}"#).await.ok(201);
    assert_eq!(made["created_by"], "user:ada");
    assert_eq!(made["scopes"], json!(["send", "read", "manage"]));
    let keys = api.get("/v1/tenants/default/keys").await.ok(200);
    assert_eq!(keys["data"][0]["created_by"], "user:ada");
    let log = api.get("/v1/audit").await.ok(200);
    let of_ada: Vec<&str> = log["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["actor"] == "user:ada")
        .map(|one| one["action"].as_str().unwrap())
        .collect();
    assert_eq!(of_ada, ["key.create", "suppression.create", "user.enroll"]);
    let by_key: Vec<&str> = log["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["actor"] == "admin")
        .map(|one| one["action"].as_str().unwrap())
        .collect();
    assert_eq!(by_key, ["user.invite", "user.create"]);
    // Nothing of it is a secret.
    let text = log.to_string();
    assert!(!text.contains(PASSWORD) && !text.contains("argon2") && !text.contains(&ada.secret), "{text}");
}

#[tokio::test]
async fn the_audit_log_is_followed_line_by_line_and_each_is_bound_to_the_one_before() {
    let api = Api::start().await;
    for name in ["ada", "bob", "eve"] {
        api.post("/v1/users", json!({"name": name, "role": "viewer", "tenants": ["default"]})).await.ok(201);
    }
    let first = api.get("/v1/audit/lines?limit=2").await.ok(200);
    let lines = first["data"].as_array().unwrap();
    assert_eq!((lines.len(), &first["position"], &first["head"]["position"]), (2, &json!(2), &json!(3)));
    assert_eq!(lines[1]["previous"], lines[0]["digest"]);
    assert_eq!(lines[0]["previous"].as_str().unwrap(), "0".repeat(64));
    let rest = api.get("/v1/audit/lines?after=2&wait=5").await.ok(200);
    assert_eq!(
        (&rest["data"][0]["target"], &rest["data"][0]["digest"]),
        (&json!("eve"), &rest["head"]["digest"])
    );
    let waiting = Instant::now();
    let writing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        api.post("/v1/users", json!({"name": "joe", "role": "viewer", "tenants": ["default"]})).await.ok(201)
    };
    let (followed, _) = tokio::join!(api.get("/v1/audit/lines?after=3&wait=20"), writing);
    assert_eq!(followed.ok(200)["data"][0]["target"], "joe");
    assert!(waiting.elapsed() < Duration::from_secs(15));
    let all = api.get("/v1/audit/lines?format=jsonl").await;
    assert_eq!(all.headers["content-type"], "application/x-ndjson");
    assert_eq!(all.body.iter().filter(|byte| **byte == b'\n').count(), 4);
    for wrong in ["after=-1", "after=x", "wait=31", "limit=0"] {
        api.get(&format!("/v1/audit/lines?{wrong}")).await.refused(422, "validation_error");
    }
    let intact = api.store.audit_lines(0, 9).await.unwrap();
    assert!(intact.iter().all(|line| line.is_intact()));
}
