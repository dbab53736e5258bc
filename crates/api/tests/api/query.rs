//! Query parameters: read alike by every call, and lists that take `limit` and `cursor`.

use axum::{body::Body, http::Request};
use serde_json::{Value, json};

use crate::support::{Api, KEY};

/// A path of the document with something in the place of its parameters that could be there.
fn filled(path: &str) -> String {
    let uid = "0192d3a4-5b6c-7d8e-9f01-23456789abcd";
    let path = path.replace("{index}", "0").replace("{sequence}", "1").replace("{uid}", uid);
    let path = path
        .replace("{address}", "nobody@example.net")
        .replace("{pattern}", "nobody@example.net")
        .replace("{domain}", "nobody.example")
        .replace("/v1/inbound/{id}", &format!("/v1/inbound/{uid}"));
    let names = ["{id}", "{code}", "{name}", "{selector}", "{key_id}", "{token}"];
    names.iter().fold(path, |path, name| path.replace(name, "nobody"))
}

#[tokio::test]
async fn every_call_refuses_a_parameter_that_it_does_not_have() {
    let api = Api::start().await;
    let document = serde_json::to_value(postway_api::document()).unwrap();
    let mut walked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in
            item.as_object().unwrap().keys().filter(|method| path.starts_with("/v1/") || *method == "get")
        {
            let method = method.to_uppercase();
            let filled = filled(path);
            assert!(!filled.contains('{'), "teach this test the parameters of {path}");
            let answer = api.call(&method, &format!("{filled}?foo=1"), "").await;
            if !path.starts_with("/v1/") || path == "/v1/session/oidc/callback" {
                // Probes, readers of mail and identity providers add what they like.
                assert_ne!(answer.status.as_u16(), 422, "{path}");
                continue;
            }
            assert_eq!(answer.wrong_fields(), ["foo"], "{method} {path}");
            walked += 1;
        }
    }
    assert!(walked > 100, "{walked} calls");
}

#[tokio::test]
async fn a_parameter_of_nowhere_is_refused_after_the_key() {
    let api = Api::start().await;
    for path in ["/v1/stats?foo=1", "/v1/accounts?foo=1", "/v1/accounts/sandbox?foo=1", "/v1/messages?foo=1"]
    {
        let request = Request::get(path).body(Body::empty()).unwrap();
        api.ask(request).await.refused(401, "unauthorized");
        let request = Request::head(path).header("x-api-key", KEY).body(Body::empty()).unwrap();
        assert_eq!(api.ask(request).await.status.as_u16(), 422, "{path}");
    }
    // An empty query counts as absent.
    api.get("/v1/stats?").await.ok(200);
    assert_eq!(api.get("/v1/accounts?limit=0&cursor=x&x=1").await.wrong_fields(), ["limit", "x"]);
    api.get("/v1/accounts?cursor=x").await.refused(400, "malformed_request");
    assert_eq!(api.get("/v1/events?after=now&cursor=now").await.wrong_fields(), ["cursor"]);
}

/// A complete list, read in pages of this size.
async fn in_pages(api: &Api, path: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    let joint = if path.contains('?') { '&' } else { '?' };
    loop {
        let page = api.get(&format!("{path}{joint}limit={limit}&cursor={cursor}")).await.ok(200);
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= limit, "{path}: {page}");
        all.extend(data.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => {
                assert_eq!(data.len(), limit, "{path}: a page before the last is full");
                next.clone_into(&mut cursor);
            }
            None => return all,
        }
    }
}

#[tokio::test]
async fn every_list_comes_in_pages_that_make_up_the_whole() {
    let api = Api::start().await;
    for n in 0..5 {
        api.post("/v1/accounts", json!({"id": format!("relay-{n}"), "host": "h.example"})).await.ok(201);
        api.post("/v1/webhooks", json!({"url": "https://x.example/"})).await.ok(201);
        api.mailbox(&format!("box-{n}"), json!({})).await;
        api.post("/v1/rules", json!({"mailbox": "box-0", "position": 9 - n})).await.ok(201);
        api.post("/v1/contacts", json!({"name": format!("name {n}")})).await.ok(201);
        let key = json!({"domain": format!("d{}.example", n % 2), "selector": format!("s{n}"), "algorithm": "ed25519"});
        api.post("/v1/dkim", key).await.ok(201);
        api.post("/v1/tenants/default/keys", json!({"name": format!("key {n}")})).await.ok(201);
        api.post("/v1/suppressions", json!({"address": format!("a{n}@example.net")})).await.ok(201);
        api.post("/v1/batches/b/suspend", json!({})).await.ok(200);
        api.clock.forward_ms(1_000);
    }
    for path in [
        "/v1/accounts",
        "/v1/webhooks",
        "/v1/mailboxes",
        "/v1/rules",
        "/v1/rules?mailbox=box-0",
        "/v1/dkim",
        "/v1/tenants/default/keys",
        "/v1/nodes",
        "/v1/outbox",
        "/v1/statistics",
        "/v1/contacts",
        "/v1/suppressions",
        "/v1/batches",
        "/v1/tenants",
        "/v1/audit",
    ] {
        let whole = api.get(path).await.ok(200);
        assert_eq!(whole["next_cursor"], Value::Null, "{path}");
        let whole = whole["data"].as_array().unwrap();
        for limit in [1, 2, 5, 500] {
            assert_eq!(&in_pages(&api, path, limit).await, whole, "{path} by {limit}");
        }
    }
    let positions: Vec<Value> =
        in_pages(&api, "/v1/rules", 2).await.iter().map(|rule| rule["position"].clone()).collect();
    assert_eq!(positions, [5, 6, 7, 8, 9]);
}
