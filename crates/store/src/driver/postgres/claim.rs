//! Leasing due work.

use async_trait::async_trait;
use bytes::Bytes;
use postway_domain::{
    Lane, LaneId, LaneRange, MessagePriority, MessageUid, RecipientKind, RecipientStatus, Time,
    fairness::DueLane,
    message::{TransitionInput, transition},
};
use sqlx::{Row, postgres::PgRow};

use super::{
    accept::insert_events, bytes16, coded, column, engine::WriteConnection, failed, on_doubt, state, undone,
    unsigned,
};
use crate::{
    error::StoreError,
    journal::AppendedEvent,
    queue::{
        claim::{DueLaneWords, DueWork, OpenRecipient},
        packing::unpack,
    },
    record::{AccountKey, ClaimRequest, ClaimedMessage, ClaimedRecipient, NewEvent},
    sql::decode::{dsn_wishes, kept_address, parsed, trace_context},
};

/// Goes along the lanes of the account in which mail waits, as [`crate::sql::waiting_lanes`] does.
pub(super) const DUE_LANES: &str = "WITH RECURSIVE waiting (lane) AS (SELECT (SELECT m.lane FROM message m \
     WHERE m.due_at IS NOT NULL AND m.lane >= $1 ORDER BY m.lane, m.due_at, m.uid LIMIT 1) UNION ALL \
     SELECT (SELECT m.lane FROM message m WHERE m.due_at IS NOT NULL AND m.lane > w.lane \
     ORDER BY m.lane, m.due_at, m.uid LIMIT 1) FROM waiting w WHERE w.lane < $2) \
     SELECT words.id, words.priority, words.batch, head.due_at, words.destination FROM waiting w CROSS JOIN LATERAL (\
     SELECT l.id, l.priority, l.batch, l.destination FROM lane l WHERE l.id = w.lane AND l.tenant = $3 AND l.account = $4 \
     OFFSET 0) AS words \
     CROSS JOIN LATERAL (\
     SELECT m.due_at FROM message m WHERE m.lane = w.lane AND m.due_at <= $5 AND m.wait IS DISTINCT FROM 3 \
     AND (m.expires_at IS NULL OR m.expires_at > $5 OR m.status = 8) ORDER BY m.due_at LIMIT 1) AS head \
     WHERE w.lane <= $2";

/// What another writer has locked is its own.
pub(super) const DUE_MESSAGES: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, \
     m.retries, m.doubts, m.lost_leases, m.on_doubt, m.created_at, m.expires_at, m.event_seq, \
     c.request_id, c.sender, c.eight_bit, c.smtputf8, c.size, c.sensitive, \
     CASE WHEN c.size <= $1 AND c.raw_blob IS NULL THEN c.raw END, c.dsn, c.packing, c.trace \
     FROM message m JOIN content c ON c.uid = m.uid \
     WHERE m.lane = $2 AND m.due_at <= $3 AND m.wait IS DISTINCT FROM 3 \
     AND (m.expires_at IS NULL OR m.expires_at > $3 OR m.status = 8) \
     ORDER BY m.due_at, m.uid LIMIT $4 FOR UPDATE OF m SKIP LOCKED";

pub(super) const HOLD_LANE: &str = "SELECT id FROM lane WHERE id = $1 FOR UPDATE SKIP LOCKED";

pub(super) const SENDING_IN_LANE: &str =
    "SELECT 1 FROM message WHERE status = 4 AND tenant = $1 AND lane = $2 LIMIT 1";

pub(super) const LEASE: &str = "UPDATE message SET status = 4, wait = NULL, due_at = NULL, wire_committed = FALSE, \
     lease_node = $1, lease_token = $2, lease_until = $3, attempt = attempt + 1, version = version + 1, \
     event_seq = event_seq + 1, updated_at = $4 WHERE uid = ANY ($5::bytea[])";

pub(super) const OPEN_RECIPIENTS: &str = "SELECT r.uid, r.position, r.kind, r.address, r.status \
     FROM UNNEST($1::bytea[]) AS v(uid) CROSS JOIN LATERAL (SELECT * FROM recipient WHERE uid = v.uid \
     AND status IN (0, 1, 3) ORDER BY position) AS r";

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
        known_recipients(self, claimed).await
    }
}

async fn due_lanes(
    txn: &mut WriteConnection,
    key: &AccountKey,
    now: Time,
) -> Result<Vec<DueLaneWords>, StoreError> {
    let range = LaneRange::of_account(&key.tenant, &key.account);
    let rows = sqlx::query(DUE_LANES)
        .bind(range.first.as_bytes().as_slice())
        .bind(range.last.as_bytes().as_slice())
        .bind(key.tenant.as_str())
        .bind(key.account.as_str())
        .bind(now.as_millis())
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    rows.iter()
        .map(|row| {
            let due = DueLane {
                lane: LaneId::from_bytes(bytes16(row, 0)?),
                priority: coded(row, 1, MessagePriority::from_code)?,
                oldest_due_at: Time::from_millis(row.try_get(3).map_err(failed)?),
            };
            let batch: Option<&str> = row.try_get(2).map_err(failed)?;
            let destination: Option<&str> = row.try_get(4).map_err(failed)?;
            Ok(DueLaneWords {
                due,
                batch: batch.map(parsed).transpose()?,
                destination: destination.map(parsed).transpose()?,
            })
        })
        .collect()
}

/// Two statements: the second must see what the previous holder of the lane has committed.
async fn is_free(txn: &mut WriteConnection, lane_id: LaneId, lane: &Lane) -> Result<bool, StoreError> {
    let held = sqlx::query(HOLD_LANE)
        .bind(lane_id.as_bytes().as_slice())
        .fetch_optional(&mut txn.conn)
        .await
        .map_err(undone)?;
    if held.is_none() {
        return Ok(false);
    }
    let sending = sqlx::query(SENDING_IN_LANE)
        .bind(lane.tenant.as_str())
        .bind(lane_id.as_bytes().as_slice())
        .fetch_optional(&mut txn.conn)
        .await
        .map_err(undone)?;
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
    let rows = sqlx::query(DUE_MESSAGES)
        .bind(i64::from(request.inline_bytes_max))
        .bind(lane_id.as_bytes().as_slice())
        .bind(now_ms)
        .bind(i64::from(limit))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
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
    sqlx::query(LEASE)
        .bind(request.lease.incarnation.as_bytes().as_slice())
        .bind(request.lease.token.as_i64())
        .bind(request.lease.until.as_millis())
        .bind(request.now.as_millis())
        .bind(column(claimed, |one| one.uid.as_bytes().as_slice()))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    let events = std::mem::take(&mut txn.claim_events);
    insert_events(txn, &events).await
}

fn read_claimed(row: &PgRow, lane: &Lane, request: &ClaimRequest) -> Result<ClaimedMessage, StoreError> {
    let time =
        |index| row.try_get::<Option<i64>, _>(index).map(|ms| ms.map(Time::from_millis)).map_err(failed);
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
        created_at: time(10)?.unwrap_or(request.now),
        claimed_at: request.now,
        expires_at: time(11)?,
        request_id: row.try_get(13).map_err(failed)?,
        sender: row.try_get(14).map_err(failed)?,
        recipients: Vec::new(),
        resend: false,
        sent_before: 0,
        doubtful_before: 0,
        eight_bit: row.try_get(15).map_err(failed)?,
        smtputf8: row.try_get(16).map_err(failed)?,
        size: unsigned(row, 17)?,
        raw: unpacked(row)?,
        via: None,
        permit: None,
        over_limit: false,
        suppressed: Vec::new(),
        sensitive: row.try_get::<i64, _>(18).map_err(failed)? != 0,
        recipient_deleted: false,
        dsn: dsn_wishes(row.try_get(20).map_err(failed)?),
        trace: trace_context(row.try_get(22).map_err(failed)?),
    })
}

fn unpacked(row: &PgRow) -> Result<Option<Bytes>, StoreError> {
    let column: Option<Vec<u8>> = row.try_get(19).map_err(failed)?;
    let (packing, size) = (row.try_get(21).map_err(failed)?, row.try_get(17).map_err(failed)?);
    column.map(|column| unpack(column, packing, 0, size)).transpose()
}

async fn known_recipients(
    txn: &mut WriteConnection,
    claimed: &[ClaimedMessage],
) -> Result<Vec<OpenRecipient>, StoreError> {
    let rows = sqlx::query(OPEN_RECIPIENTS)
        .bind(column(claimed, |one| one.uid.as_bytes().as_slice()))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    rows.iter().map(read_recipient).collect()
}

fn read_recipient(row: &PgRow) -> Result<OpenRecipient, StoreError> {
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
