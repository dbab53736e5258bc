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

/// Takes a key that is free or has an expired tombstone. Once per key, as everything on the writer's thread.
pub(super) const TAKE_KEY: &str = "INSERT INTO dedup (tenant, kind, key, fingerprint, uid) VALUES (?1,?2,?3,?4,?5) \
     ON CONFLICT (tenant, kind, key) DO UPDATE SET fingerprint = excluded.fingerprint, uid = excluded.uid, \
     expires_at = NULL WHERE dedup.expires_at <= ?6";
pub(super) const KEY_OWNER: &str =
    "SELECT fingerprint, uid FROM dedup WHERE tenant = ? AND kind = ? AND key = ?";
pub(super) static DROP_DEDUP: MultiRow = MultiRow::new("DELETE FROM dedup WHERE uid IN (", 1, ")");

#[async_trait]
impl KeyTable for WriteConnection {
    async fn claim_keys(&mut self, keyed: &[Keyed<'_>]) -> Result<Winners, StoreError> {
        let mut winners = Winners::with_capacity(keyed.len());
        let mut take = self.conn.query(TAKE_KEY)?;
        let mut owner = self.conn.query(KEY_OWNER)?;
        for Keyed { message, kind, key, fingerprint, .. } in keyed {
            let tenant = &message.lane.tenant;
            take = take
                .bind(tenant.as_str())
                .bind(*kind as i64)
                .bind(*key)
                .bind(fingerprint.as_slice())
                .bind(message.uid.as_bytes().as_slice())
                .bind(message.created_at.as_millis());
            let held = if take.execute_row()? == 1 {
                (fingerprint.to_vec(), message.uid)
            } else {
                owner = owner.bind(tenant.as_str()).bind(*kind as i64).bind(*key);
                let Some(row) = owner.find_row()? else { continue };
                (row.opt_bytes(0)?.unwrap_or_default().to_vec(), MessageUid::from_bytes(row.id16(1)?))
            };
            winners.insert((tenant.clone(), *kind as i64, (*key).to_owned()), held);
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
