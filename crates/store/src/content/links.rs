//! Files that mail links to. They are written with the preparation of their message, and expire.

use std::collections::BTreeSet;

use postway_domain::{MessageUid, Time};

use crate::{
    error::StoreError,
    record::{BlobName, BlobRef, ChangeResult, FileLink, NewLink},
    sql::{Row, SqlSession, SqlText, Value, multi_row::MultiRow, values},
};

/// The most expired links removed in one transaction; the rest waits for the next run.
const SLICE: u32 = 5_000;

// Some databases reserve the word `blob`, but not after a dot.
const FIND: SqlText = SqlText::same(
    "SELECT tenant, uid, link.blob, size, filename, content_type, expires_at FROM link \
     WHERE uid = ? AND link.blob = ?",
);
pub(crate) const ENDED: SqlText =
    SqlText::same("SELECT uid FROM link WHERE expires_at <= ? ORDER BY expires_at LIMIT ?");
static REMOVE: MultiRow = MultiRow::new("DELETE FROM link WHERE expires_at <= ? AND uid IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![FIND, ENDED, REMOVE.sample().into()]
}

pub(crate) async fn find(
    session: &mut dyn SqlSession,
    uid: MessageUid,
    blob: &BlobName,
) -> Result<Option<FileLink>, StoreError> {
    session.rows(FIND, values![uid.as_bytes(), blob.to_string()]).await?.first().map(read).transpose()
}

/// Removes a slice of the expired links.
pub(crate) async fn forget(session: &mut dyn SqlSession, now: Time) -> Result<ChangeResult, StoreError> {
    let rows = session.rows(ENDED, values![now, SLICE]).await?;
    let uids: BTreeSet<[u8; 16]> = rows.iter().map(|row| row.id16(0)).collect::<Result<_, _>>()?;
    let uids: Vec<[u8; 16]> = uids.into_iter().collect();
    for (sql, run) in REMOVE.runs(&uids) {
        let values = std::iter::once(Value::from(now)).chain(run.iter().map(Value::from)).collect();
        session.execute(sql.into(), values).await?;
    }
    Ok(ChangeResult::Done)
}

fn read(row: &Row) -> Result<FileLink, StoreError> {
    let size = u64::try_from(row.int(3)?)
        .map_err(|_| StoreError::Unexpected("a stored file with a size below zero".into()))?;
    Ok(FileLink {
        tenant: row.parsed(0)?,
        uid: MessageUid::from_bytes(row.id16(1)?),
        file: NewLink {
            blob: BlobRef { name: row.parsed(2)?, size },
            filename: row.text(4)?.to_owned(),
            content_type: row.text(5)?.to_owned(),
            expires_at: row.time(6)?,
        },
    })
}
