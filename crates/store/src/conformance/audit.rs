//! The record of management calls.

use postway_domain::{TenantId, id::AuditId};

use super::{
    Shared,
    sample::{OTHER_TENANT, TENANT, at, other_tenant, tenant},
};
use crate::record::{AuditEntry, Changed, DirectoryChange, Suspension, SuspensionScope};

/// The n-th entry.
fn entry(n: i64, tenant: Option<TenantId>) -> AuditEntry {
    AuditEntry {
        id: AuditId::new(at(n), &mut rand::rng()),
        at: at(n),
        actor: "key:Größe".to_owned(),
        tenant,
        action: "batch.suspend".to_owned(),
        target: format!("batch-{n}"),
        request_id: (n % 2 == 0).then(|| format!("request-{n}")),
        detail: (n % 3 == 0).then(|| r#"{"reason":"too many"}"#.to_owned()),
    }
}

/// Suspends the n-th batch, and says so.
async fn suspend(store: &Shared, n: i64, tenant: &str, named: bool) -> (AuditEntry, Changed) {
    let tenant: TenantId = tenant.parse().unwrap();
    let entry = entry(n, named.then(|| tenant.clone()));
    let scope = SuspensionScope::Batch(format!("batch-{n}").parse().unwrap());
    let change = DirectoryChange::Suspend(Suspension { tenant, scope, since: at(n) });
    let changed = store.change(change, Some(entry.clone())).await.unwrap();
    (entry, changed)
}

/// Who, what, when, and for which request.
pub async fn an_entry_reads_back_whole(store: &Shared) {
    let (full, changed) = suspend(store, 6, TENANT, true).await;
    assert_eq!(changed, Changed::Done);
    let (bare, _) = suspend(store, 7, TENANT, false).await;
    assert_eq!(store.audit(None, None, 9).await.unwrap(), [bare, full]);
}

/// What did not happen is not recorded.
pub async fn an_entry_is_written_only_with_its_change(store: &Shared) {
    let (done, changed) = suspend(store, 1, TENANT, true).await;
    assert_eq!(changed, Changed::Done);
    let (_, changed) = suspend(store, 1, TENANT, true).await;
    assert_eq!(changed, Changed::Already);
    let revoke = DirectoryChange::RevokeKey(tenant(), "nobody".to_owned(), at(2));
    assert_eq!(store.change(revoke, Some(entry(2, Some(tenant())))).await.unwrap(), Changed::Missing);
    assert_eq!(store.audit(None, None, 9).await.unwrap(), [done]);
}

/// Page by page, and each tenant by itself.
pub async fn the_audit_log_goes_back_from_the_newest_page_by_page(store: &Shared) {
    let (mut all, mut theirs) = (Vec::new(), Vec::new());
    for n in 0..7 {
        let of = if n % 3 == 0 { OTHER_TENANT } else { TENANT };
        let (entry, changed) = suspend(store, n, of, n != 4).await;
        assert_eq!(changed, Changed::Done);
        theirs.extend((of == OTHER_TENANT).then(|| entry.clone()));
        all.push(entry);
    }
    all.reverse();
    theirs.reverse();
    let mut read: Vec<AuditEntry> = Vec::new();
    loop {
        let page = store.audit(None, read.last().map(|entry| entry.id), 3).await.unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert_eq!(read, all);
    assert_eq!(store.audit(Some(&other_tenant()), None, 9).await.unwrap(), theirs);
    assert_eq!(store.audit(Some(&other_tenant()), Some(theirs[0].id), 1).await.unwrap(), theirs[1..2]);
    assert_eq!(store.audit(Some(&tenant()), None, 9).await.unwrap().len(), 3, "one names no tenant");
}
