//! Limits at the door: of keys, of addresses, and a tenant's quota of a day.

use std::{num::NonZeroU64, time::Duration};

use axum::{body::Body, http::Request};
use postway_api::{RequestLimits, RequestOrigin, SubjectLimits, WindowLimit};
use serde_json::json;

use crate::support::{Answer, Api, KEY};

fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

fn in_an_hour(quota: u64) -> Option<WindowLimit> {
    Some(WindowLimit { quota: number(quota), window: Duration::from_secs(3_600) })
}

/// Asks with a key from an address.
async fn from(api: &Api, address: &str, key: &str, body: &'static str) -> Answer {
    let origin = RequestOrigin::direct(address.parse().unwrap());
    let request = match body {
        "" => Request::get("/v1/stats"),
        _ => Request::post("/v1/messages").header("content-type", "application/json"),
    };
    let request = request.header("x-api-key", key).extension(origin);
    api.ask(request.body(Body::from(body)).unwrap()).await
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_key_has_its_requests_and_says_how_many_are_left() {
    let plain = Api::start().await;
    let key = SubjectLimits { requests: in_an_hour(3), ..SubjectLimits::default() };
    let api = plain.limited(RequestLimits { key, ..RequestLimits::default() });
    let (one, other) = (plain.key("other", json!({})).await, plain.key("other", json!({})).await);
    for left in [2, 1, 0] {
        let answer = from(&api, "192.0.2.1", &one, "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(header(&answer, "ratelimit-policy"), "\"key\";q=3;w=3600");
        assert!(header(&answer, "ratelimit").starts_with(&format!("\"key\";r={left};t=")), "{left}");
    }
    let refused = from(&api, "192.0.2.2", &one, "").await;
    refused.refused(429, "too_many_requests");
    let wait: u64 = header(&refused, "retry-after").parse().unwrap();
    assert!((3_590..=3_600).contains(&wait), "{wait}");
    assert!(header(&refused, "ratelimit").starts_with("\"key\";r=0;t="));
    // Others, the admin key and wrong keys do not count for it.
    assert_eq!(from(&api, "192.0.2.1", &other, "").await.status, 200);
    let admin = from(&api, "192.0.2.1", KEY, "").await;
    assert_eq!((admin.status.as_u16(), header(&admin, "ratelimit")), (200, ""));
    assert_eq!(from(&api, "192.0.2.1", "pw_wrong", "").await.status, 401);
    // Without limits nothing is said.
    assert_eq!(header(&from(&plain, "192.0.2.1", &one, "").await, "ratelimit-policy"), "");
}

#[tokio::test]
async fn an_address_is_counted_before_its_key_and_a_shared_one_is_nobody() {
    let plain = Api::start().await;
    let address = SubjectLimits { requests: in_an_hour(2), ..SubjectLimits::default() };
    let api = plain.limited(RequestLimits { address, ..RequestLimits::default() });
    for _ in 0..2 {
        assert_eq!(from(&api, "2001:db8::1", "pw_wrong", "").await.status, 401);
    }
    let key = plain.key("other", json!({})).await;
    from(&api, "2001:db8::2", &key, "").await.refused(429, "too_many_requests");
    from(&api, "2001:db8::2", KEY, "").await.refused(429, "too_many_requests");
    assert_eq!(from(&api, "2001:db8:0:1::2", &key, "").await.status, 200);
    for _ in 0..5 {
        assert_eq!(from(&api, "127.0.0.1", KEY, "").await.status, 200, "the operator's way in stays open");
    }
}

#[tokio::test]
async fn bytes_are_counted_as_they_are_read() {
    const MAIL: &str = r#"{"from":"a@example.com","to":["b@example.net"],"subject":"x","text":"y"}"#;
    let plain = Api::start().await;
    let key = SubjectLimits { bytes: in_an_hour(100), ..SubjectLimits::default() };
    let api = plain.limited(RequestLimits { key, ..RequestLimits::default() });
    let own = plain.key("default", json!({})).await;
    let first = from(&api, "192.0.2.1", &own, MAIL).await;
    assert_eq!(first.status, 202);
    assert_eq!(header(&first, "ratelimit-policy"), "\"key-bytes\";q=100;qu=\"content-bytes\";w=3600");
    let left = 100 - MAIL.len();
    assert!(header(&first, "ratelimit").starts_with(&format!("\"key-bytes\";r={left};t=")));
    assert_eq!(from(&api, "192.0.2.1", &own, MAIL).await.status, 202, "it began while some were left");
    from(&api, "192.0.2.1", &own, MAIL).await.refused(429, "too_many_requests");
}

#[tokio::test]
async fn a_quota_of_a_day_refuses_what_does_not_fit_and_repeats_still_get_their_answer() {
    const FIRST: &str =
        r#"{"id":"m-1","from":"a@example.com","to":["b@example.net"],"subject":"x","text":"y"}"#;
    let api = Api::start().await;
    let quota = json!({"daily_quota": {"messages": 2, "recipients": 3}});
    let tenant = api.patch("/v1/tenants/default", quota).await.ok(200);
    assert_eq!(tenant["daily_quota"], json!({"messages": 2, "bytes": null, "recipients": 3}));
    let send = async |body: serde_json::Value| api.post("/v1/messages", body).await;
    let mail = |to: &[&str]| json!({"from": "a@example.com", "to": to, "subject": "x", "text": "y"});
    let four = send(mail(&["a@x.example", "b@x.example", "c@x.example", "d@x.example"])).await;
    assert!(four.refused(429, "too_many_requests").to_string().contains("3 recipients"));
    let first: serde_json::Value = serde_json::from_str(FIRST).unwrap();
    assert_eq!(send(first.clone()).await.status, 202);
    assert_eq!(send(first.clone()).await.status, 202, "a repeat is not counted");
    assert_eq!(send(mail(&["b@x.example"])).await.status, 202);
    let over = send(mail(&["c@x.example"])).await;
    over.refused(429, "too_many_requests");
    let wait: u64 = header(&over, "retry-after").parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(send(first).await.status, 202, "a repeat is answered although nothing is left");

    let overview = api.get("/v1/overview").await.ok(200);
    assert_eq!(overview["quota"]["messages"], json!({"used": 2, "of": 2}));
    assert_eq!(
        (&overview["quota"]["bytes"], &overview["quota"]["warning_percent"]),
        (&json!(null), &json!(100))
    );
    let audit = api.get("/v1/audit").await.ok(200);
    let warned = audit["data"].as_array().unwrap().iter();
    let warned = warned.filter(|entry| entry["action"] == "tenant.quota_warning").count();
    assert!((1..=2).contains(&warned), "{audit:#}");
    // A wider one works from the next call on, and none has no end.
    api.patch("/v1/tenants/default", json!({"daily_quota": {"messages": 3}})).await.ok(200);
    assert_eq!(send(mail(&["c@x.example"])).await.status, 202);
    api.patch("/v1/tenants/default", json!({"daily_quota": null})).await.ok(200);
    assert_eq!(send(mail(&["c@x.example"])).await.status, 202);
    for wrong in [json!({"messages": 0}), json!({"messages": "many"}), json!({"mails": 1})] {
        api.patch("/v1/tenants/default", json!({"daily_quota": wrong}))
            .await
            .refused(422, "validation_error");
    }
}
