//! The fenced writes: wire commits and changes.

use std::collections::{HashMap, HashSet};

use postway_domain::{
    LaneId, MessageState, MessageStatus, MessageUid, RecipientStatus, TenantId, message::OnDoubt,
};
use sqlx::Row;

use super::{accept::insert_events, bytes16, column, engine::WriteConnection, failed, text, undone};
use crate::{
    engine::rounds,
    error::StoreError,
    record::{AccountKey, MessageChange, RecipientChange, WireCommit},
    sql::decode::parsed,
};

// `status + 0` keeps the planner off the index by status: a message is found by its id, in the order of the
// ids.
pub(super) const COMMIT_WIRE: &str = "UPDATE message m SET wire_committed = TRUE, version = m.version + 1, \
     updated_at = v.at, event_seq = m.event_seq + v.events \
     FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS v(uid, token, version, at, events) \
     WHERE m.uid = v.uid AND m.status + 0 = 4 AND NOT m.wire_committed AND m.lease_token = v.token \
     AND m.version = v.version AND (m.expires_at IS NULL OR m.expires_at > v.at) RETURNING m.uid, m.event_seq";

/// A doubt that is not to be sent again has no due time: a newer message may have taken its place since it
/// was claimed.
pub(super) const APPLY: &str = "UPDATE message m SET status = v.status, wait = v.wait, \
     due_at = CASE WHEN v.status = 8 AND m.on_doubt = 1 THEN NULL ELSE v.due_at END, \
     wire_committed = v.wire_committed, lease_node = NULL, lease_until = NULL, \
     lease_token = CASE WHEN v.keep_token THEN m.lease_token END, \
     retries = coalesce(v.retries, m.retries), doubts = coalesce(v.doubts, m.doubts), \
     lost_leases = coalesce(v.lost_leases, m.lost_leases), version = m.version + 1, \
     event_seq = m.event_seq + v.events, updated_at = v.at, \
     sent_at = CASE WHEN v.status = 5 THEN v.at ELSE m.sent_at END, \
     failed_at = CASE WHEN v.status = 6 THEN v.at END, exhausted = v.exhausted, error = v.error \
     FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
     $8::boolean[], $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], \
     $15::boolean[], $16::text[]) AS v(uid, was_status, was_token, was_version, status, wait, due_at, wire_committed, \
     keep_token, retries, doubts, lost_leases, events, at, exhausted, error) \
     WHERE m.uid = v.uid AND m.status + 0 = v.was_status AND (v.was_token IS NULL OR m.lease_token = v.was_token) \
     AND (v.was_version IS NULL OR m.version = v.was_version) RETURNING m.uid, m.event_seq, m.tenant, m.lane, m.due_at";

pub(super) const CHANGE_RECIPIENT: &str = "UPDATE recipient r SET status = v.status, smtp_code = v.smtp_code, \
     enhanced = v.enhanced, reply = v.reply \
     FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[]) \
     AS v(uid, position, status, smtp_code, enhanced, reply) WHERE r.uid = v.uid AND r.position = v.position";

pub(super) const END_RECIPIENTS: &str = "UPDATE recipient r SET status = v.status \
     FROM UNNEST($1::bytea[], $2::bigint[]) AS v(uid, status) WHERE r.uid = v.uid AND r.status = 0";

/// The attempt's late answer says more than the doubt that was written in its place.
pub(super) const INSERT_ATTEMPT: &str = "INSERT INTO attempt (uid, number, started_at, duration_ms, account, remote, \
     outcome, smtp_code, enhanced, reply, provider_message_id) \
     SELECT * FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
     $8::bigint[], $9::text[], $10::text[], $11::text[]) \
     ON CONFLICT (uid, number) DO UPDATE SET duration_ms = excluded.duration_ms, outcome = excluded.outcome, \
     smtp_code = excluded.smtp_code, enhanced = excluded.enhanced, reply = excluded.reply, \
     provider_message_id = excluded.provider_message_id";

pub(super) const LANES: &str = "SELECT tenant, account FROM lane WHERE id = ANY ($1::bytea[])";

pub(super) async fn wire_commit(
    txn: &mut WriteConnection,
    commits: &[&WireCommit],
) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; commits.len()];
    txn.after.wrote |= !commits.is_empty();
    for round in rounds(commits.iter().map(|commit| commit.uid)) {
        let mut of_round: Vec<&WireCommit> = round.iter().map(|&index| commits[index]).collect();
        // Rows are locked in the order of their ids, here and below.
        of_round.sort_by_key(|commit| commit.uid);
        let written = commit_round(txn, &of_round).await?;
        for index in round {
            held[index] = written.contains_key(&commits[index].uid);
        }
    }
    Ok(held)
}

/// Writes permissions; the last event of each message that has one now.
async fn commit_round(
    txn: &mut WriteConnection,
    commits: &[&WireCommit],
) -> Result<HashMap<MessageUid, i64>, StoreError> {
    let mut held = HashMap::with_capacity(commits.len());
    let rows = sqlx::query(COMMIT_WIRE)
        .bind(column(commits, |commit| commit.uid.as_bytes().as_slice()))
        .bind(column(commits, |commit| commit.token.as_i64()))
        .bind(column(commits, |commit| commit.version))
        .bind(column(commits, |commit| commit.at.as_millis()))
        .bind(column(commits, |commit| i64::from(commit.resend.is_some())))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    for row in rows {
        held.insert(MessageUid::from_bytes(bytes16(&row, 0)?), row.try_get(1).map_err(failed)?);
    }
    let given = commits.iter().filter_map(|commit| Some((*commit, *held.get(&commit.uid)?)));
    let events = WireCommit::note_events(given, &mut txn.after.journal);
    insert_events(txn, &events).await?;
    let recipients: Vec<_> = commits
        .iter()
        .filter(|commit| held.contains_key(&commit.uid))
        .flat_map(|commit| commit.recipients.iter().map(move |change| (commit.uid, change)))
        .collect();
    change_recipients(txn, &recipients).await?;
    Ok(held)
}

pub(super) async fn apply(
    txn: &mut WriteConnection,
    changes: &[&MessageChange],
) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; changes.len()];
    txn.after.wrote |= !changes.is_empty();
    for round in rounds(changes.iter().map(|change| change.uid)) {
        let mut of_round: Vec<&MessageChange> = round.iter().map(|&index| changes[index]).collect();
        of_round.sort_by_key(|change| change.uid);
        let written = apply_round(txn, &of_round).await?;
        for index in round {
            held[index] = written.contains_key(&changes[index].uid);
        }
    }
    Ok(held)
}

/// What an update says of a message it changed.
struct PostgresWrite {
    event_seq: i64,
    tenant: TenantId,
    lane: LaneId,
    /// Whether it waits to be claimed.
    is_due: bool,
}

async fn apply_round(
    txn: &mut WriteConnection,
    changes: &[&MessageChange],
) -> Result<HashMap<MessageUid, PostgresWrite>, StoreError> {
    let written = update(txn, changes).await?;
    let done: Vec<&MessageChange> =
        changes.iter().copied().filter(|change| written.contains_key(&change.uid)).collect();

    let mut events = Vec::with_capacity(done.len());
    let mut lanes = HashSet::new();
    for change in &done {
        let row = &written[&change.uid];
        let first = row.event_seq - change.events.len() as i64 + 1;
        let is_held = change.to == MessageState::InDoubt && !row.is_due;
        for (seq, event) in (first..).zip(change.events_to_write(is_held).iter()) {
            txn.after.journal.note(&row.tenant, row.lane, change.happening(seq, event.kind));
            events.push((change.uid, seq, change.at, event.clone()));
        }
        txn.count(&row.tenant, Some(change.fence.status), change.to.status());
        if row.is_due {
            lanes.insert(row.lane);
        }
    }
    insert_events(txn, &events).await?;
    wake_lanes(txn, lanes).await?;

    let recipients: Vec<_> =
        done.iter().flat_map(|change| change.recipients.iter().map(move |one| (change.uid, one))).collect();
    change_recipients(txn, &recipients).await?;
    end_recipients(txn, &done).await?;
    insert_attempts(txn, &done).await?;
    Ok(written)
}

async fn update(
    txn: &mut WriteConnection,
    changes: &[&MessageChange],
) -> Result<HashMap<MessageUid, PostgresWrite>, StoreError> {
    let mut written = HashMap::with_capacity(changes.len());
    let rows = sqlx::query(APPLY)
        .bind(column(changes, |change| change.uid.as_bytes().as_slice()))
        .bind(column(changes, |change| change.fence.status.code()))
        .bind(column(changes, |change| change.fence.token.map(|token| token.as_i64())))
        .bind(column(changes, |change| change.fence.version))
        .bind(column(changes, |change| change.to.status().code()))
        .bind(column(changes, |change| change.to.wait().map(|wait| wait.code())))
        .bind(column(changes, |change| change.claimable_at().map(|at| at.as_millis())))
        .bind(column(changes, |change| change.to == MessageState::Sending { wire_committed: true }))
        .bind(column(changes, |change| change.keep_token))
        .bind(column(changes, |change| change.retries))
        .bind(column(changes, |change| change.doubts))
        .bind(column(changes, |change| change.lost_leases))
        .bind(column(changes, |change| change.events.len() as i64))
        .bind(column(changes, |change| change.at.as_millis()))
        .bind(column(changes, |change| change.exhausted))
        .bind(column(changes, |change| change.error.as_deref().map(text)))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    for row in rows {
        let of_message = PostgresWrite {
            event_seq: row.try_get(1).map_err(failed)?,
            tenant: parsed(row.try_get(2).map_err(failed)?)?,
            lane: LaneId::from_bytes(bytes16(&row, 3)?),
            is_due: row.try_get::<Option<i64>, _>(4).map_err(failed)?.is_some(),
        };
        written.insert(MessageUid::from_bytes(bytes16(&row, 0)?), of_message);
    }
    Ok(written)
}

async fn wake_lanes(txn: &mut WriteConnection, lanes: HashSet<LaneId>) -> Result<(), StoreError> {
    if lanes.is_empty() {
        return Ok(());
    }
    let lanes: Vec<LaneId> = lanes.into_iter().collect();
    let rows = sqlx::query(LANES)
        .bind(column(&lanes, |lane| lane.as_bytes().as_slice()))
        .fetch_all(&mut txn.conn)
        .await
        .map_err(undone)?;
    for row in rows {
        txn.after.woken.insert(AccountKey {
            tenant: parsed(row.try_get(0).map_err(failed)?)?,
            account: parsed(row.try_get(1).map_err(failed)?)?,
        });
    }
    Ok(())
}

async fn change_recipients(
    txn: &mut WriteConnection,
    changes: &[(MessageUid, &RecipientChange)],
) -> Result<(), StoreError> {
    if changes.is_empty() {
        return Ok(());
    }
    let replies = column(changes, |(_, change)| change.reply.as_ref());
    sqlx::query(CHANGE_RECIPIENT)
        .bind(column(changes, |(uid, _)| uid.as_bytes().as_slice()))
        .bind(column(changes, |(_, change)| i64::from(change.position)))
        .bind(column(changes, |(_, change)| change.status.code()))
        .bind(column(&replies, |reply| reply.and_then(|reply| reply.code).map(i64::from)))
        .bind(column(&replies, |reply| reply.and_then(|reply| reply.enhanced.as_deref()).map(text)))
        .bind(column(&replies, |reply| reply.map(|reply| text(&reply.text))))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(())
}

async fn end_recipients(txn: &mut WriteConnection, changes: &[&MessageChange]) -> Result<(), StoreError> {
    let ending: Vec<(MessageUid, RecipientStatus)> = changes
        .iter()
        .filter_map(|change| change.ends_open_recipients.map(|status| (change.uid, status)))
        .collect();
    if ending.is_empty() {
        return Ok(());
    }
    sqlx::query(END_RECIPIENTS)
        .bind(column(&ending, |(uid, _)| uid.as_bytes().as_slice()))
        .bind(column(&ending, |(_, status)| status.code()))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(())
}

async fn insert_attempts(txn: &mut WriteConnection, changes: &[&MessageChange]) -> Result<(), StoreError> {
    let attempts: Vec<_> = changes
        .iter()
        .filter_map(|change| change.attempt.as_ref().map(|attempt| (change.uid, attempt)))
        .collect();
    if attempts.is_empty() {
        return Ok(());
    }
    let replies = column(&attempts, |(_, attempt)| attempt.reply.as_ref());
    sqlx::query(INSERT_ATTEMPT)
        .bind(column(&attempts, |(uid, _)| uid.as_bytes().as_slice()))
        .bind(column(&attempts, |(_, attempt)| attempt.number))
        .bind(column(&attempts, |(_, attempt)| attempt.started_at.as_millis()))
        .bind(column(&attempts, |(_, attempt)| attempt.duration_ms))
        .bind(column(&attempts, |(_, attempt)| attempt.account.as_str()))
        .bind(column(&attempts, |(_, attempt)| attempt.remote.as_deref().map(text)))
        .bind(column(&attempts, |(_, attempt)| attempt.outcome))
        .bind(column(&replies, |reply| reply.and_then(|reply| reply.code).map(i64::from)))
        .bind(column(&replies, |reply| reply.and_then(|reply| reply.enhanced.as_deref()).map(text)))
        .bind(column(&replies, |reply| reply.map(|reply| text(&reply.text))))
        .bind(column(&attempts, |(_, attempt)| attempt.provider_message_id.as_deref().map(text)))
        .execute(&mut txn.conn)
        .await
        .map_err(undone)?;
    Ok(())
}

// The statements above write these codes as literals.
const _: () = assert!(
    MessageStatus::Sending as i64 == 4
        && MessageStatus::Sent as i64 == 5
        && MessageStatus::Failed as i64 == 6
);
const _: () = assert!(MessageStatus::InDoubt as i64 == 8 && OnDoubt::Hold as i64 == 1);
const _: () = assert!(RecipientStatus::Pending as i64 == 0);
