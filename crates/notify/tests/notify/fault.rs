//! What may go wrong between a receiver and us.

use std::time::Duration;

use postway_domain::{
    EventKind::{Accepted, Sent},
    MessageUid, Time,
};
use postway_store::record::NotificationState;
use postway_testkit::Reply;

use super::{House, NOW_MS, SOON, json, taken};

#[tokio::test]
async fn a_crash_after_the_receivers_yes_tells_again_under_the_same_id() {
    let house = House::new().await;
    house.webhook("hook").await;
    let (gate, held) = taken().held();
    house.receiver.serve_in_turn("/hook", vec![held, taken()]);
    let uid = house.message(1, &[Sent]).await;
    let crashing = house.open(1);
    house.receiver.wait_for(1, SOON).await;
    crashing.abort();
    assert!(crashing.await.unwrap_err().is_cancelled());
    gate.send(true).unwrap();
    house.once(uid, |one| one.state == NotificationState::Calling).await;

    let room = house.open(2);
    house.all_told(&[uid]).await;
    let [first, second] = &house.received("/hook")[..] else { panic!("two calls") };
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    house.close(room).await;
}

#[tokio::test]
async fn an_answer_after_the_timeout_does_not_count_and_the_call_is_repeated() {
    let mut house = House::new().await;
    house.patience = Duration::from_secs(3);
    house.webhook("hook").await;
    let (gate, held) = taken().held();
    house.receiver.serve_in_turn("/hook", vec![held, taken()]);
    let uid = house.message(1, &[Sent]).await;
    let room = house.open(1);
    let late = house.once(uid, |one| one.state == NotificationState::Waiting).await;
    assert!(late.last_call.unwrap().answer.contains("within 3 s"));
    // The receiver may find that its connection is gone.
    let _ = gate.send(true);
    house.pass(Duration::from_secs(6));
    house.all_told(&[uid]).await;
    let calls = house.received("/hook");
    assert!(calls.len() > 1);
    assert!(calls.iter().all(|call| call.header("webhook-id") == calls[0].header("webhook-id")));
    house.close(room).await;
}

#[tokio::test]
async fn a_receiver_that_was_down_for_five_days_hears_everything_in_order() {
    const HOURS: u32 = 120;
    let house = House::new().await;
    house.webhook("hook").await;
    house.receiver.serve("/hook", Reply::status(503));
    let mut uids = Vec::new();
    let room = house.open(1);
    for hour in 0..HOURS {
        uids.push(house.message(hour, &[Accepted, Sent]).await);
        let hour_ends = Time::from_millis(NOW_MS).plus(Duration::from_secs(3_600) * (hour + 1));
        let calls = house.received("/hook").len();
        super::until(async || {
            let is_called = house.received("/hook").len() > calls;
            let step = Duration::from_secs(if is_called { 600 } else { 60 });
            pass_unless_calling(&house, &uids, step).await;
            (is_called && house.now() >= hour_ends).then_some(())
        })
        .await;
    }
    let down = house.received("/hook").len();
    assert!(down < 15 * HOURS as usize, "it is tried now and then, and not for each event: {down}");
    house.receiver.serve("/hook", taken());
    let back_at = house.now();
    super::until(async || {
        let states = pass_unless_calling(&house, &uids, Duration::from_secs(30)).await;
        states.iter().all(|state| state.is_settled()).then_some(())
    })
    .await;
    house.all_told(&uids).await;
    // What had failed would wait for hours; the longest pause between two probes is five minutes.
    assert!(house.now().since(back_at) < Duration::from_secs(3_600), "{:?}", house.now().since(back_at));
    let mut heard = std::collections::HashMap::new();
    for call in &house.received("/hook")[down..] {
        let body = json(call);
        let before = heard.insert(body["data"]["id"].to_string(), body["sequence"].as_i64());
        assert!(before < Some(body["sequence"].as_i64()), "in order");
    }
    assert_eq!(heard.len(), uids.len());
    house.close(room).await;
}

#[tokio::test]
async fn what_waits_is_told_when_the_receiver_is_back_also_after_a_restart() {
    let house = House::new().await;
    house.webhook("hook").await;
    house.receiver.serve("/hook", Reply::status(503));
    let first = house.message(1, &[Accepted, Sent]).await;
    let crashing = house.open(1);
    for tries in 1..=5 {
        house.once(first, |one| one.tries == tries && one.state == NotificationState::Waiting).await;
        if tries < 5 {
            house.pass(Duration::from_secs(2 * 3_600));
        }
    }
    crashing.abort();
    assert!(crashing.await.unwrap_err().is_cancelled());

    // What the dead process knew of its receiver is gone; the first one that the receiver takes says enough.
    house.receiver.serve("/hook", taken());
    let second = house.message(2, &[Sent]).await;
    let room = house.open(2);
    house.all_told(&[second, first]).await;
    assert_eq!(house.now(), Time::from_millis(NOW_MS).plus(Duration::from_secs(4 * 2 * 3_600)));
    house.close(room).await;
}

/// Lets time pass, but not under a call: its lease would end.
async fn pass_unless_calling(house: &House, uids: &[MessageUid], time: Duration) -> Vec<NotificationState> {
    let mut states = Vec::new();
    for uid in uids {
        states.extend(house.notifications(*uid).await.into_iter().map(|one| one.state));
    }
    if !states.contains(&NotificationState::Calling) {
        house.pass(time);
    }
    states
}

#[tokio::test]
async fn a_webhook_whose_secret_does_not_open_says_so_in_its_log() {
    let house = House::new().await;
    let mut webhook = house.webhook("hook").await;
    let change = {
        webhook.secrets = Some(postway_domain::secret::Sealed(vec![0; 40]));
        webhook.version = 2;
        postway_store::record::DirectoryChange::UpdateSubscriber(webhook, 1)
    };
    postway_store::Directory::change(&*house.store, change, None).await.unwrap();
    let uid = house.message(1, &[Sent]).await;
    let room = house.open(1);
    let waiting = house.once(uid, |one| one.state == NotificationState::Waiting).await;
    assert!(waiting.last_call.unwrap().answer.contains("does not open"));
    assert!(house.receiver.requests().is_empty());
    house.close(room).await;
}
