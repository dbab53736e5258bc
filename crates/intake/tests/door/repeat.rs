//! The same request twice: one message.

use postway_intake::Refusal;
use serde_json::json;

use crate::{House, body_of, ctx, keyed, message};

fn is_conflict<T>(result: Result<T, Refusal>, name: &str) -> bool {
    matches!(result, Err(Refusal::Conflict { message }) if message.contains(name))
}

#[tokio::test]
async fn the_same_id_and_body_is_the_same_message() {
    let house = House::new().await;
    let first = house.send(&message(json!({"id": "order-1"}))).await.unwrap();
    house.advance(std::time::Duration::from_secs(5));
    let again = house.send(&message(json!({"id": "order-1"}))).await.unwrap();
    assert_eq!(first, again);
    let other = house.send(&message(json!({"id": "order-1", "text": "other"}))).await;
    assert!(is_conflict(other, "this id was used"));
    assert_eq!(house.count().await, 1);
}

#[tokio::test]
async fn the_same_key_and_body_is_the_same_message() {
    let house = House::new().await;
    let body = message(json!({})).to_string();
    let first = house.door.accept_json(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    let again = house.door.accept_json(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(again.id, first.uid.to_string());
    let other = message(json!({"subject": "other"})).to_string();
    assert!(is_conflict(
        house.door.accept_json(&keyed("k"), body_of(other.as_bytes())).await,
        "this Idempotency-Key was used"
    ));
    house.door.accept_json(&keyed("l"), body_of(body.as_bytes())).await.unwrap();
    assert_eq!(house.count().await, 2);
}

#[tokio::test]
async fn spelling_does_not_make_another_body() {
    let house = House::new().await;
    let bodies = [
        r#"{"from":"a@example.com","to":["b@example.net"],"text":"t"}"#,
        r#"{ "text": "\u0074", "cc": null, "to": "b@example.net", "from": "a@example.com" }"#,
    ];
    for body in bodies {
        house.door.accept_json(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    }
    assert_eq!(house.count().await, 1);
}

#[tokio::test]
async fn without_a_key_the_same_body_is_another_message() {
    let house = House::new().await;
    for _ in 0..2 {
        house.send(&message(json!({}))).await.unwrap();
    }
    assert_eq!(house.count().await, 2);
}

#[tokio::test]
async fn a_repeated_batch_is_recognised_item_by_item() {
    let house = House::new().await;
    let body = json!({"messages": [message(json!({})), message(json!({"id": "b"}))]}).to_string();
    let first = house.door.accept_batch(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    let again = house.door.accept_batch(&keyed("k"), body_of(body.as_bytes())).await.unwrap();
    for (first, again) in first.results.iter().zip(&again.results) {
        assert_eq!(first.as_ref().unwrap(), again.as_ref().unwrap());
    }
    assert_eq!(house.count().await, 2);
    // The key of a batch is not the key of a single request.
    house.door.accept_json(&keyed("k"), body_of(message(json!({})).to_string().as_bytes())).await.unwrap();
    assert_eq!(house.count().await, 3);
    let without_key = house.door.accept_batch(&ctx(), body_of(body.as_bytes())).await.unwrap();
    assert_eq!(
        without_key.results[1].as_ref().unwrap(),
        first.results[1].as_ref().unwrap(),
        "known by its id"
    );
}
