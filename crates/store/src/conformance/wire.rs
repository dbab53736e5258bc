//! The permission to write the final dot.

use postway_domain::{EventKind, LeaseToken, MessageState, RecipientStatus, message::AttemptOutcome};

use super::{
    Shared,
    sample::{Sample, at, reply},
    stage::{
        accept_and_claim, all_at_once, apply, assert_gapless, claim, commit_wire, doubt, outcome, permission,
        record,
    },
};
use crate::record::{ClaimedMessage, MessageChange, RecipientChange, WireCommit};

/// It is durable, it raises the version, it is no event, and it is not given again.
pub async fn the_permission_is_given_once(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let before = record(store, claimed.uid).await;
    assert_eq!(store.wire_commit(vec![permission(&claimed, at(7))]).await.unwrap(), [true]);
    let found = record(store, claimed.uid).await;
    assert_eq!(found.summary.state, MessageState::Sending { wire_committed: true });
    assert_eq!((found.summary.version, found.summary.updated_at), (claimed.version + 1, at(7)));
    assert_eq!((found.events, found.recipients), (before.events, before.recipients));
    assert_eq!(store.wire_commit(vec![permission(&claimed, at(8))]).await.unwrap(), [false]);
    let again = WireCommit { version: claimed.version + 1, ..permission(&claimed, at(8)) };
    assert_eq!(store.wire_commit(vec![again]).await.unwrap(), [false]);
    let twice = accept_and_claim(store, Sample::new(2), 2).await;
    let commits = vec![permission(&twice, at(9)), permission(&twice, at(9))];
    assert_eq!(store.wire_commit(commits).await.unwrap(), [true, false], "nor twice in one call");
}

/// Only then may the mail be there twice: before it a resend may be given up, and its history says nothing of
/// one.
pub async fn a_resend_is_told_with_its_permission(store: &Shared) {
    let sample = Sample::new(1).expires(9_000);
    let mut claimed = accept_and_claim(store, sample, 1).await;
    doubt(store, &mut claimed, Some(at(100)), at(10)).await;
    let kinds = async || -> Vec<EventKind> {
        let found = record(store, claimed.uid).await;
        assert_gapless(&found);
        found.events.iter().map(|event| event.kind).skip(3).collect()
    };
    let given_up = claim(store, 2, at(100), 1).await.remove(0);
    let back = MessageChange {
        due_at: Some(at(200)),
        ..outcome(&given_up, false, AttemptOutcome::Returned, at(150))
    };
    assert!(apply(store, back).await);
    let late = claim(store, 3, at(200), 1).await.remove(0);
    assert_eq!((late.resend, late.attempt), (true, 3));
    let (stale, expired) = (permission(&given_up, at(201)), permission(&late, at(9_000)));
    assert_eq!(store.wire_commit(vec![stale, expired]).await.unwrap(), [false; 2]);
    let mut expected = vec![EventKind::InDoubt, EventKind::Sending, EventKind::Ready, EventKind::Sending];
    assert_eq!(kinds().await, expected);
    assert_eq!(store.wire_commit(vec![permission(&late, at(300))]).await.unwrap(), [true]);
    expected.push(EventKind::Resent);
    assert_eq!(kinds().await, expected);
    let found = record(store, claimed.uid).await;
    let event = found.events.last().unwrap();
    assert_eq!((event.at, event.data.as_deref()), (at(300), Some(r#"{"attempt":3}"#)));
    // The next writer of its history goes on behind it.
    let sent = ClaimedMessage { version: late.version + 1, ..late };
    assert!(apply(store, outcome(&sent, true, AttemptOutcome::Sent, at(301))).await);
    expected.push(EventKind::Sent);
    assert_eq!(kinds().await, expected);
}

/// It is for the holder of the lease, as it was leased.
pub async fn a_permission_needs_the_token_and_the_version(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let stale_token = WireCommit { token: LeaseToken::from_i64(2), ..permission(&claimed, at(1)) };
    let stale_version = WireCommit { version: claimed.version - 1, ..permission(&claimed, at(1)) };
    let unknown = WireCommit { uid: Sample::new(404).build().uid, ..permission(&claimed, at(1)) };
    assert_eq!(store.wire_commit(vec![stale_token, stale_version, unknown]).await.unwrap(), [false; 3]);
    assert_eq!(
        record(store, claimed.uid).await.summary.state,
        MessageState::Sending { wire_committed: false }
    );
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(2))).await);
    let after_the_end = permission(&claimed, at(3));
    assert_eq!(store.wire_commit(vec![after_the_end]).await.unwrap(), [false]);
}

/// Expiry is checked at the last moment at which it can be kept.
pub async fn an_expired_message_gets_no_permission(store: &Shared) {
    let mut in_time = accept_and_claim(store, Sample::new(1).expires(1_000), 1).await;
    let mut too_late = accept_and_claim(store, Sample::new(2).expires(1_000), 2).await;
    assert!(commit_wire(store, &mut in_time, at(999)).await);
    assert!(!commit_wire(store, &mut too_late, at(1_000)).await);
    assert_eq!(
        record(store, too_late.uid).await.summary.state,
        MessageState::Sending { wire_committed: false }
    );
}

/// What the relay refused before the dot cannot be in doubt after it; nothing is noted where the permission
/// is not given.
pub async fn refused_recipients_are_noted_with_the_permission(store: &Shared) {
    let sample = Sample::new(1).to("a@example.org").to("b@example.org").to("c@example.org");
    let claimed = accept_and_claim(store, sample, 1).await;
    let recipients = vec![
        RecipientChange {
            position: 1,
            status: RecipientStatus::Failed,
            reply: Some(reply(550, "no such user")),
        },
        RecipientChange { position: 2, status: RecipientStatus::Pending, reply: Some(reply(451, "later")) },
    ];
    let commit = WireCommit { recipients, ..permission(&claimed, at(1)) };
    let stale = WireCommit { version: claimed.version + 5, ..commit.clone() };
    assert_eq!(store.wire_commit(vec![stale]).await.unwrap(), [false]);
    assert!(record(store, claimed.uid).await.recipients.iter().all(|one| one.reply.is_none()));
    assert_eq!(store.wire_commit(vec![commit]).await.unwrap(), [true]);
    let found = record(store, claimed.uid).await;
    let outcomes: Vec<_> = found.recipients.iter().map(|one| (one.status, one.reply.clone())).collect();
    let expected = [
        (RecipientStatus::Pending, None),
        (RecipientStatus::Failed, Some(reply(550, "no such user"))),
        (RecipientStatus::Pending, Some(reply(451, "later"))),
    ];
    assert_eq!(outcomes, expected);
}

/// One dot is written, whichever worker believes it has the lease.
pub async fn of_concurrent_workers_one_gets_the_permission(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let calls = (0..20).map(|n| {
        let store = store.clone();
        let mut claimed = claimed.clone();
        async move { commit_wire(&store, &mut claimed, at(n)).await }
    });
    let answers = all_at_once(calls).await;
    assert_eq!(answers.iter().filter(|held| **held).count(), 1);
}

/// A worker that lost its lease and the one that has it now may ask in one call: only the latter may write.
pub async fn a_stale_worker_is_refused_beside_the_right_one(store: &Shared) {
    let stale = accept_and_claim(store, Sample::new(1), 1).await;
    let back =
        MessageChange { due_at: Some(at(1)), ..outcome(&stale, false, AttemptOutcome::Returned, at(1)) };
    assert!(apply(store, back).await);
    let right = claim(store, 2, at(1), 1).await.remove(0);
    let commits = vec![permission(&stale, at(2)), permission(&right, at(2)), permission(&stale, at(2))];
    assert_eq!(store.wire_commit(commits).await.unwrap(), [false, true, false]);
}
