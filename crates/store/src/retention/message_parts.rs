//! The rows that belong to a message and are removed with it.

use crate::{
    error::StoreError,
    sql::{SqlSession, Value, multi_row::MultiRow},
};

static PARTS: [MultiRow; 11] = [
    MultiRow::new("DELETE FROM preparation WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM link WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM content WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM recipient WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM event WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM dialogue WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM attempt WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM notification WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM pec_receipt WHERE uid IN (", 1, ")").wide(),
    MultiRow::new("DELETE FROM pec_wait WHERE uid IN (", 1, ")").wide(),
    // Last: as long as a message exists, all its parts exist.
    MultiRow::new("DELETE FROM message WHERE uid IN (", 1, ")").wide(),
];

#[cfg(test)]
pub(crate) fn multi() -> Vec<&'static MultiRow> {
    PARTS.iter().chain([&SUPPRESSION_CHANGES]).collect()
}

static SUPPRESSION_CHANGES: MultiRow =
    MultiRow::new("DELETE FROM suppression_change WHERE uid IN (", 1, ")").wide();

/// Removes changes of suppression lists, with their events and notifications.
pub(crate) async fn remove_suppression_changes(
    session: &mut dyn SqlSession,
    uids: &[[u8; 16]],
) -> Result<(), StoreError> {
    remove_parts(session, uids).await?;
    for (sql, run) in SUPPRESSION_CHANGES.runs(uids) {
        session.execute(sql.into(), run.iter().map(Value::from).collect()).await?;
    }
    Ok(())
}

/// Removes messages with all rows that have their ids. Keys and tags are found in other ways, and blobs are
/// swept.
pub(crate) async fn remove_parts(session: &mut dyn SqlSession, uids: &[[u8; 16]]) -> Result<(), StoreError> {
    for table in &PARTS {
        for (sql, run) in table.runs(uids) {
            session.execute(sql.into(), run.iter().map(Value::from).collect()).await?;
        }
    }
    Ok(())
}
