//! What is suspended stays where it is, and holds nobody else.

use postway_domain::{AccountId, EventKind, State, id::BatchCode, message::Outcome};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{
        accept, accept_and_claim, activate, apply, assert_gapless, claim, commit_wire, delivered, direct, offer,
        outcome, permission, record, request, suspend, uids, woken,
    },
};
use crate::record::{
    Acceptance, AccountWant, BatchView, Change, Changed, Claimed, DirectoryChange, Suspension,
    SuspensionScope,
};

fn batch(code: &str) -> SuspensionScope {
    SuspensionScope::Batch(code.parse().unwrap())
}

fn account(id: &str) -> SuspensionScope {
    SuspensionScope::Account(id.parse().unwrap())
}

/// Claims for both accounts of both tenants.
async fn claim_all(store: &Shared, token: i64) -> Vec<Claimed> {
    let mut request = request(&sample::relay(), token, at(0), 99, false);
    for (tenant, account) in [(TENANT, OTHER_ACCOUNT), (OTHER_TENANT, ACCOUNT), (OTHER_TENANT, OTHER_ACCOUNT)] {
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
    assert_eq!((found.state, found.version, found.due_at), (State::Ready, 1, Some(at(0))), "nothing is rewritten");
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
    for scope in [batch("spring"), account(ACCOUNT), SuspensionScope::Tenant] {
        let mut claimed = accept_and_claim(store, Sample::new(1).batch("spring").created(0), 1).await;
        suspend(store, scope.clone()).await;
        assert!(!commit_wire(store, &mut claimed, at(1)).await, "{scope:?}");
        let back = Change { due_at: Some(at(2)), ..outcome(&claimed, false, Outcome::Held, at(2)) };
        assert!(apply(store, back).await, "{scope:?}");
        let found = record(store, claimed.uid).await;
        assert_eq!((found.summary.state, found.summary.retries), (State::Ready, 0), "{scope:?}");
        assert!(claim(store, 2, at(3), 9).await.is_empty(), "{scope:?}");

        activate(store, scope.clone()).await;
        let mut again = claim(store, 3, at(4), 9).await.remove(0);
        assert_eq!((again.uid, again.retries), (claimed.uid, 0));
        assert!(commit_wire(store, &mut again, at(5)).await, "{scope:?}");
        assert!(apply(store, outcome(&again, true, Outcome::Sent, at(6))).await);
        assert_gapless(&record(store, claimed.uid).await);
        let purge = DirectoryChange::Forget(at(0));
        assert_eq!(direct(store, purge).await, Changed::Done);
        return_uid(store, &scope).await;
    }
}

/// Asserts that nothing of a scope is suspended any more.
async fn return_uid(store: &Shared, scope: &SuspensionScope) {
    let again = DirectoryChange::Activate(tenant(), scope.clone());
    assert_eq!(direct(store, again).await, Changed::Already);
}
