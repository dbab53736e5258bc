//! Rules and contacts: created, changed, looked up, tested.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::support::Api;

fn rule() -> Value {
    json!({
        "mailbox": "support",
        "match": [{"field": "subject", "regex": "order (?<order>[0-9]+)"}],
        "actions": [{"do": "forward", "to": ["orders@example.com"]}, {"do": "stop"}],
        "follow_up": {"every_hours": 24}
    })
}

async fn with_mailbox() -> Api {
    let api = Api::start().await;
    api.mailbox("support", json!({})).await;
    api
}

#[tokio::test]
async fn rules_are_asked_in_the_order_of_their_position() {
    let api = with_mailbox().await;
    let made = api.post("/v1/rules", rule()).await;
    let id = made.ok(201)["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("rule_"));
    assert_eq!(made.headers["location"], format!("/v1/rules/{id}"));
    let mut second = rule();
    (second["id"], second["follow_up"]) = (json!("second"), Value::Null);
    let second = api.post("/v1/rules", second).await.ok(201);
    assert_eq!((&second["position"], &second["follow_up"]), (&json!(2), &Value::Null));
    let order = async || {
        let listed = api.get("/v1/rules?mailbox=support").await.ok(200);
        let ids =
            listed["data"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(order().await, [id.as_str(), "second"]);
    let moved = api.patch("/v1/rules/second", json!({"position": -5, "active": false})).await.ok(200);
    assert_eq!(
        (&moved["active"], &moved["actions"], &moved["version"]),
        (&json!(false), &second["actions"], &json!(2))
    );
    assert_eq!(order().await, ["second", id.as_str()]);
    assert_eq!(api.get(&format!("/v1/rules/{id}")).await.ok(200)["follow_up"]["times_max"], 10);
    assert_eq!(api.delete("/v1/rules/second").await, 204);
    assert_eq!(api.delete("/v1/rules/second").await, 404);
    assert_eq!(api.get("/v1/rules?mailbox=none").await.ok(200)["data"], json!([]));
}

#[tokio::test]
async fn what_is_wrong_with_a_rule_is_named_by_its_place() {
    let api = with_mailbox().await;
    let with = |field: &str, value: Value| {
        let mut rule = rule();
        rule[field] = value;
        rule
    };
    for (body, fields) in [
        (with("mailbox", Value::Null), &["mailbox"][..]),
        (with("mailbox", json!("none")), &["mailbox"]),
        (with("match", json!([{"field": "subject", "like": "x"}])), &["match[0].like"]),
        (with("match", json!([{"field": "from", "regex": "("}])), &["match[0].regex"]),
        (with("actions", json!([{"do": "tag"}])), &["actions[0]"]),
        (
            with("actions", json!([{"do": "forward", "to": "a@b.example", "account": "x"}])),
            &["actions[0].account"],
        ),
        (with("follow_up", json!({"every_hours": "x"})), &["follow_up.every_hours"]),
        (with("then", json!(1)), &["then"]),
    ] {
        assert_eq!(api.post("/v1/rules", body.clone()).await.wrong_fields(), fields, "{body}");
    }
    let mut named = rule();
    named["id"] = json!("r");
    api.post("/v1/rules", named.clone()).await.ok(201);
    api.post("/v1/rules", named).await.refused(409, "conflict");
    assert_eq!(api.patch("/v1/rules/r", json!({"mailbox": "none"})).await.wrong_fields(), ["mailbox"]);
    api.patch("/v1/rules/r", json!({"active": false, "version": 9})).await.refused(409, "conflict");
}

#[tokio::test]
async fn a_rule_is_tried_on_a_stored_mail_or_a_given_one() {
    let api = with_mailbox().await;
    let uid = api.arrived("support", "Subject: order 17\r\n\r\n").await;
    let mut stored = rule();
    stored["id"] = json!("orders");
    api.post("/v1/rules", stored).await.ok(201);
    let reader = api.key("default", json!({"scopes": ["read"]})).await;
    let body = json!({"id": "orders", "inbound": uid.to_string()}).to_string();
    let tried = api.as_key(&reader, "POST", "/v1/rules/dry-run", body).await.ok(200);
    assert_eq!((&tried["matched"], &tried["captures"]), (&json!(true), &json!({"size": "21"})));
    let raw = BASE64_STANDARD.encode("Subject: x\r\n\r\n");
    let mut given = rule();
    given.as_object_mut().unwrap().remove("mailbox");
    let tried = api.post("/v1/rules/dry-run", json!({"rule": given, "raw": raw})).await.ok(200);
    assert_eq!(tried["actions"], json!([{"do": "stop"}]));
    for (body, fields) in [
        (json!({}), &["rule", "inbound"][..]),
        (json!({"id": "orders", "rule": {}, "raw": raw}), &["id"]),
        (json!({"id": "orders", "raw": "***"}), &["raw"]),
        (json!({"rule": {"match": [{"field": "x"}]}, "raw": raw}), &["rule.match[0].field"]),
        (json!({"rule": {"match": [{"field": "to", "regex": "("}]}, "raw": raw}), &["rule.match[0].regex"]),
    ] {
        assert_eq!(api.post("/v1/rules/dry-run", body.clone()).await.wrong_fields(), fields, "{body}");
    }
    let gone = json!({"id": "orders", "inbound": "0192d3a4-5b6c-7d8e-9f01-23456789abcd"});
    api.post("/v1/rules/dry-run", gone).await.refused(404, "not_found");
    api.post("/v1/rules/dry-run", json!({"id": "none", "raw": raw})).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_contact_is_found_by_its_name_whatever_its_case() {
    let api = Api::start().await;
    let body = json!({"id": "acme", "name": "ACME Ltd", "addresses": ["a@acme.example", "b@acme.example"]});
    let made = api.post("/v1/contacts", body).await.ok(201);
    assert_eq!(made["version"], 1);
    let found = api.get("/v1/contacts?name=acme%20%20LTD").await.ok(200);
    assert_eq!(found["data"], json!([made]));
    assert_eq!(api.get("/v1/contacts?name=nobody").await.ok(200)["data"], json!([]));
    let same = json!({"name": "acme ltd", "addresses": []});
    api.post("/v1/contacts", same).await.refused(409, "conflict");
    let other = api.post("/v1/contacts", json!({"name": "Bolt"})).await.ok(201);
    let path = format!("/v1/contacts/{}", other["id"].as_str().unwrap());
    api.patch(&path, json!({"name": "Acme LTD"})).await.refused(409, "conflict");
    let changed = api.patch(&path, json!({"addresses": "c@bolt.example"})).await.ok(200);
    assert_eq!((&changed["addresses"], &changed["version"]), (&json!(["c@bolt.example"]), &json!(2)));
    assert_eq!(api.post("/v1/contacts", json!({"addresses": ["x"]})).await.wrong_fields(), ["addresses[0]"]);
    assert_eq!(api.post("/v1/contacts", json!({})).await.wrong_fields(), ["name"]);
    let page = api.get("/v1/contacts?limit=1").await.ok(200);
    let next =
        api.get(&format!("/v1/contacts?limit=1&cursor={}", page["next_cursor"].as_str().unwrap())).await;
    assert_eq!(next.ok(200)["data"][0]["name"], "Bolt");
    assert_eq!(api.delete("/v1/contacts/acme").await, 204);
    api.get("/v1/contacts/acme").await.refused(404, "not_found");
}
