//! Finding messages that may be removed, without an index for it.
//!
//! A tenant's messages are in the order of their ids, which is that of their acceptance. So old messages are
//! below a certain id, and later ones, or those of other tenants, are never read. Among the old there may be
//! many that stay, such as those with dead notifications: each call continues where the last one stopped, and
//! starts again after the newest. The position of a scan is in memory; a lost scan starts again.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use postway_domain::{MessageStatus, MessageUid, TenantId, Time};

use super::{delivery_state, rules::SLICE_MAX};
use crate::{
    blob::BlobCursor,
    error::StoreError,
    queue::lane_upkeep::LaneWalks,
    record::ExpungeRequest,
    sql::{SqlSession, SqlText, decode::coded, values},
};

/// The number of messages read in one statement.
const PAGE_MESSAGES: u32 = 500;
/// The most messages examined in one call.
const LOOKED_MAX: u32 = 20_000;
/// PostgreSQL would follow the ids of all tenants, because none is a constant in its plan, unless row values
/// are compared.
pub(crate) const PAGE: SqlText = SqlText::of_each(
    "SELECT uid, status, updated_at, version FROM message WHERE tenant = ? AND uid > ? AND tenant = ? AND uid <= ? \
     ORDER BY uid LIMIT ?",
    "SELECT uid, status, updated_at, version FROM message WHERE (tenant, uid) > (?, ?) AND (tenant, uid) <= (?, ?) \
     ORDER BY tenant, uid LIMIT ?",
    "SELECT uid, status, updated_at, version FROM message FORCE INDEX (message_tenant) \
     WHERE tenant = ? AND uid > ? AND tenant = ? AND uid <= ? ORDER BY uid LIMIT ?",
);

/// A message that may be removed, and the version it had when it was examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenMessage {
    pub uid: MessageUid,
    pub version: i64,
}

/// The positions of unfinished scans.
#[derive(Default)]
pub(crate) struct RetentionScans {
    messages: Mutex<HashMap<TenantId, MessageUid>>,
    blobs: Mutex<Option<BlobCursor>>,
    pub lanes: LaneWalks,
}

impl RetentionScans {
    fn take(&self, tenant: &TenantId) -> Option<MessageUid> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).remove(tenant)
    }

    fn leave(&self, tenant: &TenantId, at: MessageUid) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), at);
    }

    /// The position of the scan over blobs, if one is under way.
    pub(crate) fn take_blobs(&self) -> Option<BlobCursor> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn leave_blobs(&self, at: BlobCursor) {
        *self.blobs.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }
}

/// Continues a scan until there is a slice of messages that may be removed, or enough messages were examined.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    walks: &RetentionScans,
    expunge: &ExpungeRequest,
) -> Result<Vec<SeenMessage>, StoreError> {
    let backlog = delivery_state::backlog(session, &expunge.tenant).await?;
    let limit = expunge.limit.min(SLICE_MAX) as usize;
    let (mut found, mut looked) = (Vec::new(), 0);
    let first = MessageUid::from_bytes([0; 16]);
    let newest = newest_before(expunge.reported_before);
    let start = walks.take(&expunge.tenant).unwrap_or(first);
    for (mut after, until) in [(start, newest), (first, start.min(newest))] {
        while after < until && found.len() < limit && looked < LOOKED_MAX {
            let page = read_page(session, &expunge.tenant, after, until).await?;
            let uids: Vec<MessageUid> = page.iter().map(|(seen, ..)| seen.uid).collect();
            let delivery = delivery_state::of_messages(session, &uids).await?;
            let is_last = page.len() < PAGE_MESSAGES as usize;
            for (seen, status, updated_at) in page {
                if found.len() == limit {
                    break;
                }
                (after, looked) = (seen.uid, looked + 1);
                let delivery = delivery.get(&seen.uid).copied().unwrap_or_default();
                if expunge.takes(status, updated_at, delivery) && !backlog.holds(seen.uid) {
                    found.push(seen);
                }
            }
            if is_last && found.len() < limit {
                after = until;
            }
        }
        if after < until {
            walks.leave(&expunge.tenant, after);
            break;
        }
    }
    Ok(found)
}

async fn read_page(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    after: MessageUid,
    until: MessageUid,
) -> Result<Vec<(SeenMessage, MessageStatus, Time)>, StoreError> {
    let tenant = tenant.as_str();
    let place = values![tenant, after.as_bytes(), tenant, until.as_bytes(), PAGE_MESSAGES];
    let rows = session.rows(PAGE, place).await?;
    let read = |row: &crate::sql::Row| {
        let seen = SeenMessage { uid: MessageUid::from_bytes(row.id16(0)?), version: row.int(3)? };
        Ok((seen, coded(row.int(1)?, MessageStatus::from_code)?, row.time(2)?))
    };
    rows.iter().map(read).collect()
}

/// An id above all messages accepted before this time.
pub(crate) fn newest_before(time: Time) -> MessageUid {
    let ms = u64::try_from(time.as_millis()).unwrap_or(0).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&ms[2..]);
    MessageUid::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_before_a_time_lie_before_its_bound() {
        let uid = |ms| MessageUid::new(Time::from_millis(ms), &mut rand::rng());
        let bound = newest_before(Time::from_millis(1_700_000_000_000));
        assert!(uid(1_699_999_999_999) < bound && bound < uid(1_700_000_000_000));
        assert_eq!(newest_before(Time::from_millis(-1)).as_bytes(), &[0; 16]);
    }
}
