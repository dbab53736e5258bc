//! Idempotency keys and client ids.

use postway_domain::message::AttemptOutcome;

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_TENANT, Sample, at},
    stage::{accept, accept_and_claim, all_at_once, apply, commit_wire, offer, outcome, record},
};
use crate::record::{Acceptance, DedupKind, MessageFilter, MessageKey};

const NEW: Acceptance = Acceptance::Accepted { handed_over: false };

async fn count(store: &Shared) -> usize {
    store.messages(&sample::tenant(), &MessageFilter::default(), None, 1_000).await.unwrap().len()
}

/// A client that did not hear the first answer may ask again.
pub async fn the_same_key_and_body_is_a_repeat(store: &Shared) {
    let uid = accept(store, Sample::new(1).key("k")).await;
    assert_eq!(offer(store, Sample::new(2).key("k")).await, Acceptance::Repeat { uid });
    assert_eq!(offer(store, Sample::new(3).key("k").created(60_000)).await, Acceptance::Repeat { uid });
    assert_eq!(count(store).await, 1);
}

/// A key that was used for something else is the client's mistake, and nothing is stored.
pub async fn the_same_key_with_another_body_is_a_conflict(store: &Shared) {
    accept(store, Sample::new(1).key("k").client_id("c").body(1)).await;
    let by_key = offer(store, Sample::new(2).key("k").body(2)).await;
    assert_eq!(by_key, Acceptance::Conflict { kind: DedupKind::Request });
    let by_id = offer(store, Sample::new(3).client_id("c").body(2)).await;
    assert_eq!(by_id, Acceptance::Conflict { kind: DedupKind::ClientId });
    assert_eq!(count(store).await, 1);
}

/// The client's own id is a key without a header.
pub async fn a_client_id_is_unique_in_its_tenant(store: &Shared) {
    let uid = accept(store, Sample::new(1).client_id("c")).await;
    assert_eq!(offer(store, Sample::new(2).client_id("c")).await, Acceptance::Repeat { uid });
    assert_eq!(offer(store, Sample::new(3).client_id("c").from(OTHER_TENANT, ACCOUNT)).await, NEW);
    assert_eq!(record(store, uid).await.summary.client_id, Some("c".parse().unwrap()));
}

/// Equal text is not an equal key.
pub async fn keys_of_other_tenants_and_kinds_do_not_meet(store: &Shared) {
    assert_eq!(offer(store, Sample::new(1).key("same").body(1)).await, NEW);
    assert_eq!(offer(store, Sample::new(2).key_of(DedupKind::BatchItem, "same").body(2)).await, NEW);
    assert_eq!(offer(store, Sample::new(3).client_id("same").body(3)).await, NEW);
    assert_eq!(offer(store, Sample::new(4).key("same").body(4).from(OTHER_TENANT, ACCOUNT)).await, NEW);
}

/// Where both are known, the key answers.
pub async fn the_idempotency_key_is_asked_before_the_client_id(store: &Shared) {
    let by_key = accept(store, Sample::new(1).key("k").body(1)).await;
    accept(store, Sample::new(2).client_id("c").body(2)).await;
    let repeat = offer(store, Sample::new(3).key("k").client_id("c").body(1)).await;
    assert_eq!(repeat, Acceptance::Repeat { uid: by_key });
    let conflict = offer(store, Sample::new(4).key("k").client_id("c").body(3)).await;
    assert_eq!(conflict, Acceptance::Conflict { kind: DedupKind::Request });
}

/// A call is answered as if its messages had come one after the other.
pub async fn inside_one_call_the_first_wins(store: &Shared) {
    let first = Sample::new(1).client_id("c").body(1).build();
    let uid = first.uid;
    let same = Sample::new(2).client_id("c").body(1).build();
    let other = Sample::new(3).client_id("c").body(2).build();
    let answers = store.accept(vec![first, same, other]).await.unwrap();
    let conflict = Acceptance::Conflict { kind: DedupKind::ClientId };
    assert_eq!(answers, [NEW, Acceptance::Repeat { uid }, conflict]);
    assert_eq!(count(store).await, 1);
}

/// A key refused together with its message can be used for the corrected one.
pub async fn a_refused_message_leaves_no_key_behind(store: &Shared) {
    let taken = accept(store, Sample::new(1).client_id("taken").body(1)).await;
    let refused = offer(store, Sample::new(2).key("fresh").client_id("taken").body(2)).await;
    assert_eq!(refused, Acceptance::Conflict { kind: DedupKind::ClientId });
    assert_eq!(offer(store, Sample::new(3).key("fresh").body(3)).await, NEW);

    let repeat = offer(store, Sample::new(4).key("other").client_id("taken").body(1)).await;
    assert_eq!(repeat, Acceptance::Repeat { uid: taken });
    assert_eq!(offer(store, Sample::new(5).key("other").body(5)).await, NEW);

    assert_eq!(
        offer(store, Sample::new(6).key("fresh").client_id("c").body(9)).await,
        Acceptance::Conflict { kind: DedupKind::Request }
    );
    assert_eq!(offer(store, Sample::new(7).client_id("c").body(7)).await, NEW);
}

/// A message that is not stored cannot be the first of its key: its neighbour with the same key is new, not
/// its repeat.
pub async fn a_key_of_a_message_refused_in_the_same_call_is_free(store: &Shared) {
    accept(store, Sample::new(1).client_id("taken").body(1)).await;
    let refused = Sample::new(2).key("k").client_id("taken").body(2).build();
    let follows = Sample::new(3).key("k").body(2).build();
    let uid = follows.uid;
    let answers = store.accept(vec![refused, follows]).await.unwrap();
    assert_eq!(answers, [Acceptance::Conflict { kind: DedupKind::ClientId }, NEW]);
    assert_eq!(offer(store, Sample::new(4).key("k").body(2)).await, Acceptance::Repeat { uid });
    record(store, uid).await;
}

/// A call under a key that was used for other messages is refused with all that it brings.
pub async fn a_batch_under_the_key_of_another_is_refused_whole(store: &Shared) {
    let batch = |first: u32, digest, count| -> Vec<_> {
        let item = |at| Sample::new(first + at).key_of(DedupKind::BatchItem, &format!("{at}:k"));
        (0..count).map(|at| item(at).body(digest).batch_key("k", digest).build()).collect()
    };
    let conflict = Acceptance::Conflict { kind: DedupKind::Batch };
    let repeat = |number| Acceptance::Repeat { uid: Sample::new(number).build().uid };
    assert_eq!(store.accept(batch(0, 1, 2)).await.unwrap(), [NEW, NEW]);
    // Also where it is longer, or where a call that repeats the first stands beside it.
    assert_eq!(store.accept(batch(10, 2, 4)).await.unwrap(), vec![conflict.clone(); 4]);
    let mut both = batch(20, 3, 3);
    both.extend(batch(30, 1, 2));
    let mut answers = vec![conflict; 3];
    answers.extend([repeat(0), repeat(1)]);
    assert_eq!(store.accept(both).await.unwrap(), answers);
    // A key of one message has nothing to do with it.
    assert_eq!(offer(store, Sample::new(40).key("k").body(4)).await, NEW);
    assert_eq!(count(store).await, 3);
}

/// The key of a call stays with it, whichever of its messages is refused.
pub async fn the_key_of_a_batch_outlives_a_refused_message(store: &Shared) {
    accept(store, Sample::new(1).client_id("taken").body(1)).await;
    let refused = Sample::new(2).client_id("taken").body(2).batch_key("k", 1).build();
    let stored = Sample::new(3).body(3).batch_key("k", 1).build();
    let answers = store.accept(vec![refused, stored]).await.unwrap();
    assert_eq!(answers, [Acceptance::Conflict { kind: DedupKind::ClientId }, NEW]);
    let other = offer(store, Sample::new(4).body(4).batch_key("k", 2)).await;
    assert_eq!(other, Acceptance::Conflict { kind: DedupKind::Batch });
    // A call of which nothing was stored has used up nothing.
    let refused = Sample::new(5).client_id("taken").body(2).batch_key("free", 1);
    assert_eq!(offer(store, refused).await, Acceptance::Conflict { kind: DedupKind::ClientId });
    assert_eq!(offer(store, Sample::new(6).body(6).batch_key("free", 2)).await, NEW);
}

/// Asking is answered as accepting would be, and stores nothing.
pub async fn what_was_seen_before_can_be_asked(store: &Shared) {
    let uid = accept(store, Sample::new(1).key("k").client_id("c").body(1).batch_key("b", 7)).await;
    let tenant = sample::tenant();
    let ask = async |keys: &[(DedupKind, &str)], digest: u8| {
        let keys: Vec<_> = keys.iter().map(|(kind, key)| (*kind, (*key).to_owned())).collect();
        store.seen_before(&tenant, &keys, &[digest; 32], at(1)).await.unwrap()
    };
    let [request, client] = [(DedupKind::Request, "k"), (DedupKind::ClientId, "c")];
    let repeat = Some(Acceptance::Repeat { uid });
    let conflict = |kind| Some(Acceptance::Conflict { kind });
    assert_eq!(ask(&[request], 1).await, repeat);
    assert_eq!(ask(&[(DedupKind::Request, "other"), client], 1).await, repeat);
    assert_eq!(ask(&[request, client], 2).await, conflict(DedupKind::Request));
    assert_eq!(ask(&[client], 2).await, conflict(DedupKind::ClientId));
    assert_eq!(ask(&[(DedupKind::Batch, "b")], 7).await, repeat);
    assert_eq!(ask(&[(DedupKind::Batch, "b")], 1).await, conflict(DedupKind::Batch));
    assert_eq!(ask(&[(DedupKind::ClientId, "k"), (DedupKind::Request, "c")], 1).await, None);
    assert_eq!(ask(&[], 1).await, None);
    assert_eq!(count(store).await, 1);
}

/// A repeat that comes after the message was sent is still a repeat.
pub async fn a_key_outlives_the_end_of_its_message(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1).key("k").client_id("c"), 1).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(2))).await);
    let uid = claimed.uid;
    assert_eq!(offer(store, Sample::new(2).key("k").created(86_400_000)).await, Acceptance::Repeat { uid });
    assert_eq!(
        offer(store, Sample::new(3).client_id("c").created(86_400_000)).await,
        Acceptance::Repeat { uid }
    );
}

/// However many ask at once, one message is stored and all hear of that one.
pub async fn of_fifty_concurrent_callers_with_one_key_one_is_stored(store: &Shared) {
    let calls = (0..50).map(|n| {
        let store = store.clone();
        async move {
            let message = Sample::new(n).key("k").build();
            (message.uid, store.accept(vec![message]).await.unwrap().remove(0))
        }
    });
    let answers = all_at_once(calls).await;
    let winners: Vec<_> = answers.iter().filter(|(_, answer)| *answer == NEW).map(|(uid, _)| *uid).collect();
    assert_eq!(winners.len(), 1);
    let repeats = answers.iter().filter(|(_, answer)| *answer == Acceptance::Repeat { uid: winners[0] });
    assert_eq!(repeats.count(), 49);
    assert_eq!(count(store).await, 1);
    record(store, winners[0]).await;
}

/// One caller's mistake is that caller's alone, also where callers share a transaction.
pub async fn a_conflict_disturbs_no_neighbour(store: &Shared) {
    let first = accept(store, Sample::new(1_000).key("taken").body(1)).await;
    let calls = (0..40).map(|n| {
        let store = store.clone();
        let sample = match n {
            7 => Sample::new(n).key("taken").body(2),
            23 => Sample::new(n).key("taken").body(1),
            _ => Sample::new(n).key(&format!("key-{n}")),
        };
        async move { (n, store.accept(vec![sample.build()]).await.unwrap().remove(0)) }
    });
    for (n, answer) in all_at_once(calls).await {
        let expected = match n {
            7 => Acceptance::Conflict { kind: DedupKind::Request },
            23 => Acceptance::Repeat { uid: first },
            _ => NEW,
        };
        assert_eq!(answer, expected, "caller {n}");
        let uid = Sample::new(n).build().uid;
        let stored = store.message(&sample::tenant(), &MessageKey::Uid(uid)).await.unwrap().is_some();
        assert_eq!(stored, expected == NEW, "caller {n}");
    }
}
