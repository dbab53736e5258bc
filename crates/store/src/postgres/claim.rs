//! Leasing due work.

use std::collections::HashMap;

use bytes::Bytes;
use postway_domain::{
    Lane, LaneId, MessageUid, Priority, RecipientKind, RecipientStatus, Time,
    fairness::{self, DueLane},
    message::{Input, transition},
};
use sqlx::{Row, postgres::PgRow};

use super::{
    accept::insert_events, bytes16, coded, column, engine::Txn, failed, on_doubt, state, undone, unsigned,
};
use crate::{
    decode::parsed,
    error::StoreError,
    group::Parking,
    record::{AccountWant, ClaimRequest, Claimed, ClaimedRecipient, NewEvent},
};

pub(super) const DUE_LANES: &str = "SELECT l.id, l.priority, l.batch, head.due_at FROM lane l CROSS JOIN LATERAL (\
     SELECT m.due_at FROM message m WHERE m.lane = l.id AND m.due_at <= $3 AND m.wait IS DISTINCT FROM 3 \
     AND (m.expires_at IS NULL OR m.expires_at > $3) ORDER BY m.due_at LIMIT 1) AS head \
     WHERE l.tenant = $1 AND l.account = $2";

/// What another writer has locked is its own.
pub(super) const DUE_MESSAGES: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, \
     m.retries, m.doubts, m.lost_leases, m.on_doubt, m.created_at, m.expires_at, m.event_seq, \
     c.request_id, c.sender, c.eight_bit, c.smtputf8, c.size, CASE WHEN c.size <= $1 THEN c.raw END \
     FROM message m JOIN content c ON c.uid = m.uid \
     WHERE m.lane = $2 AND m.due_at <= $3 AND m.wait IS DISTINCT FROM 3 \
     AND (m.expires_at IS NULL OR m.expires_at > $3) \
     ORDER BY m.due_at, m.uid LIMIT $4 FOR UPDATE OF m SKIP LOCKED";

pub(super) const LEASE: &str = "UPDATE message SET status = 4, wait = NULL, due_at = NULL, wire_committed = FALSE, \
     lease_node = $1, lease_token = $2, lease_until = $3, attempt = attempt + 1, version = version + 1, \
     event_seq = event_seq + 1, updated_at = $4 WHERE uid = ANY ($5::bytea[])";

pub(super) const OPEN_RECIPIENTS: &str = "SELECT r.uid, r.position, r.kind, r.address, r.status \
     FROM UNNEST($1::bytea[]) AS v(uid) CROSS JOIN LATERAL (SELECT * FROM recipient WHERE uid = v.uid \
     AND status IN (0, 1, 3) ORDER BY position) AS r";

pub(super) async fn claim(txn: &mut Txn, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
    let mut claimed = Vec::new();
    for want in &request.wants {
        let taken = claim_for(txn, request, want, &mut claimed).await?;
        if want.park {
            txn.after.parked.push(Parking {
                key: want.key.clone(),
                lease: request.lease,
                now: request.now,
                room: want.room - taken,
            });
        }
    }
    if !claimed.is_empty() {
        txn.after.wrote = true;
        add_recipients(txn, &mut claimed).await?;
    }
    Ok(claimed)
}

async fn claim_for(
    txn: &mut Txn,
    request: &ClaimRequest,
    want: &AccountWant,
    claimed: &mut Vec<Claimed>,
) -> Result<u32, StoreError> {
    let mut due = Vec::new();
    let mut batches = HashMap::new();
    let rows = sqlx::query(DUE_LANES)
        .bind(want.key.tenant.as_str())
        .bind(want.key.account.as_str())
        .bind(request.now.as_millis())
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    for row in rows {
        let lane = LaneId::from_bytes(bytes16(&row, 0)?);
        batches.insert(lane, row.try_get::<Option<String>, _>(2).map_err(failed)?);
        due.push(DueLane {
            lane,
            priority: coded(&row, 1, Priority::from_code)?,
            oldest_due_at: Time::from_millis(row.try_get(3).map_err(failed)?),
        });
    }
    fairness::order(&mut due, request.now);
    let mut taken = 0;
    for due_lane in due {
        if taken == want.room {
            break;
        }
        let lane = Lane {
            tenant: want.key.tenant.clone(),
            account: want.key.account.clone(),
            priority: due_lane.priority,
            batch: batches.remove(&due_lane.lane).flatten().map(|batch| parsed(&batch)).transpose()?,
        };
        let from_lane = lease_from(txn, request, due_lane.lane, &lane, want.room - taken).await?;
        taken += from_lane.len() as u32;
        claimed.extend(from_lane);
    }
    Ok(taken)
}

async fn lease_from(
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
        .bind(i64::from(limit))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    let mut claimed = Vec::with_capacity(rows.len());
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        let from = state(row, 1)?;
        let Ok((to, effects)) = transition(from, Input::Claim) else { continue };
        let one = read_claimed(row, lane, request)?;
        let event_seq: i64 = row.try_get(12).map_err(failed)?;
        if let Some(kind) = effects.event {
            let data = Some(format!("{{\"attempt\":{}}}", one.attempt));
            events.push((one.uid, event_seq + 1, request.now, NewEvent { kind, data }));
        }
        txn.count(&lane.tenant, Some(from.status()), to.status());
        claimed.push(one);
    }
    if claimed.is_empty() {
        return Ok(claimed);
    }
    sqlx::query(LEASE)
        .bind(request.lease.incarnation.as_bytes().as_slice())
        .bind(request.lease.token.as_i64())
        .bind(request.lease.until.as_millis())
        .bind(now_ms)
        .bind(column(&claimed, |one| one.uid.as_bytes().as_slice()))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    insert_events(txn, &events).await?;
    Ok(claimed)
}

fn read_claimed(row: &PgRow, lane: &Lane, request: &ClaimRequest) -> Result<Claimed, StoreError> {
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
        sent_before: 0,
        doubtful_before: 0,
        eight_bit: row.try_get(15).map_err(failed)?,
        smtputf8: row.try_get(16).map_err(failed)?,
        size: unsigned(row, 17)?,
        raw: row.try_get::<Option<Vec<u8>>, _>(18).map_err(failed)?.map(Bytes::from),
    })
}

/// An attempt is for the recipients still pending; when none is, for those in doubt.
async fn add_recipients(txn: &mut Txn, claimed: &mut [Claimed]) -> Result<(), StoreError> {
    #[derive(Default)]
    struct Parts {
        pending: Vec<ClaimedRecipient>,
        doubtful: Vec<ClaimedRecipient>,
        sent: u32,
    }
    let mut parts: HashMap<MessageUid, Parts> = HashMap::with_capacity(claimed.len());
    let rows = sqlx::query(OPEN_RECIPIENTS)
        .bind(column(claimed, |one| one.uid.as_bytes().as_slice()))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    for row in rows {
        let of_message = parts.entry(MessageUid::from_bytes(bytes16(&row, 0)?)).or_default();
        let status = coded(&row, 4, RecipientStatus::from_code)?;
        let recipient = || -> Result<ClaimedRecipient, StoreError> {
            Ok(ClaimedRecipient {
                position: unsigned(&row, 1)?,
                kind: coded(&row, 2, RecipientKind::from_code)?,
                address: parsed(row.try_get(3).map_err(failed)?)?,
            })
        };
        match status {
            RecipientStatus::Pending => of_message.pending.push(recipient()?),
            RecipientStatus::InDoubt => of_message.doubtful.push(recipient()?),
            RecipientStatus::Sent => of_message.sent += 1,
            RecipientStatus::Failed
            | RecipientStatus::Suppressed
            | RecipientStatus::Cancelled
            | RecipientStatus::Expired => {}
        }
    }
    for one in claimed {
        let Parts { pending, doubtful, sent } = parts.remove(&one.uid).unwrap_or_default();
        one.sent_before = sent;
        if pending.is_empty() {
            one.recipients = doubtful;
        } else {
            one.doubtful_before = doubtful.len() as u32;
            one.recipients = pending;
        }
    }
    Ok(())
}
