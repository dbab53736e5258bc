//! Where a message's bytes are, and when they go.

use postway_domain::{KnownRecipient, MessageState, RecipientId, message::AttemptOutcome};

use super::{
    Shared,
    sample::{Sample, at, other_tenant, relay, tenant},
    stage::{
        accept, accept_and_claim, apply, claim, commit_wire, direct, offer, outcome, record, request, uids,
    },
};
use crate::record::{
    Acceptance, BlobName, BlobRef, BodyLocation, ChangeResult, DirectoryChange, MessageChange, StoredBody,
};

fn blob(n: u8, size: u64) -> BlobRef {
    BlobRef { name: BlobName { digest: [n; 32], generation: 7 }, size }
}

/// An entry of the samples' tenant.
fn known(n: u8) -> KnownRecipient {
    KnownRecipient {
        tenant: tenant(),
        id: RecipientId::from_bytes([n; 16]),
        external_id: None,
        name: None,
        address: format!("person-{n}@example.org"),
        locale: None,
        personal_number: None,
        personal_number_digest: None,
        personal_number_masked: None,
        version: 1,
        created_at: at(0),
        updated_at: at(0),
        deleted_at: None,
    }
}

/// The row says where they are, and how many.
pub async fn a_body_in_a_blob_is_told_by_its_name(store: &Shared) {
    let (raw, payload) = (blob(1, 5_000_000), blob(2, 200));
    let sample = Sample::new(1).content(|content| {
        content.raw = StoredBody::Blob(raw.clone());
        content.payload = Some(StoredBody::Blob(payload.clone()));
    });
    let uid = accept(store, sample).await;
    let found = record(store, uid).await;
    assert_eq!(
        (found.raw, found.payload),
        (BodyLocation::Blob(raw.clone()), BodyLocation::Blob(payload.clone()))
    );
    assert_eq!((found.recipient, found.summary.sensitive), (None, false));
    assert_eq!(store.raw(&tenant(), uid).await.unwrap(), Some(StoredBody::Blob(raw.clone())));
    assert_eq!(store.body(uid).await.unwrap(), Some(StoredBody::Blob(raw)));
    assert_eq!(store.payload(&tenant(), uid).await.unwrap(), Some(StoredBody::Blob(payload)));
    assert_eq!(store.payload(&other_tenant(), uid).await.unwrap(), None);
}

/// Neither however small the blob is; its size comes along.
pub async fn a_blob_never_comes_with_its_claim(store: &Shared) {
    accept(store, Sample::new(1).content(|content| content.raw = StoredBody::Blob(blob(1, 10)))).await;
    let claimed = claim(store, 1, at(0), 9).await;
    assert_eq!((claimed[0].size, &claimed[0].raw), (10, &None));
}

/// Only bytes that are there can be handed over.
pub async fn a_blob_is_not_handed_over(store: &Shared) {
    store.claim(request(&relay(), 1, at(0), 9, true)).await.unwrap();
    let sample = Sample::new(1).content(|content| content.raw = StoredBody::Blob(blob(1, 10)));
    assert_eq!(offer(store, sample).await, Acceptance::Accepted { handed_over: false });
    assert_eq!(claim(store, 2, at(0), 9).await.len(), 1);
}

/// Also if both are large enough to be packed: readers get them separately, and both are removed together.
pub async fn a_mail_and_its_request_read_back_as_they_were(store: &Shared) {
    let raw =
        bytes::Bytes::from("Subject: yours\r\n\r\n".to_owned() + &"what we agreed upon\r\n".repeat(150));
    let request = bytes::Bytes::from(format!("{{\"text\":\"{}\"}}", "what we agreed upon ".repeat(150)));
    let sample = Sample::new(1).content(|content| {
        content.raw = raw.clone().into();
        content.payload = Some(request.clone().into());
    });
    let uid = accept(store, sample).await;
    let found = record(store, uid).await;
    let sizes = (BodyLocation::Inline(raw.len() as u64), BodyLocation::Inline(request.len() as u64));
    assert_eq!((found.raw, found.payload), sizes);
    assert_eq!(store.raw(&tenant(), uid).await.unwrap(), Some(raw.clone().into()));
    assert_eq!(store.body(uid).await.unwrap(), Some(raw.clone().into()));
    assert_eq!(store.payload(&tenant(), uid).await.unwrap(), Some(request.clone().into()));
    let mut claimed = claim(store, 1, at(0), 9).await.remove(0);
    assert_eq!(claimed.raw, Some(raw));
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    let erase = MessageChange { erases_bodies: true, ..outcome(&claimed, true, AttemptOutcome::Sent, at(2)) };
    assert!(apply(store, erase).await);
    let found = record(store, uid).await;
    assert_eq!((found.raw, found.payload), (BodyLocation::Nowhere, BodyLocation::Nowhere));
    assert_eq!(store.payload(&tenant(), uid).await.unwrap(), None);
}

/// In the row, as it came.
pub async fn a_request_reads_back_as_it_was(store: &Shared) {
    let request = StoredBody::Inline(bytes::Bytes::from((0..=255).collect::<Vec<u8>>()));
    let sample = Sample::new(1).content(|content| {
        content.payload = Some(request.clone());
        content.sensitive = true;
    });
    let uid = accept(store, sample).await;
    let none = accept(store, Sample::new(2)).await;
    assert_eq!(store.payload(&tenant(), uid).await.unwrap(), Some(request));
    assert_eq!(store.payload(&tenant(), none).await.unwrap(), None);
    let found = record(store, uid).await;
    assert_eq!((found.payload, found.summary.sensitive), (BodyLocation::Inline(256), true));
    assert_eq!(record(store, none).await.payload, BodyLocation::Nowhere);
    assert_eq!(
        claim(store, 1, at(0), 9).await.iter().map(|one| one.sensitive).collect::<Vec<_>>(),
        [true, false]
    );
}

/// With the change that says so, and only if that is written.
pub async fn bodies_are_removed_where_the_fence_held(store: &Shared) {
    let inline = Sample::new(1).content(|content| content.payload = Some(StoredBody::Inline("{}".into())));
    let in_blobs = Sample::new(2).content(|content| {
        content.raw = StoredBody::Blob(blob(1, 9));
        content.payload = Some(StoredBody::Blob(blob(2, 9)));
    });
    for (n, sample) in [inline, in_blobs].into_iter().enumerate() {
        let mut claimed = accept_and_claim(store, sample, n as i64 + 1).await;
        let (uid, before) = (claimed.uid, record(store, claimed.uid).await);
        assert!(commit_wire(store, &mut claimed, at(1)).await);
        let erase =
            MessageChange { erases_bodies: true, ..outcome(&claimed, true, AttemptOutcome::Sent, at(2)) };
        let mut stale = erase.clone();
        stale.fence.version = Some(claimed.version - 1);
        assert!(!apply(store, stale).await);
        assert_eq!(record(store, uid).await.raw, before.raw);
        assert!(apply(store, erase).await);
        let found = record(store, uid).await;
        assert_eq!((found.raw, found.payload), (BodyLocation::Nowhere, BodyLocation::Nowhere));
        assert_eq!(found.summary.state, MessageState::Sent);
        assert_eq!(store.raw(&tenant(), uid).await.unwrap(), None);
        assert_eq!(store.payload(&tenant(), uid).await.unwrap(), None);
    }
}

/// However it was accepted: the claim says so, and such mail is never handed over.
pub async fn a_recipient_deleted_meanwhile_is_told_at_the_claim(store: &Shared) {
    for n in [1, 2] {
        assert_eq!(direct(store, DirectoryChange::CreateRecipient(known(n))).await, ChangeResult::Done);
    }
    store.claim(request(&relay(), 1, at(0), 9, true)).await.unwrap();
    let ids = [1, 2, 3].map(|n| RecipientId::from_bytes([n; 16]));
    let mut sent = Vec::new();
    for (n, id) in (1..).zip(ids) {
        sent.push(accept(store, Sample::new(n).known(id)).await);
    }
    store.unpark();
    sent.push(accept(store, Sample::new(4)).await);
    assert_eq!(record(store, sent[0]).await.recipient, Some(ids[0]));
    assert_eq!(
        direct(store, DirectoryChange::DeleteRecipient(tenant(), ids[0], at(5))).await,
        ChangeResult::Done
    );
    let claimed = claim(store, 2, at(6), 9).await;
    assert_eq!(uids(&claimed), sent);
    let deleted: Vec<bool> = claimed.iter().map(|one| one.recipient_deleted).collect();
    assert_eq!(deleted, [true, false, true, false], "deleted, there, never there, not asked");
}
