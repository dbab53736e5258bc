//! `serve --hold` and `restore --hold`: suspends every tenant before the first message is claimed.
//!
//! A restored backup has mail in its queue that was sent after the backup was taken. While its tenant is
//! suspended, it can be listed and cancelled. A suspension is a row of the database, so it outlives this
//! process, counts on every node, and ends by the same call as any other. A crash in between has sent
//! nothing: the next start with `--hold` continues.

use postway_domain::{Time, id::AuditId};
use postway_store::{
    Store, StoreError,
    record::{AuditEntry, ChangeResult, DirectoryChange, SuspensionRecord, SuspensionScope},
};

/// Tenants that are read at a time.
const PAGE: u32 = 500;
/// The actor in the audit log.
pub const ACTOR: &str = "serve --hold";

/// Suspends every tenant in the name of `actor`, and returns how many were not suspended before.
pub async fn suspend_all(store: &dyn Store, actor: &str, now: Time) -> Result<usize, StoreError> {
    let (mut suspended, mut after) = (0, None);
    loop {
        let tenants = store.tenants(after.as_ref(), PAGE).await?;
        for tenant in &tenants {
            let entry = AuditEntry {
                id: AuditId::new(now, &mut rand::rng()),
                at: now,
                actor: actor.to_owned(),
                tenant: Some(tenant.id.clone()),
                action: "tenant.suspend".to_owned(),
                target: tenant.id.to_string(),
                request_id: None,
                detail: None,
                salt: Some(rand::random()),
            };
            let scope = SuspensionScope::Tenant;
            let suspension = SuspensionRecord { tenant: tenant.id.clone(), scope, since: now };
            if store.change(DirectoryChange::Suspend(suspension), Some(entry)).await? == ChangeResult::Done {
                suspended += 1;
            }
        }
        match tenants.into_iter().nth(PAGE as usize - 1) {
            Some(last) => after = Some(last.id),
            None => return Ok(suspended),
        }
    }
}
