//! Hooks: made, shown once, replaced, and called by providers with right and wrong proofs.

use aws_lc_rs::hmac;
use axum::http::Request;
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::Clock as _;
use serde_json::{Value, json};

use crate::support::{Answer, Api};

/// An account, and its hook.
async fn with_hook(api: &Api, hook: Value) -> Value {
    api.post("/v1/accounts", json!({"id": "relay", "host": "h.example"})).await.ok(201);
    api.put("/v1/accounts/relay/hook", hook).await.ok(201)
}

async fn report(api: &Api, url: &str, headers: &[(&str, String)], body: &str) -> Answer {
    let mut request = Request::post(url);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    api.ask(request.body(body.to_owned().into()).unwrap()).await
}

/// The headers of Standard Webhooks.
fn signed(api: &Api, secret: &str, id: &str, ahead_s: i64, body: &str) -> Vec<(&'static str, String)> {
    let timestamp = api.clock.now().as_seconds() + ahead_s;
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let text = format!("{id}.{timestamp}.{body}");
    let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes());
    vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", format!("v1,{}", BASE64_STANDARD.encode(made.as_ref()))),
    ]
}

async fn events(api: &Api) -> Vec<Value> {
    let listed = api.get("/v1/accounts/relay/hook/events").await.ok(200);
    listed["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_hook_shows_its_url_once_and_keeps_it_when_it_is_changed() {
    let api = Api::start().await;
    let made = with_hook(&api, json!({"provider": "http"})).await;
    let (url, secret) = (made["url"].as_str().unwrap(), made["secret"].as_str().unwrap());
    assert!(url.starts_with("https://mail.example/hooks/http/ph_") && secret.starts_with("whsec_"), "{made}");
    let shown = api.get("/v1/accounts/relay/hook").await.ok(200);
    assert_eq!((&shown["provider"], &shown["secret_set"]), (&json!("http"), &json!(true)));
    assert!(shown.get("url").is_none() && shown.get("secret").is_none());
    let audit = api.get("/v1/audit").await.ok(200).to_string();
    assert!(!audit.contains("ph_") && !audit.contains("whsec_"), "{audit}");

    let body = r#"{"id":"1","type":"delivered","message_id":"x"}"#;
    assert_eq!(report(&api, url, &signed(&api, secret, "a", 0, body), body).await.status, 200);
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let changed = api.put("/v1/accounts/relay/hook", json!({"secret": other, "version": 1})).await.ok(200);
    assert_eq!(changed["version"], 2);
    api.put("/v1/accounts/relay/hook", json!({"version": 1})).await.refused(409, "conflict");
    report(&api, url, &signed(&api, secret, "b", 0, body), body).await.refused(401, "unauthorized");
    assert_eq!(report(&api, url, &signed(&api, other, "c", 0, body), body).await.status, 200);

    let rotated = api.post("/v1/accounts/relay/hook/rotate", json!({})).await.ok(200);
    report(&api, url, &signed(&api, other, "d", 0, body), body).await.refused(404, "not_found");
    let url = rotated["url"].as_str().unwrap();
    assert_eq!(report(&api, url, &signed(&api, other, "e", 0, body), body).await.status, 200);
    assert_eq!(events(&api).await.len(), 1, "the same event, four times");
    assert_eq!(api.delete("/v1/accounts/relay/hook").await, 204);
    report(&api, url, &signed(&api, other, "f", 0, body), body).await.refused(404, "not_found");
    api.get("/v1/accounts/relay/hook").await.refused(404, "not_found");
}

#[tokio::test]
async fn nothing_of_a_wrong_call_is_stored() {
    let api = Api::start().await;
    let made = with_hook(&api, json!({"provider": "http"})).await;
    let (url, secret) = (made["url"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let body = r#"{"events":[{"id":"1","type":"delivered"},{"id":"2","type":"opened"}]}"#;
    let forged = signed(&api, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "a", 0, body);
    report(&api, url, &forged, body).await.refused(401, "unauthorized");
    report(&api, url, &signed(&api, secret, "a", 0, body), "{}").await.refused(401, "unauthorized");
    report(&api, url, &signed(&api, secret, "a", -301, body), body).await.refused(401, "unauthorized");
    report(&api, url, &[], body).await.refused(401, "unauthorized");
    report(&api, "/hooks/http/ph_nothing", &[], body).await.refused(404, "not_found");
    let elsewhere = url.replace("/http/", "/sendgrid/");
    report(&api, &elsewhere, &signed(&api, secret, "a", 0, body), body).await.refused(404, "not_found");
    for wrong in ["", "[]", "{\"events\":[1]}", "{\"events\":{}}"] {
        let answer = report(&api, url, &signed(&api, secret, "a", 0, wrong), wrong).await;
        answer.refused(400, "malformed_request");
    }
    let many = format!(r#"{{"events":[{}]}}"#, vec!["{}"; 2_001].join(","));
    report(&api, url, &signed(&api, secret, "a", 0, &many), &many).await.refused(413, "payload_too_large");
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(2 * 1024 * 1024));
    report(&api, url, &signed(&api, secret, "a", 0, &large), &large).await.refused(413, "payload_too_large");
    assert!(events(&api).await.is_empty());
    assert_eq!(report(&api, url, &signed(&api, secret, "a", 0, body), body).await.status, 200);
    let stored = events(&api).await;
    assert_eq!(stored.len(), 2);
    assert_eq!((&stored[0]["status"], &stored[0]["event"]["type"]), (&json!("waiting"), &json!("opened")));
    let waiting = api.get("/v1/accounts/relay/hook/events?status=waiting&limit=1").await.ok(200);
    let next = format!("/v1/accounts/relay/hook/events?cursor={}", waiting["next_cursor"].as_str().unwrap());
    assert_eq!(api.get(&next).await.ok(200)["data"].as_array().unwrap().len(), 1);
    let wrong = api.get("/v1/accounts/relay/hook/events?status=lost").await;
    assert_eq!(wrong.wrong_fields(), ["status"]);
}

/// Mailgun's signature does not cover the body, so its token counts once.
#[tokio::test]
async fn a_token_of_mailgun_counts_once_whatever_comes_with_it() {
    let api = Api::start().await;
    let made = with_hook(&api, json!({"provider": "mailgun", "secret": "key-1"})).await;
    let url = made["url"].as_str().unwrap();
    assert!(made.get("secret").is_none(), "it is Mailgun's, and not shown: {made}");
    let timestamp = api.clock.now().as_seconds();
    let body = |token: &str, event: Value| {
        let text = format!("{timestamp}{token}");
        let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"key-1"), text.as_bytes());
        let hex: String = made.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let signature = json!({"timestamp": timestamp.to_string(), "token": token, "signature": hex});
        json!({"signature": signature, "event-data": event}).to_string()
    };
    let genuine = body("t-1", json!({"id": "e-1", "event": "delivered", "recipient": "a@example.net"}));
    let replayed = body("t-1", json!({"id": "e-2", "event": "complained", "recipient": "b@example.net"}));
    for call in [&genuine, &genuine, &replayed] {
        assert_eq!(report(&api, url, &[], call).await.status, 200);
    }
    let again = body("t-2", json!({"id": "e-1", "event": "delivered", "recipient": "a@example.net"}));
    assert_eq!(report(&api, url, &[], &again).await.status, 200);
    let stored = events(&api).await;
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(stored[0]["event"]["id"], "e-1");
}

#[tokio::test]
async fn each_provider_says_what_it_needs() {
    let api = Api::start().await;
    api.post("/v1/accounts", json!({"id": "relay", "host": "h.example"})).await.ok(201);
    let put = |hook: Value| api.put("/v1/accounts/relay/hook", hook);
    for (hook, field) in [
        (json!({}), "provider"),
        (json!({"provider": "sparkpost"}), "provider"),
        (json!({"provider": "ses"}), "topics"),
        (json!({"provider": "ses", "topics": ["bounces"]}), "topics"),
        (json!({"provider": "sendgrid"}), "public_key"),
        (json!({"provider": "sendgrid", "public_key": "MFkw"}), "public_key"),
        (json!({"provider": "mailgun"}), "secret"),
        (json!({"provider": "resend", "secret": "x"}), "secret"),
        (json!({"provider": "postmark", "username": "a:b"}), "username"),
        (json!({"provider": "http", "topics": ["arn:aws:sns:x:1:y"]}), "topics"),
        (json!({"provider": "http", "colour": "red"}), "colour"),
    ] {
        assert_eq!(put(hook.clone()).await.wrong_fields(), [field], "{hook}");
    }
    let arn = "arn:aws:sns:eu-west-1:123456789012:mail";
    let private = json!({"provider": "ses", "topics": [arn], "sns_endpoint": "http://127.0.0.1:4566"});
    assert_eq!(put(private).await.wrong_fields(), ["sns_endpoint"]);
    let made = put(json!({"provider": "postmark"})).await.ok(201);
    assert_eq!(made["username"], "postway");
    let (url, secret) = (made["url"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let signs_in = |secret: &str| {
        vec![("authorization", format!("Basic {}", BASE64_STANDARD.encode(format!("postway:{secret}"))))]
    };
    let body = r#"{"RecordType":"Delivery","MessageID":"m"}"#;
    assert_eq!(report(&api, url, &signs_in(secret), body).await.status, 200);
    report(&api, url, &signs_in("other"), body).await.refused(401, "unauthorized");
    let other = put(json!({"provider": "http"})).await.ok(201);
    assert!(
        other["url"].as_str().unwrap().starts_with("https://mail.example/hooks/http/ph_"),
        "another provider has another URL"
    );
    report(&api, url, &signs_in(secret), body).await.refused(404, "not_found");
    api.put("/v1/accounts/nowhere/hook", json!({"provider": "http"})).await.refused(404, "not_found");
    // A tenant's reader sees the hook, and changes nothing.
    let reader = api.key("default", json!({"scopes": ["read"]})).await;
    api.as_key(&reader, "GET", "/v1/accounts/relay/hook", "").await.ok(200);
    api.as_key(&reader, "POST", "/v1/accounts/relay/hook/rotate", "").await.refused(403, "forbidden");
}
