//! What is held besides suspensions: mail of accounts at fault, and beyond limits.

use postway_domain::{AccountId, AccountLimits, TenantId, Time, limit::LimitBehavior};

use super::{
    Shared,
    limits::{accept_many, claim, per_minute},
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{accept, activate, direct, suspend},
};
use crate::record::{AccountGate, ChangeResult, DirectoryChange, OpenCircuit, SuspensionScope};

/// Gives the samples' account these limits.
async fn limit(store: &Shared, limits: AccountLimits) {
    let account = store.account(&tenant(), &ACCOUNT.parse().unwrap()).await.unwrap().unwrap();
    let mut changed = account.clone();
    changed.settings.limits = limits;
    changed.version += 1;
    assert!(store.update_account(changed, account.version).await.unwrap());
}

async fn open_circuit(store: &Shared, account: &str) {
    let circuit = OpenCircuit {
        key: sample::key(TENANT, account),
        code: "auth_failed".to_owned(),
        reason: "535 no".to_owned(),
        opened_at: at(0),
        open_until: at(5),
        faults: 1,
    };
    assert_eq!(direct(store, DirectoryChange::OpenCircuit(circuit)).await, ChangeResult::Done);
}

async fn gates(store: &Shared, now: Time) -> Vec<(String, AccountGate)> {
    let accounts: Vec<AccountId> = [ACCOUNT, OTHER_ACCOUNT, "unknown"].map(|id| id.parse().unwrap()).into();
    let found = store.account_gates(&tenant(), &accounts, now).await.unwrap();
    found.into_iter().map(|(id, gate)| (id.to_string(), gate)).collect()
}

/// From the last permit until the first of them counts no more; a limit that rejects holds nothing.
pub async fn mail_beyond_a_limit_is_held(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..5).await;
    accept(store, Sample::new(9).from(TENANT, OTHER_ACCOUNT)).await;
    limit(store, per_minute(2)).await;
    claim(store, per_minute(2), 1, at(0), 1).await;
    assert_eq!((gates(store, at(1)).await, store.held(&tenant(), at(1)).await.unwrap()), (vec![], 0));
    claim(store, per_minute(2), 2, at(1), 1).await;
    let shut = vec![(ACCOUNT.to_owned(), AccountGate::Limit)];
    assert_eq!((gates(store, at(2)).await, store.held(&tenant(), at(2)).await.unwrap()), (shut, 3));
    assert_eq!(store.held(&other_tenant(), at(2)).await.unwrap(), 0);
    assert!(
        store.account_gates(&other_tenant(), &[ACCOUNT.parse().unwrap()], at(2)).await.unwrap().is_empty()
    );
    assert_eq!(store.held(&tenant(), at(120_000)).await.unwrap(), 0, "its minute is over");
    limit(store, AccountLimits { behavior: LimitBehavior::Reject, ..per_minute(2) }).await;
    assert_eq!((gates(store, at(2)).await, store.held(&tenant(), at(2)).await.unwrap()), (vec![], 0));
}

/// Also when its time is up: then one at a time tries, and the others wait.
pub async fn mail_of_an_account_at_fault_is_held(store: &Shared) {
    accept(store, Sample::new(1)).await;
    accept(store, Sample::new(2).batch("spring").send_at(90_000)).await;
    accept(store, Sample::new(3).from(TENANT, OTHER_ACCOUNT)).await;
    accept(store, Sample::new(4).from(OTHER_TENANT, ACCOUNT)).await;
    open_circuit(store, ACCOUNT).await;
    let shut = vec![(ACCOUNT.to_owned(), AccountGate::Circuit)];
    assert_eq!((gates(store, at(9)).await, store.held(&tenant(), at(9)).await.unwrap()), (shut, 2));
    assert_eq!(store.held(&other_tenant(), at(9)).await.unwrap(), 0);
    let closed = direct(store, DirectoryChange::CloseCircuit(sample::relay())).await;
    assert_eq!((closed, store.held(&tenant(), at(9)).await.unwrap()), (ChangeResult::Done, 0));
}

/// What a pause, a limit or a fault holds says nothing of whether the queue keeps up.
pub async fn mail_that_is_held_is_not_late(store: &Shared) {
    let ages = async |whose: Option<TenantId>, now: Time| {
        let stats = store.stats(whose.as_ref(), now).await.unwrap();
        (stats.oldest_due_at, stats.oldest_held_at)
    };
    accept(store, Sample::new(1).batch("spring").created(1)).await;
    for n in 2..5 {
        accept(store, Sample::new(n).created(n.into())).await;
    }
    accept(store, Sample::new(6).from(TENANT, OTHER_ACCOUNT).created(6)).await;
    accept(store, Sample::new(7).from(OTHER_TENANT, ACCOUNT).created(7)).await;
    assert_eq!(ages(Some(tenant()), at(9)).await, (Some(at(1)), None));
    suspend(store, SuspensionScope::Batch("spring".parse().unwrap())).await;
    assert_eq!(ages(Some(tenant()), at(9)).await, (Some(at(2)), Some(at(1))));
    assert_eq!(ages(None, at(9)).await, (Some(at(2)), Some(at(1))));
    limit(store, per_minute(1)).await;
    claim(store, per_minute(1), 1, at(8), 1).await;
    activate(store, SuspensionScope::Batch("spring".parse().unwrap())).await;
    assert_eq!(ages(Some(tenant()), at(9)).await, (Some(at(6)), Some(at(1))), "its limit is used up");
    assert_eq!(ages(Some(tenant()), at(120_000)).await, (Some(at(1)), None), "its minute is over");
    open_circuit(store, OTHER_ACCOUNT).await;
    assert_eq!(ages(Some(tenant()), at(9)).await, (None, Some(at(1))));
    assert_eq!(ages(None, at(9)).await, (Some(at(7)), Some(at(1))));
    suspend(store, SuspensionScope::Account(OTHER_ACCOUNT.parse().unwrap())).await;
    assert_eq!(direct(store, DirectoryChange::DeleteTenant(tenant(), at(9))).await, ChangeResult::Done);
    assert_eq!(ages(None, at(9)).await, (Some(at(7)), None), "what is left of the deleted waits for nobody");
}

/// Whatever holds it.
pub async fn mail_behind_several_gates_is_held_once(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..3).await;
    accept(store, Sample::new(5).batch("spring")).await;
    accept(store, Sample::new(6).from(TENANT, OTHER_ACCOUNT)).await;
    limit(store, per_minute(1)).await;
    claim(store, per_minute(1), 1, at(0), 1).await;
    open_circuit(store, ACCOUNT).await;
    let both = [AccountGate::Limit, AccountGate::Circuit].map(|gate| (ACCOUNT.to_owned(), gate));
    assert_eq!((gates(store, at(1)).await, store.held(&tenant(), at(1)).await.unwrap()), (both.to_vec(), 3));
    suspend(store, SuspensionScope::Batch("spring".parse().unwrap())).await;
    assert_eq!(store.held(&tenant(), at(1)).await.unwrap(), 3);
    open_circuit(store, OTHER_ACCOUNT).await;
    assert_eq!(store.held(&tenant(), at(1)).await.unwrap(), 4);
    suspend(store, SuspensionScope::Tenant).await;
    assert_eq!(store.held(&tenant(), at(1)).await.unwrap(), 4);
}
