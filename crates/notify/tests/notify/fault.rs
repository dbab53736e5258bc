//! Faults between a receiver and the notifier.

use std::time::Duration;

use postway_domain::{
    EventKind::{Accepted, Sent},
    MessageUid, Time,
};
use postway_store::record::NotificationState;
use postway_testkit::SourceReply;

use super::{NOW_MS, SOON, TestGateway, json, taken};

#[tokio::test]
async fn a_crash_after_the_receivers_yes_tells_again_under_the_same_id() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    let (gate, held) = taken().held();
    gateway.receiver.serve_in_turn("/hook", vec![held, taken()]);
    let uid = gateway.message(1, &[Sent]).await;
    let crashing = gateway.open(1);
    gateway.receiver.wait_for(1, SOON).await;
    crashing.abort();
    assert!(crashing.await.unwrap_err().is_cancelled());
    gate.send(true).unwrap();
    gateway.once(uid, |one| one.state == NotificationState::Calling).await;

    let room = gateway.open(2);
    gateway.all_told(&[uid]).await;
    let [first, second] = &gateway.received("/hook")[..] else { panic!("two calls") };
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    gateway.close(room).await;
}

#[tokio::test]
async fn an_answer_after_the_timeout_does_not_count_and_the_call_is_repeated() {
    let mut gateway = TestGateway::new().await;
    gateway.patience = Duration::from_secs(3);
    gateway.webhook("hook").await;
    let (gate, held) = taken().held();
    gateway.receiver.serve_in_turn("/hook", vec![held, taken()]);
    let uid = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    let late = gateway.once(uid, |one| one.state == NotificationState::Waiting).await;
    assert!(late.last_call.unwrap().answer.contains("within 3 s"));
    // The receiver may notice that its connection is gone.
    let _ = gate.send(true);
    gateway.pass(Duration::from_secs(6));
    gateway.all_told(&[uid]).await;
    let calls = gateway.received("/hook");
    assert!(calls.len() > 1);
    assert!(calls.iter().all(|call| call.header("webhook-id") == calls[0].header("webhook-id")));
    gateway.close(room).await;
}

#[tokio::test]
async fn a_receiver_that_was_down_for_five_days_hears_everything_in_order() {
    const HOURS: u32 = 120;
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", SourceReply::status(503));
    let mut uids = Vec::new();
    let room = gateway.open(1);
    for hour in 0..HOURS {
        uids.push(gateway.message(hour, &[Accepted, Sent]).await);
        let hour_ends = Time::from_millis(NOW_MS).plus(Duration::from_secs(3_600) * (hour + 1));
        let calls = gateway.received("/hook").len();
        super::until(async || {
            let is_called = gateway.received("/hook").len() > calls;
            let step = Duration::from_secs(if is_called { 600 } else { 60 });
            pass_unless_calling(&gateway, &uids, step).await;
            (is_called && gateway.now() >= hour_ends).then_some(())
        })
        .await;
    }
    let down = gateway.received("/hook").len();
    assert!(down < 15 * HOURS as usize, "it is tried now and then, and not for each event: {down}");
    gateway.receiver.serve("/hook", taken());
    let back_at = gateway.now();
    super::until(async || {
        let states = pass_unless_calling(&gateway, &uids, Duration::from_secs(30)).await;
        states.iter().all(|state| state.is_settled()).then_some(())
    })
    .await;
    gateway.all_told(&uids).await;
    // Failed notifications would wait for hours; the longest pause between two probes is five minutes.
    assert!(gateway.now().since(back_at) < Duration::from_secs(3_600), "{:?}", gateway.now().since(back_at));
    let mut heard = std::collections::HashMap::new();
    for call in &gateway.received("/hook")[down..] {
        let body = json(call);
        let before = heard.insert(body["data"]["id"].to_string(), body["sequence"].as_i64());
        assert!(before < Some(body["sequence"].as_i64()), "in order");
    }
    assert_eq!(heard.len(), uids.len());
    gateway.close(room).await;
}

#[tokio::test]
async fn what_waits_is_told_when_the_receiver_is_back_also_after_a_restart() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve("/hook", SourceReply::status(503));
    let first = gateway.message(1, &[Accepted, Sent]).await;
    let crashing = gateway.open(1);
    for tries in 1..=5 {
        gateway.once(first, |one| one.tries == tries && one.state == NotificationState::Waiting).await;
        if tries < 5 {
            gateway.pass(Duration::from_secs(2 * 3_600));
        }
    }
    crashing.abort();
    assert!(crashing.await.unwrap_err().is_cancelled());

    // What the dead process knew about its receiver is lost; the first acknowledged call is enough.
    gateway.receiver.serve("/hook", taken());
    let second = gateway.message(2, &[Sent]).await;
    let room = gateway.open(2);
    gateway.all_told(&[second, first]).await;
    assert_eq!(gateway.now(), Time::from_millis(NOW_MS).plus(Duration::from_secs(4 * 2 * 3_600)));
    gateway.close(room).await;
}

/// Advances the clock, but not during a call: its lease would end.
async fn pass_unless_calling(
    gateway: &TestGateway,
    uids: &[MessageUid],
    time: Duration,
) -> Vec<NotificationState> {
    let mut states = Vec::new();
    for uid in uids {
        states.extend(gateway.notifications(*uid).await.into_iter().map(|one| one.state));
    }
    if !states.contains(&NotificationState::Calling) {
        gateway.pass(time);
    }
    states
}

#[tokio::test]
async fn a_webhook_whose_secret_does_not_open_says_so_in_its_log() {
    let gateway = TestGateway::new().await;
    let mut webhook = gateway.webhook("hook").await;
    let change = {
        webhook.secrets = Some(postway_domain::secret::SealedSecret(vec![0; 40]));
        webhook.version = 2;
        postway_store::record::DirectoryChange::UpdateSubscriber(webhook, 1)
    };
    postway_store::DirectoryStore::change(&*gateway.store, change, None).await.unwrap();
    let uid = gateway.message(1, &[Sent]).await;
    let room = gateway.open(1);
    let waiting = gateway.once(uid, |one| one.state == NotificationState::Waiting).await;
    assert!(waiting.last_call.unwrap().answer.contains("does not open"));
    assert!(gateway.receiver.requests().is_empty());
    gateway.close(room).await;
}
