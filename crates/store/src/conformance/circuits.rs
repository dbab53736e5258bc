//! Accounts at fault.

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_TENANT, at, tenant},
    stage::{direct, woken},
};
use crate::record::{ChangeResult, DirectoryChange, OpenCircuit};

fn circuit(code: &str, faults: u32) -> OpenCircuit {
    let n = i64::from(faults);
    OpenCircuit {
        key: sample::relay(),
        code: code.to_owned(),
        reason: format!("535 Größe {n}"),
        opened_at: at(n),
        open_until: at(n * 1_000),
        faults,
    }
}

async fn open(store: &Shared, circuit: OpenCircuit) {
    assert_eq!(direct(store, DirectoryChange::OpenCircuit(circuit)).await, ChangeResult::Done);
}

/// Operators see why, since when, and until when.
pub async fn an_open_circuit_reads_back_whole(store: &Shared) {
    assert_eq!(store.circuit(&sample::relay()).await.unwrap(), None);
    open(store, circuit("auth_failed", 1)).await;
    assert_eq!(store.circuit(&sample::relay()).await.unwrap(), Some(circuit("auth_failed", 1)));
    assert_eq!(store.circuit(&sample::key(OTHER_TENANT, ACCOUNT)).await.unwrap(), None);
}

/// One tenant's, or everybody's.
pub async fn open_circuits_are_listed(store: &Shared) {
    assert_eq!(store.circuits(None).await.unwrap(), []);
    let theirs = OpenCircuit { key: sample::key(OTHER_TENANT, ACCOUNT), ..circuit("refused", 2) };
    open(store, theirs.clone()).await;
    open(store, circuit("auth_failed", 1)).await;
    assert_eq!(store.circuits(Some(&tenant())).await.unwrap(), [circuit("auth_failed", 1)]);
    assert_eq!(store.circuits(Some(&theirs.key.tenant)).await.unwrap(), std::slice::from_ref(&theirs));
    let all = store.circuits(None).await.unwrap();
    assert_eq!(all.len(), 2);
    assert!(all.is_sorted_by_key(|one| one.key.clone()) && all.contains(&theirs), "{all:?}");
}

/// Opened again, it says why now, and since when at all.
pub async fn a_circuit_opened_again_keeps_its_beginning(store: &Shared) {
    open(store, circuit("auth_failed", 1)).await;
    open(store, circuit("refused", 2)).await;
    let expected = OpenCircuit { opened_at: at(1), ..circuit("refused", 2) };
    assert_eq!(store.circuit(&sample::relay()).await.unwrap(), Some(expected));
}

/// The dispatcher checks the account again at once.
pub async fn a_closed_circuit_is_gone_and_wakes_its_account(store: &Shared) {
    open(store, circuit("auth_failed", 1)).await;
    assert_eq!(direct(store, DirectoryChange::CloseCircuit(sample::relay())).await, ChangeResult::Done);
    assert_eq!(woken(store, 1).await, [sample::relay()]);
    assert_eq!(store.circuit(&sample::relay()).await.unwrap(), None);
    assert_eq!(direct(store, DirectoryChange::CloseCircuit(sample::relay())).await, ChangeResult::Missing);
}

/// A relay may say anything; PostgreSQL's text has no NUL.
pub async fn whatever_a_relay_said_is_kept(store: &Shared) {
    open(store, OpenCircuit { reason: "535 \0 no".to_owned(), ..circuit("auth_failed", 1) }).await;
    let reason = store.circuit(&sample::relay()).await.unwrap().unwrap().reason;
    assert!(reason == "535 \0 no" || reason == "535 \u{fffd} no", "{reason:?}");
}

/// An account of the same name that is made later starts afresh.
pub async fn a_deleted_account_takes_its_circuit_along(store: &Shared) {
    open(store, circuit("auth_failed", 1)).await;
    let deleted = store.delete_account(&tenant(), &ACCOUNT.parse().unwrap()).await.unwrap();
    assert_eq!(deleted, ChangeResult::Done);
    assert_eq!(store.circuit(&sample::relay()).await.unwrap(), None);
}
