//! Reads. They run on connections of their own and never wait for the writer.

use postway_domain::{
    EventKind, Incarnation, Lane, MessagePriority, MessageUid, RecipientId, RecipientKind, RecipientStatus,
    TenantId, Time,
};
use sqlx::{PgPool, Postgres, QueryBuilder, Row, postgres::PgRow};

use super::{bytes16, coded, column, failed, on_doubt, state};
use crate::{
    error::StoreError,
    journal::event_row::events_of,
    queue::packing::unpack,
    record::{
        AccountKey, AttemptView, BodyLocation, MessageKey, MessageRecord, MessageSummary, RecipientRecord,
        SmtpReply, StalledMessage, StoredBody,
    },
    sql::decode::{self, parsed},
};

/// The columns of a summary, in the order in which [`read_summary`] takes them.
pub(super) const SUMMARY: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, c.client_id, l.tenant, l.account, l.priority, \
     l.batch, m.version, m.attempt, m.retries, m.doubts, m.on_doubt, m.created_at, m.updated_at, \
     COALESCE(m.due_at, CASE WHEN m.status = 0 OR m.wait = 3 THEN \
     (SELECT p.due_at FROM preparation p WHERE p.uid = m.uid) END), m.expires_at, m.sent_at, m.failed_at, m.exhausted, m.error, c.subject, c.message_id, c.request_id, \
     c.external_id, c.tags, c.metadata, (SELECT provider_message_id FROM attempt WHERE attempt.uid = m.uid \
     AND provider_message_id IS NOT NULL ORDER BY number DESC LIMIT 1), c.sensitive, \
     (SELECT r.address FROM recipient r WHERE r.uid = m.uid ORDER BY r.position LIMIT 1), \
     (SELECT COUNT(*) FROM recipient r WHERE r.uid = m.uid), l.destination, c.trace";

pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
pub(super) const FIND_CLIENT: &str = "SELECT uid FROM dedup WHERE tenant = $1 AND kind = 1 AND key = $2";
/// What [`read_recipient`] takes.
macro_rules! recipient_columns {
    () => {
        "SELECT r.address, r.kind, r.status, r.smtp_code, r.enhanced, r.reply, r.outcome, r.bounce"
    };
}
pub(super) use recipient_columns;
pub(super) const RECIPIENTS: &str =
    concat!(recipient_columns!(), " FROM recipient r WHERE r.uid = $1 ORDER BY r.position");
pub(super) const ATTEMPTS: &str = "SELECT number, started_at, duration_ms, account, remote, outcome, smtp_code, \
     enhanced, reply, provider_message_id FROM attempt WHERE uid = $1 ORDER BY number";
pub(super) const EVENTS: &str = "SELECT seq, at, kind, data, more FROM event WHERE uid = $1 ORDER BY seq";
pub(super) const RAW: &str = "SELECT c.raw_blob, c.size, NULLIF(c.raw, ''::bytea), c.packing, 0::bigint \
     FROM content c JOIN message m ON m.uid = c.uid \
     WHERE c.uid = $1 AND ($2::text IS NULL OR m.tenant = $2)";
pub(super) const PAYLOAD: &str = "SELECT c.payload_blob, c.payload_size, \
     CASE WHEN c.packing = 1 THEN NULLIF(c.raw, ''::bytea) ELSE c.payload END, \
     CASE WHEN c.packing = 1 THEN 1::bigint ELSE 0::bigint END, c.size FROM content c \
     JOIN message m ON m.uid = c.uid WHERE c.uid = $1 AND ($2::text IS NULL OR m.tenant = $2)";
/// Where bodies are, without reading them.
pub(super) const KEPT: &str = "SELECT raw_blob, size, octet_length(raw) > 0, payload_blob, payload_size, \
     payload IS NOT NULL OR (packing = 1 AND octet_length(raw) > 0), recipient_id FROM content WHERE uid = $1";
pub(super) const STALLED: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, m.doubts, \
     m.lost_leases, m.on_doubt, m.expires_at, l.tenant, l.account, \
     EXISTS (SELECT 1 FROM recipient WHERE uid = m.uid AND status = 3), m.lease_node, m.retries, \
     EXISTS (SELECT 1 FROM recipient WHERE uid = m.uid AND status = 0), \
     EXISTS (SELECT 1 FROM recipient WHERE uid = m.uid AND status = 1), \
     (SELECT sensitive FROM content WHERE uid = m.uid) FROM message m \
     JOIN lane l ON l.id = m.lane WHERE m.status IN (1, 4) AND (m.lease_until <= $1 OR m.lease_node IS NULL \
     OR m.lease_node <> ALL ($2::bytea[])) ORDER BY m.updated_at LIMIT $3";
pub(super) const OVERDUE: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, m.version, m.attempt, m.doubts, \
     m.lost_leases, m.on_doubt, m.expires_at, l.tenant, l.account, \
     EXISTS (SELECT 1 FROM recipient WHERE uid = m.uid AND status = 3), m.lease_node, m.retries, \
     EXISTS (SELECT 1 FROM recipient WHERE uid = m.uid AND status = 0), \
     EXISTS (SELECT 1 FROM recipient WHERE uid = m.uid AND status = 1), \
     (SELECT sensitive FROM content WHERE uid = m.uid) FROM message m JOIN lane l ON l.id = m.lane \
     WHERE m.expires_at <= $1 AND m.status < 4 ORDER BY m.expires_at LIMIT $2";

fn time(row: &PgRow, index: usize) -> Result<Option<Time>, StoreError> {
    Ok(row.try_get::<Option<i64>, _>(index).map_err(failed)?.map(Time::from_millis))
}

fn time_set(row: &PgRow, index: usize) -> Result<Time, StoreError> {
    Ok(Time::from_millis(row.try_get(index).map_err(failed)?))
}

pub(super) fn read_summary(row: &PgRow) -> Result<MessageSummary, StoreError> {
    let client_id: Option<&str> = row.try_get(4).map_err(failed)?;
    let batch: Option<&str> = row.try_get(8).map_err(failed)?;
    let destination: Option<&str> = row.try_get(32).map_err(failed)?;
    let tags: Option<&str> = row.try_get(26).map_err(failed)?;
    Ok(MessageSummary {
        uid: MessageUid::from_bytes(bytes16(row, 0)?),
        client_id: client_id.map(parsed).transpose()?,
        lane: Lane {
            tenant: parsed(row.try_get(5).map_err(failed)?)?,
            account: parsed(row.try_get(6).map_err(failed)?)?,
            priority: coded(row, 7, MessagePriority::from_code)?,
            batch: batch.map(parsed).transpose()?,
            destination: destination.map(parsed).transpose()?,
        },
        state: state(row, 1)?,
        version: row.try_get(9).map_err(failed)?,
        attempt: row.try_get(10).map_err(failed)?,
        retries: row.try_get(11).map_err(failed)?,
        doubts: row.try_get(12).map_err(failed)?,
        on_doubt: on_doubt(row, 13)?,
        created_at: time_set(row, 14)?,
        updated_at: time_set(row, 15)?,
        due_at: time(row, 16)?,
        expires_at: time(row, 17)?,
        sent_at: time(row, 18)?,
        failed_at: time(row, 19)?,
        exhausted: row.try_get(20).map_err(failed)?,
        error: row.try_get(21).map_err(failed)?,
        subject: row.try_get(22).map_err(failed)?,
        message_id: row.try_get(23).map_err(failed)?,
        request_id: row.try_get(24).map_err(failed)?,
        external_id: row.try_get(25).map_err(failed)?,
        tags: decode::tags(tags)?,
        metadata: row.try_get(27).map_err(failed)?,
        provider_message_id: row.try_get(28).map_err(failed)?,
        sensitive: row.try_get::<i64, _>(29).map_err(failed)? != 0,
        recipient: row.try_get(30).map_err(failed)?,
        recipient_count: row.try_get(31).map_err(failed)?,
        trace: decode::trace_context(row.try_get(33).map_err(failed)?),
    })
}

fn read_reply(row: &PgRow, first: usize) -> Result<Option<SmtpReply>, StoreError> {
    let text: Option<String> = row.try_get(first + 2).map_err(failed)?;
    let Some(text) = text else { return Ok(None) };
    Ok(Some(SmtpReply {
        code: row.try_get::<Option<i64>, _>(first).map_err(failed)?.and_then(|code| u16::try_from(code).ok()),
        enhanced: row.try_get(first + 1).map_err(failed)?,
        text,
    }))
}

pub(super) fn read_recipient(row: &PgRow) -> Result<RecipientRecord, StoreError> {
    let outcome: Option<i64> = row.try_get(6).map_err(failed)?;
    Ok(RecipientRecord {
        address: row.try_get(0).map_err(failed)?,
        kind: coded(row, 1, RecipientKind::from_code)?,
        status: coded(row, 2, RecipientStatus::from_code)?,
        reply: read_reply(row, 3)?,
        outcome: outcome.map(|code| decode::coded(code, EventKind::from_code)).transpose()?,
        bounce: row.try_get(7).map_err(failed)?,
    })
}

fn read_kept(row: &PgRow, record: &mut MessageRecord) -> Result<(), StoreError> {
    let kept = |first: usize| {
        let has_inline = row.try_get(first + 2).map_err(failed)?;
        let (blob, size) = (row.try_get(first).map_err(failed)?, row.try_get(first + 1).map_err(failed)?);
        decode::kept(has_inline, blob, size)
    };
    (record.raw, record.payload) = (kept(0)?, kept(3)?);
    let recipient: Option<&[u8]> = row.try_get(6).map_err(failed)?;
    record.recipient = recipient.map(|id| decode::id16(id).map(RecipientId::from_bytes)).transpose()?;
    Ok(())
}

pub(super) async fn message(
    pool: &PgPool,
    tenant: &TenantId,
    key: &MessageKey,
) -> Result<Option<MessageRecord>, StoreError> {
    // One snapshot, so that the parts agree with the state.
    let mut snapshot = pool.begin_with(SNAPSHOT).await.map_err(failed)?;
    let uid: Vec<u8> = match key {
        MessageKey::Uid(uid) => uid.as_bytes().to_vec(),
        MessageKey::Client(id) => {
            let query = sqlx::query_scalar(FIND_CLIENT).bind(tenant.as_str()).bind(id.as_str());
            match query.fetch_optional(&mut *snapshot).await.map_err(failed)? {
                Some(uid) => uid,
                None => return Ok(None),
            }
        }
    };
    let mut query = QueryBuilder::<Postgres>::new(SUMMARY);
    query.push(" FROM message m JOIN content c ON c.uid = m.uid JOIN lane l ON l.id = m.lane WHERE m.uid = ");
    query.push_bind(uid.clone()).push(" AND m.tenant = ").push_bind(tenant.as_str());
    let Some(row) = query.build().fetch_optional(&mut *snapshot).await.map_err(failed)? else {
        return Ok(None);
    };
    let mut record = MessageRecord {
        summary: read_summary(&row)?,
        recipients: Vec::new(),
        attempts: Vec::new(),
        events: Vec::new(),
        raw: BodyLocation::Nowhere,
        payload: BodyLocation::Nowhere,
        recipient: None,
    };
    let row = sqlx::query(KEPT).bind(&uid).fetch_one(&mut *snapshot).await.map_err(failed)?;
    read_kept(&row, &mut record)?;
    for row in sqlx::query(RECIPIENTS).bind(&uid).fetch_all(&mut *snapshot).await.map_err(failed)? {
        record.recipients.push(read_recipient(&row)?);
    }
    for row in sqlx::query(ATTEMPTS).bind(&uid).fetch_all(&mut *snapshot).await.map_err(failed)? {
        record.attempts.push(AttemptView {
            number: row.try_get(0).map_err(failed)?,
            started_at: time_set(&row, 1)?,
            duration_ms: row.try_get(2).map_err(failed)?,
            account: row.try_get(3).map_err(failed)?,
            remote: row.try_get(4).map_err(failed)?,
            outcome: row.try_get(5).map_err(failed)?,
            reply: read_reply(&row, 6)?,
            provider_message_id: row.try_get(9).map_err(failed)?,
        });
    }
    for row in sqlx::query(EVENTS).bind(&uid).fetch_all(&mut *snapshot).await.map_err(failed)? {
        let (seq, kind) = (row.try_get(0).map_err(failed)?, row.try_get(2).map_err(failed)?);
        let (data, more): (_, Option<String>) =
            (row.try_get(3).map_err(failed)?, row.try_get(4).map_err(failed)?);
        record.events.extend(events_of(seq, time_set(&row, 1)?, kind, data, more.as_deref())?);
    }
    Ok(Some(record))
}

/// The bytes of a message, of this tenant where one is named.
pub(super) async fn raw(
    pool: &PgPool,
    tenant: Option<&TenantId>,
    uid: MessageUid,
) -> Result<Option<StoredBody>, StoreError> {
    body(pool, RAW, tenant, uid).await
}

/// The request that brought a message.
pub(super) async fn payload(
    pool: &PgPool,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Option<StoredBody>, StoreError> {
    body(pool, PAYLOAD, Some(tenant), uid).await
}

async fn body(
    pool: &PgPool,
    sql: &'static str,
    tenant: Option<&TenantId>,
    uid: MessageUid,
) -> Result<Option<StoredBody>, StoreError> {
    let found = sqlx::query(sql)
        .bind(uid.as_bytes().as_slice())
        .bind(tenant.map(|tenant| tenant.as_str()))
        .fetch_optional(pool)
        .await
        .map_err(failed)?;
    let Some(row) = found else { return Ok(None) };
    let (blob, size): (_, Option<i64>) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    let column: Option<Vec<u8>> = row.try_get(2).map_err(failed)?;
    let (packing, offset) = (row.try_get(3).map_err(failed)?, row.try_get(4).map_err(failed)?);
    let len = size.unwrap_or_default();
    let inline = column.map(|column| unpack(column, packing, offset, len)).transpose()?;
    decode::body(inline, blob, size)
}

fn read_stalled(row: &PgRow) -> Result<StalledMessage, StoreError> {
    Ok(StalledMessage {
        uid: MessageUid::from_bytes(bytes16(row, 0)?),
        state: state(row, 1)?,
        version: row.try_get(4).map_err(failed)?,
        attempt: row.try_get(5).map_err(failed)?,
        doubts: row.try_get(6).map_err(failed)?,
        lost_leases: row.try_get(7).map_err(failed)?,
        on_doubt: on_doubt(row, 8)?,
        expires_at: time(row, 9)?,
        key: AccountKey {
            tenant: parsed(row.try_get(10).map_err(failed)?)?,
            account: parsed(row.try_get(11).map_err(failed)?)?,
        },
        has_doubtful: row.try_get(12).map_err(failed)?,
        holder: decode::incarnation(row.try_get(13).map_err(failed)?)?,
        retries: row.try_get(14).map_err(failed)?,
        has_open: row.try_get(15).map_err(failed)?,
        has_sent: row.try_get(16).map_err(failed)?,
        sensitive: row.try_get::<i64, _>(17).map_err(failed)? != 0,
    })
}

pub(super) async fn stalled(
    pool: &PgPool,
    alive: &[Incarnation],
    now: Time,
    limit: u32,
) -> Result<Vec<StalledMessage>, StoreError> {
    let rows = sqlx::query(STALLED)
        .bind(now.as_millis())
        .bind(column(alive, |incarnation| incarnation.as_bytes().as_slice()))
        .bind(i64::from(limit))
        .fetch_all(pool)
        .await
        .map_err(failed)?;
    rows.iter().map(read_stalled).collect()
}

pub(super) async fn overdue(pool: &PgPool, now: Time, limit: u32) -> Result<Vec<StalledMessage>, StoreError> {
    let query = sqlx::query(OVERDUE).bind(now.as_millis()).bind(i64::from(limit));
    let rows = query.fetch_all(pool).await.map_err(failed)?;
    rows.iter().map(read_stalled).collect()
}

/// A statement that only a test prepares needs no more than its text.
#[cfg(test)]
pub(super) fn summary_sql() -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!(
        "{SUMMARY} FROM message m JOIN content c ON c.uid = m.uid JOIN lane l ON l.id = m.lane"
    ))
}
