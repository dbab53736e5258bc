//! Reads for people. They run on connections of their own and never wait for a writer.

use postway_domain::{
    EventKind, Lane, MessagePriority, MessageUid, RecipientId, RecipientKind, RecipientStatus, TenantId, Time,
};
use sqlx::{MySql, MySqlPool, QueryBuilder, Row, mysql::MySqlRow};

use super::{bytes16, coded, failed, on_doubt, state, text, time, unsigned};
use crate::{
    error::StoreError,
    journal::event_row::events_of,
    queue::packing::unpack,
    record::{
        AttemptView, BodyLocation, MessageKey, MessageRecord, MessageSummary, RecipientRecord, SmtpReply,
        StoredBody,
    },
    sql::decode::{self, parsed},
};

/// The columns of a summary, in the order in which [`read_summary`] takes them.
pub(super) const SUMMARY: &str = "SELECT m.uid, m.status, m.wait, m.wire_committed, c.client_id, l.tenant, l.account, l.priority, \
     l.batch, m.version, m.attempt, m.retries, m.doubts, m.on_doubt, m.created_at, m.updated_at, \
     COALESCE(m.due_at, CASE WHEN m.status = 0 OR m.wait = 3 THEN \
     (SELECT p.due_at FROM preparation p WHERE p.uid = m.uid) END), m.expires_at, m.sent_at, m.failed_at, m.exhausted, m.error, c.subject, c.message_id, c.request_id, \
     c.external_id, c.tags, c.metadata, (SELECT a.provider_message_id FROM attempt a WHERE a.uid = m.uid \
     AND a.provider_message_id IS NOT NULL ORDER BY a.number DESC LIMIT 1), c.sensitive, \
     (SELECT r.address FROM recipient r WHERE r.uid = m.uid ORDER BY r.uid, r.position LIMIT 1), \
     (SELECT COUNT(*) FROM recipient r WHERE r.uid = m.uid), l.destination, c.trace";

pub(super) const FIND_CLIENT: &str = "SELECT uid FROM dedup WHERE tenant = ? AND kind = 1 AND `key` = ?";
/// What [`read_recipient`] takes.
macro_rules! recipient_columns {
    () => {
        "SELECT r.address, r.kind, r.status, r.smtp_code, r.enhanced, r.reply, r.outcome, r.bounce"
    };
}
pub(super) use recipient_columns;
pub(super) const RECIPIENTS: &str =
    concat!(recipient_columns!(), " FROM recipient r WHERE r.uid = ? ORDER BY r.position");
pub(super) const ATTEMPTS: &str = "SELECT number, started_at, duration_ms, account, remote, outcome, smtp_code, \
     enhanced, reply, provider_message_id FROM attempt WHERE uid = ? ORDER BY number";
pub(super) const EVENTS: &str = "SELECT seq, at, kind, data, more FROM event WHERE uid = ? ORDER BY seq";
pub(super) const RAW: &str = "SELECT c.raw_blob, c.size, NULLIF(c.raw, ''), c.packing, 0 FROM content c \
     JOIN message m ON m.uid = c.uid \
     WHERE c.uid = ? AND (? IS NULL OR m.tenant = ?)";
pub(super) const PAYLOAD: &str = "SELECT c.payload_blob, c.payload_size, \
     CASE WHEN c.packing = 1 THEN NULLIF(c.raw, '') ELSE c.payload END, \
     CASE WHEN c.packing = 1 THEN 1 ELSE 0 END, c.size FROM content c \
     JOIN message m ON m.uid = c.uid WHERE c.uid = ? AND (? IS NULL OR m.tenant = ?)";
/// Where bodies are, without reading them.
pub(super) const KEPT: &str = "SELECT raw_blob, size, LENGTH(raw) > 0, payload_blob, payload_size, \
     payload IS NOT NULL OR (packing = 1 AND LENGTH(raw) > 0), recipient_id FROM content WHERE uid = ?";

fn time_set(row: &MySqlRow, index: usize) -> Result<Time, StoreError> {
    Ok(Time::from_millis(row.try_get(index).map_err(failed)?))
}

pub(super) fn read_summary(row: &MySqlRow) -> Result<MessageSummary, StoreError> {
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
        request_id: text(row, 24)?,
        external_id: row.try_get(25).map_err(failed)?,
        tags: decode::tags(tags)?,
        metadata: row.try_get(27).map_err(failed)?,
        provider_message_id: text(row, 28)?,
        sensitive: row.try_get::<i64, _>(29).map_err(failed)? != 0,
        recipient: row.try_get(30).map_err(failed)?,
        recipient_count: row.try_get(31).map_err(failed)?,
        trace: decode::trace_context(row.try_get(33).map_err(failed)?),
    })
}

fn read_reply(row: &MySqlRow, first: usize) -> Result<Option<SmtpReply>, StoreError> {
    let words: Option<String> = row.try_get(first + 2).map_err(failed)?;
    let Some(text) = words else { return Ok(None) };
    let code: Option<i64> = row.try_get(first).map_err(failed)?;
    Ok(Some(SmtpReply {
        code: code.map(|_| unsigned(row, first)).transpose()?,
        enhanced: row.try_get(first + 1).map_err(failed)?,
        text,
    }))
}

pub(super) fn read_recipient(row: &MySqlRow) -> Result<RecipientRecord, StoreError> {
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

fn read_kept(row: &MySqlRow, record: &mut MessageRecord) -> Result<(), StoreError> {
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
    pool: &MySqlPool,
    tenant: &TenantId,
    key: &MessageKey,
) -> Result<Option<MessageRecord>, StoreError> {
    // One snapshot (readers are REPEATABLE READ), so that the parts agree with the state.
    let mut snapshot = pool.begin().await.map_err(failed)?;
    let uid: Vec<u8> = match key {
        MessageKey::Uid(uid) => uid.as_bytes().to_vec(),
        MessageKey::Client(id) => {
            let query = sqlx::query_scalar(FIND_CLIENT).bind(tenant.as_str()).bind(id.as_str().as_bytes());
            match query.fetch_optional(&mut *snapshot).await.map_err(failed)? {
                Some(uid) => uid,
                None => return Ok(None),
            }
        }
    };
    let mut query = QueryBuilder::<MySql>::new(SUMMARY);
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
            provider_message_id: text(&row, 9)?,
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
    pool: &MySqlPool,
    tenant: Option<&TenantId>,
    uid: MessageUid,
) -> Result<Option<StoredBody>, StoreError> {
    body(pool, RAW, tenant, uid).await
}

/// The request that brought a message.
pub(super) async fn payload(
    pool: &MySqlPool,
    tenant: &TenantId,
    uid: MessageUid,
) -> Result<Option<StoredBody>, StoreError> {
    body(pool, PAYLOAD, Some(tenant), uid).await
}

async fn body(
    pool: &MySqlPool,
    sql: &'static str,
    tenant: Option<&TenantId>,
    uid: MessageUid,
) -> Result<Option<StoredBody>, StoreError> {
    let found = sqlx::query(sql)
        .bind(uid.as_bytes().as_slice())
        .bind(tenant.map(|tenant| tenant.as_str()))
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

/// A statement that only a test prepares needs no more than its text.
#[cfg(test)]
pub(super) fn summary_sql() -> sqlx::AssertSqlSafe<String> {
    sqlx::AssertSqlSafe(format!(
        "{SUMMARY} FROM message m JOIN content c ON c.uid = m.uid JOIN lane l ON l.id = m.lane"
    ))
}
