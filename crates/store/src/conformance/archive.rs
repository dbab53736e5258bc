//! Archives: what was sent waits for its copy, stays until it has one, and the list of copies is kept past
//! the message.

use postway_domain::{
    MessageUid, Subscriber, SubscriberKind, Tenant, message::AttemptOutcome, tenant::archive::ArchiveSettings,
};

use super::{
    Shared,
    notifications::claim,
    retention::{DAY_MS, END_MS, expunge, fan_out, is_there, notify_as, sent},
    sample::{Sample, at, other_tenant, tenant, uid},
    stage::{accept_and_claim, apply, commit_wire, direct, outcome},
};
use crate::record::{
    ArchiveBacklog, ArchiveFilter, ArchivedMail, ChangeResult, DirectoryChange, DueSubscriber,
    NotificationState,
};

/// The copy of the n-th message.
pub(crate) fn copy(n: u32, expires_ms: Option<i64>) -> ArchivedMail {
    ArchivedMail {
        tenant: tenant(),
        uid: uid(at(i64::from(n) * DAY_MS), n),
        path: format!("archive/acme/1970/01/0{n}/größe.eml"),
        size: 5_000_000_000,
        digest: [n as u8; 32],
        is_sealed: n % 2 == 1,
        archived_at: at(i64::from(n) * DAY_MS + 5),
        expires_at: expires_ms.map(at),
    }
}

/// Gives the tenant an archive, or takes it away.
async fn set(store: &Shared, archive: Option<ArchiveSettings>) {
    let before = store.tenant(&tenant()).await.unwrap().unwrap();
    let version = before.version;
    let mut changed = Tenant { version: version + 1, ..before };
    changed.settings.archive = archive;
    let update = DirectoryChange::UpdateTenant(changed, version);
    assert_eq!(direct(store, update).await, ChangeResult::Done);
}

fn stored() -> Option<ArchiveSettings> {
    Some(ArchiveSettings { storage: true, ..ArchiveSettings::default() })
}

fn archive() -> DueSubscriber {
    DueSubscriber { tenant: tenant(), subscriber: Subscriber::ARCHIVE.parse().unwrap() }
}

/// One event of each message that was sent, and none of what was captured or failed.
pub async fn what_was_sent_waits_for_its_archive_and_nothing_else(store: &Shared) {
    sent(store, Sample::new(1)).await;
    fan_out(store, at(3)).await;
    assert_eq!(store.archive_backlog(None).await.unwrap(), []);
    set(store, stored()).await;
    let own = store.subscriber(&tenant(), &archive().subscriber).await.unwrap().unwrap();
    assert_eq!((own.kind, own.active), (SubscriberKind::Archive, true));
    let second = sent(store, Sample::new(2)).await;
    for (n, end) in [(3, AttemptOutcome::Captured), (4, AttemptOutcome::Failed)] {
        let mut claimed = accept_and_claim(store, Sample::new(n), i64::from(n)).await;
        assert!(commit_wire(store, &mut claimed, at(END_MS)).await);
        assert!(apply(store, outcome(&claimed, true, end, at(END_MS))).await);
    }
    fan_out(store, at(3)).await;
    let waiting = |waiting, oldest| ArchiveBacklog { tenant: tenant(), waiting, oldest };
    assert_eq!(store.archive_backlog(None).await.unwrap(), [waiting(1, Some(at(3)))]);
    assert_eq!(store.archive_backlog(Some(&other_tenant())).await.unwrap(), []);
    let claimed = claim(store, Subscriber::ARCHIVE, 1, at(4), 9).await;
    assert_eq!(claimed.iter().map(|one| one.key.uid).collect::<Vec<_>>(), [second]);
    set(store, None).await;
    assert_eq!(store.subscriber(&tenant(), &archive().subscriber).await.unwrap(), None);
    assert_eq!(store.archive_backlog(None).await.unwrap(), []);
}

/// However long its archive is away.
pub async fn a_message_stays_until_its_copy_is_made(store: &Shared) {
    set(store, stored()).await;
    let uid: MessageUid = sent(store, Sample::new(1)).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 0, "it is not even known that a copy is due");
    fan_out(store, at(3)).await;
    let now = at(8 * DAY_MS);
    notify_as(store, &archive(), |_| Some(NotificationState::Waiting), None, now).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 0);
    assert!(is_there(store, &tenant(), uid).await);
    notify_as(store, &archive(), |_| Some(NotificationState::Acknowledged), None, now).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 1);
}

/// Of its tenant, from the latest, within times, and again under the same name.
pub async fn stored_copies_are_listed_and_replaced(store: &Shared) {
    let put = |mail| direct(store, DirectoryChange::PutArchived(mail));
    for mail in [copy(1, None), copy(3, Some(9)), copy(2, Some(5))] {
        assert_eq!(put(mail).await, ChangeResult::Done);
    }
    let listed = |filter: ArchiveFilter, before| async move {
        store.archive(&tenant(), &filter, before, 9).await.unwrap()
    };
    let all = [copy(3, Some(9)), copy(2, Some(5)), copy(1, None)];
    assert_eq!(listed(ArchiveFilter::default(), None).await, all);
    assert_eq!(listed(ArchiveFilter::default(), Some(all[0].uid)).await, all[1..]);
    let within = ArchiveFilter { since: Some(at(2 * DAY_MS)), until: Some(at(3 * DAY_MS)) };
    assert_eq!(listed(within, None).await, all[1..2]);
    assert_eq!(store.archive(&other_tenant(), &ArchiveFilter::default(), None, 9).await.unwrap(), []);
    assert_eq!(store.archived(&tenant(), all[2].uid).await.unwrap(), Some(all[2].clone()));
    assert_eq!(store.archived(&other_tenant(), all[2].uid).await.unwrap(), None);
    assert_eq!(store.expired_archive(at(8), 9).await.unwrap(), all[1..2]);
    assert_eq!(store.expired_archive(at(9), 1).await.unwrap(), all[1..2], "the longest over first");
    // Stored again between the deletion of the copy and that of its row.
    let again = ArchivedMail { digest: [9; 32], expires_at: None, ..copy(2, None) };
    assert_eq!(put(again.clone()).await, ChangeResult::Done);
    let forget = |mail| direct(store, DirectoryChange::ForgetArchived(mail));
    assert_eq!(forget(all[1].clone()).await, ChangeResult::Missing);
    assert_eq!(store.archived(&tenant(), again.uid).await.unwrap(), Some(again.clone()));
    assert_eq!(forget(again).await, ChangeResult::Done);
    assert_eq!(listed(ArchiveFilter::default(), None).await.len(), 2);
}

/// The rows stay until the copies are deleted.
pub async fn copies_of_a_deleted_tenant_expire(store: &Shared) {
    direct(store, DirectoryChange::PutArchived(copy(1, None))).await;
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(50))).await, ChangeResult::Done);
    while direct(store, DirectoryChange::PurgeTenant(tenant(), 100)).await == ChangeResult::Done {}
    let over = store.expired_archive(at(1), 9).await.unwrap();
    assert_eq!(over.iter().map(|mail| mail.uid).collect::<Vec<_>>(), [copy(1, None).uid]);
}
