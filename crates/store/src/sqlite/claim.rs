//! Leasing due work.

use async_trait::async_trait;
use bytes::Bytes;
use postway_domain::{
    Lane, LaneId, MessageUid, Priority, RecipientKind, RecipientStatus, Time,
    fairness::DueLane,
    id::BatchCode,
    message::{Input, transition},
};
use sqlx::{Row, sqlite::SqliteRow};

use super::{bytes16, coded, engine::Txn, failed, insert_events, on_doubt, state};
use crate::{
    claiming::{DueWork, KnownRecipient},
    decode::{dsn_wishes, kept_address, parsed},
    error::StoreError,
    journal::Happening,
    record::{AccountKey, ClaimRequest, Claimed, ClaimedRecipient, NewEvent},
    rows::Multi,
};

pub(super) const DUE_LANES: &str = "SELECT id, priority, batch, due_at FROM (\
     SELECT id, priority, batch, (SELECT due_at FROM message WHERE lane = lane.id AND due_at IS NOT NULL \
     AND wait IS NOT 3 AND (expires_at IS NULL OR expires_at > ?3 OR status = 8) ORDER BY due_at LIMIT 1) AS due_at \
     FROM lane WHERE tenant = ?1 AND account = ?2) WHERE due_at <= ?3";

pub(super) const DUE_MESSAGES: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, \
     m.retries, m.doubts, m.lost_leases, m.on_doubt, m.created_at, m.expires_at, m.event_seq, \
     c.request_id, c.sender, c.eight_bit, c.smtputf8, c.size, c.sensitive, \
     CASE WHEN c.size <= ? AND c.raw_blob IS NULL THEN c.raw END, c.dsn \
     FROM message m JOIN content c ON c.uid = m.uid \
     WHERE m.lane = ? AND m.due_at <= ? AND m.wait IS NOT 3 AND (m.expires_at IS NULL OR m.expires_at > ? OR m.status = 8) \
     ORDER BY m.due_at, m.uid LIMIT ?";

pub(super) const SENDING_IN_LANE: &str =
    "SELECT 1 FROM message WHERE status = 4 AND tenant = ? AND lane = ? LIMIT 1";

pub(super) static LEASE: Multi = Multi::new(
    "UPDATE OR FAIL message SET status = 4, wait = NULL, due_at = NULL, wire_committed = 0, lease_node = ?, lease_token = ?, \
     lease_until = ?, attempt = attempt + 1, version = version + 1, event_seq = event_seq + 1, updated_at = ? \
     WHERE uid IN (",
    1,
    ")",
);

pub(super) static OPEN_RECIPIENTS: Multi = Multi::new(
    "SELECT uid, position, kind, address, status FROM recipient WHERE status IN (0, 1, 3) AND uid IN (",
    1,
    ") ORDER BY uid, position",
);

#[async_trait]
impl DueWork for Txn {
    async fn due_lanes(
        &mut self,
        key: &AccountKey,
        now: Time,
    ) -> Result<Vec<(DueLane, Option<BatchCode>)>, StoreError> {
        due_lanes(self, key, now).await
    }

    async fn find_in(
        &mut self,
        request: &ClaimRequest,
        id: LaneId,
        lane: &Lane,
        limit: u32,
    ) -> Result<Vec<Claimed>, StoreError> {
        find_in(self, request, id, lane, limit).await
    }

    async fn is_free(&mut self, id: LaneId, lane: &Lane) -> Result<bool, StoreError> {
        is_free(self, id, lane).await
    }

    async fn parts(
        &mut self,
        request: &ClaimRequest,
        claimed: &mut [Claimed],
    ) -> Result<Vec<KnownRecipient>, StoreError> {
        lease(self, request, claimed).await?;
        known_recipients(self, claimed).await
    }
}

async fn due_lanes(
    txn: &mut Txn,
    key: &AccountKey,
    now: Time,
) -> Result<Vec<(DueLane, Option<BatchCode>)>, StoreError> {
    let rows = sqlx::query(DUE_LANES)
        .bind(key.tenant.as_str())
        .bind(key.account.as_str())
        .bind(now.as_millis())
        .fetch_all(&mut txn.conn)
        .await
        .map_err(failed)?;
    rows.iter()
        .map(|row| {
            let lane = DueLane {
                lane: LaneId::from_bytes(bytes16(row, 0)?),
                priority: coded(row, 1, Priority::from_code)?,
                oldest_due_at: Time::from_millis(row.try_get(3).map_err(failed)?),
            };
            let batch: Option<&str> = row.try_get(2).map_err(failed)?;
            Ok((lane, batch.map(parsed).transpose()?))
        })
        .collect()
}

async fn is_free(txn: &mut Txn, lane_id: LaneId, lane: &Lane) -> Result<bool, StoreError> {
    let sending = sqlx::query(SENDING_IN_LANE)
        .bind(lane.tenant.as_str())
        .bind(lane_id.as_bytes().as_slice())
        .fetch_optional(&mut txn.conn)
        .await
        .map_err(failed)?;
    Ok(sending.is_none())
}

async fn find_in(
    txn: &mut Txn,
    request: &ClaimRequest,
    lane_id: LaneId,
    lane: &Lane,
    limit: u32,
) -> Result<Vec<Claimed>, StoreError> {
    let now_ms = request.now.as_millis();
    let rows = sqlx::query(DUE_MESSAGES)
        .bind(i64::from(request.inline_bytes_max))
        .bind(lane_id.as_bytes().as_slice())
        .bind(now_ms)
        .bind(now_ms)
        .bind(i64::from(limit))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(failed)?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let from = state(row, 1)?;
        let Ok((to, effects)) = transition(from, Input::Claim) else { continue };
        let one = read_claimed(row, lane, request)?;
        let event_seq: i64 = row.try_get(12).map_err(failed)?;
        if let Some(kind) = effects.event {
            let data = Some(format!("{{\"attempt\":{}}}", one.attempt));
            let (uid, seq, at) = (one.uid, event_seq + 1, request.now);
            txn.after.journal.note(&lane.tenant, lane_id, Happening { uid, seq, at, kind, to });
            txn.claim_events.push((uid, seq, at, NewEvent { kind, data }));
        }
        txn.count(&lane.tenant, Some(from.status()), to.status());
        claimed.push(one);
    }
    Ok(claimed)
}

/// Writes the leases of all that was found, and their events: one set of statements, however many accounts it is for.
async fn lease(txn: &mut Txn, request: &ClaimRequest, claimed: &[Claimed]) -> Result<(), StoreError> {
    for (sql, run) in LEASE.runs(claimed) {
        let mut query = sqlx::query(sql)
            .bind(request.lease.incarnation.as_bytes().as_slice())
            .bind(request.lease.token.as_i64())
            .bind(request.lease.until.as_millis())
            .bind(request.now.as_millis());
        for one in run {
            query = query.bind(one.uid.as_bytes().as_slice());
        }
        query.execute(&mut txn.conn).await.map_err(failed)?;
    }
    let events = std::mem::take(&mut txn.claim_events);
    insert_events(txn, &events).await
}

fn read_claimed(row: &SqliteRow, lane: &Lane, request: &ClaimRequest) -> Result<Claimed, StoreError> {
    let time =
        |index| row.try_get::<Option<i64>, _>(index).map(|ms| ms.map(Time::from_millis)).map_err(failed);
    Ok(Claimed {
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
        size: row.try_get(17).map_err(failed)?,
        raw: row.try_get::<Option<Vec<u8>>, _>(19).map_err(failed)?.map(Bytes::from),
        via: None,
        permit: None,
        over_limit: false,
        suppressed: Vec::new(),
        sensitive: row.try_get::<i64, _>(18).map_err(failed)? != 0,
        recipient_deleted: false,
        dsn: dsn_wishes(row.try_get(20).map_err(failed)?),
    })
}

async fn known_recipients(txn: &mut Txn, claimed: &[Claimed]) -> Result<Vec<KnownRecipient>, StoreError> {
    let mut recipients = Vec::with_capacity(claimed.len());
    for (sql, run) in OPEN_RECIPIENTS.runs(claimed) {
        let mut query = sqlx::query(sql);
        for one in run {
            query = query.bind(one.uid.as_bytes().as_slice());
        }
        for row in query.fetch_all(&mut txn.conn).await.map_err(failed)? {
            recipients.push(read_recipient(&row)?);
        }
    }
    Ok(recipients)
}

fn read_recipient(row: &SqliteRow) -> Result<KnownRecipient, StoreError> {
    Ok(KnownRecipient {
        uid: MessageUid::from_bytes(bytes16(row, 0)?),
        status: coded(row, 4, RecipientStatus::from_code)?,
        recipient: ClaimedRecipient {
            position: row.try_get(1).map_err(failed)?,
            kind: coded(row, 2, RecipientKind::from_code)?,
            address: kept_address(row.try_get(3).map_err(failed)?)?,
        },
    })
}
