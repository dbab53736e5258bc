//! Domains: which they are, what a check finds, since when it is right, and what the overview says.

use postway_api::DomainChecker;
use postway_store::{CatalogueStore, record::DomainCheckRecord};
use serde_json::{Value, json};

use crate::support::{Api, Dns};

async fn listed(api: &Api) -> Vec<Value> {
    api.get("/v1/domains").await.ok(200)["data"].as_array().unwrap().clone()
}

async fn check(api: &Api, domain: &str) -> Value {
    api.post(&format!("/v1/domains/{domain}/check"), json!({})).await.ok(200)
}

#[tokio::test]
async fn domains_are_those_that_sign_that_take_bounces_and_that_were_checked() {
    let api = Api::start().await;
    assert_eq!(listed(&api).await, Vec::<Value>::new());
    let key = json!({"domain": "Shop.example", "selector": "s1", "algorithm": "ed25519"});
    api.post("/v1/dkim", key).await.ok(201);
    let bounces = json!({"bounce_domain": "bounces.example"});
    api.call("PATCH", "/v1/tenants/default", bounces.to_string()).await.ok(200);
    check(&api, "m%C3%BCller.example").await;
    let domains = listed(&api).await;
    let shown: Vec<Value> = domains
        .iter()
        .map(|one| json!([one["domain"], one["signs"], one["takes_bounces"], one["state"]]))
        .collect();
    assert_eq!(
        shown,
        [
            json!(["bounces.example", false, true, "unchecked"]),
            json!(["shop.example", true, false, "unchecked"]),
            json!(["xn--mller-kva.example", false, false, "ok"]),
        ]
    );
    // What only takes bounces is not asked for what senders need.
    let checks = |one: &Value| -> Vec<String> {
        let findings = one["findings"].as_array().unwrap().iter();
        findings.map(|finding| finding["check"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(checks(&check(&api, "bounces.example").await), ["mx"]);
    assert_eq!(checks(&check(&api, "shop.example").await), ["spf", "dkim s1", "mx"]);
    assert_eq!(listed(&api).await[1]["state"], "ok");
    // A suspended key need not be published.
    api.post("/v1/dkim/shop.example/s1/suspend", json!({})).await.ok(200);
    assert_eq!(checks(&check(&api, "shop.example").await), ["spf", "mx"]);
    api.call("DELETE", "/v1/domains/shop.example", "").await;
    assert_eq!(listed(&api).await.len(), 2);
    api.call("DELETE", "/v1/domains/shop.example", "").await.refused(404, "not_found");
    for bad in ["nodot", "a..b", "a%20b.example", "x@y.example"] {
        api.post(&format!("/v1/domains/{bad}/check"), json!({})).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn what_is_right_stays_so_until_a_check_finds_otherwise() {
    let api = Api::start().await;
    let right = check(&api, "shop.example").await;
    assert_eq!(right["right_since"], "2023-11-14T22:13:20.000Z");
    api.clock.forward_ms(3_600_000);
    let later = check(&api, "shop.example").await;
    assert_eq!(later["right_since"], right["right_since"]);
    assert_eq!(later["checked_at"], "2023-11-14T23:13:20.000Z");
    for (domain, state) in
        [("missing.example", "missing"), ("wrong.example", "wrong"), ("unknown.example", "unknown")]
    {
        let checked = check(&api, domain).await;
        assert_eq!((&checked["state"], &checked["right_since"]), (&json!(state), &Value::Null));
    }
    // The worst first, and no answer is no problem of the domain.
    let overview = api.get("/v1/overview").await.ok(200);
    assert_eq!(
        overview["domains"],
        json!([
            {"domain": "wrong.example", "checks": ["spf"], "wrong": true},
            {"domain": "missing.example", "checks": ["spf"], "wrong": false},
        ])
    );
}

/// The longest ago first, some at a time, and not before their time.
#[tokio::test]
async fn checks_are_repeated() {
    let api = Api::start().await;
    for n in 0..6 {
        check(&api, &format!("d{n}.example")).await;
        api.clock.forward_ms(1_000);
    }
    let checker = DomainChecker::new(api.store.clone(), api.clock.clone(), std::sync::Arc::new(Dns));
    assert!(!checker.round().await.unwrap());
    api.clock.forward_ms(6 * 60 * 60 * 1_000);
    assert!(checker.round().await.unwrap(), "a full round is followed by another");
    assert!(!checker.round().await.unwrap());
    let tenant = "default".parse().unwrap();
    let checks = api.store.domain_checks(&tenant, DomainCheckRecord::DOMAINS_MAX).await.unwrap();
    let latest = checks.iter().map(|check| check.checked_at).min().unwrap();
    assert_eq!(latest.to_string(), "2023-11-15T04:13:26.000Z");
}

#[tokio::test]
async fn a_check_needs_the_scope_manage() {
    let api = Api::start().await;
    let key = api.key("default", json!({"scopes": ["send", "read"]})).await;
    let request = axum::http::Request::builder()
        .method("POST")
        .uri("/v1/domains/shop.example/check")
        .header("x-api-key", &key)
        .body(axum::body::Body::empty());
    api.ask(request.unwrap()).await.refused(403, "forbidden");
}

/// Whose name servers never answer waits alone.
#[tokio::test(start_paused = true)]
async fn a_tenant_whose_dns_is_silent_keeps_no_other_from_checking() {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
    let api = Api::start().await;
    let theirs = api.key("other", json!({"scopes": ["manage"]})).await;
    let asked = (0..8).map(|_| {
        let ask = api.post("/v1/domains/silent.example/check", json!({}));
        async { tokio::time::timeout(PATIENCE, ask).await.ok() }
    });
    let other = async {
        tokio::time::sleep(PATIENCE / 2).await;
        api.as_key(&theirs, "POST", "/v1/domains/shop.example/check", "").await
    };
    let (answers, other) = tokio::join!(futures::future::join_all(asked), other);
    other.ok(200);
    let answered: Vec<_> = answers.into_iter().flatten().collect();
    assert_eq!(answered.len(), 6, "two wait for DNS, and nobody else does in vain");
    for answer in answered {
        answer.refused(503, "unavailable");
    }
}
