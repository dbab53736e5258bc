//! Cleanup: removes data that has expired and is not needed any more. One node at a time does it, every
//! minute, in bounded slices.

use std::time::Duration;

use postway_domain::{Tenant, Time};
use postway_store::{
    Store, StoreError,
    blob::{BlobStorage, RESERVED_FOR},
    record::{ChangeResult, DirectoryChange},
};

/// How often cleanup runs.
pub const EVERY: Duration = Duration::from_secs(60);
/// Tenants read at once.
const PAGE: u32 = 500;
/// Messages removed in one transaction.
const SLICE: u32 = 500;
/// Buckets of used limits forgotten in one transaction. They are small, and a busy account leaves one every
/// few seconds.
const USE_SLICE: u32 = 2_000;
/// The most slices of one kind, or of one tenant, in one round; what is left waits for the next round.
const SLICES_MAX: u32 = 200;

/// Removes the use of limits, suppressions and links that have expired, then the remains of deleted tenants,
/// and then blobs that nothing refers to.
pub async fn clean_up(store: &dyn Store, depot: &BlobStorage, now: Time) -> Result<(), StoreError> {
    // Each step runs even if the one before has failed.
    let forgotten = store.change(DirectoryChange::Forget(now), None).await.map(drop);
    let unused = remove_old_use(store, now).await;
    let removed = purge_deleted_tenants(store).await;
    let swept = remove_blobs(store, depot, now).await;
    forgotten.and(unused).and(removed).and(swept)
}

async fn remove_old_use(store: &dyn Store, now: Time) -> Result<(), StoreError> {
    for _ in 0..SLICES_MAX {
        if store.change(DirectoryChange::ForgetUse(now, USE_SLICE), None).await? != ChangeResult::Done {
            break;
        }
    }
    Ok(())
}

async fn remove_blobs(store: &dyn Store, depot: &BlobStorage, now: Time) -> Result<(), StoreError> {
    for _ in 0..SLICES_MAX {
        let removed = depot.sweep(store, now.minus(RESERVED_FOR), SLICE).await?;
        if removed < SLICE as usize {
            break;
        }
    }
    Ok(())
}

async fn purge_deleted_tenants(store: &dyn Store) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let page = store.tenants(after.as_ref(), PAGE).await?;
        // A tenant that was removed completely has no name any more.
        for tenant in page.iter().filter(|tenant| tenant.deleted_at.is_some() && !tenant.name.is_empty()) {
            purge_tenant(store, tenant).await?;
        }
        match page.last() {
            Some(last) if page.len() == PAGE as usize => after = Some(last.id.clone()),
            _ => return Ok(()),
        }
    }
}

async fn purge_tenant(store: &dyn Store, tenant: &Tenant) -> Result<(), StoreError> {
    for _ in 0..SLICES_MAX {
        if store.change(DirectoryChange::PurgeTenant(tenant.id.clone(), SLICE), None).await?
            != ChangeResult::Done
        {
            tracing::info!(tenant = %tenant.id, "everything of a deleted tenant is removed");
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use postway_domain::{Account, AccountSettings};
    use postway_store::{CatalogueStore, DirectoryStore, memory::MemoryStore};

    use super::*;

    #[tokio::test]
    async fn what_is_left_of_a_deleted_tenant_goes_and_others_stay() {
        let store = MemoryStore::new();
        let now = Time::from_millis(1_000_000_000);
        for id in ["gone", "stays"] {
            let tenant = Tenant::new(id.parse().unwrap(), id, now);
            let account = Account {
                tenant: tenant.id.clone(),
                id: "relay".parse().unwrap(),
                settings: AccountSettings::sandbox(),
                secret: None,
                version: 1,
                created_at: now,
                updated_at: now,
            };
            let create = DirectoryChange::CreateTenant(tenant, vec![account]);
            assert_eq!(store.change(create, None).await.unwrap(), ChangeResult::Done);
        }
        let gone = "gone".parse().unwrap();
        let delete = DirectoryChange::DeleteTenant("gone".parse().unwrap(), now);
        assert_eq!(store.change(delete, None).await.unwrap(), ChangeResult::Done);
        clean_up(&store, &BlobStorage::memory(), now).await.unwrap();
        assert!(store.accounts(Some(&gone)).await.unwrap().is_empty());
        assert!(store.tenant(&gone).await.unwrap().unwrap().name.is_empty(), "only its id is left");
        assert_eq!(store.accounts(None).await.unwrap().len(), 1);
        assert!(store.dkim_keys(None, None).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_blob_that_nothing_refers_to_goes_after_its_time() {
        let (store, depot) = (MemoryStore::new(), BlobStorage::memory());
        let tenant = "default".parse().unwrap();
        let now = Time::from_millis(1_000_000_000_000);
        let blob = depot.put(&store, &tenant, Bytes::from_static(b"left behind"), now).await.unwrap();
        clean_up(&store, &depot, now.plus(RESERVED_FOR)).await.unwrap();
        assert!(depot.get(&tenant, &blob).await.is_ok(), "whoever wrote it may still refer to it");
        clean_up(&store, &depot, now.plus(RESERVED_FOR + Duration::from_secs(1))).await.unwrap();
        assert!(depot.get(&tenant, &blob).await.is_err());
    }
}
