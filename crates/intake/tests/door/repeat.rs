//! The same request twice: one message.

use std::time::Duration;

use postway_domain::Clock;
use postway_intake::{AcceptReceipt, RawOptions, Refusal, RequestContext};
use serde_json::json;

use crate::{TestGateway, body_of, ctx, keyed, message};

fn is_conflict<T>(result: Result<T, Refusal>, name: &str) -> bool {
    matches!(result, Err(Refusal::Conflict { message }) if message.contains(name))
}

/// Asserts that the second answer equals the first and is marked as a repeat.
fn assert_again(first: &AcceptReceipt, again: &AcceptReceipt) {
    assert_eq!(again, &AcceptReceipt { is_repeat: true, ..first.clone() });
}

#[tokio::test]
async fn the_same_id_and_body_is_the_same_message() {
    let gateway = TestGateway::new().await;
    let first = gateway.send(&message(json!({"id": "order-1"}))).await.unwrap();
    gateway.advance(Duration::from_secs(5));
    let again = gateway.send(&message(json!({"id": "order-1"}))).await.unwrap();
    assert_again(&first, &again);
    let other = gateway.send(&message(json!({"id": "order-1", "text": "other"}))).await;
    assert!(is_conflict(other, "this id was used"));
    assert_eq!(gateway.count().await, 1);
}

#[tokio::test]
async fn the_same_key_and_body_is_the_same_message() {
    let gateway = TestGateway::new().await;
    let body = message(json!({})).to_string();
    let first = gateway.door.accept_json(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    let again = gateway.door.accept_json(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    assert_again(&first, &again);
    assert_eq!(again.id, first.uid.to_string());
    let other = message(json!({"subject": "other"})).to_string();
    assert!(is_conflict(
        gateway.door.accept_json(&keyed("k"), body_of(other.as_bytes())).await,
        "this Idempotency-Key was used"
    ));
    gateway.door.accept_json(&keyed("l"), body_of(body.as_bytes())).await.unwrap();
    assert_eq!(gateway.count().await, 2);
}

#[tokio::test]
async fn spelling_does_not_make_another_body() {
    let gateway = TestGateway::new().await;
    let bodies = [
        r#"{"from":"a@example.com","to":["b@example.net"],"text":"t"}"#,
        r#"{ "text": "\u0074", "cc": null, "to": "b@example.net", "from": "a@example.com" }"#,
    ];
    for body in bodies {
        gateway.door.accept_json(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    }
    assert_eq!(gateway.count().await, 1);
}

#[tokio::test]
async fn without_a_key_the_same_body_is_another_message() {
    let gateway = TestGateway::new().await;
    for _ in 0..2 {
        gateway.send(&message(json!({}))).await.unwrap();
    }
    assert_eq!(gateway.count().await, 2);
}

#[tokio::test]
async fn a_repeated_batch_is_recognised_item_by_item() {
    let gateway = TestGateway::new().await;
    let body = json!({"messages": [message(json!({})), message(json!({"id": "b"}))]}).to_string();
    let first = gateway.door.accept_batch(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    let again = gateway.door.accept_batch(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    for (first, again) in first.results.iter().zip(&again.results) {
        assert_again(first.as_ref().unwrap(), again.as_ref().unwrap());
    }
    assert_eq!(gateway.count().await, 2);
    // The key of a batch is not the key of a single request.
    gateway.door.accept_json(&keyed("k"), body_of(message(json!({})).to_string().as_bytes())).await.unwrap();
    assert_eq!(gateway.count().await, 3);
    let without_key = gateway.door.accept_batch(&ctx(), body_of(body.as_bytes())).await.unwrap();
    // The message is recognised by its id.
    assert_again(first.results[1].as_ref().unwrap(), without_key.results[1].as_ref().unwrap());
}

#[tokio::test]
async fn another_batch_under_the_same_key_is_refused_whole() {
    let gateway = TestGateway::new().await;
    let send = async |messages: serde_json::Value| {
        let body = json!({"messages": messages}).to_string();
        gateway.door.accept_batch(&keyed("k"), body_of(body.as_bytes())).await
    };
    let [good, bad] = [message(json!({})), message(json!({"to": "nobody"}))];
    let first = send(json!([bad, good])).await.unwrap();
    assert_eq!((first.accepted, first.rejected), (1, 1));
    for other in [json!([good, good]), json!([good]), json!([bad, good, good])] {
        assert!(is_conflict(send(other).await, "used for another batch"));
    }
    let again = send(json!([bad, good])).await.unwrap();
    assert_again(first.results[1].as_ref().unwrap(), again.results[1].as_ref().unwrap());
    assert_eq!(gateway.count().await, 1);
}

#[tokio::test]
async fn a_repeat_is_answered_although_it_would_not_pass_any_more() {
    let gateway = TestGateway::new().await;
    let expires_at = gateway.clock.now().plus(Duration::from_secs(5)).to_string();
    let short = message(json!({"id": "a", "expires_at": expires_at}));
    let keyed_body = message(json!({"expires_at": expires_at})).to_string();
    let batch = json!({"messages": [short.clone(), message(json!({}))]}).to_string();
    let mail = b"From: a@example.com\r\nTo: b@example.net\r\n\r\nt\r\n";
    let options = RawOptions { expires_at: Some(expires_at.clone()), ..RawOptions::default() };
    let by_id = gateway.send(&short).await.unwrap();
    let by_key = gateway.door.accept_json(&keyed("k"), body_of(keyed_body.as_bytes())).await.unwrap();
    let raw = gateway.door.accept_raw(&keyed("r"), options.clone(), body_of(mail)).await.unwrap();
    gateway.advance(Duration::from_secs(10));
    assert_again(&by_id, &gateway.send(&short).await.unwrap());
    let again = gateway.door.accept_json(&keyed("k"), body_of(keyed_body.as_bytes())).await.unwrap();
    assert_again(&by_key, &again);
    assert_again(&raw, &gateway.door.accept_raw(&keyed("r"), options, body_of(mail)).await.unwrap());
    let receipt = gateway.door.accept_batch(&ctx(), body_of(batch.as_bytes())).await.unwrap();
    assert_again(&by_id, receipt.results[0].as_ref().unwrap());
    // A different message under the same id is a conflict, and an unknown one stays refused.
    let other = message(json!({"id": "a", "text": "other", "expires_at": expires_at}));
    assert!(is_conflict(gateway.send(&other).await, "this id was used"));
    let unknown = gateway.send(&message(json!({"id": "b", "expires_at": expires_at}))).await;
    assert!(matches!(unknown, Err(Refusal::Invalid { .. })), "{unknown:?}");
    assert_eq!(gateway.count().await, 4);
}

#[tokio::test]
async fn a_dry_run_knows_what_was_used_before() {
    let gateway = TestGateway::new().await;
    let first = gateway.send(&message(json!({"id": "a"}))).await.unwrap();
    let dry = RequestContext { dry_run: true, ..ctx() };
    let same = message(json!({"id": "a"})).to_string();
    let same = gateway.door.accept_json(&dry, body_of(same.as_bytes())).await.unwrap();
    assert_eq!((same.uid, same.status), (first.uid, "valid"));
    let other = message(json!({"id": "a", "text": "other"})).to_string();
    assert!(is_conflict(gateway.door.accept_json(&dry, body_of(other.as_bytes())).await, "this id was used"));
}
