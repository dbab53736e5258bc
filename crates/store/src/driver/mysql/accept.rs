//! Storing new messages, set-wise.

use std::time::Instant;

use postway_domain::{MessageUid, Time};

use super::{engine::WriteConnection, failed};
use crate::{
    error::StoreError,
    journal::event_row::EventRow,
    queue::{
        dedup::refuse_repeats,
        lease_conditions::LeaseConditions,
        new_message_row::{LaneIds, NewMessageRow},
        packing::PackedMessage,
        preparation,
    },
    record::{Acceptance, NewEvent, StoredBody},
    sql::multi_row::MultiRow,
};

/// Bodies in one statement, so that it stays well below the smallest `max_allowed_packet` anybody uses.
const INSERT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Room in a packet for what comes with a body.
const PACKET_SPARE_BYTES: u64 = 1024 * 1024;

pub(super) static INSERT_LANE: MultiRow = MultiRow::new(
    "INSERT INTO lane (id, tenant, account, priority, batch, destination) VALUES ",
    6,
    " ON DUPLICATE KEY UPDATE idle_since = NULL",
);
pub(super) static INSERT_MESSAGE: MultiRow = MultiRow::of_pieces(
    "INSERT INTO message (uid, tenant, lane, status, wait, due_at, attempt, on_doubt, lease_node, lease_token, \
     lease_until, version, event_seq, created_at, updated_at, expires_at, error, retries, doubts, lost_leases, \
     wire_committed, exhausted) VALUES ",
    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0,0,0)",
    ",",
    "",
);
pub(super) static INSERT_CONTENT: MultiRow = MultiRow::new(
    "INSERT INTO content (uid, client_id, sender, message_id, subject, request_id, external_id, tags, metadata, \
     eight_bit, smtputf8, size, raw, raw_blob, payload_blob, payload_size, `sensitive`, recipient_id, dsn, packing, payload, \
     trace) VALUES ",
    22,
    "",
);
pub(super) static INSERT_RECIPIENT: MultiRow = MultiRow::of_pieces(
    "INSERT INTO recipient (uid, position, kind, address, status) VALUES ",
    "(?,?,?,?,?)",
    ",",
    "",
);
pub(super) static INSERT_EVENT: MultiRow =
    MultiRow::new("INSERT INTO event (uid, seq, at, kind, data, more) VALUES ", 6, "");
pub(super) static INSERT_TAG: MultiRow =
    MultiRow::new("INSERT INTO tag (tenant, tag, uid) VALUES ", 3, " ON DUPLICATE KEY UPDATE uid = tag.uid");

pub(super) async fn accept(
    txn: &mut WriteConnection,
    messages: &[&PackedMessage],
    terms: &mut LeaseConditions,
) -> Result<Vec<Acceptance>, StoreError> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    check_sizes(txn, messages)?;
    txn.after.wrote = true;
    let mut refused = refuse_repeats(txn, messages, terms).await?;
    let mut entries = Vec::with_capacity(messages.len());
    let mut answers = Vec::with_capacity(messages.len());
    let mut lanes = LaneIds::default();
    for (index, message) in messages.iter().enumerate() {
        if let Some(refusal) = refused.remove(&index) {
            answers.push(refusal);
            continue;
        }
        let entry = NewMessageRow::new(message, lanes.id(&message.lane), &txn.handover, terms);
        answers.push(entry.acceptance());
        entries.push(entry);
    }
    insert_lanes(txn, &entries).await?;
    insert_messages(txn, &entries).await?;
    insert_contents(txn, &entries).await?;
    insert_parts(txn, &entries).await?;
    preparation::enter(txn, &entries).await?;
    for entry in entries {
        txn.count(&entry.message.lane.tenant, None, entry.state().status());
        if entry.due_at().is_some() {
            txn.after.woken.insert(entry.key());
        }
        txn.after.delivered.extend(entry.claimed());
    }
    Ok(answers)
}

/// The server would cut the connection over a packet that is too large, so it is not sent.
fn check_sizes(txn: &WriteConnection, messages: &[&PackedMessage]) -> Result<(), StoreError> {
    let largest = messages.iter().map(|message| message.row_bytes() as u64).max().unwrap_or(0);
    if largest + PACKET_SPARE_BYTES <= txn.packet_bytes_max {
        return Ok(());
    }
    Err(StoreError::Unexpected(format!(
        "a message of {largest} bytes does not fit into the server's max_allowed_packet of {} bytes: raise it",
        txn.packet_bytes_max
    )))
}

async fn insert_lanes(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let (mut fresh, stored_at) = (Vec::new(), Instant::now());
    for &NewMessageRow { message, lane: id, .. } in entries {
        if txn.lanes.note(id, stored_at, message.created_at) {
            fresh.push((id, &message.lane));
        }
    }
    fresh.sort_unstable_by_key(|(id, _)| *id);
    for (sql, run) in INSERT_LANE.runs(&fresh) {
        let mut query = sqlx::query(sql);
        for (id, lane) in run {
            query = query
                .bind(id.as_bytes().as_slice())
                .bind(lane.tenant.as_str())
                .bind(lane.account.as_str())
                .bind(lane.priority.code())
                .bind(lane.batch.as_ref().map(|batch| batch.as_str()))
                .bind(lane.destination.as_ref().map(|destination| destination.as_str()));
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}

async fn insert_messages(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    for (sql, run) in INSERT_MESSAGE.runs(entries) {
        let mut query = sqlx::query(sql);
        for entry in run {
            let NewMessageRow { message, lane, lease, .. } = entry;
            query = query
                .bind(message.uid.as_bytes().as_slice())
                .bind(message.lane.tenant.as_str())
                .bind(lane.as_bytes().as_slice())
                .bind(entry.state().status().code())
                .bind(entry.state().wait().map(|wait| wait.code()))
                .bind(entry.due_at().map(|at| at.as_millis()))
                .bind(entry.attempt())
                .bind(message.on_doubt as i64)
                .bind(lease.map(|lease| lease.incarnation.as_bytes().to_vec()))
                .bind(lease.map(|lease| lease.token.as_i64()))
                .bind(lease.map(|lease| lease.until.as_millis()))
                .bind(entry.version())
                .bind(entry.event_count())
                .bind(message.created_at.as_millis())
                .bind(message.created_at.as_millis())
                .bind(message.expires_at.map(|at| at.as_millis()))
                .bind(message.error.as_deref());
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}

async fn insert_contents(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let mut bytes = entries.first().map_or(0, |entry| entry.message.row_bytes());
    // A new part begins where the bytes of the one before are full.
    let parts = entries.chunk_by(|_, next| {
        bytes += next.message.row_bytes();
        let fits = bytes <= INSERT_BYTES_MAX;
        if !fits {
            bytes = next.message.row_bytes();
        }
        fits
    });
    for (sql, run) in parts.flat_map(|part| INSERT_CONTENT.runs(part)) {
        let mut query = sqlx::query(sql);
        for NewMessageRow { message, .. } in run {
            let content = &message.content;
            let tags = (!content.tags.is_empty()).then(|| serde_json::json!(content.tags).to_string());
            query = query
                .bind(message.uid.as_bytes().as_slice())
                .bind(message.client_id.as_ref().map(|id| id.as_str()))
                .bind(&content.sender)
                .bind(&content.message_id)
                .bind(&content.subject)
                .bind(content.request_id.as_deref().map(str::as_bytes))
                .bind(content.external_id.as_deref())
                .bind(tags)
                .bind(content.metadata.as_deref())
                .bind(content.eight_bit)
                .bind(content.smtputf8)
                .bind(content.raw.len() as i64)
                .bind(message.raw_column())
                .bind(content.raw.blob().map(|blob| blob.name.to_string()))
                .bind(content.payload.as_ref().and_then(StoredBody::blob).map(|blob| blob.name.to_string()))
                .bind(content.payload.as_ref().map(|payload| payload.len() as i64))
                .bind(i64::from(content.sensitive))
                .bind(message.recipient.as_ref().map(|id| id.as_bytes().as_slice()))
                .bind(content.dsn_json())
                .bind(message.packing_code())
                .bind(message.payload_column())
                .bind(message.trace_column());
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}

async fn insert_parts(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let recipients: Vec<_> = entries
        .iter()
        .flat_map(|entry| (0..).zip(&entry.message.recipients).map(move |(at, one)| (entry, at, one)))
        .collect();
    for (sql, run) in INSERT_RECIPIENT.runs(&recipients) {
        let mut query = sqlx::query(sql);
        for (entry, position, recipient) in run {
            query = query
                .bind(entry.message.uid.as_bytes().as_slice())
                .bind(*position as i64)
                .bind(recipient.kind.code())
                .bind(recipient.address.as_str())
                .bind(entry.recipient_status(*position).code());
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        for (seq, (kind, _)) in (1i64..).zip(entry.events()) {
            txn.after.journal.note(&entry.message.lane.tenant, entry.lane, entry.happening(seq, kind));
        }
        rows.extend(entry.event_rows());
    }
    insert_event_rows(txn, &rows).await?;
    let tags: Vec<_> = entries
        .iter()
        .flat_map(|entry| entry.message.labels().map(move |tag| (entry.message, tag)))
        .collect();
    for (sql, run) in INSERT_TAG.runs(&tags) {
        let mut query = sqlx::query(sql);
        for (message, tag) in run {
            query = query
                .bind(message.lane.tenant.as_str())
                .bind(tag.as_bytes())
                .bind(message.uid.as_bytes().as_slice());
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}

pub(super) async fn insert_events(
    txn: &mut WriteConnection,
    events: &[(MessageUid, i64, Time, NewEvent)],
) -> Result<(), StoreError> {
    let single = events.iter().map(|(uid, seq, at, event)| EventRow::single(*uid, *seq, *at, event));
    insert_event_rows(txn, &single.collect::<Vec<_>>()).await
}

async fn insert_event_rows(txn: &mut WriteConnection, rows: &[EventRow<'_>]) -> Result<(), StoreError> {
    for (sql, run) in INSERT_EVENT.runs(rows) {
        let mut query = sqlx::query(sql);
        for row in run {
            query = query
                .bind(row.uid.as_bytes().as_slice())
                .bind(row.seq)
                .bind(row.at.as_millis())
                .bind(row.kind.code())
                .bind(row.data)
                .bind(row.more.as_deref());
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}
