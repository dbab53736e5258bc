//! The fenced writes: wire commits and changes.
//!
//! There is no `RETURNING` here. The rows are locked in the order of their ids and read, fences are checked
//! against the rows read, and matching changes are written: no other transaction can change a row in between.

use std::collections::{HashMap, HashSet};

use postway_domain::{LaneId, MessageState, MessageStatus, MessageUid, TenantId, Time, message::OnDoubt};
use sqlx::Row;

use super::{
    bytes16, coded,
    engine::WriteConnection,
    failed, insert_events, on_doubt,
    recipients_and_attempts::{change_recipients, end_recipients, insert_attempts},
    time,
};
use crate::{
    engine::rounds,
    error::StoreError,
    record::{AccountKey, MessageChange, WireCommit, WriteFence},
    sql::{decode::parsed, multi_row::MultiRow},
};

/// The index is named so that never more is locked than is asked for.
pub(super) static LOCK: MultiRow = MultiRow::new(
    "SELECT uid, status, lease_token, version, event_seq, tenant, lane, expires_at, wire_committed, on_doubt \
     FROM message FORCE INDEX (PRIMARY) WHERE uid IN (",
    1,
    ") ORDER BY uid FOR UPDATE",
);

pub(super) static COMMIT_WIRE: MultiRow = MultiRow::of_pieces(
    "UPDATE (",
    "SELECT CAST(? AS BINARY(16)) AS uid, CAST(? AS SIGNED) AS at, CAST(? AS SIGNED) AS events",
    " UNION ALL ",
    ") AS v STRAIGHT_JOIN message m ON m.uid = v.uid \
     SET m.wire_committed = 1, m.version = m.version + 1, m.updated_at = v.at, m.event_seq = m.event_seq + v.events",
);

/// A doubt that is not to be sent again has no due time: a newer message may have taken its place since it
/// was claimed.
pub(super) static APPLY: MultiRow = MultiRow::of_pieces(
    "UPDATE (",
    "SELECT CAST(? AS BINARY(16)) AS uid, CAST(? AS SIGNED) AS status, CAST(? AS SIGNED) AS wait, \
     CAST(? AS SIGNED) AS due_at, CAST(? AS SIGNED) AS wire_committed, CAST(? AS SIGNED) AS lease_token, \
     CAST(? AS SIGNED) AS retries, CAST(? AS SIGNED) AS doubts, CAST(? AS SIGNED) AS lost_leases, \
     CAST(? AS SIGNED) AS events, CAST(? AS SIGNED) AS at, CAST(? AS SIGNED) AS exhausted, \
     CAST(? AS CHAR) AS error",
    " UNION ALL ",
    ") AS v STRAIGHT_JOIN message m ON m.uid = v.uid \
     SET m.status = v.status, m.wait = v.wait, m.wire_committed = v.wire_committed, \
     m.due_at = CASE WHEN v.status = 8 AND m.on_doubt = 1 THEN NULL ELSE v.due_at END, \
     m.lease_node = NULL, m.lease_until = NULL, m.lease_token = v.lease_token, \
     m.retries = COALESCE(v.retries, m.retries), m.doubts = COALESCE(v.doubts, m.doubts), \
     m.lost_leases = COALESCE(v.lost_leases, m.lost_leases), m.version = m.version + 1, \
     m.event_seq = m.event_seq + v.events, m.updated_at = v.at, \
     m.sent_at = CASE WHEN v.status = 5 THEN v.at ELSE m.sent_at END, \
     m.failed_at = CASE WHEN v.status = 6 THEN v.at END, m.exhausted = v.exhausted, m.error = v.error",
);

pub(super) static LANES: MultiRow =
    MultiRow::new("SELECT id, tenant, account FROM lane WHERE id IN (", 1, ")");

/// A locked message.
struct LockedRow {
    status: MessageStatus,
    token: Option<i64>,
    version: i64,
    event_seq: i64,
    tenant: TenantId,
    lane: LaneId,
    expires_at: Option<Time>,
    wire_committed: bool,
    on_doubt: OnDoubt,
}

impl LockedRow {
    fn permits(&self, commit: &WireCommit) -> bool {
        self.status == MessageStatus::Sending
            && !self.wire_committed
            && self.token == Some(commit.token.as_i64())
            && self.version == commit.version
            && self.expires_at.is_none_or(|expires_at| expires_at > commit.at)
    }

    fn holds(&self, fence: &WriteFence) -> bool {
        self.status == fence.status
            && fence.token.is_none_or(|token| self.token == Some(token.as_i64()))
            && fence.version.is_none_or(|version| self.version == version)
    }
}

/// Locks what is there of these messages.
async fn lock(
    txn: &mut WriteConnection,
    uids: impl Iterator<Item = MessageUid>,
) -> Result<HashMap<MessageUid, LockedRow>, StoreError> {
    let mut uids: Vec<MessageUid> = uids.collect();
    uids.sort_unstable();
    let mut locked = HashMap::with_capacity(uids.len());
    for (sql, run) in LOCK.runs(&uids) {
        let mut query = sqlx::query(sql);
        for uid in run {
            query = query.bind(uid.as_bytes().as_slice());
        }
        for row in query.fetch_all(txn.conn()?).await.map_err(failed)? {
            let message = LockedRow {
                status: coded(&row, 1, MessageStatus::from_code)?,
                token: row.try_get(2).map_err(failed)?,
                version: row.try_get(3).map_err(failed)?,
                event_seq: row.try_get(4).map_err(failed)?,
                tenant: parsed(row.try_get(5).map_err(failed)?)?,
                lane: LaneId::from_bytes(bytes16(&row, 6)?),
                expires_at: time(&row, 7)?,
                wire_committed: row.try_get(8).map_err(failed)?,
                on_doubt: on_doubt(&row, 9)?,
            };
            locked.insert(MessageUid::from_bytes(bytes16(&row, 0)?), message);
        }
    }
    Ok(locked)
}

pub(super) async fn wire_commit(
    txn: &mut WriteConnection,
    commits: &[&WireCommit],
) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; commits.len()];
    txn.after.wrote |= !commits.is_empty();
    for round in rounds(commits.iter().map(|commit| commit.uid)) {
        let locked = lock(txn, round.iter().map(|&index| commits[index].uid)).await?;
        let mut done = Vec::with_capacity(round.len());
        for index in round {
            let commit = commits[index];
            if let Some(message) = locked.get(&commit.uid).filter(|message| message.permits(commit)) {
                held[index] = true;
                done.push((commit, message));
            }
        }
        write_commits(txn, &done).await?;
    }
    Ok(held)
}

async fn write_commits(
    txn: &mut WriteConnection,
    commits: &[(&WireCommit, &LockedRow)],
) -> Result<(), StoreError> {
    for (sql, run) in COMMIT_WIRE.runs(commits) {
        let mut query = sqlx::query(sql);
        for (commit, _) in run {
            query = query
                .bind(commit.uid.as_bytes().as_slice())
                .bind(commit.at.as_millis())
                .bind(i64::from(commit.resend.is_some()));
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    let given = commits.iter().map(|(commit, message)| (*commit, message.event_seq + 1));
    let events = WireCommit::note_events(given, &mut txn.after.journal);
    insert_events(txn, &events).await?;
    let recipients: Vec<_> = commits
        .iter()
        .flat_map(|(commit, _)| commit.recipients.iter().map(move |change| (commit.uid, change)))
        .collect();
    change_recipients(txn, &recipients).await
}

pub(super) async fn apply(
    txn: &mut WriteConnection,
    changes: &[&MessageChange],
) -> Result<Vec<bool>, StoreError> {
    let mut held = vec![false; changes.len()];
    txn.after.wrote |= !changes.is_empty();
    for round in rounds(changes.iter().map(|change| change.uid)) {
        let locked = lock(txn, round.iter().map(|&index| changes[index].uid)).await?;
        let mut done = Vec::with_capacity(round.len());
        for index in round {
            let change = changes[index];
            if let Some(message) = locked.get(&change.uid).filter(|message| message.holds(&change.fence)) {
                held[index] = true;
                done.push((change, message));
            }
        }
        apply_round(txn, &done).await?;
    }
    Ok(held)
}

async fn apply_round(
    txn: &mut WriteConnection,
    done: &[(&MessageChange, &LockedRow)],
) -> Result<(), StoreError> {
    update(txn, done).await?;
    let mut events = Vec::with_capacity(done.len());
    let mut lanes = HashSet::new();
    for (change, message) in done {
        let is_held = change.to == MessageState::InDoubt && message.on_doubt == OnDoubt::Hold;
        for (seq, event) in (message.event_seq + 1..).zip(change.events_to_write(is_held).iter()) {
            txn.after.journal.note(&message.tenant, message.lane, change.happening(seq, event.kind));
            events.push((change.uid, seq, change.at, event.clone()));
        }
        txn.count(&message.tenant, Some(change.fence.status), change.to.status());
        if change.claimable_at().is_some() && !is_held {
            lanes.insert(message.lane);
        }
    }
    insert_events(txn, &events).await?;
    wake_lanes(txn, lanes).await?;

    let changes: Vec<&MessageChange> = done.iter().map(|(change, _)| *change).collect();
    let recipients: Vec<_> = changes
        .iter()
        .flat_map(|change| change.recipients.iter().map(move |one| (change.uid, one)))
        .collect();
    change_recipients(txn, &recipients).await?;
    end_recipients(txn, &changes).await?;
    insert_attempts(txn, &changes).await
}

async fn update(txn: &mut WriteConnection, done: &[(&MessageChange, &LockedRow)]) -> Result<(), StoreError> {
    for (sql, run) in APPLY.runs(done) {
        let mut query = sqlx::query(sql);
        for (change, message) in run {
            query = query
                .bind(change.uid.as_bytes().as_slice())
                .bind(change.to.status().code())
                .bind(change.to.wait().map(|wait| wait.code()))
                .bind(change.claimable_at().map(|at| at.as_millis()))
                .bind(change.to == MessageState::Sending { wire_committed: true })
                .bind(message.token.filter(|_| change.keep_token))
                .bind(change.retries)
                .bind(change.doubts)
                .bind(change.lost_leases)
                .bind(change.events.len() as i64)
                .bind(change.at.as_millis())
                .bind(change.exhausted)
                .bind(change.error.as_deref());
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    Ok(())
}

async fn wake_lanes(txn: &mut WriteConnection, lanes: HashSet<LaneId>) -> Result<(), StoreError> {
    let lanes: Vec<LaneId> = lanes.into_iter().collect();
    for (sql, run) in LANES.runs(&lanes) {
        let mut query = sqlx::query(sql);
        for lane in run {
            query = query.bind(lane.as_bytes().as_slice());
        }
        for row in query.fetch_all(txn.conn()?).await.map_err(failed)? {
            txn.after.woken.insert(AccountKey {
                tenant: parsed(row.try_get(1).map_err(failed)?)?,
                account: parsed(row.try_get(2).map_err(failed)?)?,
            });
        }
    }
    Ok(())
}

// The statements above write these codes as literals.
const _: () = assert!(MessageStatus::Sent as i64 == 5 && MessageStatus::Failed as i64 == 6);
const _: () = assert!(MessageStatus::InDoubt as i64 == 8 && OnDoubt::Hold as i64 == 1);
