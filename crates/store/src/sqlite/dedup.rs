//! Telling repeats from new messages, by idempotency key and client id, set-wise.

use std::collections::{HashMap, HashSet};

use postway_domain::{MessageUid, TenantId};
use sqlx::Row;

use super::{bytes16, failed, rows::Multi, writer::Txn};
use crate::{
    error::StoreError,
    record::{Acceptance, DedupKind, NewMessage},
};

pub(super) static DROP_TOMBSTONES: Multi =
    Multi::new("DELETE FROM dedup WHERE (tenant, kind, key) IN (VALUES ", 3, ") AND expires_at <= ?");
pub(super) static INSERT_DEDUP: Multi = Multi::new(
    "INSERT INTO dedup (tenant, kind, key, fingerprint, uid) VALUES ",
    5,
    " ON CONFLICT (tenant, kind, key) DO NOTHING",
);
pub(super) static FIND_DEDUP: Multi = Multi::new(
    "SELECT tenant, kind, key, fingerprint, uid FROM dedup WHERE (tenant, kind, key) IN (VALUES ",
    3,
    ")",
);
pub(super) static DROP_DEDUP: Multi = Multi::new("DELETE FROM dedup WHERE uid IN (", 1, ")");

/// Finds out which messages repeat or contradict an earlier one, by index. A message that lost to one that was refused
/// itself gets another round: the key is free again.
pub(super) async fn refuse_repeats(
    txn: &mut Txn<'_>,
    messages: &[&NewMessage],
) -> Result<HashMap<usize, Acceptance>, StoreError> {
    let mut refused = HashMap::new();
    let mut round: Vec<usize> = (0..messages.len()).collect();
    while !round.is_empty() {
        let lost = settle_keys(txn, messages, &round).await?;
        let losers: HashSet<MessageUid> = lost.iter().map(|loss| messages[loss.index].uid).collect();
        round.clear();
        for loss in lost {
            if losers.contains(&loss.winner) {
                round.push(loss.index);
            } else {
                refused.insert(loss.index, loss.refusal);
            }
        }
    }
    Ok(refused)
}

/// A message that came second.
struct Loss {
    index: usize,
    winner: MessageUid,
    refusal: Acceptance,
}

/// Settles idempotency keys first, then client ids. Inside one group the first wins, as rows are inserted in order.
async fn settle_keys(
    txn: &mut Txn<'_>,
    messages: &[&NewMessage],
    round: &[usize],
) -> Result<Vec<Loss>, StoreError> {
    let mut lost: Vec<Loss> = Vec::new();
    for pass in [Pass::Idempotency, Pass::ClientId] {
        let keyed: Vec<(usize, &NewMessage, DedupKind, &str)> = round
            .iter()
            .filter(|index| !lost.iter().any(|loss| loss.index == **index))
            .filter_map(|&index| {
                pass.key(messages[index]).map(|(kind, key)| (index, messages[index], kind, key))
            })
            .collect();
        if keyed.is_empty() {
            continue;
        }
        let winners = claim_keys(txn, &keyed).await?;
        let mut losers = Vec::new();
        for (index, message, kind, key) in keyed {
            let holder = (message.lane.tenant.clone(), kind as i64, key.to_owned());
            let Some((fingerprint, uid)) = winners.get(&holder) else {
                return Err(StoreError::Unexpected("a deduplication key vanished".into()));
            };
            let winner = MessageUid::from_bytes(*uid);
            if winner == message.uid {
                continue;
            }
            losers.push(message);
            let refusal = if fingerprint[..] == message.fingerprint {
                Acceptance::Repeat { uid: winner }
            } else {
                Acceptance::Conflict { kind }
            };
            lost.push(Loss { index, winner, refusal });
        }
        for (sql, run) in DROP_DEDUP.runs(&losers) {
            let mut query = sqlx::query(sql);
            for message in run {
                query = query.bind(message.uid.as_bytes().as_slice());
            }
            query.execute(&mut *txn.conn).await.map_err(failed)?;
        }
    }
    Ok(lost)
}

#[derive(Clone, Copy)]
enum Pass {
    Idempotency,
    ClientId,
}

impl Pass {
    fn key(self, message: &NewMessage) -> Option<(DedupKind, &str)> {
        match self {
            Pass::Idempotency => message.idempotency.as_ref().map(|(kind, key)| (*kind, key.as_str())),
            Pass::ClientId => message.client_id.as_ref().map(|id| (DedupKind::ClientId, id.as_str())),
        }
    }
}

type Winners = HashMap<(TenantId, i64, String), (Vec<u8>, [u8; 16])>;

/// Inserts the keys that are free, or held by a tombstone whose time is over, and reads back who holds each.
async fn claim_keys(
    txn: &mut Txn<'_>,
    keyed: &[(usize, &NewMessage, DedupKind, &str)],
) -> Result<Winners, StoreError> {
    for (sql, run) in DROP_TOMBSTONES.runs(keyed) {
        let mut query = sqlx::query(sql);
        for (_, message, kind, key) in run {
            query = query.bind(message.lane.tenant.as_str()).bind(*kind as i64).bind(*key);
        }
        query = query.bind(run[0].1.created_at.as_millis());
        query.execute(&mut *txn.conn).await.map_err(failed)?;
    }
    for (sql, run) in INSERT_DEDUP.runs(keyed) {
        let mut query = sqlx::query(sql);
        for (_, message, kind, key) in run {
            query = query
                .bind(message.lane.tenant.as_str())
                .bind(*kind as i64)
                .bind(*key)
                .bind(message.fingerprint.as_slice())
                .bind(message.uid.as_bytes().as_slice());
        }
        query.execute(&mut *txn.conn).await.map_err(failed)?;
    }
    let mut winners = Winners::new();
    for (sql, run) in FIND_DEDUP.runs(keyed) {
        let mut query = sqlx::query(sql);
        for (_, message, kind, key) in run {
            query = query.bind(message.lane.tenant.as_str()).bind(*kind as i64).bind(*key);
        }
        for row in query.fetch_all(&mut *txn.conn).await.map_err(failed)? {
            let tenant: &str = row.try_get(0).map_err(failed)?;
            let tenant =
                tenant.parse().map_err(|_| StoreError::Unexpected("a malformed tenant id".into()))?;
            let key = (tenant, row.try_get(1).map_err(failed)?, row.try_get(2).map_err(failed)?);
            winners.insert(key, (row.try_get(3).map_err(failed)?, bytes16(&row, 4)?));
        }
    }
    Ok(winners)
}
