//! Names of blobs: reserved, referred to, condemned, forgotten.

use super::{
    Shared,
    sample::{Sample, at},
    stage::{accept, accept_and_claim, all_at_once, apply, commit_wire, outcome},
};
use crate::record::{BlobName, BlobRef, MessageChange, StoredBody};
use postway_domain::message::AttemptOutcome;

async fn reserve(store: &Shared, n: u8, ms: i64) -> BlobName {
    store.reserve_blob([n; 32], 9, at(ms)).await.unwrap()
}

async fn condemn(store: &Shared, before_ms: i64) -> Vec<BlobName> {
    store.condemn_blobs(at(before_ms), 99).await.unwrap()
}

fn body(name: &BlobName) -> StoredBody {
    StoredBody::Blob(BlobRef { name: name.clone(), size: 9 })
}

/// The same content of the same tenant is one blob.
pub async fn the_same_content_has_one_name(store: &Shared) {
    let first = reserve(store, 1, 0).await;
    assert_eq!(first.digest, [1; 32]);
    assert_eq!(reserve(store, 1, 500).await, first);
    assert_ne!(reserve(store, 2, 500).await, first);
    let calls = (0..20).map(|n| {
        let store = store.clone();
        async move { reserve(&store, 3, n).await }
    });
    let names = all_at_once(calls).await;
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
}

/// While it is reserved, or something refers to it.
pub async fn a_blob_in_use_is_not_condemned(store: &Shared) {
    let [raw, payload, reserved, unused] = [
        reserve(store, 1, 0).await,
        reserve(store, 2, 0).await,
        reserve(store, 3, 0).await,
        reserve(store, 4, 0).await,
    ];
    assert_eq!(reserve(store, 3, 100).await, reserved);
    accept(store, Sample::new(1).send_at(9_000).content(|content| content.raw = body(&raw))).await;
    accept(store, Sample::new(2).send_at(9_000).content(|content| content.payload = Some(body(&payload))))
        .await;
    assert_eq!(condemn(store, 0).await, []);
    assert_eq!(condemn(store, 100).await, std::slice::from_ref(&unused));
    assert_eq!(condemn(store, 100).await, std::slice::from_ref(&unused), "until it is known to be gone");
    store.forget_blobs(std::slice::from_ref(&unused)).await.unwrap();
    assert_eq!(condemn(store, 100).await, []);
    assert_eq!(condemn(store, 101).await, [reserved]);
}

/// The last reference goes with the bodies.
pub async fn a_blob_that_was_in_use_is_condemned_once_nothing_refers_to_it(store: &Shared) {
    let name = reserve(store, 1, 0).await;
    let sample = Sample::new(1).content(|content| {
        content.raw = body(&name);
        content.payload = Some(body(&name));
    });
    let mut claimed = accept_and_claim(store, sample, 1).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    assert_eq!(condemn(store, 1_000).await, []);
    let erase = MessageChange { erases_bodies: true, ..outcome(&claimed, true, AttemptOutcome::Sent, at(2)) };
    assert!(apply(store, erase).await);
    assert_eq!(condemn(store, 1_000).await, [name]);
}

/// Content that comes back gets a name that is not deleted, also after the old one is forgotten.
pub async fn a_condemned_name_is_never_given_out_again(store: &Shared) {
    let old = reserve(store, 1, 0).await;
    assert_eq!(condemn(store, 10).await, std::slice::from_ref(&old));
    let new = reserve(store, 1, 20).await;
    assert_eq!(new.digest, old.digest);
    assert!(new.generation > old.generation);
    store.forget_blobs(std::slice::from_ref(&old)).await.unwrap();
    assert_eq!(reserve(store, 1, 30).await, new, "what was forgotten was the old one");
    assert_eq!(condemn(store, 20).await, []);
    assert_eq!(condemn(store, 31).await, std::slice::from_ref(&new));
    store.forget_blobs(std::slice::from_ref(&new)).await.unwrap();
    let newest = reserve(store, 1, 40).await;
    assert!(newest.generation > new.generation);
    store.forget_blobs(std::slice::from_ref(&newest)).await.unwrap();
    assert_eq!(reserve(store, 1, 50).await, newest, "what is not condemned is not forgotten");
}

/// A bounded bite, the oldest first.
pub async fn blobs_are_condemned_oldest_first(store: &Shared) {
    let mut names = Vec::new();
    for n in 1..=5 {
        names.push(reserve(store, n, i64::from(10 - n)).await);
    }
    names.reverse();
    assert_eq!(store.condemn_blobs(at(100), 2).await.unwrap(), names[..2]);
    store.forget_blobs(&names[..2]).await.unwrap();
    assert_eq!(store.condemn_blobs(at(100), 9).await.unwrap(), names[2..]);
}

/// A name is condemned or reserved anew, never both.
pub async fn a_reservation_and_a_sentence_that_meet_leave_one_name(store: &Shared) {
    for n in 0..20 {
        let old = reserve(store, n, 0).await;
        let (condemned, reserved) = tokio::join!(condemn(store, 10), reserve(store, n, 20));
        if condemned.contains(&old) {
            assert!(reserved.generation > old.generation, "what is being deleted was given out");
        } else {
            assert_eq!(reserved, old);
        }
        store.forget_blobs(&condemned).await.unwrap();
    }
}
