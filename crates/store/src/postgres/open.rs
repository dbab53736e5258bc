//! Opening the database: lock, schema, connections.

use std::sync::Arc;

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    PostgresStore,
    connect::{self, CONNECT_TIMEOUT, Hold, SETTINGS, WRITER_SETTINGS},
    engine::{Link, Txn},
    migrate::{self, Migration, MigrationState},
};
use crate::{error::StoreError, group::Writers, handover::HandOver};

/// Connections that write. Two, so that one collects a group while the other's commit is on its way to the disk.
const WRITERS: i64 = 2;
/// Connections that read, at most.
const READERS: u32 = 8;
/// Processes that start get one of so many sets of shards of the counters, by chance.
const SHARD_SETS: i64 = 16;

impl PostgresStore {
    /// Opens the store in the database that `url` names, making its schema as needed. Refuses if another process uses
    /// it.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let options = connect::options(url)?;
        let hold = Arc::new(Hold::take(&options).await?);
        hold.with(async |conn| {
            migrate::check_encoding(conn).await?;
            migrate::up(conn).await
        })
        .await?;
        let readers = readers(&options).await?;
        let handover = Arc::new(HandOver::default());
        let first_shard = rand::random_range(0..SHARD_SETS) * WRITERS;
        let mut engines = Vec::new();
        for shard in first_shard..first_shard + WRITERS {
            let link = Link { options: options.clone(), hold: hold.clone() };
            let conn = connect::connect(&options, WRITER_SETTINGS).await?;
            engines.push(Txn::new(conn, link, shard, handover.clone()));
        }
        let writers = Writers::start(engines, &handover);
        Ok(Self { writers, readers, handover, hold })
    }

    /// Which migrations the database has.
    pub async fn migration_status(url: &str) -> Result<Vec<MigrationState>, StoreError> {
        let mut conn = connect::connect(&connect::options(url)?, "").await?;
        migrate::status(&mut conn).await
    }

    /// Brings the schema of the database up to date, and returns what that took.
    pub async fn migrate(url: &str) -> Result<Vec<Migration>, StoreError> {
        let hold = Hold::take(&connect::options(url)?).await?;
        let applied = hold.with(migrate::up).await;
        hold.release().await;
        applied
    }
}

async fn readers(options: &PgConnectOptions) -> Result<PgPool, StoreError> {
    PgPoolOptions::new()
        .max_connections(READERS)
        .acquire_timeout(CONNECT_TIMEOUT)
        .after_connect(|conn, _| {
            Box::pin(async move { sqlx::raw_sql(SETTINGS).execute(conn).await.map(drop) })
        })
        .connect_with(options.clone())
        .await
        .map_err(|error| connect::unreachable(options, error))
}
