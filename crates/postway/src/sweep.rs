//! Sweeping: what is over and nobody asks for any more. One node at a time does it, every minute, in bounded slices.

use std::time::Duration;

use postway_domain::{Tenant, Time};
use postway_store::{
    Store, StoreError,
    record::{Changed, DirectoryChange},
};

/// How often.
pub const EVERY: Duration = Duration::from_secs(60);
/// Tenants read at once.
const PAGE: u32 = 500;
/// Messages removed in one transaction.
const SLICE: u32 = 500;
/// Slices of one tenant in one sweep; the rest waits for the next.
const SLICES_MAX: u32 = 200;

/// Forgets used limits and suppressions that are over, and removes what is left of deleted tenants.
pub async fn sweep(store: &dyn Store, now: Time) -> Result<(), StoreError> {
    store.change(DirectoryChange::Forget(now), None).await?;
    let mut after = None;
    loop {
        let page = store.tenants(after.as_ref(), PAGE).await?;
        // A tenant of which everything is gone has lost its name, too.
        for tenant in page.iter().filter(|tenant| tenant.deleted_at.is_some() && !tenant.name.is_empty()) {
            remove(store, tenant).await?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE as usize => after = Some(last.id.clone()),
            _ => return Ok(()),
        }
    }
}

async fn remove(store: &dyn Store, tenant: &Tenant) -> Result<(), StoreError> {
    for _ in 0..SLICES_MAX {
        if store.change(DirectoryChange::PurgeTenant(tenant.id.clone(), SLICE), None).await? != Changed::Done
        {
            tracing::info!(tenant = %tenant.id, "everything of a deleted tenant is removed");
            return Ok(());
        }
    }
    Ok(())
}
