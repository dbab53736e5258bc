//! The fenced writes: wire commits and changes.

use std::collections::{HashMap, HashSet};

use postway_domain::{LaneId, MessageUid, RecipientStatus, State, Status, TenantId, message::OnDoubt};

use super::{engine::Txn, insert_events};
use crate::{
    error::StoreError,
    group::rounds,
    record::{AccountKey, Change, RecipientChange, WireCommit},
    rows::Multi,
};

pub(super) static COMMIT_WIRE: Multi = Multi::new(
    "UPDATE OR FAIL message SET wire_committed = 1, version = message.version + 1, updated_at = v.column4, \
     event_seq = message.event_seq + v.column5 FROM (VALUES ",
    5,
    ") AS v WHERE message.uid = v.column1 AND message.status = 4 AND message.wire_committed = 0 \
     AND message.lease_token = v.column2 AND message.version = v.column3 \
     AND (message.expires_at IS NULL OR message.expires_at > v.column4) RETURNING uid, event_seq",
);

/// A doubt that is not to be sent again has no due time: a newer message may have taken its place since it was claimed.
pub(super) static APPLY: Multi = Multi::new(
    "UPDATE OR FAIL message SET status = v.column5, wait = v.column6, wire_committed = v.column8, \
     due_at = CASE WHEN v.column5 = 8 AND message.on_doubt = 1 THEN NULL ELSE v.column7 END, \
     lease_node = NULL, lease_until = NULL, \
     lease_token = CASE WHEN v.column9 THEN message.lease_token END, \
     retries = coalesce(v.column10, message.retries), doubts = coalesce(v.column11, message.doubts), \
     lost_leases = coalesce(v.column12, message.lost_leases), version = message.version + 1, \
     event_seq = message.event_seq + v.column13, updated_at = v.column14, \
     sent_at = CASE WHEN v.column5 = 5 THEN v.column14 ELSE message.sent_at END, \
     failed_at = CASE WHEN v.column5 = 6 THEN v.column14 END, \
     exhausted = v.column15, error = v.column16 FROM (VALUES ",
    16,
    ") AS v WHERE message.uid = v.column1 AND message.status = v.column2 \
     AND (v.column3 IS NULL OR message.lease_token = v.column3) \
     AND (v.column4 IS NULL OR message.version = v.column4) RETURNING uid, event_seq, tenant, lane, due_at",
);

pub(super) static CHANGE_RECIPIENT: Multi = Multi::new(
    "UPDATE OR FAIL recipient SET status = v.column3, smtp_code = v.column4, enhanced = v.column5, reply = v.column6 \
     FROM (VALUES ",
    6,
    ") AS v WHERE recipient.uid = v.column1 AND recipient.position = v.column2",
);

pub(super) static END_RECIPIENTS: Multi =
    Multi::new("UPDATE OR FAIL recipient SET status = ? WHERE status = 0 AND uid IN (", 1, ")");

pub(super) static INSERT_ATTEMPT: Multi = Multi::new(
    "INSERT INTO attempt (uid, number, started_at, duration_ms, account, remote, outcome, smtp_code, enhanced, reply, \
     provider_message_id) VALUES ",
    11,
    // The attempt's late answer says more than the doubt that was written in its place.
    " ON CONFLICT (uid, number) DO UPDATE SET duration_ms = excluded.duration_ms, outcome = excluded.outcome, \
     smtp_code = excluded.smtp_code, enhanced = excluded.enhanced, reply = excluded.reply, \
     provider_message_id = excluded.provider_message_id",
);

pub(super) static LANES: Multi = Multi::new("SELECT id, tenant, account FROM lane WHERE id IN (", 1, ")");

pub(super) fn wire_commit(txn: &mut Txn, commits: &[&WireCommit]) -> Result<Vec<bool>, StoreError> {
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

/// Writes permissions; the last event of each message that has one now.
fn commit_round(txn: &mut Txn, commits: &[&WireCommit]) -> Result<HashMap<MessageUid, i64>, StoreError> {
    let mut held = HashMap::with_capacity(commits.len());
    for (sql, run) in COMMIT_WIRE.runs(commits) {
        let mut query = txn.conn.query(sql)?;
        for commit in run {
            query = query
                .bind(commit.uid.as_bytes().as_slice())
                .bind(commit.token.as_i64())
                .bind(commit.version)
                .bind(commit.at.as_millis())
                .bind(i64::from(commit.resend.is_some()));
        }
        for row in query.rows()? {
            held.insert(MessageUid::from_bytes(row.id16(0)?), row.int(1)?);
        }
    }
    let given = commits.iter().filter_map(|commit| Some((*commit, *held.get(&commit.uid)?)));
    let events = WireCommit::told(given, &mut txn.after.journal);
    insert_events(txn, &events)?;
    let recipients: Vec<_> = commits
        .iter()
        .filter(|commit| held.contains_key(&commit.uid))
        .flat_map(|commit| commit.recipients.iter().map(move |change| (commit.uid, change)))
        .collect();
    change_recipients(txn, &recipients)?;
    Ok(held)
}

pub(super) fn apply(txn: &mut Txn, changes: &[&Change]) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; changes.len()];
    txn.after.wrote |= !changes.is_empty();
    for round in rounds(changes.iter().map(|change| change.uid)) {
        let of_round: Vec<&Change> = round.iter().map(|&index| changes[index]).collect();
        let written = apply_round(txn, &of_round)?;
        for (index, written) in round.into_iter().zip(written) {
            held[index] = written;
        }
    }
    Ok(held)
}

/// What an update says of a message it changed.
struct Written {
    event_seq: i64,
    tenant: TenantId,
    lane: LaneId,
    /// Whether it waits to be claimed.
    is_due: bool,
}

fn apply_round(txn: &mut Txn, changes: &[&Change]) -> Result<Vec<bool>, StoreError> {
    let written = update(txn, changes)?;
    let done: Vec<&Change> =
        changes.iter().copied().filter(|change| written.contains_key(&change.uid)).collect();

    let mut events = Vec::with_capacity(done.len());
    let mut lanes = HashSet::new();
    for change in &done {
        let row = &written[&change.uid];
        let first = row.event_seq - change.events.len() as i64 + 1;
        let is_held = change.to == State::InDoubt && !row.is_due;
        for (seq, event) in (first..).zip(change.told(is_held).iter()) {
            txn.after.journal.note(&row.tenant, row.lane, change.happening(seq, event.kind));
            events.push((change.uid, seq, change.at, event.clone()));
        }
        txn.count(&row.tenant, Some(change.fence.status), change.to.status());
        if row.is_due {
            lanes.insert(row.lane);
        }
    }
    insert_events(txn, &events)?;
    wake_lanes(txn, lanes)?;

    let recipients: Vec<_> =
        done.iter().flat_map(|change| change.recipients.iter().map(move |one| (change.uid, one))).collect();
    change_recipients(txn, &recipients)?;
    end_recipients(txn, &done)?;
    insert_attempts(txn, &done)?;
    Ok(changes.iter().map(|change| written.contains_key(&change.uid)).collect())
}

fn update(txn: &mut Txn, changes: &[&Change]) -> Result<HashMap<MessageUid, Written>, StoreError> {
    let mut written = HashMap::with_capacity(changes.len());
    for (sql, run) in APPLY.runs(changes) {
        let mut query = txn.conn.query(sql)?;
        for change in run {
            query = query
                .bind(change.uid.as_bytes().as_slice())
                .bind(change.fence.status.code())
                .bind(change.fence.token.map(|token| token.as_i64()))
                .bind(change.fence.version)
                .bind(change.to.status().code())
                .bind(change.to.wait().map(|wait| wait.code()))
                .bind(change.claimable_at().map(|at| at.as_millis()))
                .bind(change.to == State::Sending { wire_committed: true })
                .bind(change.keep_token)
                .bind(change.retries)
                .bind(change.doubts)
                .bind(change.lost_leases)
                .bind(change.events.len() as i64)
                .bind(change.at.as_millis())
                .bind(change.exhausted)
                .bind(change.error.as_deref());
        }
        for row in query.rows()? {
            let of_message = Written {
                event_seq: row.int(1)?,
                tenant: row.parsed(2)?,
                lane: LaneId::from_bytes(row.id16(3)?),
                is_due: row.opt_int(4)?.is_some(),
            };
            written.insert(MessageUid::from_bytes(row.id16(0)?), of_message);
        }
    }
    Ok(written)
}

fn wake_lanes(txn: &mut Txn, lanes: HashSet<LaneId>) -> Result<(), StoreError> {
    let lanes: Vec<LaneId> = lanes.into_iter().collect();
    for (sql, run) in LANES.runs(&lanes) {
        let mut query = txn.conn.query(sql)?;
        for lane in run {
            query = query.bind(lane.as_bytes().as_slice());
        }
        for row in query.rows()? {
            txn.after.woken.insert(AccountKey { tenant: row.parsed(1)?, account: row.parsed(2)? });
        }
    }
    Ok(())
}

fn change_recipients(txn: &mut Txn, changes: &[(MessageUid, &RecipientChange)]) -> Result<(), StoreError> {
    for (sql, run) in CHANGE_RECIPIENT.runs(changes) {
        let mut query = txn.conn.query(sql)?;
        for (uid, change) in run {
            let reply = change.reply.as_ref();
            query = query
                .bind(uid.as_bytes().as_slice())
                .bind(change.position)
                .bind(change.status.code())
                .bind(reply.and_then(|reply| reply.code))
                .bind(reply.and_then(|reply| reply.enhanced.as_deref()))
                .bind(reply.map(|reply| reply.text.as_str()));
        }
        query.execute()?;
    }
    Ok(())
}

fn end_recipients(txn: &mut Txn, changes: &[&Change]) -> Result<(), StoreError> {
    for &status in RecipientStatus::ALL {
        let ending: Vec<MessageUid> = changes
            .iter()
            .filter(|change| change.ends_open_recipients == Some(status))
            .map(|change| change.uid)
            .collect();
        for (sql, run) in END_RECIPIENTS.runs(&ending) {
            let mut query = txn.conn.query(sql)?.bind(status.code());
            for uid in run {
                query = query.bind(uid.as_bytes().as_slice());
            }
            query.execute()?;
        }
    }
    Ok(())
}

fn insert_attempts(txn: &mut Txn, changes: &[&Change]) -> Result<(), StoreError> {
    let attempts: Vec<_> = changes
        .iter()
        .filter_map(|change| change.attempt.as_ref().map(|attempt| (change.uid, attempt)))
        .collect();
    for (sql, run) in INSERT_ATTEMPT.runs(&attempts) {
        let mut query = txn.conn.query(sql)?;
        for (uid, attempt) in run {
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
        }
        query.execute()?;
    }
    Ok(())
}

// The statements above write these codes as literals.
const _: () = assert!(Status::Sending as i64 == 4 && Status::Sent as i64 == 5 && Status::Failed as i64 == 6);
const _: () = assert!(Status::InDoubt as i64 == 8 && OnDoubt::Hold as i64 == 1);
const _: () = assert!(RecipientStatus::Pending as i64 == 0);
