//! Inbound mail: listed, shown, downloaded, replayed, resolved.

use postway_domain::{InboundState, MessageState, MessageUid, RecipientStatus};
use serde_json::{Value, json};

use crate::support::Api;

const MAIL: &str = "From: Bob <bob@example.net>\r\nSubject: question\r\n\r\nHow much?\r\n";

async fn with_mail() -> (Api, MessageUid) {
    let api = Api::start().await;
    api.mailbox("support", json!({})).await;
    let uid = api.arrived("support", MAIL).await;
    (api, uid)
}

#[tokio::test]
async fn a_mail_is_shown_with_what_was_done_and_what_became_of_that() {
    let (api, uid) = with_mail().await;
    let sent = api.stored("m-1", MessageState::Sent, &[("ada@example.net", RecipientStatus::Sent)]).await;
    let path = format!("/v1/inbound/{uid}");
    let fresh = api.get(&path).await.ok(200);
    assert_eq!(
        (&fresh["status"], &fresh["kind"], &fresh["result"]),
        (&json!("received"), &Value::Null, &Value::Null)
    );
    api.routed(InboundState::Routed, |routed| {
        routed.kind = Some("ordinary");
        routed.result = Some(r#"{"rules":["orders"]}"#.to_owned());
        routed.tags = vec!["order".to_owned()];
        routed.messages = vec![("orders".parse().unwrap(), sent)];
    })
    .await;
    let shown = api.get(&path).await.ok(200);
    assert_eq!(
        (&shown["status"], &shown["kind"], &shown["tags"]),
        (&json!("routed"), &json!("ordinary"), &json!(["order"]))
    );
    assert_eq!(shown["messages"], json!([{"rule": "orders", "uid": sent.to_string(), "status": "sent"}]));
    assert_eq!(shown["result"], json!({"rules": ["orders"]}));
    assert_eq!(
        (&shown["mailbox"], &shown["size"], &shown["imap_uid"]),
        (&json!("support"), &json!(MAIL.len()), &json!(1))
    );
    assert_eq!(shown["digest"].as_str().unwrap().len(), 64);
    assert!(shown["settled_at"].is_string());
}

#[tokio::test]
async fn mail_is_listed_by_mailbox_status_and_kind_newest_first() {
    let (api, first) = with_mail().await;
    api.routed(InboundState::Dead, |routed| {
        routed.kind = Some("bounce");
        routed.error = Some("no use".to_owned());
    })
    .await;
    api.clock.forward_ms(10);
    api.mailbox("other", json!({})).await;
    let second = api.arrived("other", "Subject: y\r\n\r\n").await;
    let ids = async |query: &str| {
        let listed = api.get(&format!("/v1/inbound{query}")).await.ok(200);
        let data = listed["data"].as_array().unwrap().iter();
        let ids: Vec<String> = data.map(|mail| mail["id"].as_str().unwrap().to_owned()).collect();
        (ids, listed["next_cursor"].clone())
    };
    let (first, second) = (first.to_string(), second.to_string());
    assert_eq!(ids("").await.0, [second.clone(), first.clone()]);
    assert_eq!(ids("?mailbox=other").await.0, [second.as_str()]);
    assert_eq!(ids("?status=dead&kind=bounce").await.0, [first.as_str()]);
    assert!(ids("?status=gone").await.0.is_empty());
    let (page, cursor) = ids("?limit=1").await;
    assert_eq!(page, [second]);
    assert_eq!(
        ids(&format!("?limit=1&cursor={}", cursor.as_str().unwrap())).await,
        (vec![first], Value::Null)
    );
    assert_eq!(
        api.get("/v1/inbound?status=lost&kind=x&colour=1").await.wrong_fields(),
        ["status", "kind", "colour"]
    );
}

#[tokio::test]
async fn the_bytes_come_as_they_are_and_as_a_download() {
    let (api, uid) = with_mail().await;
    let raw = api.get(&format!("/v1/inbound/{uid}/raw")).await;
    assert_eq!((raw.status.as_u16(), &raw.body[..]), (200, MAIL.as_bytes()));
    assert_eq!(raw.headers["content-type"], "message/rfc822");
    assert!(raw.headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
    for path in ["/v1/inbound/x", "/v1/inbound/0192d3a4-5b6c-7d8e-9f01-23456789abcd/raw"] {
        api.get(path).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn only_settled_mail_is_replayed_and_then_it_waits_again() {
    let (api, uid) = with_mail().await;
    let path = format!("/v1/inbound/{uid}/replay");
    let error = api.post(&path, json!({})).await.refused(409, "conflict");
    assert!(error["message"].as_str().unwrap().contains("received"));
    api.routed(InboundState::Dead, |routed| {
        routed.error = Some("no use".to_owned());
        routed.tries = 3;
    })
    .await;
    let replayed = api.post(&path, json!({})).await.ok(200);
    assert_eq!(replayed["tries"], 0);
    assert!(matches!(replayed["status"].as_str(), Some("received" | "waiting")), "{replayed}");
    api.routed(InboundState::NoMatch, |_| {}).await;
    let missing = "/v1/inbound/0192d3a4-5b6c-7d8e-9f01-23456789abcd/replay";
    api.post(missing, json!({})).await.refused(404, "not_found");
    let audit = api.get("/v1/audit?limit=1").await.ok(200);
    assert_eq!(audit["data"][0]["action"], "inbound.replay");
}

#[tokio::test]
async fn a_resolved_mail_is_not_reminded_of() {
    let (api, uid) = with_mail().await;
    api.routed(InboundState::Routed, |routed| {
        routed.follow_up = Some("orders".parse().unwrap());
        routed.due_at = Some(postway_domain::Time::from_millis(routed.at.as_millis() + 3_600_000));
    })
    .await;
    let path = format!("/v1/inbound/{uid}");
    assert!(api.get(&path).await.ok(200)["due_at"].is_string());
    let resolved = api.post(&format!("{path}/resolve"), json!({})).await.ok(200);
    assert!(resolved["resolved_at"].is_string());
    assert_eq!(resolved["due_at"], Value::Null);
    api.post(&format!("{path}/resolve"), json!({})).await.ok(200);
}

#[tokio::test]
async fn mail_that_came_in_is_told_in_the_feed_by_what_it_is() {
    let (api, uid) = with_mail().await;
    api.routed(InboundState::Routed, |routed| {
        routed.received = Some(r#"{"subject":"question"}"#.to_owned());
    })
    .await;
    api.fan_out().await;
    let feed = api.get("/v1/events").await.ok(200);
    let entry = &feed["data"][0];
    assert_eq!((&entry["type"], &entry["message"]), (&json!("email.received"), &Value::Null), "{feed}");
    assert_eq!((&entry["inbound"], &entry["data"]["subject"]), (&json!(uid.to_string()), &json!("question")));
    assert_eq!(api.get(&format!("/v1/inbound/{uid}")).await.ok(200)["events"][0]["type"], "received");
}
