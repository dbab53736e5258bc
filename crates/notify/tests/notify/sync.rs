//! Client sync: what one call carries, and what its answer means.

use std::time::Duration;

use postway_domain::{
    EventKind::{Bounced, Failed, PecFailed, PecTimeout, Scheduled, Sent},
    MessageState, Subscriber, Time,
    message::ScheduleReason,
    tenant::{CallbackForm, RemoteAuth},
};
use postway_store::{
    ReportStore,
    record::{NewEvent, NotificationState},
};
use postway_testkit::SourceReply;
use serde_json::{Value, json};

use super::{Client, NOW_MS, SOON, TestGateway, json, tenant, until};

async fn gateway() -> TestGateway {
    TestGateway::with(Some(Client { form: CallbackForm::Batch, auth: RemoteAuth::Basic })).await
}

fn answer(body: Value) -> SourceReply {
    SourceReply::ok(body.to_string())
}

#[tokio::test]
async fn many_outcomes_go_in_one_call_and_only_what_was_refused_is_told_again() {
    let gateway = gateway().await;
    let refusing = answer(json!({"ok": true, "error": ["order-2"], "not_found": ["order-3"]}));
    gateway.receiver.serve_in_turn("/sync", vec![refusing, answer(json!({"ok": true}))]);
    let event = |kind, data: &str| vec![NewEvent { kind, data: Some(data.to_owned()) }];
    let later = r#"{"will_retry":true,"attempt":2,"message":"451 later","due_at":"2024-01-01T00:01:00Z","code":"smtp_451"}"#;
    let bounce = r#"{"type":"hard","smtp_code":550,"status":"5.1.1","reason":"user_unknown","diagnostic":"550 no such user"}"#;
    let receipt =
        r#"{"receipt":"errore-consegna","error":"no-dest","error_text":"5.1.1 - indirizzo non valido"}"#;
    let retrying = MessageState::Scheduled(ScheduleReason::Retry);
    let uids = [
        gateway.message(1, &[Sent]).await,
        gateway.message_of(2, event(Failed, r#"{"message":"554 no"}"#), |sample| sample).await,
        gateway.message_of(3, event(Scheduled, later), |sample| sample.state(retrying, None)).await,
        gateway.message_of(4, event(Bounced, bounce), |sample| sample).await,
        gateway.message_of(5, event(PecFailed, receipt), |sample| sample).await,
        gateway.message_of(6, event(PecTimeout, "{}"), |sample| sample).await,
    ];
    // All notifications exist before the first call is made.
    while gateway.store.sequence(1_000).await.unwrap() > 0 {}
    while gateway.store.fan_out(Time::from_millis(NOW_MS), 1_000).await.unwrap() > 0 {}
    let room = gateway.open(1);
    let refused = gateway.once(uids[1], |one| one.tries > 0).await;
    assert_eq!((refused.tries, refused.state), (1, NotificationState::Waiting));
    for uid in [uids[0], uids[2], uids[3], uids[4], uids[5]] {
        gateway.once(uid, |one| one.state == NotificationState::Acknowledged).await;
    }
    gateway.pass(Duration::from_secs(6));
    gateway.all_told(&uids).await;

    let [first, second] = &gateway.received("/sync")[..] else { panic!("two calls") };
    assert!(first.header("authorization").unwrap().starts_with("Basic "));
    let now_s = NOW_MS / 1_000;
    assert_eq!(
        json(first)["delivery_report"],
        json!([
            {"id": "order-1", "status": "sent", "account": "relay", "attempt": 0, "sent_ts": now_s},
            {"id": "order-2", "status": "error", "account": "relay", "attempt": 0, "error_ts": now_s, "error": "554 no"},
            {"id": "order-3", "status": "deferred", "account": "relay", "attempt": 2, "error": "451 later",
             "deferred_ts": now_s + 60},
            {"id": "order-4", "status": "bounced", "account": "relay", "attempt": 0, "bounce_ts": now_s,
             "bounce_type": "hard", "bounce_code": "550", "bounce_reason": "550 no such user", "bounce_status": "5.1.1",
             "bounce_kind": "user_unknown"},
            {"id": "order-5", "status": "pec_failed", "account": "relay", "attempt": 0, "pec_error_ts": now_s,
             "pec_error": "5.1.1 - indirizzo non valido", "pec_error_code": "no-dest"},
            {"id": "order-6", "status": "pec_timeout", "account": "relay", "attempt": 0, "pec_error_ts": now_s,
             "pec_error": "no receipt in time"},
        ])
    );
    let again = json(second)["delivery_report"].clone();
    assert_eq!(again.as_array().unwrap().len(), 1);
    assert_eq!(again[0]["id"], json!("order-2"));
    gateway.close(room).await;
}

#[tokio::test]
async fn a_200_that_tells_of_an_error_acknowledges_nothing() {
    for body in [r#"{"ok":false}"#, r#"{"ok":true,"error":"database down"}"#, "<html>Welcome</html>"] {
        let gateway = gateway().await;
        gateway.receiver.serve("/sync", SourceReply::ok(body));
        let uid = gateway.message(1, &[Sent]).await;
        let room = gateway.open(1);
        let waiting = gateway.once(uid, |one| one.state == NotificationState::Waiting).await;
        let call = waiting.last_call.unwrap();
        assert_eq!(call.status, Some(200));
        assert!(call.answer.starts_with("the answer"), "{}", call.answer);
        gateway.close(room).await;
    }
}

#[tokio::test]
async fn a_client_that_asks_for_quiet_is_left_alone_until_then() {
    let gateway = gateway().await;
    let later = NOW_MS / 1_000 + 7_200;
    let quiet = answer(json!({"ok": true, "next_sync_after": later, "queued": 5}));
    gateway.receiver.serve_in_turn("/sync", vec![quiet, answer(json!({"ok": true}))]);
    let first = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    gateway.all_told(&[first]).await;
    let id = Subscriber::CLIENT.parse().unwrap();
    let kept = until(async || {
        gateway.store.subscriber(&tenant(), &id).await.unwrap().and_then(|client| client.quiet_until)
    })
    .await;
    assert_eq!(kept.as_seconds(), later);
    let second = gateway.message(2, &[Sent]).await;
    gateway.once(second, |_| true).await;
    gateway.pass(Duration::from_secs(7_100));
    assert_eq!(gateway.received("/sync").len(), 1);
    gateway.pass(Duration::from_secs(101));
    gateway.all_told(&[second]).await;
    assert_eq!(gateway.received("/sync").len(), 2);
    gateway.close(room).await;
}

#[tokio::test]
async fn a_client_with_mail_to_hand_over_is_called_again_ten_times_and_no_more() {
    let gateway = gateway().await;
    gateway.receiver.serve("/sync", answer(json!({"ok": true, "queued": 1})));
    let first = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    gateway.receiver.wait_for(11, SOON).await;
    gateway.all_told(&[first]).await;
    gateway.receiver.serve("/sync", answer(json!({"ok": true})));
    let second = gateway.message(2, &[Sent]).await;
    gateway.all_told(&[second]).await;
    let calls = gateway.received("/sync");
    assert_eq!(calls.len(), 12);
    assert!(calls[1..11].iter().all(|call| json(call) == json!({"delivery_report": []})));
    assert_eq!(json(&calls[11])["delivery_report"][0]["id"], json!("order-2"));
    gateway.close(room).await;
}
