//! Many messages with their recipients, in two statements however many they are.

use postway_domain::{MessageUid, TenantId};
use sqlx::{QueryBuilder, Row, Sqlite, SqlitePool};

use super::{
    failed,
    read::{SUMMARY, read_recipient, read_summary, recipient_columns},
};
use crate::{
    error::StoreError,
    record::{MessageBrief, MessageSummary},
    sql::decode,
};

/// The ids come as a JSON list, so that there is one text for any number of them, and first, so that each is
/// looked up.
const MESSAGES: &str = " FROM json_each(?1) j CROSS JOIN message m ON m.uid = unhex(j.value, '-') \
     JOIN content c ON c.uid = m.uid JOIN lane l ON l.id = m.lane WHERE m.tenant = ?2";
/// One more than may be had, to know those that have too many.
pub(super) const RECIPIENTS: &str = concat!(
    recipient_columns!(),
    ", r.uid AS message FROM json_each(?1) j CROSS JOIN recipient r ON r.uid = unhex(j.value, '-') \
     AND r.position <= ?2 ORDER BY r.uid, r.position"
);

/// These messages, in no order.
pub(super) async fn summaries(
    pool: &SqlitePool,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageSummary>, StoreError> {
    let mut query = QueryBuilder::<Sqlite>::new(SUMMARY);
    query.push(MESSAGES);
    let rows = query.build().bind(listed(uids)).bind(tenant.as_str()).fetch_all(pool).await;
    rows.map_err(failed)?.iter().map(read_summary).collect()
}

fn listed(uids: &[MessageUid]) -> String {
    serde_json::Value::from_iter(uids.iter().map(ToString::to_string)).to_string()
}

pub(super) async fn briefs(
    pool: &SqlitePool,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageBrief>, StoreError> {
    let list = listed(uids);
    // One snapshot, so that the parts agree with the state.
    let mut snapshot = pool.begin().await.map_err(failed)?;
    let mut query = QueryBuilder::<Sqlite>::new(SUMMARY);
    query.push(MESSAGES);
    let rows = query.build().bind(&list).bind(tenant.as_str()).fetch_all(&mut *snapshot).await;
    let summaries = rows.map_err(failed)?.iter().map(read_summary).collect::<Result<Vec<_>, _>>()?;
    let rows = sqlx::query(RECIPIENTS).bind(&list).bind(MessageBrief::RECIPIENTS_MAX as i64);
    let rows = rows.fetch_all(&mut *snapshot).await.map_err(failed)?;
    let recipients = rows.iter().map(|row| {
        let uid = MessageUid::from_bytes(decode::id16(row.try_get("message").map_err(failed)?)?);
        Ok((uid, read_recipient(row)?))
    });
    Ok(MessageBrief::gather(summaries, recipients.collect::<Result<Vec<_>, StoreError>>()?))
}
