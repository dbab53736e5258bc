//! The fenced writes: wire commits and changes.

use std::collections::{HashMap, HashSet};

use postway_domain::{
    LaneId, MessageState, MessageStatus, MessageUid, RecipientStatus, TenantId, message::OnDoubt,
};

use super::{engine::WriteConnection, insert_events};
use crate::{
    engine::rounds,
    error::StoreError,
    record::{AccountKey, MessageChange, RecipientChange, WireCommit},
    sql::decode::on_doubt,
};

pub(super) const COMMIT_WIRE: &str = "UPDATE OR FAIL message SET wire_committed = 1, version = version + 1, \
     updated_at = ?4, event_seq = event_seq + ?5 WHERE uid = ?1 AND status = 4 AND wire_committed = 0 \
     AND lease_token = ?2 AND version = ?3 AND (expires_at IS NULL OR expires_at > ?4)";

pub(super) const LAST_EVENT: &str = "SELECT event_seq FROM message WHERE uid = ?";

/// What is known of a message that its writer still holds. The transaction is the only one that writes, so
/// that it is so until the update.
pub(super) const FENCED: &str = "SELECT event_seq, tenant, lane, on_doubt FROM message WHERE uid = ?1 AND status = ?2 \
     AND (?3 IS NULL OR lease_token = ?3) AND (?4 IS NULL OR version = ?4)";

pub(super) const APPLY: &str = "UPDATE OR FAIL message SET status = ?2, wait = ?3, due_at = ?4, wire_committed = ?5, \
     lease_node = NULL, lease_until = NULL, lease_token = CASE WHEN ?6 THEN lease_token END, \
     retries = coalesce(?7, retries), doubts = coalesce(?8, doubts), lost_leases = coalesce(?9, lost_leases), \
     version = version + 1, event_seq = ?10, updated_at = ?11, sent_at = CASE WHEN ?2 = 5 THEN ?11 ELSE sent_at END, \
     failed_at = CASE WHEN ?2 = 6 THEN ?11 END, exhausted = ?12, error = ?13 WHERE uid = ?1";

pub(super) const CHANGE_RECIPIENT: &str = "UPDATE OR FAIL recipient SET status = ?3, smtp_code = ?4, enhanced = ?5, \
     reply = ?6 WHERE uid = ?1 AND position = ?2";

pub(super) const END_RECIPIENTS: &str =
    "UPDATE OR FAIL recipient SET status = ? WHERE status = 0 AND uid = ?";

/// The attempt's late answer says more than the doubt that was written in its place.
pub(super) const INSERT_ATTEMPT: &str = "INSERT INTO attempt (uid, number, started_at, duration_ms, account, remote, outcome, \
     smtp_code, enhanced, reply, provider_message_id) VALUES (?,?,?,?,?,?,?,?,?,?,?) \
     ON CONFLICT (uid, number) DO UPDATE SET duration_ms = excluded.duration_ms, outcome = excluded.outcome, \
     smtp_code = excluded.smtp_code, enhanced = excluded.enhanced, reply = excluded.reply, \
     provider_message_id = excluded.provider_message_id";

pub(super) const LANE: &str = "SELECT tenant, account FROM lane WHERE id = ?";

pub(super) fn wire_commit(
    txn: &mut WriteConnection,
    commits: &[&WireCommit],
) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; commits.len()];
    txn.after.wrote |= !commits.is_empty();
    for round in rounds(commits.iter().map(|commit| commit.uid)) {
        let of_round: Vec<&WireCommit> = round.iter().map(|&index| commits[index]).collect();
        let written = commit_round(txn, &of_round)?;
        for index in round {
            held[index] = written.contains_key(&commits[index].uid);
        }
    }
    Ok(held)
}

/// Writes permissions; of each message that has one now, the last event where this adds one.
fn commit_round(
    txn: &mut WriteConnection,
    commits: &[&WireCommit],
) -> Result<HashMap<MessageUid, i64>, StoreError> {
    let mut held = HashMap::with_capacity(commits.len());
    let mut query = txn.conn.query(COMMIT_WIRE)?;
    for commit in commits {
        query = query
            .bind(commit.uid.as_bytes().as_slice())
            .bind(commit.token.as_i64())
            .bind(commit.version)
            .bind(commit.at.as_millis())
            .bind(i64::from(commit.resend.is_some()));
        if query.execute_row()? == 1 {
            held.insert(commit.uid, 0);
        }
    }
    drop(query);
    for commit in commits.iter().filter(|commit| commit.resend.is_some()) {
        if let Some(last) = held.get_mut(&commit.uid) {
            let mut query = txn.conn.query(LAST_EVENT)?.bind(commit.uid.as_bytes().as_slice());
            *last = query.find_row()?.map_or(Ok(0), |row| row.int(0))?;
        }
    }
    let given = commits.iter().filter_map(|commit| Some((*commit, *held.get(&commit.uid)?)));
    let events = WireCommit::note_events(given, &mut txn.after.journal);
    insert_events(&txn.conn, &events)?;
    let recipients: Vec<_> = commits
        .iter()
        .filter(|commit| held.contains_key(&commit.uid))
        .flat_map(|commit| commit.recipients.iter().map(move |change| (commit.uid, change)))
        .collect();
    change_recipients(txn, &recipients)?;
    Ok(held)
}

pub(super) fn apply(txn: &mut WriteConnection, changes: &[&MessageChange]) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; changes.len()];
    txn.after.wrote |= !changes.is_empty();
    for round in rounds(changes.iter().map(|change| change.uid)) {
        let of_round: Vec<&MessageChange> = round.iter().map(|&index| changes[index]).collect();
        let written = apply_round(txn, &of_round)?;
        for (index, written) in round.into_iter().zip(written) {
            held[index] = written;
        }
    }
    Ok(held)
}

/// What an update says of a message it changed.
struct SqliteWrite {
    event_seq: i64,
    tenant: TenantId,
    lane: LaneId,
    /// Whether it waits to be claimed.
    is_due: bool,
}

fn apply_round(txn: &mut WriteConnection, changes: &[&MessageChange]) -> Result<Vec<bool>, StoreError> {
    let written = update(txn, changes)?;
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
    insert_events(&txn.conn, &events)?;
    wake_lanes(txn, lanes)?;

    let recipients: Vec<_> =
        done.iter().flat_map(|change| change.recipients.iter().map(move |one| (change.uid, one))).collect();
    change_recipients(txn, &recipients)?;
    end_recipients(txn, &done)?;
    insert_attempts(txn, &done)?;
    Ok(changes.iter().map(|change| written.contains_key(&change.uid)).collect())
}

fn update(
    txn: &mut WriteConnection,
    changes: &[&MessageChange],
) -> Result<HashMap<MessageUid, SqliteWrite>, StoreError> {
    let mut written = HashMap::with_capacity(changes.len());
    let mut fenced = txn.conn.query(FENCED)?;
    let mut query = txn.conn.query(APPLY)?;
    for change in changes {
        fenced = fenced
            .bind(change.uid.as_bytes().as_slice())
            .bind(change.fence.status.code())
            .bind(change.fence.token.map(|token| token.as_i64()))
            .bind(change.fence.version);
        let Some(row) = fenced.find_row()? else { continue };
        // A doubt that is not to be sent again has no due time: a newer message may have taken its place
        // since it was claimed.
        let stays = change.to == MessageState::InDoubt && on_doubt(row.int(3)?) == OnDoubt::Hold;
        let due_at = change.claimable_at().filter(|_| !stays);
        let of_message = SqliteWrite {
            event_seq: row.int(0)? + change.events.len() as i64,
            tenant: row.parsed(1)?,
            lane: LaneId::from_bytes(row.id16(2)?),
            is_due: due_at.is_some(),
        };
        query = query
            .bind(change.uid.as_bytes().as_slice())
            .bind(change.to.status().code())
            .bind(change.to.wait().map(|wait| wait.code()))
            .bind(due_at.map(|at| at.as_millis()))
            .bind(change.to == MessageState::Sending { wire_committed: true })
            .bind(change.keep_token)
            .bind(change.retries)
            .bind(change.doubts)
            .bind(change.lost_leases)
            .bind(of_message.event_seq)
            .bind(change.at.as_millis())
            .bind(change.exhausted)
            .bind(change.error.as_deref());
        query.execute_row()?;
        written.insert(change.uid, of_message);
    }
    Ok(written)
}

fn wake_lanes(txn: &mut WriteConnection, lanes: HashSet<LaneId>) -> Result<(), StoreError> {
    for lane in lanes {
        if let Some(row) = txn.conn.query(LANE)?.bind(lane.as_bytes().as_slice()).find_row()? {
            txn.after.woken.insert(AccountKey { tenant: row.parsed(0)?, account: row.parsed(1)? });
        }
    }
    Ok(())
}

fn change_recipients(
    txn: &mut WriteConnection,
    changes: &[(MessageUid, &RecipientChange)],
) -> Result<(), StoreError> {
    let mut query = txn.conn.query(CHANGE_RECIPIENT)?;
    for (uid, change) in changes {
        let reply = change.reply.as_ref();
        query = query
            .bind(uid.as_bytes().as_slice())
            .bind(change.position)
            .bind(change.status.code())
            .bind(reply.and_then(|reply| reply.code))
            .bind(reply.and_then(|reply| reply.enhanced.as_deref()))
            .bind(reply.map(|reply| reply.text.as_str()));
        query.execute_row()?;
    }
    Ok(())
}

fn end_recipients(txn: &mut WriteConnection, changes: &[&MessageChange]) -> Result<(), StoreError> {
    let mut query = txn.conn.query(END_RECIPIENTS)?;
    for change in changes {
        if let Some(status) = change.ends_open_recipients {
            query = query.bind(status.code()).bind(change.uid.as_bytes().as_slice());
            query.execute_row()?;
        }
    }
    Ok(())
}

fn insert_attempts(txn: &mut WriteConnection, changes: &[&MessageChange]) -> Result<(), StoreError> {
    let attempts: Vec<_> = changes
        .iter()
        .filter_map(|change| change.attempt.as_ref().map(|attempt| (change.uid, attempt)))
        .collect();
    let mut query = txn.conn.query(INSERT_ATTEMPT)?;
    for (uid, attempt) in &attempts {
        let reply = attempt.reply.as_ref();
        query = query
            .bind(uid.as_bytes().as_slice())
            .bind(attempt.number)
            .bind(attempt.started_at.as_millis())
            .bind(attempt.duration_ms)
            .bind(attempt.account.as_str())
            .bind(attempt.remote.as_deref())
            .bind(attempt.outcome)
            .bind(reply.and_then(|reply| reply.code))
            .bind(reply.and_then(|reply| reply.enhanced.as_deref()))
            .bind(reply.map(|reply| reply.text.as_str()))
            .bind(attempt.provider_message_id.as_deref());
        query.execute_row()?;
    }
    Ok(())
}

// The statements above write these codes as literals.
const _: () = assert!(
    MessageStatus::Sending as i64 == 4
        && MessageStatus::Sent as i64 == 5
        && MessageStatus::Failed as i64 == 6
);
const _: () = assert!(RecipientStatus::Pending as i64 == 0);
