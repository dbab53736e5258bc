//! The table of deduplication keys.
//!
//! Keys are inserted in their own order, so that writers that want the same ones wait for each other rather
//! than deadlock. A key that another writer has inserted and not yet committed makes the insert wait; what it
//! then finds is read back by a statement of its own, which at READ COMMITTED sees the winner.

use async_trait::async_trait;
use postway_domain::MessageUid;
use sqlx::Row;

use super::{bytes16, engine::WriteConnection, failed, text};
use crate::{
    error::StoreError,
    queue::{
        dedup::{KeyTable, Keyed, Winners},
        packing::PackedMessage,
    },
    sql::{decode::parsed, multi_row::MultiRow},
};

/// A tombstone whose time is over is taken over. Assignments run from left to right, so `expires_at` is last.
pub(super) static INSERT_DEDUP: MultiRow = MultiRow::new(
    "INSERT INTO dedup (tenant, kind, `key`, fingerprint, uid) VALUES ",
    5,
    " ON DUPLICATE KEY UPDATE fingerprint = IF(expires_at <= ?, VALUES(fingerprint), fingerprint), \
     uid = IF(expires_at <= ?, VALUES(uid), uid), expires_at = IF(expires_at <= ?, NULL, expires_at)",
);
pub(super) static FIND_DEDUP: MultiRow = MultiRow::of_pieces(
    "SELECT tenant, kind, `key`, fingerprint, uid FROM dedup FORCE INDEX (PRIMARY) WHERE ",
    "(tenant = ? AND kind = ? AND `key` = ?)",
    " OR ",
    "",
);
pub(super) static DROP_DEDUP: MultiRow = MultiRow::new("DELETE FROM dedup WHERE uid IN (", 1, ")");

#[async_trait]
impl KeyTable for WriteConnection {
    async fn claim_keys(&mut self, keyed: &[Keyed<'_>]) -> Result<Winners, StoreError> {
        let mut ordered: Vec<&Keyed<'_>> = keyed.iter().collect();
        // Stable: of two with the same key the first stays first.
        ordered.sort_by_key(|keyed| (keyed.message.lane.tenant.as_str(), keyed.kind as i64, keyed.key));
        for (sql, run) in INSERT_DEDUP.runs(&ordered) {
            let mut query = sqlx::query(sql);
            for Keyed { message, kind, key, fingerprint, .. } in run {
                query = query
                    .bind(message.lane.tenant.as_str())
                    .bind(*kind as i64)
                    .bind(key.as_bytes())
                    .bind(fingerprint.as_slice())
                    .bind(message.uid.as_bytes().as_slice());
            }
            let now_ms = run[0].message.created_at.as_millis();
            query.bind(now_ms).bind(now_ms).bind(now_ms).execute(self.conn()?).await.map_err(failed)?;
        }
        let mut winners = Winners::new();
        for (sql, run) in FIND_DEDUP.runs(&ordered) {
            let mut query = sqlx::query(sql);
            for Keyed { message, kind, key, .. } in run {
                query = query.bind(message.lane.tenant.as_str()).bind(*kind as i64).bind(key.as_bytes());
            }
            for row in query.fetch_all(self.conn()?).await.map_err(failed)? {
                let tenant = parsed(row.try_get(0).map_err(failed)?)?;
                let Some(key) = text(&row, 2)? else { continue };
                let winner = MessageUid::from_bytes(bytes16(&row, 4)?);
                let held = (tenant, row.try_get(1).map_err(failed)?, key);
                winners.insert(held, (row.try_get(3).map_err(failed)?, winner));
            }
        }
        Ok(winners)
    }

    async fn drop_keys(&mut self, messages: &[&PackedMessage]) -> Result<(), StoreError> {
        for (sql, run) in DROP_DEDUP.runs(messages) {
            let mut query = sqlx::query(sql);
            for message in run {
                query = query.bind(message.uid.as_bytes().as_slice());
            }
            query.execute(self.conn()?).await.map_err(failed)?;
        }
        Ok(())
    }
}
