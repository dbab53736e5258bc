//! Every write of claimed work is fenced.

use postway_domain::{
    LeaseToken, MessageState, MessageStatus,
    message::{AttemptOutcome, OtherRecipients, TransitionInput},
};

use super::{
    Shared,
    sample::{Sample, at},
    stage::{
        accept, accept_and_claim, all_at_once, apply, assert_gapless, change, claim, commit_wire, fence,
        outcome, record, step,
    },
};
use crate::record::{MessageChange, WriteFence};

/// Asserts that a change is refused and nothing of it is written.
async fn assert_refused(store: &Shared, change: MessageChange) {
    let before = record(store, change.uid).await;
    let uid = change.uid;
    assert!(!apply(store, change).await);
    assert_eq!(record(store, uid).await, before);
}

/// The token of another claim does not open this one.
pub async fn a_stale_token_changes_nothing(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    let settled = outcome(&claimed, true, AttemptOutcome::Sent, at(2));
    let stale = WriteFence { token: Some(LeaseToken::from_i64(2)), ..settled.fence };
    assert_refused(store, MessageChange { fence: stale, ..settled.clone() }).await;
    let by_token_alone = WriteFence { version: None, ..stale };
    assert_refused(store, MessageChange { fence: by_token_alone, ..settled.clone() }).await;
    assert!(apply(store, settled).await);
}

/// A decision made on an older version is made again.
pub async fn a_stale_version_changes_nothing(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let before_commit = outcome(&claimed, false, AttemptOutcome::Returned, at(1));
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    assert_refused(store, before_commit).await;
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(2))).await);
}

/// A change is for the state it was decided in.
pub async fn another_status_changes_nothing(store: &Shared) {
    let uid = accept(store, Sample::new(1)).await;
    let cancel = |version| {
        let fence = WriteFence { status: MessageStatus::Ready, token: None, version };
        step(uid, fence, MessageState::Ready, TransitionInput::Cancel(OtherRecipients::Nothing), at(1))
    };
    let not_leased =
        WriteFence { status: MessageStatus::Ready, token: Some(LeaseToken::from_i64(1)), version: Some(1) };
    assert_refused(store, MessageChange { fence: not_leased, ..cancel(Some(1)) }).await;
    claim(store, 1, at(0), 1).await;
    assert_refused(store, cancel(Some(2))).await;
    assert_refused(store, cancel(None)).await;
}

/// There is nothing to change.
pub async fn an_unknown_message_changes_nothing(store: &Shared) {
    let uid = Sample::new(404).build().uid;
    let fence = WriteFence { status: MessageStatus::Ready, token: None, version: None };
    assert!(!apply(store, change(uid, fence, MessageState::Cancelled, at(0))).await);
    assert_eq!(store.body(uid).await.unwrap(), None);
}

/// Of those who decided on the same version, one writes.
pub async fn of_concurrent_changes_with_one_fence_one_wins(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let calls = (0..20).map(|n| {
        let store = store.clone();
        let how = if n % 2 == 0 { AttemptOutcome::Failed } else { AttemptOutcome::Returned };
        let change = outcome(&claimed, false, how, at(n));
        async move { (how, apply(&store, change).await) }
    });
    let answers = all_at_once(calls).await;
    let winners: Vec<_> = answers.iter().filter(|(_, won)| *won).map(|(how, _)| *how).collect();
    assert_eq!(winners.len(), 1);
    let found = record(store, claimed.uid).await;
    let expected =
        if winners[0] == AttemptOutcome::Failed { MessageState::Failed } else { MessageState::Ready };
    assert_eq!((found.summary.state, found.summary.version), (expected, claimed.version + 1));
    assert_eq!(
        (found.events.len(), found.attempts.len()),
        (4, 1),
        "accepted, ready, sending, and the winner's"
    );
    assert_gapless(&found);
}

/// Changes of one message in one call are one after the other.
pub async fn a_second_change_in_one_call_sees_the_first(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let uid = claimed.uid;
    let first = MessageChange {
        error: Some("{}".to_owned()),
        ..outcome(&claimed, false, AttemptOutcome::Failed, at(1))
    };
    let failed = |version| WriteFence { status: MessageStatus::Failed, token: None, version: Some(version) };
    let second = step(uid, failed(claimed.version + 1), MessageState::Failed, TransitionInput::Replay, at(2));
    let too_late =
        step(uid, failed(claimed.version + 1), MessageState::Failed, TransitionInput::Replay, at(3));
    let held = store.apply(vec![first, second, too_late]).await.unwrap();
    assert_eq!(held, [true, true, false]);
    let found = record(store, uid).await;
    assert_eq!((found.summary.state, found.summary.version), (MessageState::Ready, claimed.version + 2));
    assert_eq!((found.summary.updated_at, found.summary.error.as_deref()), (at(2), None));
    assert_eq!(found.events.len(), 5);
    assert_gapless(&found);
}

/// Answers are in the order of the changes, and a refused one stands alone.
pub async fn a_refused_change_disturbs_no_neighbour(store: &Shared) {
    for n in 0..4 {
        accept(store, Sample::new(n)).await;
    }
    let mut claimed = claim(store, 1, at(0), 4).await;
    claimed[2].token = LeaseToken::from_i64(9);
    let changes = claimed.iter().map(|one| outcome(one, false, AttemptOutcome::Failed, at(1))).collect();
    assert_eq!(store.apply(changes).await.unwrap(), [true, true, false, true]);
    for (index, one) in claimed.iter().enumerate() {
        let status = record(store, one.uid).await.summary.state.status();
        assert_eq!(status, if index == 2 { fence(one).status } else { MessageStatus::Failed });
    }
}
