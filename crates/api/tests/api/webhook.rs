//! Webhooks: created, changed, deactivated, and examined.

use postway_domain::{
    MessageState,
    RecipientStatus::{Pending, Sent},
    Subscriber,
    id::SubscriberId,
    secret::SecretKey,
};
use postway_store::{
    DirectoryStore, ReportStore,
    record::{
        DirectoryChange,
        NotificationState::{Acknowledged, Dead, Waiting},
    },
};
use serde_json::{Value, json};

use crate::support::Api;

const URL: &str = "https://app.example.com/hooks";

async fn made(api: &Api, body: Value) -> (String, String) {
    let made = api.post("/v1/webhooks", body).await.ok(201);
    (made["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned())
}

/// The secrets as the store keeps them.
async fn kept(api: &Api, id: &str) -> Vec<Value> {
    let (tenant, id): (_, SubscriberId) = ("default".parse().unwrap(), id.parse().unwrap());
    let sealed = api.store.subscriber(&tenant, &id).await.unwrap().unwrap().secrets.unwrap();
    let key = SecretKey::from_bytes(&[7; 32]).unwrap();
    serde_json::from_str(&key.open(&Subscriber::sealing_context(&tenant, &id), &sealed).unwrap()).unwrap()
}

#[tokio::test]
async fn a_webhook_is_made_with_a_secret_that_is_shown_once() {
    let api = Api::start().await;
    let body = json!({"url": URL, "events": ["email.sent", "email.failed"], "description": "shop"});
    let answer = api.post("/v1/webhooks", body).await;
    let made = answer.ok(201);
    let id = made["id"].as_str().unwrap();
    assert_eq!(answer.headers["location"], format!("/v1/webhooks/{id}"));
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 6 + 44 && secret.ends_with('='), "{secret}");
    assert_eq!(kept(&api, id).await, [json!(secret)]);

    let shown = api.get(&format!("/v1/webhooks/{id}")).await;
    assert!(!String::from_utf8_lossy(&shown.body).contains("whsec_"));
    let shown = shown.ok(200);
    assert_eq!(shown["events"], json!(["email.failed", "email.sent"]));
    assert_eq!(
        (&shown["url"], &shown["active"], &shown["kind"]),
        (&json!(URL), &json!(true), &json!("webhook"))
    );
    let listed = api.get("/v1/webhooks").await.ok(200);
    assert_eq!(listed["data"], json!([shown]));
    assert_eq!(self::made(&api, json!({"url": URL})).await.1.len(), 50);
    let all = api.get("/v1/webhooks").await.ok(200);
    // Two of one millisecond are in no order.
    let takes_all = |webhook: &Value| webhook["events"] == json!(["*"]);
    assert_eq!(all["data"].as_array().unwrap().iter().filter(|webhook| takes_all(webhook)).count(), 1);
}

#[tokio::test]
async fn what_is_wrong_with_a_webhook_is_named() {
    let api = Api::start().await;
    for (body, fields) in [
        (json!({}), &["url"][..]),
        (json!({"url": "mailto:ada@example.net"}), &["url"]),
        (json!({"url": URL, "events": ["email.sent", "sent"]}), &["events[1]"]),
        (json!({"url": URL, "secret": "whsec_mine"}), &["secret"]),
    ] {
        assert_eq!(api.post("/v1/webhooks", body.clone()).await.wrong_fields(), fields, "{body}");
    }
    let reader = api.key("default", json!({"scopes": ["read"]})).await;
    api.as_key(&reader, "POST", "/v1/webhooks", json!({"url": URL}).to_string())
        .await
        .refused(403, "forbidden");
    assert_eq!(api.get("/v1/webhooks/wh_none").await.status, 404);
}

/// Nobody's private host is taken and then never called.
#[tokio::test]
async fn a_private_host_is_refused_to_everybody_and_the_setting_is_named() {
    let api = Api::start().await;
    let key = api.key("default", json!({"scopes": ["manage", "read"]})).await;
    let (id, _) = made(&api, json!({"url": URL})).await;
    let path = format!("/v1/webhooks/{id}");
    for host in ["127.0.0.1:9000", "127.1", "localhost"] {
        let private = json!({"url": format!("http://{host}/")}).to_string();
        for answer in [
            api.as_key(&key, "POST", "/v1/webhooks", private.clone()).await,
            api.call("POST", "/v1/webhooks", private.clone()).await,
            api.as_key(&key, "PATCH", &path, private.clone()).await,
            api.call("PATCH", &path, private.clone()).await,
        ] {
            assert_eq!(answer.wrong_fields(), ["url"], "{host}");
            let said = String::from_utf8_lossy(&answer.body);
            assert!(said.contains("POSTWAY_ALLOW_PRIVATE_TARGETS"), "{host}: {said}");
        }
    }
    // What a name resolves to is found out with each call.
    made(&api, json!({"url": "http://hooks.internal/"})).await;
    let current = api.get(&path).await.ok(200);
    assert_eq!(current["url"], json!(URL));
}

#[tokio::test]
async fn a_tenant_has_a_hundred_webhooks_at_most() {
    let api = Api::start().await;
    for _ in 0..100 {
        made(&api, json!({"url": URL})).await;
    }
    api.post("/v1/webhooks", json!({"url": URL})).await.refused(409, "conflict");
}

#[tokio::test]
async fn a_webhook_is_changed_in_part_and_switched_on_again() {
    let api = Api::start().await;
    let (id, _) = made(&api, json!({"url": URL, "description": "shop"})).await;
    let path = format!("/v1/webhooks/{id}");
    let changed = api.patch(&path, json!({"events": ["email.bounced"], "version": 1})).await.ok(200);
    assert_eq!((&changed["events"], &changed["description"]), (&json!(["email.bounced"]), &json!("shop")));
    api.patch(&path, json!({"active": false, "version": 1})).await.refused(409, "conflict");

    let found =
        api.store.subscriber(&"default".parse().unwrap(), &id.parse().unwrap()).await.unwrap().unwrap();
    let version = found.version;
    let off = Subscriber {
        active: false,
        disabled_reason: Some("it answered 410".to_owned()),
        version: version + 1,
        ..found
    };
    api.store.change(DirectoryChange::UpdateSubscriber(off, version), None).await.unwrap();
    let shown = api.get(&path).await.ok(200);
    assert_eq!((&shown["active"], &shown["disabled_reason"]), (&json!(false), &json!("it answered 410")));
    let on = api.patch(&path, json!({"active": true})).await.ok(200);
    assert_eq!((&on["active"], &on["disabled_reason"]), (&json!(true), &Value::Null));
    // What is shown may be sent back.
    api.patch(&path, on).await.ok(200);

    assert_eq!(api.delete(&path).await, 204);
    assert_eq!(api.delete(&path).await, 404);
    let audit = api.get("/v1/audit?limit=9").await.ok(200);
    let told: Vec<&str> =
        audit["data"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        told,
        ["webhook.delete", "webhook.change", "webhook.change", "webhook.change", "webhook.create"]
    );
}

#[tokio::test]
async fn a_rotated_secret_leaves_the_earlier_one_for_a_day() {
    let api = Api::start().await;
    let (id, first) = made(&api, json!({"url": URL})).await;
    let rotate = async || {
        let rotated = api.post(&format!("/v1/webhooks/{id}/rotate"), json!({})).await.ok(200);
        rotated["secret"].as_str().unwrap().to_owned()
    };
    let second = rotate().await;
    assert_ne!(first, second);
    let until = "2023-11-15T22:13:20.000Z";
    assert_eq!(kept(&api, &id).await, [json!(second), json!({"secret": first, "until": until})]);
    api.clock.forward_ms(86_400_000);
    let third = rotate().await;
    let secrets = kept(&api, &id).await;
    assert_eq!((secrets.len(), &secrets[0], &secrets[1]["secret"]), (2, &json!(third), &json!(second)));
    let text = api.get("/v1/audit?format=jsonl").await.body;
    assert!(!String::from_utf8_lossy(&text).contains("whsec_"));
}

#[tokio::test]
async fn a_test_says_how_the_webhook_answered() {
    let api = Api::start().await;
    for (url, ok) in [(URL, true), ("https://down.example.com/", false)] {
        let (id, _) = made(&api, json!({"url": url})).await;
        let tested = api.post(&format!("/v1/webhooks/{id}/test"), json!({})).await.ok(200);
        assert_eq!((&tested["ok"], &tested["answer"]), (&json!(ok), &json!("said so")));
    }
}

#[tokio::test]
async fn a_message_tells_who_was_told_and_since_when_all_are() {
    let api = Api::start().await;
    let (id, _) = made(&api, json!({"url": URL, "events": ["email.sent"]})).await;
    let uid = api.stored("m-1", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    let message = async || {
        let shown = api.get("/v1/messages/m-1").await.ok(200);
        let list = api.get("/v1/messages").await.ok(200);
        assert_eq!(list["data"][0]["reported_at"], shown["reported_at"], "a list says the same");
        shown
    };
    let before = message().await;
    assert_eq!(
        (&before["notifications"], &before["reported_at"]),
        (&json!([]), &Value::Null),
        "it is to be told"
    );

    assert_eq!(api.notify(Waiting, 503).await, 1);
    let waits = message().await;
    let told = &waits["notifications"][0];
    assert_eq!(
        (&told["subscriber"], &told["event"], &told["status"]),
        (&json!(id), &json!("email.sent"), &json!("waiting"))
    );
    assert_eq!((&told["tries"], &told["last_status"]), (&json!(1), &json!(503)));
    assert!(told["next_at"].is_string() && waits["reported_at"].is_null());

    api.clock.forward_ms(5_000);
    assert_eq!(api.notify(Acknowledged, 200).await, 1);
    let done = message().await;
    assert_eq!(done["notifications"][0]["status"], "acknowledged");
    assert_eq!(done["reported_at"], done["notifications"][0]["settled_at"]);
    assert!(done["reported_at"].is_string());

    let path = format!("/v1/webhooks/{id}/deliveries");
    let listed = api.get(&path).await.ok(200);
    let told = &listed["data"][0];
    assert_eq!((&told["message"], &told["tries"]), (&json!(uid), &json!(2)));
    assert_eq!(
        (&told["last_call"]["status"], &told["last_call"]["answer"]),
        (&json!(200), &json!("said so"))
    );
}

#[tokio::test]
async fn a_message_without_subscribers_is_reported_when_it_ends() {
    let api = Api::start().await;
    api.stored("m-1", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    let message = api.get("/v1/messages/m-1").await.ok(200);
    assert_eq!(message["reported_at"], message["sent_at"]);
    api.stored("m-2", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    assert!(api.get("/v1/messages/m-2").await.ok(200)["reported_at"].is_null());
    let list = api.get("/v1/messages").await.ok(200);
    for one in list["data"].as_array().unwrap() {
        assert_eq!(one["reported_at"], one["sent_at"], "a list says the same");
    }
}

#[tokio::test]
async fn deliveries_come_in_pages_and_are_sent_again() {
    let api = Api::start().await;
    let (id, _) = made(&api, json!({"url": URL, "events": ["email.accepted"]})).await;
    for number in 0..5 {
        api.stored(&format!("m-{number}"), MessageState::Ready, &[("ada@example.net", Pending)]).await;
        api.clock.forward_ms(1);
    }
    assert_eq!(api.notify(Dead, 500).await, 5);
    let path = format!("/v1/webhooks/{id}/deliveries");
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{path}?limit=2&status=dead{cursor}")).await.ok(200);
        seen.extend(page["data"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    let uids: Vec<&str> = seen.iter().map(|told| told["message"].as_str().unwrap()).collect();
    assert!(uids.is_sorted_by(|newer, older| newer > older), "{uids:?}");
    assert_eq!(api.get(&format!("{path}?status=pending")).await.ok(200)["data"], json!([]));
    assert_eq!(api.get(&format!("{path}?status=lost")).await.wrong_fields(), ["status"]);

    let resend = format!("{path}/{}/{}/resend", uids[0], seen[0]["sequence"]);
    let again = api.post(&resend, json!({})).await.ok(202);
    assert_eq!(again["status"], "pending");
    api.post(&resend, json!({})).await.refused(409, "conflict");
    assert_eq!(api.notify(Acknowledged, 200).await, 1);
    api.patch(&format!("/v1/webhooks/{id}"), json!({"active": false})).await.ok(200);
    api.post(&resend, json!({})).await.refused(409, "conflict");
    let nobody = format!("{path}/{}/99/resend", uids[0]);
    api.post(&nobody, json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn what_was_given_up_is_sent_again_in_one_call() {
    let api = Api::start().await;
    let (id, _) = made(&api, json!({"url": URL, "events": ["email.accepted"]})).await;
    for number in 0..3 {
        api.stored(&format!("m-{number}"), MessageState::Ready, &[("ada@example.net", Pending)]).await;
    }
    assert_eq!(api.notify(Dead, 500).await, 3);
    let path = format!("/v1/webhooks/{id}/resend");
    api.clock.forward_ms(60_000);
    let answer = |resent: u64| json!({"resent": resent, "next_cursor": null});
    let later = json!({"since": "2099-01-01T00:00:00Z", "until": "2099-01-02T00:00:00Z"});
    assert_eq!(api.post(&path, later).await.ok(202), answer(0));
    let since = json!({"since": 0});
    assert_eq!(api.post(&path, since.clone()).await.ok(202), answer(3));
    assert_eq!(api.post(&path, since.clone()).await.ok(202), answer(0), "it is due already");
    assert_eq!(api.notify(Acknowledged, 200).await, 3);
    assert_eq!(api.post(&path, since.clone()).await.ok(202), answer(0), "it was taken");
    assert_eq!(api.post(&path, json!({"since": 0, "which": "all"})).await.ok(202), answer(3));

    assert_eq!(api.post(&path, json!({"which": "some"})).await.wrong_fields(), ["since", "which"]);
    api.post(&path, json!({"since": 0, "cursor": "none"})).await.refused(400, "malformed_request");
    api.post("/v1/webhooks/wh_none/resend", since.clone()).await.refused(404, "not_found");
    api.patch(&format!("/v1/webhooks/{id}"), json!({"active": false})).await.ok(200);
    api.post(&path, since).await.refused(409, "conflict");
}

#[tokio::test]
async fn a_tenants_own_client_is_shown_and_stays() {
    let api = Api::start().await;
    let sync = json!({"callback_form": "batch", "client_sync": {"url": "https://app.example.com"}});
    api.patch("/v1/tenants/default", sync).await.ok(200);
    let shown = api.get("/v1/webhooks/client_sync").await.ok(200);
    assert_eq!((&shown["kind"], &shown["url"]), (&json!("sync"), &Value::Null));
    let path = "/v1/webhooks/client_sync";
    assert_eq!(api.delete(path).await, 409);
    api.patch(path, json!({"url": URL})).await.refused(409, "conflict");
    api.post(&format!("{path}/rotate"), json!({})).await.refused(409, "conflict");
    api.patch(path, json!({"active": true})).await.ok(200);
    api.get(&format!("{path}/deliveries")).await.ok(200);
    let resent = api.post(&format!("{path}/resend"), json!({"since": 0})).await.ok(202);
    assert_eq!(resent["resent"], 0);
}
