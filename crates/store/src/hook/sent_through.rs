//! Which account sent a message, and what its provider calls it.

use std::collections::BTreeSet;

use postway_domain::MessageUid;

use crate::{
    error::StoreError,
    inbound::claim::ids,
    record::SentThrough,
    sql::{Row, SqlSession, Value, multi_row::MultiRow},
};

static BY_PROVIDER_ID: MultiRow = MultiRow::new(
    "SELECT uid, account, provider_message_id FROM attempt WHERE provider_message_id IN (",
    1,
    ")",
);
static BY_UID: MultiRow =
    MultiRow::new("SELECT uid, account, provider_message_id FROM attempt WHERE uid IN (", 1, ")");

#[cfg(test)]
pub(crate) fn statements() -> Vec<crate::sql::SqlText> {
    vec![BY_PROVIDER_ID.sample().into(), BY_UID.sample().into()]
}

/// The attempts that these ids name, or that belong to these messages.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    provider_ids: &[String],
    uids: &[MessageUid],
) -> Result<Vec<SentThrough>, StoreError> {
    let provider_ids: Vec<&str> =
        provider_ids.iter().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
    let uids: Vec<MessageUid> = uids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let mut found = Vec::new();
    for (sql, run) in BY_PROVIDER_ID.runs(&provider_ids) {
        let names = run.iter().map(|id| Value::from(*id)).collect();
        for row in session.rows(sql.into(), names).await? {
            found.push(read(&row)?);
        }
    }
    for (sql, run) in BY_UID.runs(&uids) {
        for row in session.rows(sql.into(), ids(run)).await? {
            found.push(read(&row)?);
        }
    }
    Ok(found)
}

fn read(row: &Row) -> Result<SentThrough, StoreError> {
    Ok(SentThrough {
        uid: MessageUid::from_bytes(row.id16(0)?),
        account: row.parsed(1)?,
        provider_message_id: row.opt_string(2)?,
    })
}
