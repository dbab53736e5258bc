//! Deleting an account and storing mail for it on two nodes of a Galera cluster.
//!
//! Whoever stores mail locks the account's row until it commits, and so does whoever deletes it. But on a
//! cluster a lock holds on one node only: there, the second of two transactions to commit fails only if both
//! *wrote* a row. Storing mail writes the counter of its tenant, state and writer. So whoever deletes writes
//! all counters of the tenant, first of all: mail that is stored before is seen by the check for mail, and
//! whoever stores it at the same time commits first, or fails and finds the account gone.

use postway_domain::MessageStatus;

use super::{
    engine::{COUNT, WriteConnection},
    failed,
};
use crate::{error::StoreError, nodes::placement::WRITERS, record::AccountKey};

/// Places beyond those in the register: a node may be about to join.
const JOINING: i64 = 2;

/// First the lock that transactions of this node wait for, so that none waits for another's counters with it.
pub(super) const HOLD: &str = "SELECT id FROM account WHERE tenant = ? AND id = ? FOR UPDATE";
pub(super) const PLACES: &str = "SELECT COALESCE(MAX(slot), 0) FROM node";
pub(super) const RAISE: &str = "UPDATE tally SET `count` = `count` + 1 WHERE tenant = ?";
pub(super) const LOWER: &str = "UPDATE tally SET `count` = `count` - 1 WHERE tenant = ?";

/// Writes every counter that new mail of the account's tenant may be counted in, and leaves its value.
pub(super) async fn write(txn: &mut WriteConnection, key: &AccountKey) -> Result<(), StoreError> {
    let tenant = key.tenant.as_str();
    let held = sqlx::query(HOLD).bind(tenant).bind(key.account.as_str());
    held.execute(txn.conn()?).await.map_err(failed)?;
    let last: i64 = sqlx::query_scalar(PLACES).fetch_one(txn.conn()?).await.map_err(failed)?;
    let shards = 0..(last + 1 + JOINING) * WRITERS;
    let of_state = |status: &MessageStatus| {
        let status = *status;
        shards.clone().map(move |shard| (status, shard))
    };
    let counters: Vec<(MessageStatus, i64)> = MessageStatus::ALL.iter().flat_map(of_state).collect();
    for (sql, run) in COUNT.runs(&counters) {
        let mut query = sqlx::query(sql);
        for (status, shard) in run {
            query = query.bind(tenant).bind(status.code()).bind(*shard).bind(0);
        }
        query.execute(txn.conn()?).await.map_err(failed)?;
    }
    // An update that changes nothing is not replicated.
    for sql in [RAISE, LOWER] {
        sqlx::query(sql).bind(tenant).execute(txn.conn()?).await.map_err(failed)?;
    }
    txn.after.wrote = true;
    Ok(())
}
