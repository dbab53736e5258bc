//! Finding what may go, without an index of its own.
//!
//! A tenant's messages lie in the order of their ids, which is that of their acceptance. So what is old enough lies
//! before a certain id, and what was accepted later, or belongs to others, is never looked at. Among the old there may be
//! many that stay, such as those whose reports died: each call goes on where the last one stopped, and begins again
//! behind the newest. Where a walk stands is kept in memory; a walk that is lost begins again.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use postway_domain::{MessageUid, Status, TenantId, Time};

use super::{delivery_state, rules::SLICE_MAX};
use crate::{
    blob::BlobCursor,
    error::StoreError,
    queue::lane_upkeep::LaneWalks,
    record::Expunge,
    sql::{Session, Sql, decode::coded, values},
};

/// How many are looked at in one statement.
const PAGE_MESSAGES: u32 = 500;
/// How many are looked at in one call.
const LOOKED_MAX: u32 = 20_000;
/// PostgreSQL would walk along the ids of all tenants, because none is a constant to its plan: unless both columns are one.
pub(crate) const PAGE: Sql = Sql::of_each(
    "SELECT uid, status, updated_at, version FROM message WHERE tenant = ? AND uid > ? AND tenant = ? AND uid <= ? \
     ORDER BY uid LIMIT ?",
    "SELECT uid, status, updated_at, version FROM message WHERE (tenant, uid) > (?, ?) AND (tenant, uid) <= (?, ?) \
     ORDER BY tenant, uid LIMIT ?",
    "SELECT uid, status, updated_at, version FROM message FORCE INDEX (message_tenant) \
     WHERE tenant = ? AND uid > ? AND tenant = ? AND uid <= ? ORDER BY uid LIMIT ?",
);

/// A message that may go, and the version it had when that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub uid: MessageUid,
    pub version: i64,
}

/// How far the walks have come that have not come round.
#[derive(Default)]
pub(crate) struct Walks {
    messages: Mutex<HashMap<TenantId, MessageUid>>,
    blobs: Mutex<Option<BlobCursor>>,
    pub lanes: LaneWalks,
}

impl Walks {
    fn take(&self, tenant: &TenantId) -> Option<MessageUid> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).remove(tenant)
    }

    fn leave(&self, tenant: &TenantId, at: MessageUid) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), at);
    }

    /// Where the walk along the blobs stands, if it is under way.
    pub(crate) fn take_blobs(&self) -> Option<BlobCursor> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn leave_blobs(&self, at: BlobCursor) {
        *self.blobs.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }
}

/// Looks on until there is a slice of messages that may go, or enough was looked at.
pub(crate) async fn find(
    session: &mut dyn Session,
    walks: &Walks,
    expunge: &Expunge,
) -> Result<Vec<Seen>, StoreError> {
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
            let told = delivery_state::of_messages(session, &uids).await?;
            let is_last = page.len() < PAGE_MESSAGES as usize;
            for (seen, status, updated_at) in page {
                if found.len() == limit {
                    break;
                }
                (after, looked) = (seen.uid, looked + 1);
                let told = told.get(&seen.uid).copied().unwrap_or_default();
                if expunge.takes(status, updated_at, told) && !backlog.holds(seen.uid) {
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
    session: &mut dyn Session,
    tenant: &TenantId,
    after: MessageUid,
    until: MessageUid,
) -> Result<Vec<(Seen, Status, Time)>, StoreError> {
    let tenant = tenant.as_str();
    let place = values![tenant, after.as_bytes(), tenant, until.as_bytes(), PAGE_MESSAGES];
    let rows = session.rows(PAGE, place).await?;
    let read = |row: &crate::sql::Row| {
        let seen = Seen { uid: MessageUid::from_bytes(row.id16(0)?), version: row.int(3)? };
        Ok((seen, coded(row.int(1)?, Status::from_code)?, row.time(2)?))
    };
    rows.iter().map(read).collect()
}

/// The id that lies behind all that were accepted before this time.
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
