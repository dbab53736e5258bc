//! Routes: created, changed, ordered, tried, and what they do to mail.

use postway_store::{
    DirectoryStore,
    record::{DirectoryChange, SuspensionRecord, SuspensionScope},
};
use serde_json::{Value, json};

use crate::support::Api;

async fn with_accounts(ids: &[&str]) -> Api {
    let api = Api::start().await;
    for id in ids {
        let account = json!({"id": id, "host": "smtp.example.com"});
        api.post("/v1/accounts", account).await.ok(201);
    }
    api
}

fn to(accounts: &[(&str, u32)]) -> Value {
    accounts.iter().map(|(account, weight)| json!({"account": account, "weight": weight})).collect()
}

fn ids(listed: &Value) -> Vec<&str> {
    listed["data"].as_array().unwrap().iter().map(|route| route["id"].as_str().unwrap()).collect()
}

/// Sends a mail with these fields besides the required ones and gives the message as it is shown.
async fn sent(api: &Api, fields: Value) -> Value {
    let mut mail =
        json!({"from": "shop@example.com", "to": ["ada@example.net"], "subject": "s", "text": "t"});
    mail.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let receipt = api.post("/v1/messages", mail).await.ok(202);
    api.get(&format!("/v1/messages/{}", receipt["uid"].as_str().unwrap())).await.ok(200)
}

#[tokio::test]
async fn routes_are_made_changed_ordered_listed_and_deleted() {
    let api = with_accounts(&["bulk"]).await;
    let made = api.post("/v1/routes", json!({"accounts": to(&[("bulk", 1)])})).await;
    let first = made.ok(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(made.headers["location"], format!("/v1/routes/{first}"));
    let second = json!({"id": "second", "accounts": to(&[("bulk", 3)]), "match": {"priorities": ["low"]}});
    let second = api.post("/v1/routes", second).await.ok(201);
    assert_eq!((&second["position"], &second["match"]["priorities"]), (&json!(2), &json!([3])));
    assert_eq!(second["accounts"], json!([{"account": "bulk", "weight": 3, "missing": false}]));

    let moved = api.patch("/v1/routes/second", json!({"position": -1, "version": 1})).await.ok(200);
    assert_eq!((&moved["version"], &moved["match"]), (&json!(2), &second["match"]));
    assert_eq!(ids(&api.get("/v1/routes").await.ok(200)), ["second", first.as_str()]);
    api.patch("/v1/routes/second", json!({"active": false, "version": 1})).await.refused(409, "conflict");

    let ordered = api.post("/v1/routes/order", json!({"ids": [first, "second"]})).await.ok(200);
    assert_eq!(ids(&ordered), [first.as_str(), "second"]);
    for wrong in [json!({"ids": [first]}), json!({"ids": [first, "second", "third"]})] {
        api.post("/v1/routes/order", wrong).await.refused(409, "conflict");
    }
    let twice = json!({"ids": ["second", "second"]});
    assert_eq!(api.post("/v1/routes/order", twice).await.wrong_fields(), ["ids"]);

    let unknown = json!({"accounts": to(&[("bulk", 1), ("none", 1)])});
    assert_eq!(api.post("/v1/routes", unknown.clone()).await.wrong_fields(), ["accounts[1].account"]);
    assert_eq!(api.patch("/v1/routes/second", unknown).await.wrong_fields(), ["accounts[1].account"]);
    assert_eq!(api.post("/v1/routes", json!({"id": "none"})).await.wrong_fields(), ["accounts"]);
    let taken = json!({"id": "second", "accounts": to(&[("bulk", 1)])});
    api.post("/v1/routes", taken).await.refused(409, "conflict");

    assert_eq!(api.delete("/v1/routes/second").await, 204);
    assert_eq!(api.delete("/v1/routes/second").await, 404);
    api.get("/v1/routes/second").await.refused(404, "not_found");
}

#[tokio::test]
async fn mail_that_names_no_account_takes_the_first_route_that_matches() {
    let api = with_accounts(&["bulk", "urgent", "domain", "near"]).await;
    for (id, conditions, account) in [
        ("priority", json!({"priorities": ["immediate"]}), "urgent"),
        ("sender", json!({"sender_domains": ["*.example.com"], "tags": ["news"]}), "domain"),
        ("near", json!({"recipient_domains": ["example.net", "example.org"]}), "near"),
        ("batch", json!({"batches": ["spring"]}), "bulk"),
    ] {
        let route = json!({"id": id, "match": conditions, "accounts": to(&[(account, 1)])});
        api.post("/v1/routes", route).await.ok(201);
    }
    let far = || json!(["ada@example.net", "bob@far.example"]);
    for (fields, account, route) in [
        (json!({"priority": 0}), "urgent", Some("priority")),
        (json!({"from": "a@news.example.com", "tags": ["news"], "to": far()}), "domain", Some("sender")),
        (json!({"from": "a@news.example.com", "tags": ["other"], "to": far()}), "sandbox", None),
        (json!({"from": "a@example.com", "tags": ["news"], "to": far()}), "sandbox", None),
        (json!({"to": ["ada@EXAMPLE.net"], "cc": ["bob@example.org"]}), "near", Some("near")),
        (json!({"bcc": ["bob@far.example"]}), "sandbox", None),
        (json!({"to": far(), "batch": "spring"}), "bulk", Some("batch")),
        (json!({"account": "bulk", "priority": 0}), "bulk", None),
    ] {
        let shown = sent(&api, fields.clone()).await;
        assert_eq!(shown["account"], account, "{fields}");
        assert_eq!(shown["route"]["id"].as_str(), route, "{fields}");
        let explained = format!("/v1/messages/{}/explain", shown["uid"].as_str().unwrap());
        assert_eq!(api.get(&explained).await.ok(200)["route"], shown["route"], "{fields}");
    }
    let shown = sent(&api, json!({"from": "a@news.example.com", "tags": ["news"], "to": far()})).await;
    assert_eq!(shown["route"]["because"], json!(["sender_domain", "tag"]));

    // Changes hold for the next mail.
    api.patch("/v1/routes/priority", json!({"active": false})).await.ok(200);
    assert_eq!(sent(&api, json!({"priority": 0})).await["account"], "near");
    api.post("/v1/routes/order", json!({"ids": ["batch", "near", "sender", "priority"]})).await.ok(200);
    assert_eq!(sent(&api, json!({"batch": "spring"})).await["account"], "bulk");
}

#[tokio::test]
async fn weights_divide_the_mail_and_a_suspended_account_is_left_out() {
    let api = with_accounts(&["a", "b"]).await;
    api.post("/v1/routes", json!({"id": "both", "accounts": to(&[("a", 1), ("b", 1)])})).await.ok(201);
    let mut counts = [0, 0];
    for _ in 0..60 {
        let account = sent(&api, json!({})).await["account"].clone();
        counts[usize::from(account == "b")] += 1;
    }
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");

    api.patch("/v1/routes/both", json!({"accounts": to(&[("a", 0), ("b", 1)])})).await.ok(200);
    for _ in 0..10 {
        assert_eq!(sent(&api, json!({})).await["account"], "b");
    }
    api.patch("/v1/routes/both", json!({"accounts": to(&[("a", 1), ("b", 1)])})).await.ok(200);
    api.post("/v1/accounts/a/suspend", json!({})).await.ok(200);
    let mut left_out = 0;
    for _ in 0..20 {
        let shown = sent(&api, json!({})).await;
        assert_eq!(shown["account"], "b");
        left_out += usize::from(shown["route"]["left_out"] == json!(["suspended:a"]));
    }
    assert!(left_out > 2, "{left_out}");
    api.post("/v1/accounts/b/suspend", json!({})).await.ok(200);
    let waits = sent(&api, json!({})).await;
    assert_eq!(waits["route"]["waits_for"], "suspended");
}

#[tokio::test]
async fn an_account_that_a_route_names_is_not_deleted_unasked_and_then_no_mail_is_lost() {
    let api = with_accounts(&["a", "b"]).await;
    api.post("/v1/routes", json!({"id": "one", "accounts": to(&[("a", 1)])})).await.ok(201);
    api.post("/v1/routes", json!({"id": "two", "accounts": to(&[("a", 9), ("b", 1)])})).await.ok(201);
    let refused = api.call("DELETE", "/v1/accounts/a", "").await;
    let message = refused.refused(409, "conflict").to_string();
    assert!(message.contains("`one`, `two`"), "{message}");
    assert_eq!(api.delete("/v1/accounts/a?force=true").await, 204);

    let shown = sent(&api, json!({})).await;
    assert_eq!((&shown["account"], &shown["route"]["id"]), (&json!("b"), &json!("two")));
    assert_eq!(shown["route"]["passed_over"], json!(["one"]));
    assert_eq!(api.get("/v1/routes/one").await.ok(200)["accounts"][0]["missing"], true);
    let tried = api.post("/v1/routes/try", json!({"from": "a@example.com"})).await.ok(200);
    assert_eq!((&tried["route"], &tried["steps"][0]["passed_over"]), (&json!("two"), &json!(true)));
    assert_eq!(tried["steps"][0]["missing"], json!(["a"]));

    assert_eq!(api.delete("/v1/routes/two").await, 204);
    let shown = sent(&api, json!({})).await;
    assert_eq!((&shown["account"], &shown["route"]["id"]), (&json!("sandbox"), &Value::Null));
    assert_eq!(shown["route"]["passed_over"], json!(["one"]));
    // A route without its account can still be changed otherwise.
    api.patch("/v1/routes/one", json!({"active": false})).await.ok(200);
}

#[tokio::test]
async fn routes_are_tried_without_sending() {
    let api = with_accounts(&["a", "b"]).await;
    let route = json!({"id": "news", "match": {"sender_domains": ["example.com"], "streams": ["news"]},
                       "accounts": to(&[("a", 3), ("b", 1)])});
    api.post("/v1/routes", route).await.ok(201);
    let suspension = SuspensionRecord {
        tenant: "default".parse().unwrap(),
        scope: SuspensionScope::Account("b".parse().unwrap()),
        since: postway_domain::Time::from_millis(0),
    };
    api.store.change(DirectoryChange::Suspend(suspension), None).await.unwrap();
    let message = json!({"from": "Shop <shop@EXAMPLE.com>", "batch": "news:2026", "priority": "low"});
    let tried = api.post("/v1/routes/try", message).await.ok(200);
    assert_eq!(tried["route"], "news");
    assert_eq!(
        tried["accounts"],
        json!([{"account": "a", "weight": 3, "held_by": null}, {"account": "b", "weight": 1, "held_by": "suspended"}])
    );
    let tried =
        api.post("/v1/routes/try", json!({"from": "shop@example.com", "to": "a@b.example"})).await.ok(200);
    assert_eq!(
        tried["steps"],
        json!([{"route": "news", "matched": false, "missing": [], "passed_over": false, "conditions": [
            {"condition": "sender_domain", "holds": true}, {"condition": "stream", "holds": false}]}])
    );
    assert_eq!((&tried["route"], &tried["accounts"][0]["account"]), (&Value::Null, &json!("sandbox")));
    let wrong = json!({"from": "nobody", "to": ["a@b.example", "x"], "priority": 9, "subject": "s"});
    let wrong = api.post("/v1/routes/try", wrong).await.wrong_fields();
    assert_eq!(wrong, ["from", "to[1]", "priority", "subject"]);
    assert_eq!(api.get("/v1/messages").await.ok(200)["data"], json!([]), "nothing was accepted");
}
