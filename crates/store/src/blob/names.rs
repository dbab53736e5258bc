//! The names of blobs, in the database: which there are, which are being deleted.
//!
//! A name is never used twice. A blob that is new to the table takes the time as its generation, one that comes back
//! while its predecessor is being deleted a generation more: so whoever deletes, however late, deletes what nobody
//! refers to.

use async_trait::async_trait;
use postway_domain::Time;

use crate::{
    directory::Portable,
    error::StoreError,
    port::Blobs,
    record::BlobName,
    sql::{Row, Session, Sql, Value, values},
};

/// Reserving is one statement, so that of two who come together the second sees the first.
const RESERVE: Sql = Sql::or_mysql(
    "INSERT INTO stored_blob (digest, generation, name, size, reserved_at, condemned) VALUES (?, ?, ?, ?, ?, 0) \
     ON CONFLICT (digest) DO UPDATE SET generation = stored_blob.generation + stored_blob.condemned, condemned = 0, \
     reserved_at = CASE WHEN excluded.reserved_at > stored_blob.reserved_at THEN excluded.reserved_at \
     ELSE stored_blob.reserved_at END",
    "INSERT INTO stored_blob (digest, generation, name, size, reserved_at, condemned) VALUES (?, ?, ?, ?, ?, 0) \
     ON DUPLICATE KEY UPDATE generation = generation + condemned, condemned = 0, \
     reserved_at = GREATEST(reserved_at, VALUES(reserved_at))",
);
const GENERATION: Sql = Sql::same("SELECT digest, generation, name FROM stored_blob WHERE digest = ?");
const RENAME: Sql = Sql::same("UPDATE stored_blob SET name = ? WHERE digest = ?");
/// The next of them, the oldest first, each with its generation where nothing refers to it. Read beside the writers. Nearly all are
/// referred to, so it says how many are looked at, and not how many are found.
const PAGE: Sql = Sql::same(
    "SELECT b.digest, b.reserved_at, CASE WHEN b.condemned = 1 OR NOT (\
     EXISTS (SELECT 1 FROM content c WHERE c.raw_blob = b.name) \
     OR EXISTS (SELECT 1 FROM content c WHERE c.payload_blob = b.name) \
     OR EXISTS (SELECT 1 FROM link l WHERE l.blob = b.name) \
     OR EXISTS (SELECT 1 FROM inbound_body i WHERE i.raw_blob = b.name) \
     OR EXISTS (SELECT 1 FROM pec_receipt p WHERE p.raw_blob = b.name)) THEN b.generation END FROM \
     (SELECT digest, generation, name, reserved_at, condemned FROM stored_blob WHERE reserved_at >= ? AND reserved_at < ? \
     AND (reserved_at > ? OR digest > ?) ORDER BY reserved_at, digest LIMIT ?) AS b ORDER BY b.reserved_at, b.digest",
);
/// How many blobs a walk reads.
#[derive(Clone, Copy)]
struct BlobWalkBounds {
    /// In one statement.
    page: u32,
    /// In one call.
    most: u32,
}
const WALK_BOUNDS: BlobWalkBounds = BlobWalkBounds { page: 500, most: 100_000 };
const IS_REFERENCED: Sql = Sql::same(
    "SELECT 1 FROM content c WHERE c.raw_blob = ? UNION ALL SELECT 1 FROM content c WHERE c.payload_blob = ? \
     UNION ALL SELECT 1 FROM link l WHERE l.blob = ? UNION ALL SELECT 1 FROM inbound_body i WHERE i.raw_blob = ? \
     UNION ALL SELECT 1 FROM pec_receipt p WHERE p.raw_blob = ? LIMIT 1",
);
/// The columns that hold names of blobs.
const REFERRERS: usize = 5;
const CONDEMN: Sql =
    Sql::same("UPDATE stored_blob SET condemned = 1 WHERE digest = ? AND generation = ? AND reserved_at < ?");
const FORGET: Sql =
    Sql::same("DELETE FROM stored_blob WHERE digest = ? AND generation = ? AND condemned = 1");
#[cfg(test)]
pub(crate) const STATEMENTS: &[Sql] = &[RESERVE, GENERATION, RENAME, PAGE, IS_REFERENCED, CONDEMN, FORGET];

/// Where a walk along the blobs stands: behind this one. In memory; a walk that is lost begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlobCursor {
    reserved_at: Time,
    digest: [u8; 32],
}

impl BlobCursor {
    /// Before the oldest.
    fn start() -> Self {
        Self { reserved_at: Time::from_millis(i64::MIN), digest: [0; 32] }
    }
}

/// A write of names.
pub(crate) enum BlobJob {
    /// One is to be kept: digest, size, now.
    Reserve([u8; 32], u64, Time),
    /// These are to be deleted, where nothing refers to them and they were reserved before that.
    Condemn(Vec<BlobName>, Time),
    /// These are gone.
    Forget(Vec<BlobName>),
}

/// Does one inside the transaction under way; the names it is about.
pub(crate) async fn write(session: &mut dyn Session, job: &BlobJob) -> Result<Vec<BlobName>, StoreError> {
    match job {
        BlobJob::Reserve(digest, size, now) => Ok(vec![reserve(session, *digest, *size, *now).await?]),
        BlobJob::Condemn(names, before) => condemn(session, names, *before).await,
        BlobJob::Forget(names) => {
            for name in names {
                session.execute(FORGET, values![&name.digest, name.generation]).await?;
            }
            Ok(Vec::new())
        }
    }
}

async fn reserve(
    session: &mut dyn Session,
    digest: [u8; 32],
    size: u64,
    now: Time,
) -> Result<BlobName, StoreError> {
    let new = BlobName { digest, generation: now.as_millis() };
    let values = values![&digest, new.generation, new.to_string(), size as i64, now];
    session.execute(RESERVE, values).await?;
    let rows = session.rows(GENERATION, values![&digest]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Unexpected("a reserved blob vanished".to_owned()))?;
    let name = read_name(row)?;
    let text = name.to_string();
    if row.text(2)? != text {
        session.execute(RENAME, values![text, &digest]).await?;
    }
    Ok(name)
}

async fn condemn(
    session: &mut dyn Session,
    names: &[BlobName],
    before: Time,
) -> Result<Vec<BlobName>, StoreError> {
    let mut condemned = Vec::with_capacity(names.len());
    for name in names {
        let text = name.to_string();
        let place = vec![Value::from(text.as_str()); REFERRERS];
        if session.rows(IS_REFERENCED, place).await?.is_empty()
            && session.execute(CONDEMN, values![&name.digest, name.generation, before]).await? == 1
        {
            condemned.push(name.clone());
        }
    }
    Ok(condemned)
}

fn read_name(row: &Row) -> Result<BlobName, StoreError> {
    let digest = row.opt_bytes(0)?.and_then(|bytes| bytes.try_into().ok());
    let digest = digest.ok_or_else(|| StoreError::Unexpected("a digest that is not 32 bytes".to_owned()))?;
    Ok(BlobName { digest, generation: row.int(1)? })
}

/// Looks on from where the last call stopped, and behind the newest from the oldest again, until enough is found, enough was
/// looked at, or all of them were.
async fn find_unreferenced(
    store: &impl Portable,
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

async fn read_page(
    session: &mut dyn Session,
    after: BlobCursor,
    before: Time,
    limit: u32,
) -> Result<Vec<(BlobCursor, Option<i64>)>, StoreError> {
    let since = after.reserved_at;
    let rows = session.rows(PAGE, values![since, before, since, &after.digest, limit]).await?;
    let read = |row: &Row| {
        let cursor = BlobCursor { reserved_at: row.time(1)?, digest: row.id32(0)? };
        Ok((cursor, row.opt_int(2)?))
    };
    rows.iter().map(read).collect()
}

#[async_trait]
impl<T: Portable> Blobs for T {
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
        port::Store,
        record::{BlobRef, Body},
        sqlite::SqliteStore,
    };

    /// However many are in use: each call looks at so many, and goes on where the last one stopped.
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
            let body = Body::Blob(BlobRef { name, size: 9 });
            stage::accept(&store, Sample::new(n.into()).content(|content| content.raw = body)).await;
        }
        let find = |limit| find_unreferenced(&*sqlite, at(100), limit, BlobWalkBounds { page: 2, most: 4 });
        for round in 0..2 {
            let mut found = Vec::new();
            for _ in 0..3 {
                found.push(find(9).await.unwrap());
            }
            assert_eq!(found, [vec![], unused[..1].to_vec(), unused[1..].to_vec()], "round {round}");
            // The end is known by looking behind it.
            assert!(find(9).await.unwrap().is_empty());
            assert!(sqlite.walks().take_blobs().is_some());
        }
        assert_eq!(find_unreferenced(&*sqlite, at(100), 1, WALK_BOUNDS).await.unwrap(), unused[..1]);
    }
}
