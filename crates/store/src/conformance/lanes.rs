//! Lanes: found while mail waits in them, removed when no message refers to them.

use postway_domain::{MessageState, TenantId};

use super::{
    Shared,
    retention::{DAY_MS, HOUR_MS, expunge, fan_out, sent},
    sample::{self, ACCOUNT, OTHER_TENANT, Sample, TENANT, at, tenant},
    stage::{accept, claim, record, uids},
};

/// More than a step of a walk along lanes has rows.
const MANY: u32 = 600;

async fn batches(store: &Shared, tenant: &TenantId) -> Vec<String> {
    let batches = store.batches(tenant, None, 2 * MANY).await.unwrap();
    batches.into_iter().map(|batch| batch.code.to_string()).collect()
}

/// Removes what may go of the lanes at this time.
async fn retire(store: &Shared, now_ms: i64) -> u32 {
    let mut removed = 0;
    loop {
        let page = store.retire_lanes(at(now_ms)).await.unwrap();
        removed += page.done;
        if page.is_last {
            return removed;
        }
    }
}

/// Each message has a lane of its own, and each lane is found, whatever lies between them.
pub async fn mail_in_many_lanes_is_all_found(store: &Shared) {
    let batched = |number: u32| Sample::new(number).batch(&format!("order-{number}"));
    let waiting: Vec<_> = (0..MANY).map(|number| batched(number).build()).collect();
    let ended = (0..MANY).map(|number| batched(MANY + number).state(MessageState::Suppressed, None).build());
    let others =
        (0..MANY).map(|number| batched(2 * MANY + number).from(OTHER_TENANT, ACCOUNT).send_at(5_000).build());
    let mut expected: Vec<_> = waiting.iter().map(|message| message.uid).collect();
    for messages in [waiting, ended.collect(), others.collect()] {
        store.accept(messages).await.unwrap();
    }
    let queue = store.queue_state(at(1_000)).await.unwrap();
    assert_eq!(queue.due.into_iter().map(|due| due.key).collect::<Vec<_>>(), [sample::relay()]);
    assert_eq!(queue.next_due_at, Some(at(5_000)));
    assert_eq!(store.stats(Some(&tenant()), at(1_000)).await.unwrap().oldest_due_at, Some(at(0)));
    let mut claimed = uids(&claim(store, 1, at(1_000), 2 * MANY).await);
    claimed.sort();
    expected.sort();
    assert_eq!(claimed, expected);
    let queue = store.queue_state(at(1_000)).await.unwrap();
    assert!(queue.due.is_empty() && queue.next_due_at == Some(at(5_000)), "{queue:?}");
}

/// A lane goes an hour after its last message, and comes back with the next one.
pub async fn a_lane_without_messages_is_removed_and_made_again(store: &Shared) {
    sent(store, Sample::new(1).batch("once")).await;
    let kept = accept(store, Sample::new(2).batch("kept").state(MessageState::Suppressed, None)).await;
    fan_out(store, at(DAY_MS)).await;
    assert_eq!(retire(store, 9 * DAY_MS).await, 0, "a message refers to each lane");
    assert_eq!(expunge(store, 9 * DAY_MS).await, 2);
    let stays = accept(store, Sample::new(3).batch("kept").created(9 * DAY_MS)).await;
    assert_eq!(retire(store, 9 * DAY_MS).await, 0, "the lane has just become empty");
    assert_eq!(retire(store, 9 * DAY_MS + HOUR_MS / 2).await, 0);
    retire(store, 9 * DAY_MS + HOUR_MS).await;
    assert_eq!(batches(store, &tenant()).await, ["kept"]);
    let again = accept(store, Sample::new(4).batch("once").created(9 * DAY_MS + 2 * HOUR_MS)).await;
    assert_eq!(batches(store, &tenant()).await, ["kept", "once"]);
    let claimed = claim(store, 2, at(10 * DAY_MS), 9).await;
    assert_eq!(uids(&claimed), [stays, again]);
    for (uid, batch) in [(stays, "kept"), (again, "once")] {
        let lane = record(store, uid).await.summary.lane;
        assert_eq!((lane.tenant.as_str(), lane.batch.unwrap().as_str()), (TENANT, batch));
    }
    assert_ne!(kept, stays);
}

/// A lane that was marked and is used again keeps its row.
pub async fn a_lane_that_is_used_again_stays(store: &Shared) {
    sent(store, Sample::new(1).batch("often")).await;
    fan_out(store, at(DAY_MS)).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 1);
    retire(store, 9 * DAY_MS).await;
    let used = accept(store, Sample::new(2).batch("often").created(9 * DAY_MS + HOUR_MS / 2)).await;
    assert_eq!(retire(store, 9 * DAY_MS + 2 * HOUR_MS).await, 0);
    assert_eq!(uids(&claim(store, 2, at(10 * DAY_MS), 9).await), [used]);
}
