//! Stored requests and mails can be read back, inline or from blobs.

use bytes::Bytes;
use postway_domain::MessageUid;
use postway_intake::{IntakeLimits, RawOptions};
use postway_store::{
    Read,
    record::{BodyLocation, StoredBody},
};
use serde_json::{Value, json};

use crate::{TestGateway, body_of, ctx, message, tenant};

async fn payload(gateway: &TestGateway, uid: MessageUid) -> Bytes {
    let payload = gateway.store.payload(&tenant(), uid).await.unwrap().expect("the request is kept");
    gateway.door.resolve(&tenant(), payload).await.unwrap()
}

#[tokio::test]
async fn a_request_is_read_back_as_it_came() {
    let gateway = TestGateway::new().await;
    let body = format!(" {} ", message(json!({"metadata": {"n": 1.10}})));
    let receipt = gateway.door.accept_json(&ctx(), body_of(body.as_bytes())).await.unwrap();
    assert_eq!(payload(&gateway, receipt.uid).await, body);
    let mail = Bytes::from_static(b"From: a@example.com\nTo: b@example.net\n\nHi\n");
    let receipt = gateway.door.accept_raw(&ctx(), RawOptions::default(), mail.clone()).await.unwrap();
    assert_eq!(payload(&gateway, receipt.uid).await, mail);
}

#[tokio::test]
async fn a_message_of_a_batch_has_its_own_request_with_the_defaults_in_it() {
    let gateway = TestGateway::new().await;
    let (one, two) = (message(json!({"subject": "one"})), message(json!({"subject": "two"})));
    let batch = json!({"messages": [one, two]}).to_string();
    let receipt = gateway.door.accept_batch(&ctx(), body_of(batch.as_bytes())).await.unwrap();
    for (result, expected) in receipt.results.iter().zip([one, two]) {
        let uid = result.as_ref().unwrap().uid;
        assert_eq!(serde_json::from_slice::<Value>(&payload(&gateway, uid).await).unwrap(), expected);
    }
    let batch = json!({"defaults": {"from": "a@example.com", "tags": ["t"]},
                       "messages": [{"to": "b@example.net", "text": "x"}]});
    let receipt = gateway.door.accept_batch(&ctx(), body_of(batch.to_string().as_bytes())).await.unwrap();
    let uid = receipt.results[0].as_ref().unwrap().uid;
    let expected = json!({"from": "a@example.com", "tags": ["t"], "to": "b@example.net", "text": "x"});
    assert_eq!(serde_json::from_slice::<Value>(&payload(&gateway, uid).await).unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_blobs_and_come_back_whole() {
    let gateway = TestGateway::with_limits(IntakeLimits::default()).await;
    let small = gateway.send(&message(json!({"text": "x".repeat(60 * 1024)}))).await.unwrap();
    assert!(matches!(gateway.stored(small.uid).await.raw, BodyLocation::Inline(_)));
    let body = message(json!({"text": "word ".repeat(60 * 1024)})).to_string();
    let large = gateway.door.accept_json(&ctx(), body_of(body.as_bytes())).await.unwrap();
    let record = gateway.stored(large.uid).await;
    let (BodyLocation::Blob(raw), BodyLocation::Blob(_)) = (record.raw, record.payload) else {
        panic!("kept in the row")
    };
    let text = gateway.raw(large.uid).await;
    assert_eq!(text.len() as u64, raw.size);
    let mail = mail_parser::MessageParser::new().parse(text.as_bytes()).unwrap();
    assert_eq!(mail.body_text(0).unwrap().matches("word").count(), 60 * 1024);
    assert_eq!(payload(&gateway, large.uid).await, body);
    let theirs = gateway.door.resolve(&"other".parse().unwrap(), StoredBody::Blob(raw)).await;
    assert!(theirs.is_err(), "a blob is its tenant's");
}
