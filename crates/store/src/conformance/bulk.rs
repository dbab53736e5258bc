//! Bulk actions: a slice is one transaction, and nobody does a slice twice. And the checks of domains.

use postway_domain::{
    MessageState, MessageStatus, MessageUid,
    id::{AuditId, BulkActionId},
    message::{OtherRecipients, TransitionInput},
};

use super::{
    Shared,
    sample::{OTHER_TENANT, Sample, at, other_tenant, tenant},
    stage::{accept, all_at_once, claim, direct, record},
    suppress::suppression,
};
use crate::record::{
    AuditEntry, BulkAction, BulkActionState, BulkStep, ChangeResult, DirectoryChange, DomainCheckRecord,
    MessageChange, WriteFence,
};

fn id(n: u8) -> BulkActionId {
    BulkActionId::from_bytes([n; 16])
}

/// The n-th bulk action, with all that it can have.
pub fn action(n: u8) -> BulkAction {
    BulkAction {
        tenant: tenant(),
        id: id(n),
        state: BulkActionState::Running,
        task: r#"{"action":"cancel","filter":{"subject":"Größe"}}"#.to_owned(),
        selected: vec![MessageUid::from_bytes([9; 16]), MessageUid::from_bytes([3; 16])],
        actor: "key:1".to_owned(),
        reached: None,
        again: Vec::new(),
        expected: 2,
        expected_more: true,
        changed: 0,
        skipped: 0,
        version: 1,
        created_at: at(1),
        updated_at: at(1),
        ended_at: None,
    }
}

/// What a check of this domain found, at this time.
pub fn check(domain: &str, ms: i64) -> DomainCheckRecord {
    DomainCheckRecord {
        tenant: tenant(),
        domain: domain.to_owned(),
        findings: r#"["größe"]"#.to_owned(),
        checked_at: at(ms),
        right_since: Some(at(2)),
    }
}

async fn create(store: &Shared, action: BulkAction) {
    assert_eq!(direct(store, DirectoryChange::CreateBulkAction(action)).await, ChangeResult::Done);
}

async fn read(store: &Shared, n: u8) -> BulkAction {
    store.bulk_action(&tenant(), id(n)).await.unwrap().unwrap()
}

/// What withdraws these messages, as they are now, if they are ready.
async fn cancels(store: &Shared, uids: &[MessageUid]) -> Vec<MessageChange> {
    let mut changes = Vec::new();
    for uid in uids {
        let version = Some(record(store, *uid).await.summary.version);
        let fence = WriteFence { status: MessageStatus::Ready, token: None, version };
        let input = TransitionInput::Cancel(OtherRecipients::Nothing);
        changes.push(MessageChange::step(*uid, fence, MessageState::Ready, input, at(5)).unwrap());
    }
    changes
}

/// A slice of the first bulk action with these changes.
fn step(version: i64, changes: &[MessageChange]) -> BulkStep {
    BulkStep {
        tenant: tenant(),
        id: id(1),
        version,
        reached: changes.last().map(|change| change.uid),
        changes: changes.to_vec(),
        tries_again: true,
        suppressed: Vec::new(),
        done: 0,
        skipped: 0,
        ends: None,
        at: at(5),
    }
}

fn entry() -> AuditEntry {
    AuditEntry {
        id: AuditId::from_bytes([7; 16]),
        at: at(5),
        actor: "key:1".to_owned(),
        tenant: Some(tenant()),
        action: "bulk_action.finish".to_owned(),
        target: id(1).to_string(),
        request_id: None,
        detail: None,
        salt: Some([5; 16]),
    }
}

/// Whole, the latest first, page by page, and of one tenant.
pub async fn bulk_actions_read_back_whole_and_are_listed_from_the_latest(store: &Shared) {
    for n in 1..=3 {
        create(store, action(n)).await;
    }
    assert_eq!(direct(store, DirectoryChange::CreateBulkAction(action(3))).await, ChangeResult::Exists);
    let theirs = BulkAction { tenant: other_tenant(), ..action(9) };
    create(store, theirs.clone()).await;
    assert_eq!(store.bulk_actions(&tenant(), None, 2).await.unwrap(), [action(3), action(2)]);
    assert_eq!(store.bulk_actions(&tenant(), Some(id(2)), 9).await.unwrap(), [action(1)]);
    assert_eq!(store.bulk_action(&tenant(), id(9)).await.unwrap(), None);
    // One of each tenant, the oldest.
    assert_eq!(store.running_bulk_actions(None, 9).await.unwrap(), [action(1), theirs.clone()]);
    assert_eq!(store.running_bulk_actions(Some(&tenant()), 9).await.unwrap(), [theirs]);
    assert_eq!(store.running_bulk_actions(Some(&OTHER_TENANT.parse().unwrap()), 9).await.unwrap(), []);
}

/// Messages, suppressions, place and counts; and a message that changed meanwhile is named for another try.
pub async fn a_slice_is_one_transaction(store: &Shared) {
    create(store, action(1)).await;
    let [a, b, c] = [1, 2, 3].map(|n| Sample::new(n).to("ada@example.org"));
    let uids = [accept(store, c).await, accept(store, b).await, accept(store, a).await];
    let changes = cancels(store, &uids).await;
    // One is leased meanwhile.
    let leased = claim(store, 1, at(2), 1).await[0].uid;
    let mut first = step(1, &changes);
    first.suppressed = vec![suppression("acme", "ada@example.org")];
    first.skipped = 4;
    let applied = store.advance_bulk_action(first.clone()).await.unwrap().unwrap();
    assert_eq!(applied.iter().filter(|held| **held).count(), 2);
    let now = read(store, 1).await;
    assert_eq!((now.changed, now.skipped, now.version), (2, 4, 2));
    assert_eq!((now.reached, now.again.as_slice()), (uids.last().copied(), &[leased][..]));
    for uid in uids {
        let status = record(store, uid).await.summary.state.status();
        assert_eq!(status == MessageStatus::Cancelled, uid != leased, "{status:?}");
    }
    assert!(store.suppression(&tenant(), "ada@example.org").await.unwrap().is_some());
    // The slice again, as after a lost answer, and of a node that has fallen behind.
    assert_eq!(store.advance_bulk_action(first).await.unwrap(), None);
    assert_eq!(read(store, 1).await, now);
    // The last slice, in which the message still cannot be changed.
    let changes = cancels(store, &[leased]).await;
    let last = BulkStep { tries_again: false, ends: Some(entry()), ..step(2, &changes) };
    assert_eq!(store.advance_bulk_action(last).await.unwrap(), Some(vec![false]));
    let ended = read(store, 1).await;
    assert_eq!((ended.state, ended.ended_at), (BulkActionState::Finished, Some(at(5))));
    assert_eq!((ended.changed, ended.skipped, ended.again), (2, 5, Vec::new()));
    assert_eq!(store.audit(Some(&tenant()), None, 9).await.unwrap(), [entry()]);
    assert_eq!(store.running_bulk_actions(None, 9).await.unwrap(), []);
}

/// A slice that leaves something for another try is not the last.
pub async fn a_bulk_action_does_not_end_before_its_second_tries(store: &Shared) {
    create(store, action(1)).await;
    let uid = accept(store, Sample::new(1).to("ada@example.org")).await;
    let changes = cancels(store, &[uid]).await;
    claim(store, 1, at(2), 1).await;
    let last = BulkStep { ends: Some(entry()), ..step(1, &changes) };
    assert_eq!(store.advance_bulk_action(last).await.unwrap(), Some(vec![false]));
    let now = read(store, 1).await;
    assert_eq!((now.state, now.again, now.ended_at), (BulkActionState::Running, vec![uid], None));
    assert_eq!(store.audit(Some(&tenant()), None, 9).await.unwrap(), []);
}

/// However many continue at once: a slice of one version is done once.
pub async fn of_concurrent_slices_one_is_done(store: &Shared) {
    create(store, action(1)).await;
    let uid = accept(store, Sample::new(1).to("ada@example.org")).await;
    let changes = cancels(store, &[uid]).await;
    let slices = (0..8).map(|_| {
        let (store, slice) = (store.clone(), step(1, &changes));
        async move { store.advance_bulk_action(slice).await.unwrap() }
    });
    let done = all_at_once(slices).await;
    assert_eq!(done.iter().flatten().count(), 1, "{done:?}");
    let now = read(store, 1).await;
    assert_eq!((now.changed, now.version), (1, 2));
}

/// Nothing of a stopped one is done any more, not even a slice that was under way.
pub async fn a_stopped_bulk_action_does_nothing_more(store: &Shared) {
    create(store, action(1)).await;
    let uid = accept(store, Sample::new(1).to("ada@example.org")).await;
    let changes = cancels(store, &[uid]).await;
    let stop = || DirectoryChange::StopBulkAction(tenant(), id(1), at(4));
    assert_eq!(
        direct(store, DirectoryChange::StopBulkAction(other_tenant(), id(1), at(4))).await,
        ChangeResult::Missing
    );
    assert_eq!(direct(store, stop()).await, ChangeResult::Done);
    assert_eq!(direct(store, stop()).await, ChangeResult::Already);
    assert_eq!(store.advance_bulk_action(step(1, &changes)).await.unwrap(), None);
    assert_eq!(store.advance_bulk_action(step(2, &changes)).await.unwrap(), None);
    assert_eq!(record(store, uid).await.summary.state, MessageState::Ready);
    let stopped = read(store, 1).await;
    assert_eq!((stopped.state, stopped.ended_at), (BulkActionState::Stopped, Some(at(4))));
    // It is listed for its time, and then removed.
    let day_ms = 24 * 60 * 60 * 1_000;
    let days = i64::from(BulkAction::KEPT_DAYS);
    create(store, action(2)).await;
    direct(store, DirectoryChange::Forget(at(days * day_ms))).await;
    assert_eq!(store.bulk_actions(&tenant(), None, 9).await.unwrap().len(), 2);
    direct(store, DirectoryChange::Forget(at(4 + days * day_ms))).await;
    assert_eq!(store.bulk_actions(&tenant(), None, 9).await.unwrap(), [action(2)]);
}

/// One tenant cannot fill the table with them.
pub async fn a_tenant_has_a_bounded_number_of_running_bulk_actions(store: &Shared) {
    for n in 0..BulkAction::RUNNING_MAX as u8 {
        create(store, action(n)).await;
    }
    let more = || DirectoryChange::CreateBulkAction(action(200));
    assert_eq!(direct(store, more()).await, ChangeResult::InUse);
    create(store, BulkAction { tenant: other_tenant(), ..action(200) }).await;
    direct(store, DirectoryChange::StopBulkAction(tenant(), id(3), at(4))).await;
    assert_eq!(direct(store, more()).await, ChangeResult::Done);
}

/// The latest check replaces the one before, and the longest ago comes first.
pub async fn checks_of_domains_are_kept_by_tenant(store: &Shared) {
    let theirs = DomainCheckRecord { tenant: other_tenant(), right_since: None, ..check("a.example", 4) };
    for one in [check("b.example", 1), check("a.example", 2), check("b.example", 3), theirs.clone()] {
        assert_eq!(direct(store, DirectoryChange::PutDomainCheck(one)).await, ChangeResult::Done);
    }
    let (a, b) = (check("a.example", 2), check("b.example", 3));
    assert_eq!(store.domain_checks(&tenant(), 9).await.unwrap(), [a.clone(), b.clone()]);
    assert_eq!(store.domain_checks(&tenant(), 1).await.unwrap(), std::slice::from_ref(&a));
    assert_eq!(store.stale_domain_checks(at(3), 9).await.unwrap(), [a.clone(), b.clone()]);
    assert_eq!(store.stale_domain_checks(at(9), 9).await.unwrap(), [a, b.clone(), theirs.clone()]);
    let delete = || DirectoryChange::DeleteDomainCheck(tenant(), "a.example".to_owned());
    assert_eq!(direct(store, delete()).await, ChangeResult::Done);
    assert_eq!(direct(store, delete()).await, ChangeResult::Missing);
    assert_eq!(store.domain_checks(&tenant(), 9).await.unwrap(), [b]);
    assert_eq!(store.domain_checks(&other_tenant(), 9).await.unwrap(), [theirs]);
}
