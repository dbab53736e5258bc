//! The names of blobs in the database: which exist, and which are being deleted.
//!
//! A name is never used twice. A new blob takes the time as its generation; one that comes back while its
//! predecessor is being deleted takes the next generation. So a deletion, however late, removes only what
//! nothing refers to.

use postway_domain::Time;

use crate::{
    error::StoreError,
    record::BlobName,
    sql::{Row, SqlSession, SqlText, Value, values},
};

/// Reserving is one statement, so that the second of two concurrent callers sees the first.
const RESERVE: SqlText = SqlText::or_mysql(
    "INSERT INTO stored_blob (digest, generation, name, size, reserved_at, condemned) VALUES (?, ?, ?, ?, ?, 0) \
     ON CONFLICT (digest) DO UPDATE SET generation = stored_blob.generation + stored_blob.condemned, condemned = 0, \
     reserved_at = CASE WHEN excluded.reserved_at > stored_blob.reserved_at THEN excluded.reserved_at \
     ELSE stored_blob.reserved_at END",
    "INSERT INTO stored_blob (digest, generation, name, size, reserved_at, condemned) VALUES (?, ?, ?, ?, ?, 0) \
     ON DUPLICATE KEY UPDATE generation = generation + condemned, condemned = 0, \
     reserved_at = GREATEST(reserved_at, VALUES(reserved_at))",
);
const GENERATION: SqlText =
    SqlText::same("SELECT digest, generation, name FROM stored_blob WHERE digest = ?");
const RENAME: SqlText = SqlText::same("UPDATE stored_blob SET name = ? WHERE digest = ?");
/// The next blobs, the oldest first, each with its generation if nothing refers to it. Read beside the
/// writers. Nearly all are referred to, so the limit is on the blobs examined and not on those found.
const PAGE: SqlText = SqlText::same(
    "SELECT b.digest, b.reserved_at, CASE WHEN b.condemned = 1 OR NOT (\
     EXISTS (SELECT 1 FROM content c WHERE c.raw_blob = b.name) \
     OR EXISTS (SELECT 1 FROM content c WHERE c.payload_blob = b.name) \
     OR EXISTS (SELECT 1 FROM link l WHERE l.blob = b.name) \
     OR EXISTS (SELECT 1 FROM inbound_body i WHERE i.raw_blob = b.name) \
     OR EXISTS (SELECT 1 FROM pec_receipt p WHERE p.raw_blob = b.name)) THEN b.generation END FROM \
     (SELECT digest, generation, name, reserved_at, condemned FROM stored_blob WHERE reserved_at >= ? AND reserved_at < ? \
     AND (reserved_at > ? OR digest > ?) ORDER BY reserved_at, digest LIMIT ?) AS b ORDER BY b.reserved_at, b.digest",
);
const IS_REFERENCED: SqlText = SqlText::same(
    "SELECT 1 FROM content c WHERE c.raw_blob = ? UNION ALL SELECT 1 FROM content c WHERE c.payload_blob = ? \
     UNION ALL SELECT 1 FROM link l WHERE l.blob = ? UNION ALL SELECT 1 FROM inbound_body i WHERE i.raw_blob = ? \
     UNION ALL SELECT 1 FROM pec_receipt p WHERE p.raw_blob = ? LIMIT 1",
);
/// The number of columns that contain names of blobs.
const REFERRERS: usize = 5;
const CONDEMN: SqlText = SqlText::same(
    "UPDATE stored_blob SET condemned = 1 WHERE digest = ? AND generation = ? AND reserved_at < ?",
);
const FORGET: SqlText =
    SqlText::same("DELETE FROM stored_blob WHERE digest = ? AND generation = ? AND condemned = 1");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] =
    &[RESERVE, GENERATION, RENAME, PAGE, IS_REFERENCED, CONDEMN, FORGET];

/// The position of a scan over blobs: after this one. It is in memory; a lost scan starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlobCursor {
    pub reserved_at: Time,
    pub digest: [u8; 32],
}

impl BlobCursor {
    /// Before the oldest blob.
    pub fn start() -> Self {
        Self { reserved_at: Time::from_millis(i64::MIN), digest: [0; 32] }
    }
}

/// A write job for blob names.
pub(crate) enum BlobJob {
    /// Reserves a name: digest, size, current time.
    Reserve([u8; 32], u64, Time),
    /// Condemns these blobs if nothing refers to them and they were reserved before this time.
    Condemn(Vec<BlobName>, Time),
    /// Forgets these blobs, whose bytes were deleted.
    Forget(Vec<BlobName>),
}

/// Does a job inside the transaction under way. Returns the names it applies to.
pub(crate) async fn write(session: &mut dyn SqlSession, job: &BlobJob) -> Result<Vec<BlobName>, StoreError> {
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
    session: &mut dyn SqlSession,
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
    session: &mut dyn SqlSession,
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

pub(crate) async fn read_page(
    session: &mut dyn SqlSession,
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
