//! How much at once, whose turn it is, and how the room stops.

use std::time::Duration;

use postway_domain::{EventKind::Sent, MessageUid, State, Status};
use postway_store::{
    Work,
    conformance::stage::change,
    record::{Fence, NotificationState},
};
use postway_testkit::Reply;

use super::{House, SOON, json, taken, until};

/// How long a webhook may take to answer.
const GIVEN_UP_AFTER_S: usize = 15;

async fn messages(house: &House, numbers: std::ops::Range<u32>) -> Vec<MessageUid> {
    let mut uids = Vec::new();
    for number in numbers {
        uids.push(house.message(number, &[Sent]).await);
    }
    uids
}

#[tokio::test]
async fn a_slow_subscriber_takes_its_eight_places_and_delays_no_other() {
    let house = House::new().await;
    house.webhook("slow").await;
    house.webhook("quick").await;
    let (gate, held) = taken().held();
    house.receiver.serve_in_turn("/slow", [vec![taken(); 30], vec![held]].concat());
    house.receiver.serve("/quick", taken());
    let room = house.open(1);
    let uids = messages(&house, 0..100).await;
    until(async || (house.received("/quick").len() == 100).then_some(())).await;
    until(async || (house.received("/slow").len() >= 38).then_some(())).await;
    let more = messages(&house, 100..150).await;
    until(async || (house.received("/quick").len() == 150).then_some(())).await;
    assert_eq!(house.received("/slow").len(), 30 + 8);
    gate.send(true).unwrap();
    house.all_told(&uids).await;
    house.all_told(&more).await;
    house.close(room).await;
}

#[tokio::test]
async fn many_dead_subscribers_leave_room_for_one_that_lives() {
    let house = House::new().await;
    for number in 0..250 {
        let id = format!("dead-{number}");
        house.webhook(&id).await;
        house.receiver.serve(&format!("/{id}"), Reply::Silent);
    }
    house.webhook("a-living").await;
    house.receiver.serve("/a-living", taken());
    let began = tokio::time::Instant::now();
    let room = house.open(1);
    let uids = messages(&house, 0..20).await;
    until(async || (house.received("/a-living").len() == uids.len()).then_some(())).await;
    // As many as may be called at once, and as many again whenever those were given up.
    let rounds = 1 + began.elapsed().as_secs() as usize / GIVEN_UP_AFTER_S;
    assert!(house.receiver.requests().len() <= uids.len() + 192 * rounds);
    house.stop.cancel();
    room.abort();
}

#[tokio::test]
async fn a_subscriber_that_fails_in_a_row_is_only_probed() {
    let house = House::new().await;
    house.webhook("hook").await;
    house.receiver.serve_in_turn("/hook", [vec![taken(); 5], vec![Reply::status(500)]].concat());
    let room = house.open(1);
    let uids = messages(&house, 0..60).await;
    let states = async || {
        let mut states = Vec::new();
        for uid in &uids {
            states.extend(house.notifications(*uid).await.into_iter().map(|one| one.state));
        }
        states
    };
    until(async || {
        let states = states().await;
        let waiting = states.iter().filter(|state| **state == NotificationState::Waiting).count();
        (waiting >= 3 && !states.contains(&NotificationState::Calling)).then_some(())
    })
    .await;
    let before = house.received("/hook").len();
    assert!(before <= 5 + 3 + 8, "calls under way when it began to fail: {before}");
    house.pass(Duration::from_millis(1_100));
    house.receiver.wait_for(before + 1, SOON).await;
    house.close(room).await;
    // The desk's own tests say how many exactly; here some calls may have been under way when it began to fail.
    assert!(
        house.received("/hook").len() <= before + 3 + 8,
        "one probe after a second, then two seconds of peace"
    );
}

#[tokio::test]
async fn what_waited_long_for_its_call_is_told_as_it_stands_then() {
    let house = House::new().await;
    house.webhook("hook").await;
    let (gate, held) = taken().held();
    house.receiver.serve_in_turn("/hook", [vec![taken(); 30], vec![held]].concat());
    let room = house.open(1);
    let uids = messages(&house, 0..60).await;
    let last = uids[59];
    house.receiver.wait_for(38, SOON).await;
    house.once(last, |one| one.state == NotificationState::Calling).await;
    let fence = Fence { status: Status::Sent, token: None, version: None };
    let change = change(last, fence, State::Failed, house.now());
    assert_eq!(house.store.apply(vec![change]).await.unwrap(), [true]);
    house.pass(Duration::from_secs(3));
    gate.send(true).unwrap();
    house.all_told(&uids).await;
    let calls: Vec<_> = house.received("/hook").iter().map(json).collect();
    let of = |uid: MessageUid| calls.iter().find(|call| call["data"]["uid"] == uid.to_string()).unwrap();
    assert_eq!(
        (&of(uids[0])["data"]["status"], &of(last)["data"]["status"]),
        (&"sent".into(), &"failed".into())
    );
    house.close(room).await;
}

#[tokio::test]
async fn on_stop_calls_end_and_the_rest_is_given_back() {
    let house = House::new().await;
    house.webhook("hook").await;
    let (gate, held) = taken().held();
    house.receiver.serve_in_turn("/hook", [vec![taken(); 30], vec![held]].concat());
    let room = house.open(1);
    let uids = messages(&house, 0..100).await;
    house.receiver.wait_for(38, SOON).await;
    house.stop.cancel();
    gate.send(true).unwrap();
    house.close(room).await;
    let mut acknowledged = 0;
    for uid in uids {
        let one = house.notifications(uid).await.into_iter().next();
        match one.map(|one| (one.state, one.tries)) {
            Some((NotificationState::Acknowledged, 1)) => acknowledged += 1,
            Some((NotificationState::Pending, 0)) | None => {}
            other => panic!("left as {other:?}"),
        }
    }
    assert_eq!(acknowledged, 38);
}
