//! The table of deduplication keys.

use async_trait::async_trait;
use postway_domain::MessageUid;

use super::engine::WriteConnection;
use crate::{
    error::StoreError,
    queue::{
        dedup::{KeyTable, Keyed, Winners},
        packing::PackedMessage,
    },
    sql::multi_row::MultiRow,
};

pub(super) static DROP_TOMBSTONES: MultiRow =
    MultiRow::new("DELETE FROM dedup WHERE (tenant, kind, key) IN (VALUES ", 3, ") AND expires_at <= ?");
pub(super) static INSERT_DEDUP: MultiRow = MultiRow::new(
    "INSERT INTO dedup (tenant, kind, key, fingerprint, uid) VALUES ",
    5,
    " ON CONFLICT (tenant, kind, key) DO NOTHING",
);
pub(super) static FIND_DEDUP: MultiRow = MultiRow::new(
    "SELECT tenant, kind, key, fingerprint, uid FROM dedup WHERE (tenant, kind, key) IN (VALUES ",
    3,
    ")",
);
pub(super) static DROP_DEDUP: MultiRow = MultiRow::new("DELETE FROM dedup WHERE uid IN (", 1, ")");

#[async_trait]
impl KeyTable for WriteConnection {
    async fn claim_keys(&mut self, keyed: &[Keyed<'_>]) -> Result<Winners, StoreError> {
        for (sql, run) in DROP_TOMBSTONES.runs(keyed) {
            let mut query = self.conn.query(sql)?;
            for Keyed { message, kind, key, .. } in run {
                query = query.bind(message.lane.tenant.as_str()).bind(*kind as i64).bind(*key);
            }
            query = query.bind(run[0].message.created_at.as_millis());
            query.execute()?;
        }
        for (sql, run) in INSERT_DEDUP.runs(keyed) {
            let mut query = self.conn.query(sql)?;
            for Keyed { message, kind, key, fingerprint, .. } in run {
                query = query
                    .bind(message.lane.tenant.as_str())
                    .bind(*kind as i64)
                    .bind(*key)
                    .bind(fingerprint.as_slice())
                    .bind(message.uid.as_bytes().as_slice());
            }
            query.execute()?;
        }
        let mut winners = Winners::new();
        for (sql, run) in FIND_DEDUP.runs(keyed) {
            let mut query = self.conn.query(sql)?;
            for Keyed { message, kind, key, .. } in run {
                query = query.bind(message.lane.tenant.as_str()).bind(*kind as i64).bind(*key);
            }
            for row in query.rows()? {
                let key = (row.parsed(0)?, row.int(1)?, row.text(2)?.to_owned());
                let winner = MessageUid::from_bytes(row.id16(4)?);
                winners.insert(key, (row.opt_bytes(3)?.unwrap_or_default().to_vec(), winner));
            }
        }
        Ok(winners)
    }

    async fn drop_keys(&mut self, messages: &[&PackedMessage]) -> Result<(), StoreError> {
        for (sql, run) in DROP_DEDUP.runs(messages) {
            let mut query = self.conn.query(sql)?;
            for message in run {
                query = query.bind(message.uid.as_bytes().as_slice());
            }
            query.execute()?;
        }
        Ok(())
    }
}
