//! Mail to known recipients that were deleted after it was accepted, found when it is claimed.

use std::collections::{BTreeMap, HashSet};

use postway_domain::{MessageUid, TenantId};

use super::SuspensionGates;
use crate::{
    error::StoreError,
    record::ClaimedMessage,
    sql::{SqlSession, Value, multi_row::MultiRow, values},
};

/// Of these messages of one tenant, those whose directory entry is marked as deleted or does not exist.
pub(crate) static DEPARTED: MultiRow = MultiRow::new(
    "SELECT c.uid FROM content c LEFT JOIN known_recipient k ON k.tenant = ? AND k.id = c.recipient_id \
     WHERE c.recipient_id IS NOT NULL AND (k.id IS NULL OR k.deleted_at IS NOT NULL) AND c.uid IN (",
    1,
    ")",
);

/// Marks messages that must not be sent. Reads only for tenants that have a directory of recipients.
pub(crate) async fn mark_departed(
    session: &mut dyn SqlSession,
    gates: &SuspensionGates,
    claimed: &mut [ClaimedMessage],
) -> Result<(), StoreError> {
    let mut asked: BTreeMap<TenantId, Vec<MessageUid>> = BTreeMap::new();
    for one in claimed.iter().filter(|one| gates.knows_recipients(&one.lane.tenant)) {
        asked.entry(one.lane.tenant.clone()).or_default().push(one.uid);
    }
    let mut departed = HashSet::new();
    for (tenant, uids) in asked {
        for (sql, run) in DEPARTED.runs(&uids) {
            let uids = run.iter().map(|uid| Value::from(uid.as_bytes()));
            let values = values![tenant.as_str()].into_iter().chain(uids).collect();
            for row in session.rows(sql.into(), values).await? {
                departed.insert(MessageUid::from_bytes(row.id16(0)?));
            }
        }
    }
    claimed.iter_mut().for_each(|one| one.recipient_deleted = departed.contains(&one.uid));
    Ok(())
}
