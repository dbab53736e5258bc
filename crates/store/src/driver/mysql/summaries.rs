//! Many messages with their recipients, in two statements for each hundred or so.

use postway_domain::{MessageUid, TenantId};
use sqlx::{MySql, MySqlPool, QueryBuilder, Row};

use super::{
    failed,
    read::{SUMMARY, read_recipient, read_summary, recipient_columns},
};
use crate::{
    error::StoreError,
    record::{MessageBrief, MessageSummary},
    sql::decode,
};

/// Ids of one statement.
const AT_ONCE_MAX: usize = 128;

const MESSAGES: &str = " FROM message m FORCE INDEX (PRIMARY) JOIN content c ON c.uid = m.uid \
     JOIN lane l ON l.id = m.lane WHERE m.tenant = ";
/// One more than may be had, to know those that have too many.
const RECIPIENTS: &str = concat!(
    recipient_columns!(),
    ", r.uid AS message FROM recipient r FORCE INDEX (PRIMARY) WHERE r.position <= "
);

/// These messages, in no order.
pub(super) async fn summaries(
    pool: &MySqlPool,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageSummary>, StoreError> {
    let mut summaries = Vec::with_capacity(uids.len());
    for uids in uids.chunks(AT_ONCE_MAX) {
        let mut query = QueryBuilder::<MySql>::new(SUMMARY);
        query.push(MESSAGES).push_bind(tenant.as_str()).push(" AND m.uid IN (");
        push_list(&mut query, uids);
        for row in query.build().fetch_all(pool).await.map_err(failed)? {
            summaries.push(read_summary(&row)?);
        }
    }
    Ok(summaries)
}

pub(super) async fn briefs(
    pool: &MySqlPool,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageBrief>, StoreError> {
    // One snapshot (readers are REPEATABLE READ), so that the parts agree with the state.
    let mut snapshot = pool.begin().await.map_err(failed)?;
    let (mut summaries, mut recipients) = (Vec::with_capacity(uids.len()), Vec::with_capacity(uids.len()));
    for uids in uids.chunks(AT_ONCE_MAX) {
        let mut query = QueryBuilder::<MySql>::new(SUMMARY);
        query.push(MESSAGES).push_bind(tenant.as_str()).push(" AND m.uid IN (");
        push_list(&mut query, uids);
        for row in query.build().fetch_all(&mut *snapshot).await.map_err(failed)? {
            summaries.push(read_summary(&row)?);
        }
        let mut query = QueryBuilder::<MySql>::new(RECIPIENTS);
        query.push_bind(MessageBrief::RECIPIENTS_MAX as i64).push(" AND r.uid IN (");
        push_list(&mut query, uids);
        query.push(" ORDER BY r.uid, r.position");
        for row in query.build().fetch_all(&mut *snapshot).await.map_err(failed)? {
            let uid = decode::id16(row.try_get("message").map_err(failed)?)?;
            recipients.push((MessageUid::from_bytes(uid), read_recipient(&row)?));
        }
    }
    Ok(MessageBrief::gather(summaries, recipients))
}

/// Ends the list with its last id until its length is a power of two, so that few texts are prepared.
fn push_list(query: &mut QueryBuilder<MySql>, uids: &[MessageUid]) {
    let last = uids.last().into_iter().cycle();
    let mut list = query.separated(",");
    for uid in uids.iter().chain(last).take(uids.len().next_power_of_two()) {
        list.push_bind(uid.as_bytes().to_vec());
    }
    query.push(")");
}
