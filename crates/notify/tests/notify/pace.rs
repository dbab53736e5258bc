//! How much is delivered at once, in which turn, and how the notifier stops.

use std::time::Duration;

use postway_domain::{EventKind::Sent, MessageState, MessageStatus, MessageUid, Tenant, TenantId};
use postway_store::{
    DirectoryStore, WorkStore,
    conformance::{
        sample::{ACCOUNT, event},
        stage::change,
    },
    record::{NotificationState, NotificationView, WriteFence},
};
use postway_testkit::SourceReply;

use super::{SOON, TestGateway, json, taken, until};

/// How long a webhook may take to answer.
const GIVEN_UP_AFTER_S: usize = 15;

async fn messages(gateway: &TestGateway, numbers: std::ops::Range<u32>) -> Vec<MessageUid> {
    let mut uids = Vec::new();
    for number in numbers {
        uids.push(gateway.message(number, &[Sent]).await);
    }
    uids
}

#[tokio::test]
async fn a_slow_subscriber_takes_its_eight_places_and_delays_no_other() {
    let gateway = TestGateway::new().await;
    gateway.webhook("slow").await;
    gateway.webhook("quick").await;
    let (gate, held) = taken().held();
    gateway.receiver.serve_in_turn("/slow", [vec![taken(); 30], vec![held]].concat());
    gateway.receiver.serve("/quick", taken());
    let room = gateway.open(1);
    let uids = messages(&gateway, 0..100).await;
    until(async || (gateway.received("/quick").len() == 100).then_some(())).await;
    until(async || (gateway.received("/slow").len() >= 38).then_some(())).await;
    let more = messages(&gateway, 100..150).await;
    until(async || (gateway.received("/quick").len() == 150).then_some(())).await;
    assert_eq!(gateway.received("/slow").len(), 30 + 8);
    gate.send(true).unwrap();
    gateway.all_told(&uids).await;
    gateway.all_told(&more).await;
    gateway.close(room).await;
}

#[tokio::test]
async fn many_dead_subscribers_leave_room_for_one_that_lives() {
    let gateway = TestGateway::new().await;
    for number in 0..250 {
        let id = format!("dead-{number}");
        gateway.webhook(&id).await;
        gateway.receiver.serve(&format!("/{id}"), SourceReply::Silent);
    }
    gateway.webhook("a-living").await;
    gateway.receiver.serve("/a-living", taken());
    let began = tokio::time::Instant::now();
    let room = gateway.open(1);
    let uids = messages(&gateway, 0..20).await;
    until(async || (gateway.received("/a-living").len() == uids.len()).then_some(())).await;
    // As many as may be called at once, and as many again after those were given up.
    let rounds = 1 + began.elapsed().as_secs() as usize / GIVEN_UP_AFTER_S;
    assert!(gateway.receiver.requests().len() <= uids.len() + 192 * rounds);
    gateway.stop.cancel();
    room.abort();
}

/// One tenant has 32 webhooks that answer at first and then take their time, with as many calls as there are
/// slots in total. Returns whether another tenant's call began before any of these was over, by its answer or
/// by its timeout.
async fn another_begins_meanwhile() -> bool {
    const PROVEN_BY: usize = 6;
    /// The share of one tenant in the slots.
    const HELD: usize = 112;
    let gateway = TestGateway::new().await;
    let (gate, held) = taken().held();
    for number in 0..32 {
        let id = format!("slow-{number}");
        gateway.webhook(&id).await;
        let replies = [vec![taken(); PROVEN_BY], vec![held.clone()]].concat();
        gateway.receiver.serve_in_turn(&format!("/{id}"), replies);
    }
    let other: TenantId = "globex".parse().unwrap();
    assert!(gateway.store.create_tenant(Tenant::new(other.clone(), "Globex", gateway.now())).await.unwrap());
    gateway.webhook_of(&other, "theirs", gateway.receiver.url("/theirs")).await;
    gateway.receiver.serve("/theirs", taken());
    let room = gateway.open(1);
    let uids = messages(&gateway, 0..16).await;
    let begun = 32 * PROVEN_BY + HELD;
    until(async || (gateway.receiver.requests().len() >= begun).then_some(())).await;
    gateway.message_of(100, vec![event(Sent)], |sample| sample.from(other.as_str(), ACCOUNT)).await;
    until(async || gateway.received("/theirs").first().map(|_| ())).await;
    let mut is_meanwhile = true;
    for uid in uids {
        let failed = |one: &NotificationView| one.state == NotificationState::Waiting;
        is_meanwhile &= !gateway.notifications(uid).await.iter().any(failed);
    }
    if is_meanwhile {
        assert_eq!(
            gateway.receiver.requests().len(),
            begun + 1,
            "one tenant has less than half of the places"
        );
    }
    gateway.stop.cancel();
    gate.send(true).unwrap();
    gateway.close(room).await;
    is_meanwhile
}

#[tokio::test]
async fn a_tenant_full_of_slow_webhooks_keeps_no_other_waiting() {
    // If this machine is so slow that a call is given up before all others have begun, the try says nothing.
    for _ in 0..4 {
        if another_begins_meanwhile().await {
            return;
        }
    }
    panic!("the other tenant was called only when places became free");
}

#[tokio::test]
async fn a_call_ends_in_time_however_slowly_its_answer_comes() {
    let mut gateway = TestGateway::new().await;
    gateway.patience = Duration::from_secs(1);
    gateway.webhook("hook").await;
    gateway
        .receiver
        .serve("/hook", SourceReply::Drip { body: vec![b'.'; 1_000], every: Duration::from_millis(500) });
    let room = gateway.open(1);
    let uid = gateway.message(1, &[Sent]).await;
    let delivered = gateway.once(uid, |one| one.state == NotificationState::Acknowledged).await;
    assert_eq!(delivered.last_call.unwrap().status, Some(200), "what came after its status is left");
    gateway.close(room).await;
}

#[tokio::test]
async fn a_subscriber_that_fails_in_a_row_is_only_probed() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    gateway.receiver.serve_in_turn("/hook", [vec![taken(); 5], vec![SourceReply::status(500)]].concat());
    let room = gateway.open(1);
    let uids = messages(&gateway, 0..60).await;
    let states = async || {
        let mut states = Vec::new();
        for uid in &uids {
            states.extend(gateway.notifications(*uid).await.into_iter().map(|one| one.state));
        }
        states
    };
    until(async || {
        let states = states().await;
        let waiting = states.iter().filter(|state| **state == NotificationState::Waiting).count();
        (waiting >= 3 && !states.contains(&NotificationState::Calling)).then_some(())
    })
    .await;
    let before = gateway.received("/hook").len();
    assert!(before <= 5 + 3 + 8, "calls under way when it began to fail: {before}");
    gateway.pass(Duration::from_millis(1_100));
    gateway.receiver.wait_for(before + 1, SOON).await;
    gateway.close(room).await;
    // The scheduler's own tests check the exact number; here some calls may have been under way when it began
    // to fail.
    assert!(
        gateway.received("/hook").len() <= before + 3 + 8,
        "one probe after a second, then two seconds of peace"
    );
}

#[tokio::test]
async fn what_waited_long_for_its_call_is_told_as_it_stands_then() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    let (gate, held) = taken().held();
    gateway.receiver.serve_in_turn("/hook", [vec![taken(); 30], vec![held]].concat());
    let room = gateway.open(1);
    let uids = messages(&gateway, 0..60).await;
    let last = uids[59];
    gateway.receiver.wait_for(38, SOON).await;
    gateway.once(last, |one| one.state == NotificationState::Calling).await;
    let fence = WriteFence { status: MessageStatus::Sent, token: None, version: None };
    let change = change(last, fence, MessageState::Failed, gateway.now());
    assert_eq!(gateway.store.apply(vec![change]).await.unwrap(), [true]);
    gateway.pass(Duration::from_secs(3));
    gate.send(true).unwrap();
    gateway.all_told(&uids).await;
    let calls: Vec<_> = gateway.received("/hook").iter().map(json).collect();
    let of = |uid: MessageUid| calls.iter().find(|call| call["data"]["uid"] == uid.to_string()).unwrap();
    assert_eq!(
        (&of(uids[0])["data"]["status"], &of(last)["data"]["status"]),
        (&"sent".into(), &"failed".into())
    );
    gateway.close(room).await;
}

#[tokio::test]
async fn on_stop_calls_end_and_the_rest_is_given_back() {
    let gateway = TestGateway::new().await;
    gateway.webhook("hook").await;
    let (gate, held) = taken().held();
    gateway.receiver.serve_in_turn("/hook", [vec![taken(); 30], vec![held]].concat());
    let room = gateway.open(1);
    let uids = messages(&gateway, 0..100).await;
    gateway.receiver.wait_for(38, SOON).await;
    gateway.stop.cancel();
    gate.send(true).unwrap();
    gateway.close(room).await;
    let mut acknowledged = 0;
    for uid in uids {
        let one = gateway.notifications(uid).await.into_iter().next();
        match one.map(|one| (one.state, one.tries)) {
            Some((NotificationState::Acknowledged, 1)) => acknowledged += 1,
            Some((NotificationState::Pending, 0)) | None => {}
            other => panic!("left as {other:?}"),
        }
    }
    assert_eq!(acknowledged, 38);
}
