//! Storing new messages, table by table.
//!
//! Hot statements say `OR FAIL`: an error rolls the whole transaction back anyway, and SQLite need not copy
//! each page it touches into a journal of the statement.

use std::time::Instant;

use super::{engine::WriteConnection, insert_event_rows};
use crate::{
    error::StoreError,
    queue::{
        dedup::refuse_repeats,
        lease_conditions::LeaseConditions,
        new_message_row::{LaneIds, NewMessageRow},
        packing::PackedMessage,
        preparation,
    },
    record::{Acceptance, StoredBody},
};

pub(super) const INSERT_LANE: &str = "INSERT INTO lane (id, tenant, account, priority, batch, destination) VALUES (?,?,?,?,?,?) \
     ON CONFLICT (id) DO UPDATE SET idle_since = NULL WHERE idle_since IS NOT NULL";
pub(super) const INSERT_MESSAGE: &str = "INSERT OR FAIL INTO message (uid, tenant, lane, status, wait, due_at, attempt, \
     retries, doubts, lost_leases, on_doubt, lease_node, lease_token, lease_until, wire_committed, version, event_seq, \
     created_at, updated_at, expires_at, exhausted, error) \
     VALUES (?1,?2,?3,?4,?5,?6,?7,0,0,0,?8,?9,?10,?11,0,?12,?13,?14,?14,?15,0,?16)";
pub(super) const INSERT_CONTENT: &str = "INSERT OR FAIL INTO content (uid, client_id, sender, message_id, subject, request_id, \
     external_id, tags, metadata, eight_bit, smtputf8, size, raw, raw_blob, payload_blob, payload_size, sensitive, \
     recipient_id, dsn, packing, payload, trace) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
pub(super) const INSERT_RECIPIENT: &str =
    "INSERT OR FAIL INTO recipient (uid, position, kind, address, status) VALUES (?,?,?,?,?)";
pub(super) const INSERT_EVENT: &str =
    "INSERT OR FAIL INTO event (uid, seq, at, kind, data, more) VALUES (?,?,?,?,?,?)";
pub(super) const INSERT_TAG: &str =
    "INSERT INTO tag (tenant, tag, uid) VALUES (?,?,?) ON CONFLICT DO NOTHING";

pub(super) async fn accept(
    txn: &mut WriteConnection,
    messages: &[&PackedMessage],
    terms: &mut LeaseConditions,
) -> Result<Vec<Acceptance>, StoreError> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
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
    insert_lanes(txn, &entries)?;
    insert_messages(txn, &entries)?;
    insert_parts(txn, &entries)?;
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

fn insert_lanes(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let stored_at = Instant::now();
    for &NewMessageRow { message, lane: id, .. } in entries {
        if !txn.lanes.note(id, stored_at, message.created_at) {
            continue;
        }
        let lane = &message.lane;
        txn.conn
            .query(INSERT_LANE)?
            .bind(id.as_bytes().as_slice())
            .bind(lane.tenant.as_str())
            .bind(lane.account.as_str())
            .bind(lane.priority.code())
            .bind(lane.batch.as_ref().map(|batch| batch.as_str()))
            .bind(lane.destination.as_ref().map(|destination| destination.as_str()))
            .execute()?;
    }
    Ok(())
}

fn insert_messages(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let mut query = txn.conn.query(INSERT_MESSAGE)?;
    for entry in entries {
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
            .bind(message.expires_at.map(|at| at.as_millis()))
            .bind(message.error.as_deref());
        query.execute_row()?;
    }
    let mut query = txn.conn.query(INSERT_CONTENT)?;
    for NewMessageRow { message, .. } in entries {
        let content = &message.content;
        let tags = (!content.tags.is_empty()).then(|| serde_json::json!(content.tags).to_string());
        query = query
            .bind(message.uid.as_bytes().as_slice())
            .bind(message.client_id.as_ref().map(|id| id.as_str()))
            .bind(&content.sender)
            .bind(&content.message_id)
            .bind(&content.subject)
            .bind(content.request_id.as_deref())
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
        query.execute_row()?;
    }
    Ok(())
}

fn insert_parts(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let recipients: Vec<_> = entries
        .iter()
        .flat_map(|entry| (0..).zip(&entry.message.recipients).map(move |(at, one)| (entry, at, one)))
        .collect();
    let mut query = txn.conn.query(INSERT_RECIPIENT)?;
    for (entry, position, recipient) in &recipients {
        query = query
            .bind(entry.message.uid.as_bytes().as_slice())
            .bind(*position as i64)
            .bind(recipient.kind.code())
            .bind(recipient.address.as_str())
            .bind(entry.recipient_status(*position).code());
        query.execute_row()?;
    }
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        for (seq, (kind, _)) in (1i64..).zip(entry.events()) {
            txn.after.journal.note(&entry.message.lane.tenant, entry.lane, entry.happening(seq, kind));
        }
        rows.extend(entry.event_rows());
    }
    insert_event_rows(&txn.conn, rows)?;
    let tags: Vec<_> = entries
        .iter()
        .flat_map(|entry| entry.message.labels().map(move |tag| (entry.message, tag)))
        .collect();
    let mut query = txn.conn.query(INSERT_TAG)?;
    for (message, tag) in &tags {
        query = query
            .bind(message.lane.tenant.as_str())
            .bind(tag.as_ref())
            .bind(message.uid.as_bytes().as_slice());
        query.execute_row()?;
    }
    Ok(())
}
