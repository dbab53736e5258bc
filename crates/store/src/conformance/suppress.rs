//! Addresses that get no mail.

use postway_domain::{EventKind, MessageState, MessageStatus, RecipientStatus};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{accept, assert_gapless, claim, delivered, direct, offer, record, request},
};
use crate::record::{
    Acceptance, ChangeResult, ClaimedMessage, DirectoryChange, MessageRecord, SuppressionReason,
    SuppressionRecord,
};

/// An address that gets no mail, for ever.
pub fn suppression(tenant: &str, address: &str) -> SuppressionRecord {
    SuppressionRecord {
        tenant: tenant.parse().unwrap(),
        address: address.to_owned(),
        reason: SuppressionReason::Manual,
        note: None,
        created_at: at(0),
        expires_at: None,
    }
}

async fn suppress(store: &Shared, list: Vec<SuppressionRecord>) {
    assert_eq!(direct(store, DirectoryChange::Suppress(list)).await, ChangeResult::Done);
}

fn statuses(record: &MessageRecord) -> Vec<RecipientStatus> {
    record.recipients.iter().map(|one| one.status).collect()
}

fn positions(claimed: &ClaimedMessage) -> Vec<u32> {
    claimed.recipients.iter().map(|one| one.position).collect()
}

/// The others get it.
pub async fn a_suppressed_recipient_is_recorded_and_not_sent_to(store: &Shared) {
    suppress(store, vec![suppression(TENANT, "b@example.org")]).await;
    let sample = Sample::new(1).to("a@example.org").to("b@example.org").to("c@example.org");
    let uid = accept(store, sample).await;
    let (pending, suppressed) = (RecipientStatus::Pending, RecipientStatus::Suppressed);
    assert_eq!(statuses(&record(store, uid).await), [pending, suppressed, pending]);
    let claimed = claim(store, 1, at(0), 1).await.remove(0);
    assert_eq!(positions(&claimed), [0, 2]);
    assert!(claimed.suppressed.is_empty(), "that was known before");
}

/// By a standing claim, too.
pub async fn a_suppressed_recipient_is_not_handed_over(store: &Shared) {
    suppress(store, vec![suppression(TENANT, "a@example.org")]).await;
    store.claim(request(&sample::relay(), 1, at(0), 2, true)).await.unwrap();
    let answer = offer(store, Sample::new(1).to("a@example.org")).await;
    assert_eq!(answer, Acceptance::Suppressed, "there is nobody to send to");
    let handed_over = Acceptance::Accepted { handed_over: true };
    assert_eq!(offer(store, Sample::new(2).to("a@example.org").to("b@example.org")).await, handed_over);
    assert_eq!(positions(&delivered(store, 1).await[0]), [1]);
}

/// No recipient is left: it is final from the start.
pub async fn a_message_to_the_suppressed_alone_is_suppressed(store: &Shared) {
    suppress(store, vec![suppression(TENANT, "a@example.org"), suppression(TENANT, "b@example.org")]).await;
    let now = accept(store, Sample::new(1).to("a@example.org").to("B@example.org")).await;
    let later = accept(store, Sample::new(2).to("a@example.org").send_at(5_000)).await;
    for uid in [now, later] {
        let found = record(store, uid).await;
        assert_eq!((found.summary.state, found.summary.due_at), (MessageState::Suppressed, None));
        assert!(statuses(&found).iter().all(|status| *status == RecipientStatus::Suppressed));
        let kinds: Vec<EventKind> = found.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Accepted, EventKind::Suppressed]);
        assert_gapless(&found);
    }
    assert!(claim(store, 1, at(9_000), 9).await.is_empty());
    let stats = store.stats(Some(&tenant()), at(9_000)).await.unwrap();
    assert_eq!((stats.by_status.get(&MessageStatus::Suppressed), stats.oldest_due_at), (Some(&2), None));
    assert_eq!(store.queue_state(at(0)).await.unwrap().next_due_at, None);
}

/// As earlier versions kept it; addresses have A-labels now.
pub async fn a_suppression_that_was_kept_with_u_labels_holds(store: &Shared) {
    suppress(store, vec![suppression(TENANT, "gone@exämple.org")]).await;
    let uid = accept(store, Sample::new(1).to("gone@exämple.org").to("b@example.org")).await;
    let (pending, suppressed) = (RecipientStatus::Pending, RecipientStatus::Suppressed);
    assert_eq!(statuses(&record(store, uid).await), [suppressed, pending]);
    let ascii = "gone@xn--exmple-cua.org";
    let found = store.suppression(&tenant(), ascii).await.unwrap();
    assert_eq!(found.map(|one| one.address).as_deref(), Some("gone@exämple.org"));
    let removed = DirectoryChange::Unsuppress(tenant(), vec![ascii.to_owned()], at(0));
    assert_eq!(direct(store, removed.clone()).await, ChangeResult::Done);
    assert_eq!(direct(store, removed).await, ChangeResult::Missing);
    assert_eq!(store.suppression(&tenant(), ascii).await.unwrap(), None);
}

/// From then on it is an address like any other.
pub async fn a_suppression_ends_with_its_time(store: &Shared) {
    let until = |ms| SuppressionRecord { expires_at: Some(at(ms)), ..suppression(TENANT, "a@example.org") };
    suppress(store, vec![until(1_000)]).await;
    let before = accept(store, Sample::new(1).to("a@example.org").created(999)).await;
    let after = accept(store, Sample::new(2).to("a@example.org").created(1_000)).await;
    assert_eq!(record(store, before).await.summary.state, MessageState::Suppressed);
    assert_eq!(record(store, after).await.summary.state, MessageState::Ready);
    suppress(store, vec![until(5_000)]).await;
    let claimed = claim(store, 1, at(5_000), 1).await.remove(0);
    assert_eq!((positions(&claimed), claimed.suppressed), (vec![0], vec![]));
}

/// Case is for people.
pub async fn suppression_ignores_the_case_of_an_address(store: &Shared) {
    suppress(store, vec![suppression(TENANT, "some.one@example.org")]).await;
    let uid = accept(store, Sample::new(1).to("Some.One@EXAMPLE.org")).await;
    assert_eq!(record(store, uid).await.summary.state, MessageState::Suppressed);
    let close = accept(store, Sample::new(2).to("some.one@example.org.uk").to("someone@example.org")).await;
    assert_eq!(record(store, close).await.summary.state, MessageState::Ready);
}

/// The claim looks once more, and says who is left out.
pub async fn a_suppression_after_acceptance_is_found_at_the_claim(store: &Shared) {
    let sample = Sample::new(1).to("a@example.org").to("B@example.org").to("c@example.org");
    let (some, all) = (accept(store, sample).await, accept(store, Sample::new(2).to("b@example.org")).await);
    suppress(store, vec![suppression(TENANT, "b@example.org"), suppression(OTHER_TENANT, "c@example.org")])
        .await;
    let claimed = claim(store, 1, at(0), 9).await;
    assert_eq!(
        (claimed[0].uid, positions(&claimed[0]), &claimed[0].suppressed),
        (some, vec![0, 2], &vec![1])
    );
    assert_eq!((claimed[1].uid, positions(&claimed[1]), &claimed[1].suppressed), (all, vec![], &vec![0]));
    let pending = RecipientStatus::Pending;
    assert_eq!(statuses(&record(store, some).await), [pending; 3], "its worker writes what became of them");
}

/// A list is its tenant's.
pub async fn another_tenants_list_does_not_matter(store: &Shared) {
    suppress(store, vec![suppression(OTHER_TENANT, "a@example.org")]).await;
    // One call for both, so that they share a transaction.
    let mine = Sample::new(1).to("a@example.org").build();
    let theirs = Sample::new(2).to("a@example.org").from(OTHER_TENANT, ACCOUNT).build();
    let uid = mine.uid;
    store.accept(vec![mine, theirs]).await.unwrap();
    assert_eq!(record(store, uid).await.summary.state, MessageState::Ready);
    assert_eq!(claim(store, 1, at(0), 9).await.len(), 1);
    let stats = store.stats(Some(&other_tenant()), at(0)).await.unwrap();
    assert_eq!(stats.by_status.get(&MessageStatus::Suppressed), Some(&1));
}

/// Page by page; added again, an address is renewed.
pub async fn suppressions_are_listed_and_renewed(store: &Shared) {
    let mut whole = suppression(TENANT, "größe@example.org");
    (whole.reason, whole.note) = (SuppressionReason::Complaint, Some("said so — 📬".to_owned()));
    whole.expires_at = Some(at(9_000));
    let list =
        vec![suppression(TENANT, "b@example.org"), suppression(TENANT, "a@example.org"), whole.clone()];
    suppress(store, list.clone()).await;
    suppress(store, vec![suppression(OTHER_TENANT, "c@example.org")]).await;
    let expected = [list[1].clone(), list[0].clone(), whole.clone()];
    assert_eq!(store.suppressions(&tenant(), None, 9).await.unwrap(), expected);
    assert_eq!(store.suppressions(&tenant(), None, 2).await.unwrap(), expected[..2]);
    assert_eq!(store.suppressions(&tenant(), Some("b@example.org"), 2).await.unwrap(), expected[2..]);

    assert_eq!(store.suppression(&tenant(), "größe@example.org").await.unwrap(), Some(whole.clone()));
    assert_eq!(store.suppression(&tenant(), "c@example.org").await.unwrap(), None);
    let renewed = SuppressionRecord { created_at: at(3), ..suppression(TENANT, "größe@example.org") };
    suppress(store, vec![renewed.clone()]).await;
    assert_eq!(store.suppression(&tenant(), "größe@example.org").await.unwrap(), Some(renewed));
}

/// By its tenant; expired entries are removed by themselves.
pub async fn suppressions_are_removed_and_forgotten(store: &Shared) {
    let mut old = suppression(TENANT, "old@example.org");
    old.expires_at = Some(at(1_000));
    let list = ["a@example.org", "b@example.org"].map(|address| suppression(TENANT, address));
    suppress(store, [vec![old.clone()], list.to_vec()].concat()).await;
    let remove = |of, address: &str| {
        DirectoryChange::Unsuppress(of, vec![address.to_owned(), "x@y.z".to_owned()], at(0))
    };
    assert_eq!(direct(store, remove(other_tenant(), "a@example.org")).await, ChangeResult::Missing);
    assert_eq!(direct(store, remove(tenant(), "a@example.org")).await, ChangeResult::Done);
    assert_eq!(direct(store, remove(tenant(), "a@example.org")).await, ChangeResult::Missing);
    assert_eq!(direct(store, DirectoryChange::Forget(at(999))).await, ChangeResult::Done);
    assert_eq!(store.suppressions(&tenant(), None, 9).await.unwrap(), [list[1].clone(), old]);
    assert_eq!(direct(store, DirectoryChange::Forget(at(1_000))).await, ChangeResult::Done);
    assert_eq!(store.suppressions(&tenant(), None, 9).await.unwrap(), list[1..]);
}
