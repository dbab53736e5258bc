//! The outcomes of sent mail: bounces, receipts of certified mail and their evidence.

use std::io::{Cursor, Read};

use bytes::Bytes;
use postway_domain::{EventKind, InboundState, MessageState, MessageUid, RecipientStatus};
use postway_store::record::{MessageFinding, NewReceipt, NotificationState};
use serde_json::{Value, json};

use crate::{arrival::sha256, support::Api};

const RECEIPT: &str = "X-Ricevuta: accettazione\r\n\r\nreceipt\r\n";

async fn sent() -> (Api, MessageUid) {
    let api = Api::start().await;
    api.mailbox("back", json!({"roles": ["bounces", "pec"]})).await;
    let recipients = [("ada@example.net", RecipientStatus::Sent), ("bob@example.net", RecipientStatus::Sent)];
    let uid = api.stored("m-1", MessageState::Sent, &recipients).await;
    (api, uid)
}

fn finding(message: MessageUid, position: Option<u32>, kind: EventKind) -> MessageFinding {
    MessageFinding { message, position, kind, data: None, bounce: None, suppress: None, receipt: None }
}

async fn found(api: &Api, raw: &str, finding: MessageFinding) -> MessageUid {
    let uid = api.arrived("back", raw).await;
    api.routed(InboundState::Routed, |routed| routed.findings = vec![finding]).await;
    uid
}

#[tokio::test]
async fn a_bounce_shows_on_its_recipient_and_on_the_message_until_it_is_told() {
    let (api, uid) = sent().await;
    api.post("/v1/webhooks", json!({"url": "https://app.example.com/", "events": ["email.bounced"]}))
        .await
        .ok(201);
    let bounce = r#"{"type":"hard","code":"5.1.1","reason":"user_unknown","at":"2023-11-14T22:13:20Z"}"#;
    let bounced =
        MessageFinding { bounce: Some(bounce.to_owned()), ..finding(uid, Some(1), EventKind::Bounced) };
    found(&api, "Subject: bounce\r\n\r\n", bounced).await;
    let shown = api.get("/v1/messages/m-1").await.ok(200);
    assert_eq!((&shown["status"], &shown["outcome"]), (&json!("sent"), &json!("bounced")));
    assert_eq!(shown["bounce"]["type"], "hard");
    assert_eq!((&shown["bounce"]["code"], &shown["bounce"]["reported_at"]), (&json!("5.1.1"), &Value::Null));
    assert_eq!(
        (&shown["recipients"][0]["outcome"], &shown["recipients"][0]["bounce"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(shown["recipients"][1]["outcome"], "bounced");
    assert_eq!(shown["recipients"][1]["bounce"]["reason"], "user_unknown");
    assert_listed(&api, &shown).await;
    api.fan_out().await;
    assert_listed(&api, &api.get("/v1/messages/m-1").await.ok(200)).await;
    assert_eq!(api.notify(NotificationState::Acknowledged, 200).await, 1);
    let told = api.get("/v1/messages/m-1").await.ok(200);
    assert!(told["bounce"]["reported_at"].is_string(), "{}", told["bounce"]);
    assert_listed(&api, &told).await;
}

/// A list says of a message what the message says of itself.
async fn assert_listed(api: &Api, shown: &Value) {
    let list = api.get("/v1/messages").await.ok(200);
    for field in ["outcome", "bounce", "reported_at", "held_by", "reason"] {
        assert_eq!(list["data"][0][field], shown[field], "{field}");
    }
}

async fn with_receipt() -> (Api, MessageUid, MessageUid) {
    let (api, uid) = sent().await;
    let receipt = NewReceipt {
        digest: sha256(RECEIPT),
        kind: "accettazione".to_owned(),
        address: None,
        at: postway_domain::Time::from_millis(1_700_000_000_000),
        signature: "unverified",
        detail: r#"{"provider":"Example"}"#.to_owned(),
        body: Bytes::from_static(RECEIPT.as_bytes()).into(),
    };
    let accepted = MessageFinding { receipt: Some(receipt), ..finding(uid, None, EventKind::PecAccepted) };
    let inbound = found(&api, RECEIPT, accepted).await;
    (api, uid, inbound)
}

#[tokio::test]
async fn receipts_are_listed_with_their_digests_and_signatures() {
    let (api, _, inbound) = with_receipt().await;
    let listed = api.get("/v1/messages/m-1/pec").await.ok(200);
    let receipt = &listed["data"][0];
    assert_eq!((&receipt["kind"], &receipt["signature"]), (&json!("accettazione"), &json!("unverified")));
    assert_eq!((&receipt["inbound"], &receipt["size"]), (&json!(inbound.to_string()), &json!(RECEIPT.len())));
    assert_eq!(receipt["detail"]["provider"], "Example");
    assert_eq!(receipt["sha256"].as_str().unwrap().len(), 64);
    api.stored("m-2", MessageState::Ready, &[("ada@example.net", RecipientStatus::Pending)]).await;
    assert_eq!(api.get("/v1/messages/m-2/pec").await.ok(200)["data"], json!([]));
    api.get("/v1/messages/none/pec").await.refused(404, "not_found");
}

#[tokio::test]
async fn receipts_come_in_pages() {
    let (api, uid, first) = with_receipt().await;
    for n in 0..3 {
        // Ids are in the order of time, and within a millisecond in none.
        api.clock.forward_ms(1);
        let raw = format!("{RECEIPT}{n}");
        let receipt = NewReceipt {
            digest: sha256(&raw),
            kind: "avvenuta-consegna".to_owned(),
            address: None,
            at: postway_domain::Time::from_millis(1_700_000_000_000),
            signature: "unverified",
            detail: "{}".to_owned(),
            body: Bytes::from(raw.clone()).into(),
        };
        found(
            &api,
            &raw,
            MessageFinding { receipt: Some(receipt), ..finding(uid, None, EventKind::PecDelivered) },
        )
        .await;
    }
    let (mut inbound, mut path) = (Vec::new(), "/v1/messages/m-1/pec?limit=3".to_owned());
    loop {
        let page = api.get(&path).await.ok(200);
        inbound.extend(page["data"].as_array().unwrap().iter().map(|one| one["inbound"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        assert_eq!(inbound.len(), 3, "a full page");
        path = format!("/v1/messages/m-1/pec?limit=3&cursor={next}");
    }
    assert_eq!((inbound.len(), &inbound[0]), (4, &json!(first.to_string())));
    api.get("/v1/messages/m-1/pec?cursor=nonsense").await.refused(400, "malformed_request");
    api.get("/v1/messages/m-1/pec?limit=501").await.refused(422, "validation_error");
}

#[tokio::test]
async fn an_export_holds_the_original_the_receipts_and_their_digests() {
    let (api, uid, _) = with_receipt().await;
    let answer = api.get("/v1/messages/m-1/pec/export").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"application/zip".parse().unwrap())
    );
    let mut archive = zip::ZipArchive::new(Cursor::new(answer.body.to_vec())).unwrap();
    let mut file = |name: &str| {
        let mut text = String::new();
        archive.by_name(name).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    let manifest: Value = serde_json::from_str(&file("manifest.json")).unwrap();
    assert_eq!(
        (&manifest["message"]["id"], &manifest["message"]["uid"]),
        (&json!("m-1"), &json!(uid.to_string()))
    );
    let receipt = &manifest["receipts"][0];
    assert_eq!(
        (&receipt["file"], &receipt["intact"]),
        (&json!("receipts/01-accettazione.eml"), &json!(true))
    );
    assert_eq!(file("receipts/01-accettazione.eml"), RECEIPT);
    let original = file("original.eml");
    assert!(original.starts_with("Subject: Your order"));
    let hex: String = sha256(&original).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(manifest["original"]["sha256"], hex);
}

#[tokio::test]
async fn a_sensitive_message_is_not_exported() {
    let api = Api::start().await;
    let recipients = [("ada@example.net", RecipientStatus::Pending)];
    api.stored_with("secret", MessageState::Ready, &recipients, |message| message.content.sensitive = true)
        .await;
    api.get("/v1/messages/secret/pec/export").await.refused(403, "sensitive");
}
