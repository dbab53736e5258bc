//! Removing old messages, erasing an address, and the counts that remain.

use postway_domain::{Clock as _, MessageState, RecipientStatus::*, id::AuditId};
use postway_store::{
    DirectoryStore as _,
    record::{AuditEntry, DirectoryChange},
};
use serde_json::json;

use crate::support::Api;

const DAY_MS: i64 = 86_400_000;

async fn exists(api: &Api, id: &str) -> bool {
    api.get(&format!("/v1/messages/{id}")).await.status == 200
}

#[tokio::test]
async fn a_cleanup_removes_what_ended_and_is_old_enough() {
    let api = Api::start().await;
    api.stored("old", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.stored("waits", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    api.clock.forward_ms(2 * DAY_MS);
    api.stored("new", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.fan_out().await;
    let clean = async |query: &str| api.post(&format!("/v1/cleanup{query}"), json!({})).await.ok(200);
    assert_eq!(clean("").await, json!({"deleted": 0, "more": false}), "the tenant keeps a week");
    assert_eq!(clean("?older_than_seconds=86400").await, json!({"deleted": 1, "more": false}));
    assert!(!exists(&api, "old").await && exists(&api, "new").await && exists(&api, "waits").await);
    api.clock.forward_ms(1);
    assert_eq!(clean("?older_than_seconds=0").await["deleted"], 1);
    assert!(exists(&api, "waits").await, "what has not ended stays");
    let refused = api.post("/v1/cleanup?older_than_seconds=-1", json!({})).await;
    assert_eq!(refused.wrong_fields(), ["older_than_seconds"]);
    let key = api.key("default", json!({"scopes": ["read", "send"]})).await;
    api.as_key(&key, "POST", "/v1/cleanup", "").await.refused(403, "forbidden");
    let audit = api.get("/v1/audit").await.ok(200);
    assert_eq!(audit["data"][1]["action"], "messages.cleanup");
}

#[tokio::test]
async fn a_removed_message_is_still_in_the_feed_by_its_uid() {
    let api = Api::start().await;
    let uid = api.stored("m-1", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.fan_out().await;
    api.clock.forward_ms(1);
    assert_eq!(api.post("/v1/cleanup?older_than_seconds=0", json!({})).await.ok(200)["deleted"], 1);
    let feed = api.get("/v1/events").await.ok(200);
    let entry = &feed["data"][1];
    assert_eq!((&entry["type"], &entry["at"]), (&json!("email.sent"), &json!(null)));
    assert_eq!(entry["message"], json!({"id": null, "uid": uid}));
}

#[tokio::test]
async fn an_address_is_forgotten_and_not_written_down() {
    let api = Api::start().await;
    api.stored("alone", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.stored("both", MessageState::Sent, &[("Ada@example.net", Sent), ("bob@example.net", Sent)]).await;
    api.stored("waits", MessageState::Ready, &[("ada@example.net", Pending)]).await;
    api.stored("other", MessageState::Sent, &[("bob@example.net", Sent)]).await;
    api.fan_out().await;
    // As an earlier version wrote it.
    let old = AuditEntry {
        id: AuditId::from_bytes([1; 16]),
        at: api.clock.now(),
        actor: "admin".to_owned(),
        tenant: Some("default".parse().unwrap()),
        action: "suppression.create".to_owned(),
        target: "ada@example.net".to_owned(),
        request_id: None,
        detail: None,
        salt: Some([5; 16]),
    };
    api.store.change(DirectoryChange::Forget(old.at), Some(old)).await.unwrap();
    api.post("/v1/suppressions", json!({"address": "Ada@example.net"})).await.ok(201);
    assert_eq!(api.call("DELETE", "/v1/suppressions/ada@example.net", "").await.status.as_u16(), 204);
    let done = api.post("/v1/erase", json!({"address": "Ada@example.net"})).await.ok(200);
    assert_eq!(done, json!({"removed": 1, "redacted": 1, "waiting": 1, "more": false}));
    assert!(!exists(&api, "alone").await && exists(&api, "other").await && exists(&api, "waits").await);
    let both = api.get("/v1/messages/both").await;
    let text = String::from_utf8_lossy(&both.body).to_lowercase();
    assert!(!text.contains("ada@example.net") && text.contains("bob@example.net"), "{text}");
    let audit = api.get("/v1/audit").await;
    assert!(!String::from_utf8_lossy(&audit.body).to_lowercase().contains("ada@"));
    let log = audit.ok(200);
    let entries = log["data"].as_array().unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["address.erase", "suppression.delete", "suppression.create", "suppression.create"]);
    let digest = entries[0]["target"].as_str().unwrap();
    assert_eq!(digest.strip_prefix("hmac-sha256:").unwrap().len(), 64);
    assert!(entries.iter().all(|entry| entry["target"] == digest), "they belong together: {log}");
    for body in [json!({}), json!({"address": "nobody"})] {
        assert_eq!(api.post("/v1/erase", body).await.wrong_fields(), ["address"]);
    }
}

#[tokio::test]
async fn statistics_count_by_hour_and_day_and_outlive_the_messages() {
    let api = Api::start().await;
    api.stored("m-1", MessageState::Sent, &[("ada@example.net", Sent)]).await;
    api.fan_out().await;
    api.clock.forward_ms(3_600_000);
    api.stored("m-2", MessageState::Failed, &[("ada@example.net", Failed)]).await;
    api.fan_out().await;
    let by_hour = api.get("/v1/statistics").await.ok(200);
    let counts = |row: &serde_json::Value| json!([row["accepted"], row["sent"], row["failed"]]);
    let rows: Vec<_> = by_hour["data"].as_array().unwrap().iter().map(counts).collect();
    assert_eq!(rows, [json!([1, 1, 0]), json!([1, 0, 1])]);
    assert_eq!(by_hour["data"][0]["at"], "2023-11-14T22:00:00.000Z");
    assert_eq!(by_hour["data"][0]["average_queue_ms"], 0);
    assert!(by_hour["data"][1]["average_queue_ms"].is_null());

    api.clock.forward_ms(1);
    assert_eq!(api.post("/v1/cleanup?older_than_seconds=0", json!({})).await.ok(200)["deleted"], 2);
    let by_day = api.get("/v1/statistics?by=day&account=sandbox").await.ok(200);
    assert_eq!(by_day["data"].as_array().unwrap().iter().map(counts).collect::<Vec<_>>(), [json!([2, 1, 1])]);
    assert_eq!(api.get("/v1/statistics?account=relay-9").await.ok(200)["data"], json!([]));
    assert_eq!(api.in_tenant("other", "GET", "/v1/statistics", "").await.ok(200)["data"], json!([]));
    assert_eq!(api.get("/v1/statistics?by=week&since=x").await.wrong_fields(), ["by", "since"]);
    assert_eq!(api.get("/v1/statistics?since=2020-01-01T00:00:00Z").await.wrong_fields(), ["since"]);
}
