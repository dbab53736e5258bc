//! Callbacks in the vocabulary of an outbox.

use std::time::Duration;

use postway_domain::{
    EventKind::{self, Accepted, Cancelled, Failed, Invalid, Sent},
    tenant::{CallbackForm, RemoteAuth},
};
use postway_store::{
    Read,
    record::{MessageKey, NewEvent, NotificationState, NotificationView},
};
use postway_testkit::SourceReply;
use serde_json::json;

use super::{Client, TestGateway, json, taken, tenant};

async fn gateway() -> TestGateway {
    TestGateway::with(Some(Client { form: CallbackForm::Outbox, auth: RemoteAuth::Bearer })).await
}

#[tokio::test]
async fn a_conflict_means_again_and_each_call_is_in_the_history_before_it_is_made() {
    let gateway = gateway().await;
    gateway.receiver.serve_in_turn("/sync", vec![SourceReply::status(409), taken()]);
    let uid = gateway.message(1, &[Accepted, Sent]).await;
    let room = gateway.open(1);
    let waiting = gateway.once(uid, |one| one.state == NotificationState::Waiting).await;
    assert_eq!(waiting.last_call.unwrap().status, Some(409));
    let kinds = async || {
        let record = gateway.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap();
        record.events.iter().map(|event| event.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds().await, [Accepted, Sent, EventKind::Notifying]);
    gateway.pass(Duration::from_secs(6));
    gateway.all_told(&[uid]).await;

    let [_, call] = &gateway.received("/sync")[..] else { panic!("two calls") };
    assert_eq!(call.header("authorization"), Some("Bearer s3cret"));
    assert_eq!(call.header("webhook-signature"), None);
    assert_eq!(
        json(call),
        json!({
            "code": "TRAVELING",
            "reached_at": "2024-01-01T00:00:00.000Z",
            "message_ids": ["order-1"],
            "reason": null,
        })
    );
    let called = [Accepted, Sent, EventKind::Notifying, EventKind::Notifying, EventKind::Notified];
    assert_eq!(kinds().await, called);
    gateway.close(room).await;
}

#[tokio::test]
async fn every_2xx_acknowledges_and_nothing_else_does() {
    let gateway = gateway().await;
    let answers = [204, 202, 299, 302, 500].map(SourceReply::status);
    gateway.receiver.serve_in_turn("/sync", answers.to_vec());
    let room = gateway.open(1);
    for number in 1..=3 {
        let uid = gateway.message(number, &[Sent]).await;
        gateway.all_told(&[uid]).await;
    }
    let uid = gateway.message(4, &[Sent]).await;
    for status in [302, 500] {
        let is_answered = |one: &NotificationView| {
            one.state == NotificationState::Waiting
                && one.last_call.as_ref().is_some_and(|call| call.status == Some(status))
        };
        gateway.once(uid, is_answered).await;
        gateway.pass(Duration::from_secs(6));
    }
    gateway.close(room).await;
}

#[tokio::test]
async fn every_bad_end_is_told_with_its_reason_and_equal_ones_share_a_call() {
    let gateway = gateway().await;
    gateway.receiver.serve("/sync", taken());
    let refused = |kind| NewEvent { kind, data: Some(r#"{"message":"550 no such user"}"#.to_owned()) };
    let mut uids = Vec::new();
    for number in 1..=3 {
        uids.push(gateway.message_of(number, vec![refused(Failed)], |sample| sample).await);
    }
    uids.push(gateway.message(4, &[Invalid]).await);
    uids.push(gateway.message(5, &[Cancelled]).await);
    let room = gateway.open(1);
    gateway.all_told(&uids).await;
    let calls: Vec<_> = gateway.received("/sync").iter().map(json).collect();
    assert!(calls.iter().all(|call| call["code"] == json!("DISPATCH-ERROR")));
    let with = |reason: &str| {
        let ids = calls.iter().filter(|call| call["reason"] == json!(reason));
        ids.flat_map(|call| call["message_ids"].as_array().unwrap()).count()
    };
    assert_eq!(with("550 no such user"), 3);
    assert_eq!(with("refused by a check"), 1);
    assert_eq!(with("withdrawn before it was sent"), 1);
    assert_eq!(calls.len(), 3);
    gateway.close(room).await;
}
