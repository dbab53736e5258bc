//! [`BlobNameStore`] over SQL.

use async_trait::async_trait;
use postway_domain::Time;

use super::SqlStore;
use crate::{
    blob::{BlobCursor, BlobJob, read_page},
    error::StoreError,
    port::BlobNameStore,
    record::BlobName,
};

/// The bounds of a scan over blobs.
#[derive(Clone, Copy)]
struct BlobWalkBounds {
    /// The blobs read in one statement.
    page: u32,
    /// The most blobs examined in one call.
    most: u32,
}
const WALK_BOUNDS: BlobWalkBounds = BlobWalkBounds { page: 500, most: 100_000 };

/// Continues where the last call stopped, and starts again after the newest blob, until enough blobs are
/// found, enough were examined, or all were.
async fn find_unreferenced(
    store: &impl SqlStore,
    before: Time,
    limit: usize,
    bounds: BlobWalkBounds,
) -> Result<Vec<BlobName>, StoreError> {
    let (mut found, mut looked) = (Vec::new(), 0);
    let start = store.walks().take_blobs().unwrap_or_else(BlobCursor::start);
    let newest = BlobCursor { reserved_at: before, digest: [0; 32] };
    for (mut after, until) in [(start, newest), (BlobCursor::start(), start.min(newest))] {
        while after < until && found.len() < limit && looked < bounds.most {
            let page = read_page(&mut *store.reader().await?, after, before, bounds.page).await?;
            let is_last = page.len() < bounds.page as usize;
            for (cursor, generation) in page {
                if found.len() == limit {
                    break;
                }
                if cursor > until {
                    after = until;
                    break;
                }
                (after, looked) = (cursor, looked + 1);
                found.extend(generation.map(|generation| BlobName { digest: cursor.digest, generation }));
            }
            if is_last && found.len() < limit {
                after = until;
            }
        }
        if after < until {
            store.walks().leave_blobs(after);
            break;
        }
    }
    Ok(found)
}

#[async_trait]
impl<T: SqlStore> BlobNameStore for T {
    async fn reserve_blob(&self, digest: [u8; 32], size: u64, now: Time) -> Result<BlobName, StoreError> {
        let reserved = self.writers().write_blobs(BlobJob::Reserve(digest, size, now)).await?;
        let name = reserved.into_iter().next();
        name.ok_or_else(|| StoreError::Unexpected("no name was given to a blob".to_owned()))
    }

    async fn condemn_blobs(&self, before: Time, limit: u32) -> Result<Vec<BlobName>, StoreError> {
        let names = find_unreferenced(self, before, limit as usize, WALK_BOUNDS).await?;
        if names.is_empty() {
            return Ok(names);
        }
        self.writers().write_blobs(BlobJob::Condemn(names, before)).await
    }

    async fn forget_blobs(&self, gone: &[BlobName]) -> Result<(), StoreError> {
        self.writers().write_blobs(BlobJob::Forget(gone.to_vec())).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::{
        conformance::{
            sample::{Sample, at},
            stage,
        },
        driver::sqlite::SqliteStore,
        port::Store,
        record::{BlobRef, StoredBody},
    };

    /// However many blobs are in use: each call examines a bounded number, and continues where the last one
    /// stopped.
    #[tokio::test]
    async fn a_call_looks_at_so_many_and_the_next_one_goes_on() {
        let folder = TempDir::new().unwrap();
        let sqlite = Arc::new(SqliteStore::open(&folder.path().join("postway.db")).await.unwrap());
        let store: Arc<dyn Store> = sqlite.clone();
        stage::open(&store).await;
        let mut unused = Vec::new();
        for n in 0..12u8 {
            let name = store.reserve_blob([n; 32], 9, at((n / 3).into())).await.unwrap();
            if n == 5 || n == 11 {
                unused.push(name);
                continue;
            }
            let body = StoredBody::Blob(BlobRef { name, size: 9 });
            stage::accept(&store, Sample::new(n.into()).content(|content| content.raw = body)).await;
        }
        let find = |limit| find_unreferenced(&*sqlite, at(100), limit, BlobWalkBounds { page: 2, most: 4 });
        for round in 0..2 {
            let mut found = Vec::new();
            for _ in 0..3 {
                found.push(find(9).await.unwrap());
            }
            assert_eq!(found, [vec![], unused[..1].to_vec(), unused[1..].to_vec()], "round {round}");
            // The end is noticed by reading behind it.
            assert!(find(9).await.unwrap().is_empty());
            assert!(sqlite.walks().take_blobs().is_some());
        }
        assert_eq!(find_unreferenced(&*sqlite, at(100), 1, WALK_BOUNDS).await.unwrap(), unused[..1]);
    }
}
