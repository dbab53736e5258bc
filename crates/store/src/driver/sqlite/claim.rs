//! Leasing due work.

use async_trait::async_trait;
use bytes::Bytes;
use postway_domain::{
    Lane, LaneId, LaneRange, MessagePriority, MessageUid, RecipientKind, RecipientStatus, Time,
    fairness::DueLane,
    message::{TransitionInput, transition},
};

use super::{engine::WriteConnection, insert_events};
use crate::{
    error::StoreError,
    journal::AppendedEvent,
    queue::{
        claim::{DueLaneWords, DueWork, OpenRecipient},
        packing::unpack,
    },
    record::{AccountKey, ClaimRequest, ClaimedMessage, ClaimedRecipient, NewEvent},
    sql::{
        Row,
        decode::{coded, dsn_wishes, kept_address, on_doubt, state, trace_context},
    },
};

/// Goes along the lanes of the account in which mail waits, as [`crate::sql::waiting_lanes`] does.
pub(super) const DUE_LANES: &str = "WITH RECURSIVE waiting (lane) AS (SELECT (SELECT m.lane FROM message m \
     WHERE m.due_at IS NOT NULL AND m.lane >= ?1 ORDER BY m.lane, m.due_at, m.uid LIMIT 1) UNION ALL \
     SELECT (SELECT m.lane FROM message m WHERE m.due_at IS NOT NULL AND m.lane > w.lane \
     ORDER BY m.lane, m.due_at, m.uid LIMIT 1) FROM waiting w WHERE w.lane < ?2) \
     SELECT id, priority, batch, due_at, destination FROM (SELECT l.id, l.priority, l.batch, l.destination, (SELECT m.due_at FROM message m \
     WHERE m.lane = w.lane AND m.due_at <= ?5 AND m.wait IS NOT 3 \
     AND (m.expires_at IS NULL OR m.expires_at > ?5 OR m.status = 8) ORDER BY m.due_at LIMIT 1) AS due_at \
     FROM waiting w CROSS JOIN lane l ON l.id = w.lane WHERE w.lane <= ?2 AND l.tenant = ?3 AND l.account = ?4) \
     WHERE due_at IS NOT NULL";

/// A bare parameter as its limit would have it prepared anew each time: SQLite plans by that number.
pub(super) const DUE_MESSAGES: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, \
     m.retries, m.doubts, m.lost_leases, m.on_doubt, m.created_at, m.expires_at, m.event_seq, \
     c.request_id, c.sender, c.eight_bit, c.smtputf8, c.size, c.sensitive, \
     CASE WHEN c.size <= ? AND c.raw_blob IS NULL THEN c.raw END, c.dsn, c.packing, c.trace \
     FROM message m JOIN content c ON c.uid = m.uid \
     WHERE m.lane = ? AND m.due_at <= ? AND m.wait IS NOT 3 AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status = 8) \
     ORDER BY m.due_at, m.uid LIMIT 0 + ?";

pub(super) const SENDING_IN_LANE: &str =
    "SELECT 1 FROM message WHERE status = 4 AND tenant = ? AND lane = ? LIMIT 1";

pub(super) const LEASE: &str = "UPDATE OR FAIL message SET status = 4, wait = NULL, due_at = NULL, wire_committed = 0, \
     lease_node = ?, lease_token = ?, lease_until = ?, attempt = attempt + 1, version = version + 1, \
     event_seq = event_seq + 1, updated_at = ? WHERE uid = ?";

pub(super) const OPEN_RECIPIENTS: &str = "SELECT position, kind, address, status FROM recipient \
     WHERE uid = ? AND status IN (0, 1, 3) ORDER BY position";

#[async_trait]
impl DueWork for WriteConnection {
    async fn due_lanes(&mut self, key: &AccountKey, now: Time) -> Result<Vec<DueLaneWords>, StoreError> {
        due_lanes(self, key, now)
    }

    async fn find_in(
        &mut self,
        request: &ClaimRequest,
        id: LaneId,
        lane: &Lane,
        limit: u32,
    ) -> Result<Vec<ClaimedMessage>, StoreError> {
        find_in(self, request, id, lane, limit)
    }

    async fn is_free(&mut self, id: LaneId, lane: &Lane) -> Result<bool, StoreError> {
        is_free(self, id, lane)
    }

    async fn parts(
        &mut self,
        request: &ClaimRequest,
        claimed: &mut [ClaimedMessage],
    ) -> Result<Vec<OpenRecipient>, StoreError> {
        lease(self, request, claimed)?;
        known_recipients(self, claimed)
    }
}

fn due_lanes(
    txn: &mut WriteConnection,
    key: &AccountKey,
    now: Time,
) -> Result<Vec<DueLaneWords>, StoreError> {
    let range = LaneRange::of_account(&key.tenant, &key.account);
    let rows = txn
        .conn
        .query(DUE_LANES)?
        .bind(range.first.as_bytes().as_slice())
        .bind(range.last.as_bytes().as_slice())
        .bind(key.tenant.as_str())
        .bind(key.account.as_str())
        .bind(now.as_millis())
        .rows()?;
    rows.iter()
        .map(|row| {
            let due = DueLane {
                lane: LaneId::from_bytes(row.id16(0)?),
                priority: coded(row.int(1)?, MessagePriority::from_code)?,
                oldest_due_at: row.time(3)?,
            };
            Ok(DueLaneWords { due, batch: row.opt_parsed(2)?, destination: row.opt_parsed(4)? })
        })
        .collect()
}

fn is_free(txn: &mut WriteConnection, lane_id: LaneId, lane: &Lane) -> Result<bool, StoreError> {
    let sending = txn
        .conn
        .query(SENDING_IN_LANE)?
        .bind(lane.tenant.as_str())
        .bind(lane_id.as_bytes().as_slice())
        .rows()?;
    Ok(sending.is_empty())
}

fn find_in(
    txn: &mut WriteConnection,
    request: &ClaimRequest,
    lane_id: LaneId,
    lane: &Lane,
    limit: u32,
) -> Result<Vec<ClaimedMessage>, StoreError> {
    let now_ms = request.now.as_millis();
    let rows = txn
        .conn
        .query(DUE_MESSAGES)?
        .bind(i64::from(request.inline_bytes_max))
        .bind(lane_id.as_bytes().as_slice())
        .bind(now_ms)
        .bind(now_ms)
        .bind(i64::from(limit))
        .rows()?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let from = state(row.int(1)?, row.opt_int(2)?, row.int(3)? != 0)?;
        let Ok((to, effects)) = transition(from, TransitionInput::Claim) else { continue };
        let one = read_claimed(row, lane, request)?;
        let event_seq = row.int(12)?;
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
fn lease(
    txn: &mut WriteConnection,
    request: &ClaimRequest,
    claimed: &[ClaimedMessage],
) -> Result<(), StoreError> {
    let mut query = txn.conn.query(LEASE)?;
    for one in claimed {
        query = query
            .bind(request.lease.incarnation.as_bytes().as_slice())
            .bind(request.lease.token.as_i64())
            .bind(request.lease.until.as_millis())
            .bind(request.now.as_millis())
            .bind(one.uid.as_bytes().as_slice());
        query.execute_row()?;
    }
    drop(query);
    let events = std::mem::take(&mut txn.claim_events);
    insert_events(&txn.conn, &events)
}

fn read_claimed(row: &Row, lane: &Lane, request: &ClaimRequest) -> Result<ClaimedMessage, StoreError> {
    Ok(ClaimedMessage {
        uid: MessageUid::from_bytes(row.id16(0)?),
        lane: lane.clone(),
        token: request.lease.token,
        version: row.int(4)? + 1,
        attempt: row.int(5)? + 1,
        retries: row.int(6)?,
        doubts: row.int(7)?,
        lost_leases: row.int(8)?,
        on_doubt: on_doubt(row.int(9)?),
        created_at: row.opt_time(10)?.unwrap_or(request.now),
        claimed_at: request.now,
        expires_at: row.opt_time(11)?,
        request_id: row.opt_string(13)?,
        sender: row.text(14)?.to_owned(),
        recipients: Vec::new(),
        resend: false,
        sent_before: 0,
        doubtful_before: 0,
        eight_bit: row.int(15)? != 0,
        smtputf8: row.int(16)? != 0,
        size: row.u32(17)?,
        raw: unpacked(row)?,
        via: None,
        permit: None,
        over_limit: false,
        suppressed: Vec::new(),
        sensitive: row.int(18)? != 0,
        recipient_deleted: false,
        dsn: dsn_wishes(row.opt_text(20)?),
        trace: trace_context(row.opt_bytes(22)?),
    })
}

fn unpacked(row: &Row) -> Result<Option<Bytes>, StoreError> {
    let column = row.opt_bytes(19)?.map(<[u8]>::to_vec);
    column.map(|column| unpack(column, row.int(21)?, 0, row.int(17)?)).transpose()
}

fn known_recipients(
    txn: &mut WriteConnection,
    claimed: &[ClaimedMessage],
) -> Result<Vec<OpenRecipient>, StoreError> {
    let mut recipients = Vec::with_capacity(claimed.len());
    let mut query = txn.conn.query(OPEN_RECIPIENTS)?;
    for one in claimed {
        query = query.bind(one.uid.as_bytes().as_slice());
        for row in query.find_rows()? {
            recipients.push(read_recipient(one.uid, &row)?);
        }
    }
    Ok(recipients)
}

fn read_recipient(uid: MessageUid, row: &Row) -> Result<OpenRecipient, StoreError> {
    Ok(OpenRecipient {
        uid,
        status: coded(row.int(3)?, RecipientStatus::from_code)?,
        recipient: ClaimedRecipient {
            position: row.u32(0)?,
            kind: coded(row.int(1)?, RecipientKind::from_code)?,
            address: kept_address(row.text(2)?)?,
        },
    })
}
