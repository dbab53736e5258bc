//! The record of management calls.

use postway_domain::{TenantId, id::AuditId};

use super::{
    Shared,
    sample::{OTHER_TENANT, TENANT, at, other_tenant, tenant},
};
use crate::record::{AuditEntry, ChangeResult, DirectoryChange, SuspensionRecord, SuspensionScope};

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
        salt: Some([5; 16]),
    }
}

/// Suspends the n-th batch, and says so.
async fn suspend(store: &Shared, n: i64, tenant: &str, named: bool) -> (AuditEntry, ChangeResult) {
    let tenant: TenantId = tenant.parse().unwrap();
    let entry = entry(n, named.then(|| tenant.clone()));
    let scope = SuspensionScope::Batch(format!("batch-{n}").parse().unwrap());
    let change = DirectoryChange::Suspend(SuspensionRecord { tenant, scope, since: at(n) });
    let changed = store.change(change, Some(entry.clone())).await.unwrap();
    (entry, changed)
}

/// Who, what, when, and for which request.
pub async fn an_entry_reads_back_whole(store: &Shared) {
    let (full, changed) = suspend(store, 6, TENANT, true).await;
    assert_eq!(changed, ChangeResult::Done);
    let (bare, _) = suspend(store, 7, TENANT, false).await;
    assert_eq!(store.audit(None, None, 9).await.unwrap(), [bare, full]);
}

/// What did not happen is not recorded.
pub async fn an_entry_is_written_only_with_its_change(store: &Shared) {
    let (done, changed) = suspend(store, 1, TENANT, true).await;
    assert_eq!(changed, ChangeResult::Done);
    let (_, changed) = suspend(store, 1, TENANT, true).await;
    assert_eq!(changed, ChangeResult::Already);
    let revoke = DirectoryChange::RevokeKey(tenant(), "nobody".to_owned(), at(2));
    assert_eq!(store.change(revoke, Some(entry(2, Some(tenant())))).await.unwrap(), ChangeResult::Missing);
    assert_eq!(store.audit(None, None, 9).await.unwrap(), [done]);
}

/// Page by page, and each tenant by itself.
pub async fn the_audit_log_goes_back_from_the_newest_page_by_page(store: &Shared) {
    let (mut all, mut theirs) = (Vec::new(), Vec::new());
    for n in 0..7 {
        let of = if n % 3 == 0 { OTHER_TENANT } else { TENANT };
        let (entry, changed) = suspend(store, n, of, n != 4).await;
        assert_eq!(changed, ChangeResult::Done);
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

/// A few at a time, the oldest first, of all tenants.
pub async fn the_audit_log_is_trimmed_from_its_oldest_entry(store: &Shared) {
    let mut kept = Vec::new();
    for n in 1..=6 {
        let of = if n % 2 == 0 { OTHER_TENANT } else { TENANT };
        kept.push(suspend(store, n, of, n != 3).await.0);
    }
    for (before, limit, trimmed) in [(1, 9, 0), (5, 3, 3), (5, 3, 1), (5, 3, 0)] {
        assert_eq!(store.trim_audit(at(before), limit).await.unwrap(), trimmed);
        kept.drain(..trimmed as usize);
        let left: Vec<AuditEntry> = kept.iter().rev().cloned().collect();
        assert_eq!(store.audit(None, None, 9).await.unwrap(), left);
    }
}

/// Entries about suppressions name an address; who erases it has a digest put in its place.
pub async fn an_erased_address_is_no_target_any_more(store: &Shared) {
    let suppressed = |n: i64, target: &str, tenant: TenantId| AuditEntry {
        action: "suppression.create".to_owned(),
        target: target.to_owned(),
        ..entry(n, Some(tenant))
    };
    let named = "ada@example.net";
    let other_matter = AuditEntry { target: named.to_owned(), ..entry(4, Some(tenant())) };
    let entries = [
        suppressed(1, named, tenant()),
        suppressed(2, "adá@example.net", tenant()),
        suppressed(3, named, other_tenant()),
        other_matter,
    ];
    for one in &entries {
        let change = DirectoryChange::Forget(at(0));
        assert_eq!(store.change(change, Some(one.clone())).await.unwrap(), ChangeResult::Done);
    }
    let redact = || DirectoryChange::RedactAudit {
        tenant: tenant(),
        target: named.to_owned(),
        digest: "digest".to_owned(),
    };
    for n in 5..7 {
        let erased = store.change(redact(), Some(entry(n, Some(tenant())))).await.unwrap();
        assert_eq!(erased, ChangeResult::Done, "also where there is nothing left to redact");
    }
    let log = store.audit(None, None, 9).await.unwrap();
    let targets: Vec<&str> = log.iter().rev().map(|entry| entry.target.as_str()).collect();
    assert_eq!(targets, ["digest", "adá@example.net", named, named, "batch-5", "batch-6"]);
}
