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

use super::{
    delivery_state,
    rules::{FanOutBacklog, SLICE_MAX, share_of_slice},
};
use crate::{
    blob::BlobCursor,
    error::StoreError,
    queue::lane_upkeep::LaneWalks,
    record::{ExpungeRequest, ExpungeSlice, OldestMail},
    sql::{
        SqlSession, SqlText, Value,
        decode::coded,
        multi_row::{MultiRow, MultiRowSql},
        values,
    },
    text_block::TextBlockWalk,
};

/// The number of messages read in one statement.
const PAGE_MESSAGES: u32 = SLICE_MAX;
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

macro_rules! oldest {
    ($messages:literal, $inbound:literal, $reported:literal) => {
        MultiRow::new(
            concat!(
                "SELECT t.id, (",
                $messages,
                "), (",
                $inbound,
                "), (",
                $reported,
                ") FROM tenant t WHERE t.id IN ("
            ),
            1,
            ")",
        )
        .wide()
    };
}
/// Row values again, which make PostgreSQL follow the ids of one tenant; a tenant without mail finds the next
/// tenant's, which the outer condition drops.
static OLDEST: MultiRowSql = MultiRowSql {
    sqlite: oldest!(
        "SELECT m.uid FROM message m WHERE m.tenant = t.id ORDER BY m.uid LIMIT 1",
        "SELECT i.uid FROM inbound i WHERE i.tenant = t.id ORDER BY i.uid LIMIT 1",
        "SELECT e.uid FROM provider_event e WHERE e.tenant = t.id ORDER BY e.uid LIMIT 1"
    ),
    postgres: oldest!(
        "SELECT h.uid FROM (SELECT m.tenant, m.uid FROM message m WHERE (m.tenant, m.uid) >= (t.id, ''::bytea) \
         ORDER BY m.tenant, m.uid LIMIT 1) AS h WHERE h.tenant = t.id",
        "SELECT h.uid FROM (SELECT i.tenant, i.uid FROM inbound i WHERE (i.tenant, i.uid) >= (t.id, ''::bytea) \
         ORDER BY i.tenant, i.uid LIMIT 1) AS h WHERE h.tenant = t.id",
        "SELECT h.uid FROM (SELECT e.tenant, e.uid FROM provider_event e WHERE (e.tenant, e.uid) >= (t.id, ''::bytea) \
         ORDER BY e.tenant, e.uid LIMIT 1) AS h WHERE h.tenant = t.id"
    ),
    mysql: oldest!(
        "SELECT m.uid FROM message m FORCE INDEX (message_tenant) WHERE m.tenant = t.id \
         ORDER BY m.tenant, m.uid LIMIT 1",
        "SELECT i.uid FROM inbound i FORCE INDEX (inbound_tenant) WHERE i.tenant = t.id \
         ORDER BY i.tenant, i.uid LIMIT 1",
        "SELECT e.uid FROM provider_event e FORCE INDEX (provider_event_tenant) WHERE e.tenant = t.id \
         ORDER BY e.tenant, e.uid LIMIT 1"
    ),
};

/// Every text of this module, for tests that prepare them.
#[cfg(test)]
pub(crate) fn statements() -> Vec<SqlText> {
    vec![PAGE, OLDEST.sample()]
}

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
    pub text_blocks: TextBlockWalk,
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

/// The oldest mail of each of these tenants that is there.
pub(crate) async fn oldest_mail(
    session: &mut dyn SqlSession,
    tenants: &[TenantId],
) -> Result<Vec<OldestMail>, StoreError> {
    let mut found = Vec::with_capacity(tenants.len());
    for (sql, run) in OLDEST.runs(tenants) {
        let ids = run.iter().map(|tenant| Value::from(tenant.as_str())).collect();
        for row in session.rows(sql, ids).await? {
            let came_at = |index| Ok::<_, StoreError>(row.opt_bytes(index)?.map(time_of));
            found.push(OldestMail {
                tenant: row.parsed(0)?,
                message: came_at(1)?,
                inbound: came_at(2)?,
                provider_event: came_at(3)?,
            });
        }
    }
    Ok(found)
}

/// Finds a slice of messages of these tenants that may be removed; what it does not count yet is how many
/// are.
pub(crate) async fn find_some(
    session: &mut dyn SqlSession,
    walks: &RetentionScans,
    requests: &[ExpungeRequest],
    limit: u32,
) -> Result<(Vec<SeenMessage>, ExpungeSlice), StoreError> {
    let limit = limit.min(SLICE_MAX) as usize;
    let tenants: Vec<&TenantId> = requests.iter().map(|request| &request.tenant).collect();
    let backlog = delivery_state::backlog_of_some(session, &tenants).await?;
    let (mut found, mut slice, mut looked) = (Vec::new(), ExpungeSlice::default(), 0);
    for (index, request) in requests.iter().enumerate() {
        if found.len() >= limit || looked >= LOOKED_MAX {
            slice.unseen.extend(requests[index..].iter().map(|request| request.tenant.clone()));
            break;
        }
        let share = share_of_slice(limit - found.len(), requests.len() - index);
        let has_more = find(session, walks, request, &backlog, share, &mut looked, &mut found).await?;
        if has_more {
            slice.unfinished.push(request.tenant.clone());
        }
    }
    Ok((found, slice))
}

/// Continues a tenant's scan until there is its share of messages that may be removed, or enough messages
/// were examined. Returns whether there may be more.
async fn find(
    session: &mut dyn SqlSession,
    walks: &RetentionScans,
    expunge: &ExpungeRequest,
    backlog: &FanOutBacklog,
    share: usize,
    looked: &mut u32,
    found: &mut Vec<SeenMessage>,
) -> Result<bool, StoreError> {
    let limit = found.len() + share;
    let first = MessageUid::from_bytes([0; 16]);
    let newest = newest_before(expunge.reported_before);
    let start = walks.take(&expunge.tenant).unwrap_or(first);
    for (mut after, until) in [(start, newest), (first, start.min(newest))] {
        while after < until && found.len() < limit && *looked < LOOKED_MAX {
            let page = read_page(session, &expunge.tenant, after, until).await?;
            let uids: Vec<MessageUid> = page.iter().map(|(seen, ..)| seen.uid).collect();
            let delivery = delivery_state::of_messages(session, &uids).await?;
            let is_last = page.len() < PAGE_MESSAGES as usize;
            let (mut left, in_page) = (page.len(), page);
            for (seen, status, updated_at) in in_page {
                if found.len() == limit {
                    break;
                }
                (after, *looked, left) = (seen.uid, *looked + 1, left - 1);
                let delivery = delivery.get(&seen.uid).copied().unwrap_or_default();
                if expunge.takes(status, updated_at, delivery) && !backlog.holds(seen.uid) {
                    found.push(seen);
                }
            }
            if is_last && left == 0 {
                after = until;
            }
        }
        if after < until {
            walks.leave(&expunge.tenant, after);
            return Ok(true);
        }
    }
    Ok(false)
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

/// When the message with this id was accepted: its first 48 bits are that time.
fn time_of(uid: &[u8]) -> Time {
    let ms = uid.iter().take(6).fold(0, |ms, byte| ms << 8 | i64::from(*byte));
    Time::from_millis(ms)
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
        assert_eq!(time_of(uid(1_699_999_999_999).as_bytes()), Time::from_millis(1_699_999_999_999));
    }
}
