//! Storing new messages, set-wise.

use std::time::Instant;

use postway_domain::{MessageUid, Time};

use super::{column, engine::WriteConnection, text, undone};
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
};

/// Bodies in one statement, about: an array parameter has a limit, and so has memory.
const STATEMENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// A lane that was to be removed stays, and a lane that is being removed is waited for and made again.
pub(super) const INSERT_LANE: &str = "INSERT INTO lane AS l (id, tenant, account, priority, batch, destination) \
     SELECT * FROM UNNEST($1::bytea[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[]) \
     ON CONFLICT (id) DO UPDATE SET idle_since = NULL WHERE l.idle_since IS NOT NULL";
pub(super) const INSERT_MESSAGE: &str = "INSERT INTO message (uid, tenant, lane, status, wait, due_at, attempt, \
     retries, doubts, lost_leases, on_doubt, lease_node, lease_token, lease_until, wire_committed, version, event_seq, \
     created_at, updated_at, expires_at, exhausted, error) \
     SELECT v.uid, v.tenant, v.lane, v.status, v.wait, v.due_at, v.attempt, 0, 0, 0, v.on_doubt, v.lease_node, \
     v.lease_token, v.lease_until, FALSE, v.version, v.event_seq, v.created_at, v.created_at, v.expires_at, FALSE, v.error \
     FROM UNNEST($1::bytea[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
     $8::bigint[], $9::bytea[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], \
     $15::bigint[], $16::text[]) AS v(uid, tenant, lane, status, wait, due_at, attempt, on_doubt, lease_node, lease_token, \
     lease_until, version, event_seq, created_at, expires_at, error)";
pub(super) const INSERT_CONTENT: &str = "INSERT INTO content (uid, client_id, sender, message_id, subject, request_id, \
     external_id, tags, metadata, eight_bit, smtputf8, size, raw, raw_blob, payload_blob, payload_size, sensitive, \
     recipient_id, dsn, packing, payload, trace) \
     SELECT * FROM UNNEST($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], \
     $8::text[], $9::text[], $10::boolean[], $11::boolean[], $12::bigint[], $13::bytea[], $14::text[], $15::text[], \
     $16::bigint[], $17::bigint[], $18::bytea[], $19::text[], $20::bigint[], $21::bytea[], $22::bytea[])";
pub(super) const INSERT_RECIPIENT: &str = "INSERT INTO recipient (uid, position, kind, address, status) \
     SELECT * FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[])";
pub(super) const INSERT_EVENT: &str = "INSERT INTO event (uid, seq, at, kind, data, more) \
     SELECT * FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])";
pub(super) const INSERT_TAG: &str = "INSERT INTO tag (tenant, tag, uid) \
     SELECT * FROM UNNEST($1::text[], $2::text[], $3::bytea[]) ON CONFLICT DO NOTHING";

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
    if !entries.is_empty() {
        insert_lanes(txn, &entries).await?;
        insert_messages(txn, &entries).await?;
        insert_contents(txn, &entries).await?;
        insert_parts(txn, &entries).await?;
        preparation::enter(txn, &entries).await?;
    }
    for entry in entries {
        txn.count(&entry.message.lane.tenant, None, entry.state().status());
        if entry.due_at().is_some() {
            txn.after.woken.insert(entry.key());
        }
        txn.after.delivered.extend(entry.claimed());
    }
    Ok(answers)
}

async fn insert_lanes(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let (mut fresh, stored_at) = (Vec::new(), Instant::now());
    for &NewMessageRow { message, lane: id, .. } in entries {
        if txn.lanes.note(id, stored_at, message.created_at) {
            fresh.push((id, &message.lane));
        }
    }
    if fresh.is_empty() {
        return Ok(());
    }
    // Two writers that open the same lanes wait for each other in the same order.
    fresh.sort_by_key(|(id, _)| *id);
    sqlx::query(INSERT_LANE)
        .bind(column(&fresh, |(id, _)| id.as_bytes().as_slice()))
        .bind(column(&fresh, |(_, lane)| lane.tenant.as_str()))
        .bind(column(&fresh, |(_, lane)| lane.account.as_str()))
        .bind(column(&fresh, |(_, lane)| lane.priority.code()))
        .bind(column(&fresh, |(_, lane)| lane.batch.as_ref().map(|batch| batch.as_str())))
        .bind(column(&fresh, |(_, lane)| lane.destination.as_ref().map(|destination| destination.as_str())))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(())
}

async fn insert_messages(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let nodes = column(entries, |entry| entry.lease.map(|lease| lease.incarnation));
    sqlx::query(INSERT_MESSAGE)
        .bind(column(entries, |entry| entry.message.uid.as_bytes().as_slice()))
        .bind(column(entries, |entry| entry.message.lane.tenant.as_str()))
        .bind(column(entries, |entry| entry.lane.as_bytes().as_slice()))
        .bind(column(entries, |entry| entry.state().status().code()))
        .bind(column(entries, |entry| entry.state().wait().map(|wait| wait.code())))
        .bind(column(entries, |entry| entry.due_at().map(|at| at.as_millis())))
        .bind(column(entries, |entry| entry.attempt()))
        .bind(column(entries, |entry| entry.message.on_doubt as i64))
        .bind(column(&nodes, |node| node.as_ref().map(|node| node.as_bytes().as_slice())))
        .bind(column(entries, |entry| entry.lease.map(|lease| lease.token.as_i64())))
        .bind(column(entries, |entry| entry.lease.map(|lease| lease.until.as_millis())))
        .bind(column(entries, |entry| entry.version()))
        .bind(column(entries, |entry| entry.event_count()))
        .bind(column(entries, |entry| entry.message.created_at.as_millis()))
        .bind(column(entries, |entry| entry.message.expires_at.map(|at| at.as_millis())))
        .bind(column(entries, |entry| entry.message.error.as_deref().map(text)))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(())
}

async fn insert_contents(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let mut rest = entries;
    while !rest.is_empty() {
        let mut bytes = 0;
        let mut fits = |entry: &&NewMessageRow<'_>| {
            bytes += entry.message.row_bytes();
            bytes <= STATEMENT_BYTES_MAX
        };
        let count = rest.iter().take_while(|entry| fits(entry)).count().max(1);
        let (run, after) = rest.split_at(count);
        insert_content_run(txn, run).await?;
        rest = after;
    }
    Ok(())
}

async fn insert_content_run(
    txn: &mut WriteConnection,
    entries: &[NewMessageRow<'_>],
) -> Result<(), StoreError> {
    let contents = column(entries, |entry| &entry.message.content);
    let payloads = column(&contents, |content| content.payload.as_ref());
    let labels = |tags: &Vec<String>| (!tags.is_empty()).then(|| serde_json::json!(tags).to_string());
    sqlx::query(INSERT_CONTENT)
        .bind(column(entries, |entry| entry.message.uid.as_bytes().as_slice()))
        .bind(column(entries, |entry| entry.message.client_id.as_ref().map(|id| id.as_str())))
        .bind(column(&contents, |content| text(&content.sender)))
        .bind(column(&contents, |content| text(&content.message_id)))
        .bind(column(&contents, |content| text(&content.subject)))
        .bind(column(&contents, |content| content.request_id.as_deref().map(text)))
        .bind(column(&contents, |content| content.external_id.as_deref().map(text)))
        .bind(column(&contents, |content| labels(&content.tags)))
        .bind(column(&contents, |content| content.metadata.as_deref().map(text)))
        .bind(column(&contents, |content| content.eight_bit))
        .bind(column(&contents, |content| content.smtputf8))
        .bind(column(&contents, |content| content.raw.len() as i64))
        .bind(column(entries, |entry| entry.message.raw_column()))
        .bind(column(&contents, |content| content.raw.blob().map(|blob| blob.name.to_string())))
        .bind(column(&payloads, |payload| {
            payload.and_then(StoredBody::blob).map(|blob| blob.name.to_string())
        }))
        .bind(column(&payloads, |payload| payload.map(|payload| payload.len() as i64)))
        .bind(column(&contents, |content| i64::from(content.sensitive)))
        .bind(column(entries, |entry| entry.message.recipient.as_ref().map(|id| id.as_bytes().as_slice())))
        .bind(column(&contents, |content| content.dsn_json()))
        .bind(column(entries, |entry| entry.message.packing_code()))
        .bind(column(entries, |entry| entry.message.payload_column()))
        .bind(column(entries, |entry| entry.message.trace_column()))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(())
}

async fn insert_parts(txn: &mut WriteConnection, entries: &[NewMessageRow<'_>]) -> Result<(), StoreError> {
    let recipients: Vec<_> = entries
        .iter()
        .flat_map(|entry| (0..).zip(&entry.message.recipients).map(move |(at, one)| (entry, at, one)))
        .collect();
    if !recipients.is_empty() {
        sqlx::query(INSERT_RECIPIENT)
            .bind(column(&recipients, |(entry, ..)| entry.message.uid.as_bytes().as_slice()))
            .bind(column(&recipients, |(_, position, _)| *position as i64))
            .bind(column(&recipients, |(.., recipient)| recipient.kind.code()))
            .bind(column(&recipients, |(.., recipient)| recipient.address.as_str()))
            .bind(column(&recipients, |(entry, position, _)| entry.recipient_status(*position).code()))
            .execute(&mut txn.conn)
            .await
            .map_err(undone)?;
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
    if !tags.is_empty() {
        sqlx::query(INSERT_TAG)
            .bind(column(&tags, |(message, _)| message.lane.tenant.as_str()))
            .bind(column(&tags, |(_, tag)| text(tag)))
            .bind(column(&tags, |(message, _)| message.uid.as_bytes().as_slice()))
            .execute(&mut txn.conn)
            .await
            .map_err(undone)?;
    }
    Ok(())
}

/// Adds to histories: message, place, time and what happened.
pub(super) async fn insert_events(
    txn: &mut WriteConnection,
    events: &[(MessageUid, i64, Time, NewEvent)],
) -> Result<(), StoreError> {
    let single = events.iter().map(|(uid, seq, at, event)| EventRow::single(*uid, *seq, *at, event));
    insert_event_rows(txn, &single.collect::<Vec<_>>()).await
}

async fn insert_event_rows(txn: &mut WriteConnection, rows: &[EventRow<'_>]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(INSERT_EVENT)
        .bind(column(rows, |row| row.uid.as_bytes().as_slice()))
        .bind(column(rows, |row| row.seq))
        .bind(column(rows, |row| row.at.as_millis()))
        .bind(column(rows, |row| row.kind.code()))
        .bind(column(rows, |row| row.data.map(text)))
        .bind(column(rows, |row| row.more.as_deref().map(text)))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(())
}
