//! Many messages with their recipients, in two statements however many they are.

use postway_domain::{MessageUid, TenantId};
use sqlx::{PgPool, Postgres, QueryBuilder, Row};

use super::{
    failed,
    read::{SNAPSHOT, SUMMARY, read_recipient, read_summary, recipient_columns},
};
use crate::{
    error::StoreError,
    record::{MessageBrief, MessageSummary},
    sql::decode,
};

const MESSAGES: &str = " FROM message m JOIN content c ON c.uid = m.uid JOIN lane l ON l.id = m.lane \
     WHERE m.uid = ANY ($1::bytea[]) AND m.tenant = $2";
/// One more than may be had, to know those that have too many.
pub(super) const RECIPIENTS: &str = concat!(
    recipient_columns!(),
    ", r.uid AS message FROM recipient r WHERE r.uid = ANY ($1::bytea[]) AND r.position <= $2 ORDER BY r.uid, r.position"
);

/// These messages, in no order.
pub(super) async fn summaries(
    pool: &PgPool,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageSummary>, StoreError> {
    let list: Vec<&[u8]> = uids.iter().map(|uid| uid.as_bytes().as_slice()).collect();
    let mut query = QueryBuilder::<Postgres>::new(SUMMARY);
    query.push(MESSAGES);
    let rows = query.build().bind(&list).bind(tenant.as_str()).fetch_all(pool).await;
    rows.map_err(failed)?.iter().map(read_summary).collect()
}

pub(super) async fn briefs(
    pool: &PgPool,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageBrief>, StoreError> {
    let list: Vec<&[u8]> = uids.iter().map(|uid| uid.as_bytes().as_slice()).collect();
    // One snapshot, so that the parts agree with the state.
    let mut snapshot = pool.begin_with(SNAPSHOT).await.map_err(failed)?;
    let mut query = QueryBuilder::<Postgres>::new(SUMMARY);
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
