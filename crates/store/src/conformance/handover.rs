//! Standing claims: leased in the transaction that stores.

use std::collections::BTreeSet;

use postway_domain::{
    Account, EventKind, MessageState,
    message::{AttemptOutcome, ScheduleReason},
};

use super::{
    Shared,
    sample::{self, ACCOUNT, LEASE_LASTS, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, incarnation},
    stage::{
        accept, all_at_once, apply, assert_gapless, claim, commit_wire, delivered, offer, outcome, record,
        request,
    },
};
use crate::{
    queue::hand_over::HANDOVER_BYTES_MAX,
    record::{Acceptance, ClaimedMessage},
};

const HANDED_OVER: Acceptance = Acceptance::Accepted { handed_over: true };
const QUEUED: Acceptance = Acceptance::Accepted { handed_over: false };

/// Leaves room of the samples' account standing.
async fn park(store: &Shared, token: i64, room: u32) -> Vec<ClaimedMessage> {
    store.claim(request(&sample::relay(), token, at(0), room, true)).await.unwrap()
}

/// The message is stored as leased, and delivered whole.
pub async fn an_accepted_message_fills_a_standing_claim(store: &Shared) {
    assert!(park(store, 7, 1).await.is_empty());
    let body = bytes::Bytes::from(vec![b'x'; HANDOVER_BYTES_MAX]);
    let sample = Sample::new(1)
        .to("a@example.org")
        .to("b@example.org")
        .created(500)
        .traced("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .content(|content| content.raw = body.clone().into());
    let message = sample.clone().build();
    assert_eq!(offer(store, sample).await, HANDED_OVER);

    let claimed = delivered(store, 1).await.remove(0);
    assert_eq!((claimed.uid, &claimed.lane), (message.uid, &message.lane));
    assert_eq!((claimed.token.as_i64(), claimed.version, claimed.attempt), (7, 2, 1));
    assert_eq!((claimed.created_at, claimed.claimed_at), (at(500), at(500)));
    assert!(claimed.trace.is_some() && claimed.trace == message.trace);
    assert_eq!((claimed.size as usize, claimed.raw), (body.len(), Some(body)));
    let to: Vec<_> = claimed.recipients.iter().map(|one| (one.position, &one.address)).collect();
    assert_eq!(to, [(0, &message.recipients[0].address), (1, &message.recipients[1].address)]);

    let found = record(store, message.uid).await;
    assert_eq!(found.summary.state, MessageState::Sending { wire_committed: false });
    assert_eq!((found.summary.version, found.summary.attempt, found.summary.due_at), (2, 1, None));
    let event = found.events.last().unwrap();
    assert_eq!((event.kind, event.at), (EventKind::Sending, at(500)));
    assert_eq!(event.data.as_deref(), Some(r#"{"attempt":1}"#));
    assert_eq!(found.events.len(), 3);
    assert_gapless(&found);
    let until = at(500).plus(LEASE_LASTS);
    assert!(store.stalled(&[incarnation(1)], at(500), 9).await.unwrap().is_empty());
    assert_eq!(store.stalled(&[incarnation(1)], until, 9).await.unwrap().len(), 1, "leased like any other");
}

/// Each slot is one message; the rest waits in the queue.
pub async fn a_standing_claim_is_used_up(store: &Shared) {
    park(store, 1, 2).await;
    let call = (0..4).map(|n| Sample::new(n).build()).collect();
    assert_eq!(store.accept(call).await.unwrap(), [HANDED_OVER, HANDED_OVER, QUEUED, QUEUED]);
    assert_eq!(offer(store, Sample::new(9)).await, QUEUED);
    delivered(store, 2).await;
    assert_eq!(claim(store, 2, at(0), 9).await.len(), 3);
}

/// What is due is taken first.
pub async fn only_room_that_was_not_filled_stands(store: &Shared) {
    accept(store, Sample::new(1)).await;
    accept(store, Sample::new(2)).await;
    assert_eq!(park(store, 1, 3).await.len(), 2);
    assert_eq!(offer(store, Sample::new(3)).await, HANDED_OVER);
    assert_eq!(offer(store, Sample::new(4)).await, QUEUED);
}

/// There is one per account; a claim that leaves no room removes it.
pub async fn a_later_claim_replaces_the_standing_one(store: &Shared) {
    park(store, 1, 5).await;
    park(store, 2, 1).await;
    assert_eq!(offer(store, Sample::new(1)).await, HANDED_OVER);
    assert_eq!(delivered(store, 1).await[0].token.as_i64(), 2);
    assert_eq!(offer(store, Sample::new(2)).await, QUEUED);
    park(store, 3, 5).await;
    park(store, 4, 0).await;
    assert_eq!(offer(store, Sample::new(3)).await, QUEUED);
    claim(store, 5, at(0), 9).await;
    park(store, 6, 1).await;
    assert!(claim(store, 7, at(0), 3).await.is_empty());
    assert_eq!(
        offer(store, Sample::new(4)).await,
        HANDED_OVER,
        "a claim that parks nothing leaves it standing"
    );
}

/// A dispatcher that drains gets nothing new.
pub async fn a_withdrawn_claim_takes_nothing(store: &Shared) {
    park(store, 1, 5).await;
    assert_eq!(offer(store, Sample::new(1)).await, HANDED_OVER);
    store.unpark();
    assert_eq!(offer(store, Sample::new(2)).await, QUEUED);
    delivered(store, 1).await;
}

/// It was made for the account's old settings, and for its old limits.
pub async fn a_changed_account_takes_nothing_by_its_old_claim(store: &Shared) {
    park(store, 1, 5).await;
    let changed = Account { version: 2, ..sample::account(TENANT, ACCOUNT) };
    assert!(store.update_account(changed, 1).await.unwrap());
    assert_eq!(offer(store, Sample::new(1)).await, QUEUED);
    park(store, 2, 4).await;
    assert_eq!(offer(store, Sample::new(2)).await, HANDED_OVER);
    delivered(store, 1).await;
}

/// Only what is ready and due is leased at once; the rest takes its turn.
pub async fn what_is_not_due_is_not_handed_over(store: &Shared) {
    park(store, 1, 1).await;
    assert_eq!(offer(store, Sample::new(1).send_at(1_000)).await, QUEUED);
    assert_eq!(offer(store, Sample::new(2).state(MessageState::Ready, Some(at(1)))).await, QUEUED);
    assert_eq!(offer(store, Sample::new(3).state(MessageState::Accepted, None)).await, QUEUED);
    let fetch = MessageState::Scheduled(ScheduleReason::Fetch);
    assert_eq!(offer(store, Sample::new(4).state(fetch, Some(at(0)))).await, QUEUED);
    assert_eq!(offer(store, Sample::new(5).send_at(0)).await, QUEUED);
    assert_eq!(offer(store, Sample::new(6)).await, HANDED_OVER, "and none of them took a slot");
    delivered(store, 1).await;
}

/// Memory stays bounded: a large body is read when its turn comes.
pub async fn a_large_message_is_not_handed_over(store: &Shared) {
    park(store, 1, 1).await;
    let body = bytes::Bytes::from(vec![b'x'; HANDOVER_BYTES_MAX + 1]);
    let large = Sample::new(1).content(|content| content.raw = body.into());
    assert_eq!(offer(store, large).await, QUEUED);
    assert_eq!(offer(store, Sample::new(2)).await, HANDED_OVER, "and it took no slot");
}

/// Room is not lost to what is not stored.
pub async fn a_repeat_takes_no_slot(store: &Shared) {
    let uid = accept(store, Sample::new(1).key("k")).await;
    assert_eq!(park(store, 1, 2).await.len(), 1);
    assert_eq!(offer(store, Sample::new(2).key("k")).await, Acceptance::Repeat { uid });
    let conflict = offer(store, Sample::new(3).key("k").body(1)).await;
    assert!(matches!(conflict, Acceptance::Conflict { .. }));
    assert_eq!(offer(store, Sample::new(4)).await, HANDED_OVER);
    assert_eq!(delivered(store, 1).await[0].uid, Sample::new(4).build().uid);
}

/// Neither another account's nor another tenant's.
pub async fn a_standing_claim_is_for_its_account_only(store: &Shared) {
    park(store, 1, 5).await;
    assert_eq!(offer(store, Sample::new(1).from(TENANT, OTHER_ACCOUNT)).await, QUEUED);
    assert_eq!(offer(store, Sample::new(2).from(OTHER_TENANT, ACCOUNT)).await, QUEUED);
    assert_eq!(offer(store, Sample::new(3)).await, HANDED_OVER);
}

/// The way on is the same: permission, outcome, fences.
pub async fn handed_over_work_is_settled_like_any_other(store: &Shared) {
    park(store, 1, 1).await;
    assert_eq!(offer(store, Sample::new(1)).await, HANDED_OVER);
    let mut claimed = delivered(store, 1).await.remove(0);
    assert!(claim(store, 2, at(1), 9).await.is_empty(), "it is not in the queue too");
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(2))).await);
    let found = record(store, claimed.uid).await;
    assert_eq!((found.summary.state, found.attempts.len()), (MessageState::Sent, 1));
    assert_gapless(&found);
}

/// Callers that meet get each slot once.
pub async fn concurrent_callers_fill_exactly_the_room(store: &Shared) {
    park(store, 1, 10).await;
    let calls = (0..40).map(|n| {
        let store = store.clone();
        async move {
            let sample = Sample::new(n);
            (sample.clone().build().uid, offer(&store, sample).await)
        }
    });
    let answers = all_at_once(calls).await;
    let promised: BTreeSet<_> =
        answers.iter().filter(|(_, answer)| *answer == HANDED_OVER).map(|(uid, _)| *uid).collect();
    assert_eq!(promised.len(), 10);
    let given: BTreeSet<_> = delivered(store, 10).await.iter().map(|one| one.uid).collect();
    assert_eq!(given, promised);
    let rest: BTreeSet<_> = claim(store, 2, at(0), 99).await.iter().map(|one| one.uid).collect();
    assert_eq!(rest.len(), 30);
    assert!(rest.is_disjoint(&promised));
}
