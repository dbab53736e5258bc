//! Leasing due work.
//!
//! What another writer is leasing at the moment is skipped, not waited for. The bodies are read after the
//! lease, because a locking read of both tables would lock both.

use std::collections::HashMap;

use async_trait::async_trait;
use postway_domain::{
    Lane, LaneId, LaneRange, MessagePriority, MessageUid, RecipientKind, RecipientStatus, Time,
    fairness::DueLane,
    message::{TransitionInput, transition},
};
use sqlx::{Row, mysql::MySqlRow};

use super::{
    bytes16, coded, engine::WriteConnection, failed, insert_events, on_doubt, state, text, time, unsigned,
};
use crate::{
    error::StoreError,
    journal::AppendedEvent,
    queue::{
        claim::{DueLaneWords, DueWork, OpenRecipient},
        packing::unpack,
        transaction::WriteTransaction,
    },
    record::{AccountKey, ClaimRequest, ClaimedMessage, ClaimedRecipient, NewEvent},
    sql::{
        decode::{dsn_wishes, kept_address, parsed, trace_context},
        multi_row::MultiRow,
        waiting_lanes::waiting_lanes,
    },
};

/// The first message of a lane that can go decides, so later ones are not looked at. The order names the lane
/// too: MySQL takes only a constant for one, and would sort all that is due.
pub(super) static DUE_LANES: MultiRow = MultiRow::new(
    "SELECT id, priority, batch, due_at, destination FROM (\
     SELECT l.id, l.priority, l.batch, l.destination, (SELECT m.due_at FROM message m FORCE INDEX (message_due) \
     WHERE m.due_lane = l.id AND NOT (m.wait <=> 3) AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status = 8) \
     ORDER BY m.due_lane, m.due_at LIMIT 1) AS due_at \
     FROM lane l WHERE l.tenant = ? AND l.account = ? AND l.id IN (",
    1,
    ")) AS lanes WHERE due_at <= ?",
);

pub(super) const DUE_MESSAGES: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, \
     m.retries, m.doubts, m.lost_leases, m.on_doubt, m.created_at, m.expires_at, m.event_seq \
     FROM message m FORCE INDEX (message_due) \
     WHERE m.due_lane = ? AND m.due_at <= ? AND NOT (m.wait <=> 3) AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status = 8) \
     ORDER BY m.due_at, m.uid LIMIT ? FOR UPDATE SKIP LOCKED";

pub(super) const HOLD_LANE: &str = "SELECT id FROM lane WHERE id = ? FOR UPDATE SKIP LOCKED";

pub(super) const SENDING_IN_LANE: &str = "SELECT 1 FROM message FORCE INDEX (message_status) \
     WHERE status = 4 AND tenant = ? AND lane = ? LIMIT 1";

pub(super) static LEASE: MultiRow = MultiRow::new(
    "UPDATE message FORCE INDEX (PRIMARY) SET status = 4, wait = NULL, due_at = NULL, wire_committed = 0, \
     lease_node = ?, lease_token = ?, lease_until = ?, attempt = attempt + 1, version = version + 1, \
     event_seq = event_seq + 1, updated_at = ? WHERE uid IN (",
    1,
    ")",
);

pub(super) static CONTENTS: MultiRow = MultiRow::new(
    "SELECT uid, request_id, sender, eight_bit, smtputf8, size, `sensitive`, \
     CASE WHEN size <= ? AND raw_blob IS NULL THEN raw END, dsn, packing, trace \
     FROM content FORCE INDEX (PRIMARY) WHERE uid IN (",
    1,
    ")",
);

pub(super) static OPEN_RECIPIENTS: MultiRow = MultiRow::new(
    "SELECT uid, position, kind, address, status FROM recipient FORCE INDEX (PRIMARY) \
     WHERE status IN (0, 1, 3) AND uid IN (",
    1,
    ") ORDER BY uid, position",
);

#[async_trait]
impl DueWork for WriteConnection {
    async fn due_lanes(&mut self, key: &AccountKey, now: Time) -> Result<Vec<DueLaneWords>, StoreError> {
        due_lanes(self, key, now).await
    }

    async fn find_in(
        &mut self,
        request: &ClaimRequest,
        id: LaneId,
        lane: &Lane,
        limit: u32,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        find_in(self, request, id, lane, limit).await
    }

    async fn is_free(&mut self, id: LaneId, lane: &Lane) -> Result<bool, StoreError> {
        is_free(self, id, lane).await
    }

    async fn parts(
        &mut self,
        request: &ClaimRequest,
        claimed: &mut [ClaimedMessage],
    ) -> Result<Vec<OpenRecipient>, StoreError> {
        lease(self, request, claimed).await?;
        add_contents(self, claimed, request.inline_bytes_max).await?;
        known_recipients(self, claimed).await
    }
}

/// What is due for this node: other nodes may come first.
fn due_by(txn: &WriteConnection, key: &AccountKey, now: Time) -> i64 {
    now.as_millis().saturating_sub(txn.seat.patience(key).as_millis() as i64)
}

async fn due_lanes(
    txn: &mut WriteConnection,
    key: &AccountKey,
    now: Time,
) -> Result<Vec<DueLaneWords>, StoreError> {
    let due_by = due_by(txn, key, now);
    let range = LaneRange::of_account(&key.tenant, &key.account);
    let waiting = waiting_lanes(&mut *txn.session()?, range).await?;
    let mut due = Vec::new();
    for (sql, run) in DUE_LANES.runs(&waiting) {
        let mut query =
            sqlx::query(sql).bind(now.as_millis()).bind(key.tenant.as_str()).bind(key.account.as_str());
        for lane in run {
            query = query.bind(lane.as_bytes().as_slice());
        }
        for row in query.bind(due_by).fetch_all(txn.conn()?).await.map_err(failed)? {
            let due_lane = DueLane {
                lane: LaneId::from_bytes(bytes16(&row, 0)?),
                priority: coded(&row, 1, MessagePriority::from_code)?,
                oldest_due_at: Time::from_millis(row.try_get(3).map_err(failed)?),
            };
            let batch: Option<&str> = row.try_get(2).map_err(failed)?;
            let destination: Option<&str> = row.try_get(4).map_err(failed)?;
            due.push(DueLaneWords {
                due: due_lane,
                batch: batch.map(parsed).transpose()?,
                destination: destination.map(parsed).transpose()?,
            });
        }
    }
    Ok(due)
}

/// Two statements: the second must see what the previous holder of the lane has committed.
async fn is_free(txn: &mut WriteConnection, lane_id: LaneId, lane: &Lane) -> Result<bool, StoreError> {
    let held = sqlx::query(HOLD_LANE)
        .bind(lane_id.as_bytes().as_slice())
        .fetch_optional(txn.conn()?)
        .await
        .map_err(failed)?;
    if held.is_none() {
        return Ok(false);
    }
    let sending = sqlx::query(SENDING_IN_LANE)
        .bind(lane.tenant.as_str())
        .bind(lane_id.as_bytes().as_slice())
        .fetch_optional(txn.conn()?)
        .await
        .map_err(failed)?;
    Ok(sending.is_none())
}

async fn find_in(
    txn: &mut WriteConnection,
    request: &ClaimRequest,
    lane_id: LaneId,
    lane: &Lane,
    limit: u32,
) -> Result<Vec<ClaimedMessage>, StoreError> {
    let now_ms = request.now.as_millis();
    let key = AccountKey { tenant: lane.tenant.clone(), account: lane.account.clone() };
    let rows = sqlx::query(DUE_MESSAGES)
        .bind(lane_id.as_bytes().as_slice())
        .bind(due_by(txn, &key, request.now))
        .bind(now_ms)
        .bind(i64::from(limit))
        .fetch_all(txn.conn()?)
        .await
        .map_err(failed)?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let from = state(row, 1)?;
        let Ok((to, effects)) = transition(from, TransitionInput::Claim) else { continue };
        let one = read_claimed(row, lane, request)?;
        let event_seq: i64 = row.try_get(12).map_err(failed)?;
        if let Some(kind) = effects.event {
            let data = Some(format!("{{\"attempt\":{}}}", one.attempt));
            let (uid, seq, at) = (one.uid, event_seq + 1, request.now);
            txn.after.journal.note(&lane.tenant, lane_id, AppendedEvent { uid, seq, at, kind, to });
            txn.claim_events.push((uid, seq, at, NewEvent { kind, data }));
        }
        txn.count(&lane.tenant, Some(from.status()), to.status());
        claimed.push(one);
    }
    Ok(claimed)
}

/// Writes the leases of all that was found, and their events: one set of statements, however many accounts it
/// is for.
async fn lease(
    txn: &mut WriteConnection,
    request: &ClaimRequest,
    claimed: &[ClaimedMessage],
) -> Result<(), StoreError> {
    for (sql, run) in LEASE.runs(claimed) {
        let mut query = sqlx::query(sql)
            .bind(request.lease.incarnation.as_bytes().as_slice())
            .bind(request.lease.token.as_i64())
            .bind(request.lease.until.as_millis())
            .bind(request.now.as_millis());
        for one in run {
            query = query.bind(one.uid.as_bytes().as_slice());
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    let events = std::mem::take(&mut txn.claim_events);
    insert_events(txn, &events).await
}

/// A message as leased, still without its content.
fn read_claimed(row: &MySqlRow, lane: &Lane, request: &ClaimRequest) -> Result<ClaimedMessage, StoreError> {
    Ok(ClaimedMessage {
        uid: MessageUid::from_bytes(bytes16(row, 0)?),
        lane: lane.clone(),
        token: request.lease.token,
        version: row.try_get::<i64, _>(4).map_err(failed)? + 1,
        attempt: row.try_get::<i64, _>(5).map_err(failed)? + 1,
        retries: row.try_get(6).map_err(failed)?,
        doubts: row.try_get(7).map_err(failed)?,
        lost_leases: row.try_get(8).map_err(failed)?,
        on_doubt: on_doubt(row, 9)?,
        created_at: time(row, 10)?.unwrap_or(request.now),
        claimed_at: request.now,
        expires_at: time(row, 11)?,
        request_id: None,
        sender: String::new(),
        recipients: Vec::new(),
        resend: false,
        sent_before: 0,
        doubtful_before: 0,
        eight_bit: false,
        smtputf8: false,
        size: 0,
        raw: None,
        via: None,
        permit: None,
        over_limit: false,
        suppressed: Vec::new(),
        sensitive: false,
        recipient_deleted: false,
        dsn: None,
        trace: None,
    })
}

async fn add_contents(
    txn: &mut WriteConnection,
    claimed: &mut [ClaimedMessage],
    inline_max: u32,
) -> Result<(), StoreError> {
    let mut places: HashMap<MessageUid, usize> =
        claimed.iter().enumerate().map(|(place, one)| (one.uid, place)).collect();
    let uids: Vec<MessageUid> = claimed.iter().map(|one| one.uid).collect();
    for (sql, run) in CONTENTS.runs(&uids) {
        let mut query = sqlx::query(sql).bind(i64::from(inline_max));
        for uid in run {
            query = query.bind(uid.as_bytes().as_slice());
        }
        for row in query.fetch_all(txn.conn()?).await.map_err(failed)? {
            let Some(place) = places.remove(&MessageUid::from_bytes(bytes16(&row, 0)?)) else { continue };
            let one = &mut claimed[place];
            one.request_id = text(&row, 1)?;
            one.sender = row.try_get(2).map_err(failed)?;
            one.eight_bit = row.try_get(3).map_err(failed)?;
            one.smtputf8 = row.try_get(4).map_err(failed)?;
            one.size = unsigned(&row, 5)?;
            one.sensitive = row.try_get::<i64, _>(6).map_err(failed)? != 0;
            let column: Option<Vec<u8>> = row.try_get(7).map_err(failed)?;
            let packing = row.try_get(9).map_err(failed)?;
            one.raw = column.map(|column| unpack(column, packing, 0, one.size.into())).transpose()?;
            one.dsn = dsn_wishes(row.try_get(8).map_err(failed)?);
            one.trace = trace_context(row.try_get(10).map_err(failed)?);
        }
    }
    if places.is_empty() {
        return Ok(());
    }
    Err(StoreError::Unexpected(format!("{} messages without their content", places.len())))
}

async fn known_recipients(
    txn: &mut WriteConnection,
    claimed: &[ClaimedMessage],
) -> Result<Vec<OpenRecipient>, StoreError> {
    let mut recipients = Vec::with_capacity(claimed.len());
    for (sql, run) in OPEN_RECIPIENTS.runs(claimed) {
        let mut query = sqlx::query(sql);
        for one in run {
            query = query.bind(one.uid.as_bytes().as_slice());
        }
        for row in query.fetch_all(txn.conn()?).await.map_err(failed)? {
            recipients.push(read_recipient(&row)?);
        }
    }
    Ok(recipients)
}

fn read_recipient(row: &MySqlRow) -> Result<OpenRecipient, StoreError> {
    Ok(OpenRecipient {
        uid: MessageUid::from_bytes(bytes16(row, 0)?),
        status: coded(row, 4, RecipientStatus::from_code)?,
        recipient: ClaimedRecipient {
            position: unsigned(row, 1)?,
            kind: coded(row, 2, RecipientKind::from_code)?,
            address: kept_address(row.try_get(3).map_err(failed)?)?,
        },
    })
}
