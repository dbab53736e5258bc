//! Suspended mail stays in its state, and blocks no other mail.

use postway_domain::{
    AccountId, EventKind, MessageState, MessageStatus, id::BatchCode, message::AttemptOutcome,
};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{
        accept, accept_and_claim, activate, apply, assert_gapless, claim, commit_wire, delivered, direct,
        offer, outcome, permission, record, request, suspend, uids, woken,
    },
};
use crate::record::{
    Acceptance, AccountWant, BatchRecord, ChangeResult, ClaimedMessage, DirectoryChange, MessageChange,
    SuspensionRecord, SuspensionScope,
};

fn batch(code: &str) -> SuspensionScope {
    SuspensionScope::Batch(code.parse().unwrap())
}

fn account(id: &str) -> SuspensionScope {
    SuspensionScope::Account(id.parse().unwrap())
}

/// Claims for both accounts of both tenants.
async fn claim_all(store: &Shared, token: i64) -> Vec<ClaimedMessage> {
    let mut request = request(&sample::relay(), token, at(0), 99, false);
    for (tenant, account) in [(TENANT, OTHER_ACCOUNT), (OTHER_TENANT, ACCOUNT), (OTHER_TENANT, OTHER_ACCOUNT)]
    {
        request.wants.push(AccountWant::unlimited(sample::key(tenant, account), 99, false));
    }
    store.claim(request).await.unwrap()
}

/// A batch is its tenant's, whichever account sends it.
pub async fn a_suspended_batch_is_left_and_others_go(store: &Shared) {
    let here = accept(store, Sample::new(1).batch("spring")).await;
    let there = accept(store, Sample::new(2).batch("spring").from(TENANT, OTHER_ACCOUNT)).await;
    let other_batch = accept(store, Sample::new(3).batch("spring-2")).await;
    let no_batch = accept(store, Sample::new(4)).await;
    let other_tenant = accept(store, Sample::new(5).batch("spring").from(OTHER_TENANT, ACCOUNT)).await;
    suspend(store, batch("spring")).await;
    let mut claimed = uids(&claim_all(store, 1).await);
    claimed.sort();
    assert_eq!(claimed, [other_batch, no_batch, other_tenant]);
    let found = record(store, here).await.summary;
    assert_eq!(
        (found.state, found.version, found.due_at),
        (MessageState::Ready, 1, Some(at(0))),
        "nothing is rewritten"
    );
    activate(store, batch("spring")).await;
    assert_eq!(uids(&claim_all(store, 2).await), [here, there]);
}

/// Whatever batch it is in.
pub async fn a_suspended_account_is_left_and_others_go(store: &Shared) {
    let plain = accept(store, Sample::new(1)).await;
    let in_batch = accept(store, Sample::new(2).batch("spring")).await;
    let neighbour = accept(store, Sample::new(3).from(TENANT, OTHER_ACCOUNT)).await;
    let other_tenant = accept(store, Sample::new(4).from(OTHER_TENANT, ACCOUNT)).await;
    suspend(store, account(ACCOUNT)).await;
    assert_eq!(uids(&claim_all(store, 1).await), [neighbour, other_tenant]);
    activate(store, account(ACCOUNT)).await;
    let mut claimed = uids(&claim_all(store, 2).await);
    claimed.sort();
    assert_eq!(claimed, [plain, in_batch]);
}

/// All of it, and nothing of its neighbours'.
pub async fn a_suspended_tenant_is_left_and_others_go(store: &Shared) {
    let mine = accept(store, Sample::new(1).batch("spring")).await;
    accept(store, Sample::new(2).from(TENANT, OTHER_ACCOUNT)).await;
    let theirs = accept(store, Sample::new(3).batch("spring").from(OTHER_TENANT, ACCOUNT)).await;
    suspend(store, SuspensionScope::Tenant).await;
    assert_eq!(uids(&claim_all(store, 1).await), [theirs]);
    assert!(store.queue_state(at(0)).await.unwrap().due.is_empty(), "nobody is sent to look for it");
    // Each pause holds by itself.
    suspend(store, batch("spring")).await;
    activate(store, SuspensionScope::Tenant).await;
    assert_eq!(claim_all(store, 2).await.len(), 1);
    activate(store, batch("spring")).await;
    assert_eq!(uids(&claim_all(store, 3).await), [mine]);
}

/// A standing claim is no way around a pause, and its room stays for others.
pub async fn nothing_suspended_is_handed_over(store: &Shared) {
    assert!(store.claim(request(&sample::relay(), 1, at(0), 1, true)).await.unwrap().is_empty());
    suspend(store, batch("spring")).await;
    let queued = Acceptance::Accepted { handed_over: false };
    assert_eq!(offer(store, Sample::new(1).batch("spring")).await, queued);
    assert_eq!(offer(store, Sample::new(2)).await, Acceptance::Accepted { handed_over: true });
    assert_eq!(delivered(store, 1).await[0].uid, Sample::new(2).build().uid);
    assert!(claim(store, 2, at(0), 9).await.is_empty());
}

/// What has not left yet stays: it is given back, and no retry is used.
pub async fn what_is_suspended_meanwhile_gets_no_permission(store: &Shared) {
    for (n, scope) in (0..).zip([batch("spring"), account(ACCOUNT), SuspensionScope::Tenant]) {
        let mut claimed = accept_and_claim(store, Sample::new(n).batch("spring"), 1).await;
        suspend(store, scope.clone()).await;
        assert!(!commit_wire(store, &mut claimed, at(1)).await, "{scope:?}");
        let back = MessageChange {
            due_at: Some(at(2)),
            ..outcome(&claimed, false, AttemptOutcome::Returned, at(2))
        };
        assert!(apply(store, back).await, "{scope:?}");
        let found = record(store, claimed.uid).await;
        assert_eq!((found.summary.state, found.summary.retries), (MessageState::Ready, 0), "{scope:?}");
        assert!(claim(store, 2, at(3), 9).await.is_empty(), "{scope:?}");

        activate(store, scope.clone()).await;
        let mut again = claim(store, 3, at(4), 9).await.remove(0);
        assert_eq!((again.uid, again.retries), (claimed.uid, 0));
        assert!(commit_wire(store, &mut again, at(5)).await, "{scope:?}");
        assert!(apply(store, outcome(&again, true, AttemptOutcome::Sent, at(6))).await);
        assert_gapless(&record(store, claimed.uid).await);
    }
}

/// Each of one call gets its own answer, in order.
pub async fn a_pause_refuses_no_neighbour(store: &Shared) {
    for n in 0..4 {
        accept(store, Sample::new(n).batch(if n % 2 == 0 { "spring" } else { "autumn" })).await;
    }
    let mut claimed = claim(store, 1, at(0), 9).await;
    claimed.sort_by_key(|one| one.uid);
    suspend(store, batch("spring")).await;
    let commits = claimed.iter().map(|one| permission(one, at(1))).collect();
    assert_eq!(store.wire_commit(commits).await.unwrap(), [false, true, false, true]);
}

/// The dot was allowed before; its outcome is written like any other.
pub async fn what_is_on_the_wire_finishes(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1).batch("spring"), 1).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    suspend(store, batch("spring")).await;
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(2))).await);
    let found = record(store, claimed.uid).await;
    assert_eq!(found.events.last().unwrap().kind, EventKind::Sent);
}

/// The first pause counts; ending what is not paused is no error.
pub async fn suspending_twice_changes_nothing(store: &Shared) {
    let scopes = [SuspensionScope::Tenant, batch("spring"), account(ACCOUNT)];
    for scope in &scopes {
        suspend(store, scope.clone()).await;
        let later = SuspensionRecord { tenant: tenant(), scope: scope.clone(), since: at(99) };
        assert_eq!(direct(store, DirectoryChange::Suspend(later)).await, ChangeResult::Already);
    }
    let expected = scopes.clone().map(|scope| SuspensionRecord { tenant: tenant(), scope, since: at(7) });
    assert_eq!(store.suspensions(&tenant()).await.unwrap(), expected);
    assert!(store.suspensions(&other_tenant()).await.unwrap().is_empty());
    for scope in scopes {
        activate(store, scope.clone()).await;
        let again = DirectoryChange::Activate(tenant(), scope);
        assert_eq!(direct(store, again).await, ChangeResult::Already);
    }
    assert!(store.suspensions(&tenant()).await.unwrap().is_empty());
}

/// Those that have had messages, and those suspended before their first; what waits is counted.
pub async fn batches_are_listed_with_what_waits(store: &Shared) {
    suspend(store, batch("unseen")).await;
    for n in 0..3 {
        accept(store, Sample::new(n).batch("spring").from(TENANT, [ACCOUNT, OTHER_ACCOUNT][n as usize % 2]))
            .await;
    }
    accept(store, Sample::new(10).batch("Autumn")).await;
    accept(store, Sample::new(11).batch("later").send_at(90_000)).await;
    accept(store, Sample::new(12).batch("theirs").from(OTHER_TENANT, ACCOUNT)).await;
    accept(store, Sample::new(13)).await;
    suspend(store, batch("spring")).await;
    assert_eq!(claim(store, 1, at(0), 9).await.len(), 2, "of Autumn, and of no batch");

    let view = |code: &str, suspended: bool, waiting| BatchRecord {
        code: code.parse().unwrap(),
        suspended_since: suspended.then(|| at(7)),
        waiting,
    };
    let expected =
        [view("Autumn", false, 0), view("later", false, 1), view("spring", true, 3), view("unseen", true, 0)];
    assert_eq!(store.batches(&tenant(), None, 9).await.unwrap(), expected);
    assert_eq!(store.batches(&tenant(), None, 2).await.unwrap(), expected[..2]);
    let after: BatchCode = "later".parse().unwrap();
    assert_eq!(store.batches(&tenant(), Some(&after), 2).await.unwrap(), expected[2..]);
    assert_eq!(store.batches(&other_tenant(), None, 9).await.unwrap(), [view("theirs", false, 1)]);
    for (code, states) in [
        ("Autumn", vec![(MessageStatus::Sending, 1)]),
        ("later", vec![(MessageStatus::Scheduled, 1)]),
        ("spring", vec![(MessageStatus::Ready, 3)]),
        ("theirs", vec![]),
        ("unseen", vec![]),
    ] {
        let found = store.batch_states(&tenant(), &code.parse().unwrap()).await.unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), states, "{code}");
    }
}

/// Mail held by two pauses is held once.
pub async fn held_messages_are_counted_once(store: &Shared) {
    accept(store, Sample::new(1).batch("spring")).await;
    accept(store, Sample::new(2).batch("spring").send_at(90_000)).await;
    accept(store, Sample::new(3)).await;
    accept(store, Sample::new(4).from(TENANT, OTHER_ACCOUNT)).await;
    accept(store, Sample::new(5).batch("spring").from(OTHER_TENANT, ACCOUNT)).await;
    assert_eq!(store.held(&tenant(), at(0)).await.unwrap(), 0);
    suspend(store, batch("spring")).await;
    assert_eq!(store.held(&tenant(), at(0)).await.unwrap(), 2);
    suspend(store, account(ACCOUNT)).await;
    assert_eq!(store.held(&tenant(), at(0)).await.unwrap(), 3);
    suspend(store, SuspensionScope::Tenant).await;
    assert_eq!(store.held(&tenant(), at(0)).await.unwrap(), 4);
    assert_eq!(store.held(&other_tenant(), at(0)).await.unwrap(), 0);
}

/// However many wait before it.
pub async fn a_long_suspended_lane_hides_nobody(store: &Shared) {
    store.accept((0..1_000).map(|n| Sample::new(n).batch("spring").build()).collect()).await.unwrap();
    let behind = accept(store, Sample::new(2_000).created(1)).await;
    suspend(store, batch("spring")).await;
    assert_eq!(uids(&claim(store, 1, at(1), 1).await), [behind]);
    assert_eq!(store.held(&tenant(), at(0)).await.unwrap(), 1_000);
}

/// The dispatcher is woken at once.
pub async fn what_is_activated_is_woken(store: &Shared) {
    accept(store, Sample::new(1).batch("spring")).await;
    accept(store, Sample::new(2).from(TENANT, OTHER_ACCOUNT)).await;
    let (relay, backup) = (sample::relay(), sample::key(TENANT, OTHER_ACCOUNT));
    woken(store, 2).await;
    let both = vec![backup, relay.clone()];
    let cases = [
        (batch("spring"), vec![relay.clone()]),
        (account(ACCOUNT), vec![relay]),
        (SuspensionScope::Tenant, both),
    ];
    for (scope, expected) in cases {
        suspend(store, scope.clone()).await;
        activate(store, scope).await;
        assert_eq!(woken(store, expected.len()).await, expected);
    }
}

/// An account of the same name that is made later is not paused.
pub async fn a_deleted_account_takes_its_pause_along(store: &Shared) {
    suspend(store, account(ACCOUNT)).await;
    suspend(store, batch(ACCOUNT)).await;
    let id: AccountId = ACCOUNT.parse().unwrap();
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::Done);
    let left: Vec<_> = store.suspensions(&tenant()).await.unwrap().into_iter().map(|one| one.scope).collect();
    assert_eq!(left, [batch(ACCOUNT)]);
}

/// More than are asked about at once.
pub async fn any_number_of_suspended_batches_is_passed_over(store: &Shared) {
    let code = |n: u32| format!("order-{n:04}");
    for n in 0..300 {
        suspend(store, batch(&code(n))).await;
    }
    let offers = (0..300).map(|n| Sample::new(n).batch(&code(n)).build()).collect();
    assert!(store.accept(offers).await.unwrap().iter().all(Acceptance::is_accepted));
    let open = accept(store, Sample::new(900).created(1).batch("open")).await;
    assert_eq!(uids(&claim(store, 1, at(2), 99).await), [open]);
    activate(store, batch(&code(299))).await;
    assert_eq!(uids(&claim(store, 2, at(2), 99).await), [sample::uid(at(0), 299)]);
}
