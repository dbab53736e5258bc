//! Files that mail links to.

use postway_domain::{MessageState, MessageStatus, MessageUid, message::TransitionInput};

use super::{
    Shared,
    sample::{self, Sample, at, tenant},
    stage::{accept, apply, direct, step},
};
use crate::record::{
    BlobName, BlobRef, ChangeResult, DirectoryChange, FileLink, MessageChange, NewLink, PreparationResult,
    PrepareRequest, PreparedMessage, StoredBody, WriteFence,
};

async fn file(store: &Shared, digest: u8, expires_ms: i64) -> NewLink {
    let name = store.reserve_blob([digest; 32], 5_000_000_000, at(0)).await.unwrap();
    NewLink {
        blob: BlobRef { name, size: 5_000_000_000 },
        filename: format!("Größe {digest}.pdf"),
        content_type: "application/pdf".to_owned(),
        expires_at: at(expires_ms),
    }
}

/// A message of the samples' tenant that links to these files.
async fn linking(store: &Shared, number: u32, links: Vec<NewLink>) -> MessageUid {
    let sample = Sample::new(number)
        .state(MessageState::Accepted, None)
        .content(|content| content.raw = StoredBody::EMPTY);
    let uid = accept(store, sample).await;
    let request =
        PrepareRequest { lease: sample::lease(number.into(), at(0)), now: at(0), wants: vec![(tenant(), 1)] };
    let claimed = store.claim_preparation(request).await.unwrap().remove(0);
    assert_eq!(claimed.uid, uid);
    let prepared = PreparedMessage {
        subject: "Files".to_owned(),
        raw: StoredBody::Inline("Subject: Files\r\n\r\n".into()),
        eight_bit: false,
        smtputf8: false,
        links,
    };
    let fence = WriteFence {
        status: MessageStatus::Validating,
        token: Some(claimed.token),
        version: Some(claimed.version),
    };
    let done = MessageChange {
        due_at: Some(at(0)),
        preparation: Some(PreparationResult::Done(prepared)),
        ..step(uid, fence, MessageState::Validating, TransitionInput::Pass, at(0))
    };
    assert!(apply(store, done).await);
    uid
}

async fn find(store: &Shared, uid: MessageUid, name: &BlobName) -> Option<FileLink> {
    store.link(uid, name).await.unwrap()
}

/// By its message and its blob.
pub async fn a_link_reads_back_whole(store: &Shared) {
    let (first, second) = (file(store, 1, 1_000).await, file(store, 2, 2_000).await);
    let uid = linking(store, 1, vec![first.clone(), second.clone()]).await;
    let other = linking(store, 2, vec![first.clone()]).await;
    let link = |uid, file: &NewLink| Some(FileLink { tenant: tenant(), uid, file: file.clone() });
    assert_eq!(find(store, uid, &first.blob.name).await, link(uid, &first));
    assert_eq!(find(store, uid, &second.blob.name).await, link(uid, &second));
    assert_eq!(find(store, other, &first.blob.name).await, link(other, &first));
    assert_eq!(find(store, other, &second.blob.name).await, None);
    let replaced = BlobName { generation: 1, ..first.blob.name };
    assert_eq!(find(store, uid, &replaced).await, None);
}

/// Until then an expired link is known, so that its reader gets an explanation.
pub async fn ended_links_are_forgotten(store: &Shared) {
    let mut files = Vec::new();
    for (digest, expires_ms) in [(1, 1_000), (2, 1_001), (3, 999), (4, 90_000)] {
        files.push(file(store, digest, expires_ms).await);
    }
    let uid = linking(store, 1, files.clone()).await;
    let other = linking(store, 2, vec![files[0].clone(), files[1].clone()]).await;
    assert_eq!(direct(store, DirectoryChange::Forget(at(1_000))).await, ChangeResult::Done);
    for (file, kept) in files.iter().zip([false, true, false, true]) {
        assert_eq!(find(store, uid, &file.blob.name).await.is_some(), kept, "{}", file.filename);
    }
    assert_eq!(find(store, other, &files[0].blob.name).await, None);
    assert!(find(store, other, &files[1].blob.name).await.is_some());
}

/// More than one statement takes at a time.
pub async fn many_ended_links_are_forgotten_at_once(store: &Shared) {
    let mut files = Vec::new();
    for digest in 0..=200 {
        files.push(file(store, digest, i64::from(digest)).await);
    }
    let uid = linking(store, 1, files.clone()).await;
    assert_eq!(direct(store, DirectoryChange::Forget(at(199))).await, ChangeResult::Done);
    for file in &files[..200] {
        assert_eq!(find(store, uid, &file.blob.name).await, None);
    }
    assert!(find(store, uid, &files[200].blob.name).await.is_some());
}
