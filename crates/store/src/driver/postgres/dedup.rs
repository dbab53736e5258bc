//! The table of deduplication keys.
//!
//! Between two writers the key that is inserted first wins: the other insert waits for that transaction to
//! end, and the statement after it sees who holds the key.

use async_trait::async_trait;
use postway_domain::MessageUid;
use sqlx::Row;

use super::{bytes16, column, engine::WriteConnection, undone};
use crate::{
    error::StoreError,
    queue::{
        dedup::{KeyTable, Keyed, Winners},
        packing::PackedMessage,
    },
    sql::decode::parsed,
};

pub(super) const DROP_TOMBSTONES: &str = "DELETE FROM dedup d USING UNNEST($1::text[], $2::bigint[], $3::text[], \
     $4::bigint[]) AS v(tenant, kind, key, now) \
     WHERE d.tenant = v.tenant AND d.kind = v.kind AND d.key = v.key AND d.expires_at <= v.now";
pub(super) const INSERT_DEDUP: &str = "INSERT INTO dedup (tenant, kind, key, fingerprint, uid) \
     SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::text[], $4::bytea[], $5::bytea[]) \
     ON CONFLICT (tenant, kind, key) DO NOTHING";
pub(super) const FIND_DEDUP: &str = "SELECT d.tenant, d.kind, d.key, d.fingerprint, d.uid \
     FROM UNNEST($1::text[], $2::bigint[], $3::text[]) AS v(tenant, kind, key) \
     JOIN dedup d ON d.tenant = v.tenant AND d.kind = v.kind AND d.key = v.key";
pub(super) const DROP_DEDUP: &str = "DELETE FROM dedup WHERE uid = ANY ($1::bytea[])";

#[async_trait]
impl KeyTable for WriteConnection {
    async fn claim_keys(&mut self, keyed: &[Keyed<'_>]) -> Result<Winners, StoreError> {
        // In the order of the keys, so that two writers wait for each other in the same order. The sort is
        // stable: of two with the same key the first stays first.
        let mut keyed: Vec<&Keyed<'_>> = keyed.iter().collect();
        keyed.sort_by_key(|one| (&one.message.lane.tenant, one.kind as i64, one.key));
        let tenants = column(&keyed, |one| one.message.lane.tenant.as_str());
        let kinds = column(&keyed, |one| one.kind as i64);
        let keys = column(&keyed, |one| one.key);
        sqlx::query(DROP_TOMBSTONES)
            .bind(&tenants)
            .bind(&kinds)
            .bind(&keys)
            .bind(column(&keyed, |one| one.message.created_at.as_millis()))
            .execute(&mut self.conn)
            .await
            .map_err(undone)?;
        sqlx::query(INSERT_DEDUP)
            .bind(&tenants)
            .bind(&kinds)
            .bind(&keys)
            .bind(column(&keyed, |one| one.fingerprint.as_slice()))
            .bind(column(&keyed, |one| one.message.uid.as_bytes().as_slice()))
            .execute(&mut self.conn)
            .await
            .map_err(undone)?;
        let rows = sqlx::query(FIND_DEDUP)
            .bind(&tenants)
            .bind(&kinds)
            .bind(&keys)
            .fetch_all(&mut self.conn)
            .await
            .map_err(undone)?;
        let mut winners = Winners::with_capacity(rows.len());
        for row in rows {
            let tenant = parsed(row.try_get(0).map_err(undone)?)?;
            let key = (tenant, row.try_get(1).map_err(undone)?, row.try_get(2).map_err(undone)?);
            let winner = MessageUid::from_bytes(bytes16(&row, 4)?);
            winners.insert(key, (row.try_get(3).map_err(undone)?, winner));
        }
        Ok(winners)
    }

    async fn drop_keys(&mut self, messages: &[&PackedMessage]) -> Result<(), StoreError> {
        sqlx::query(DROP_DEDUP)
            .bind(column(messages, |message| message.uid.as_bytes().as_slice()))
            .execute(&mut self.conn)
            .await
            .map_err(undone)?;
        Ok(())
    }
}
