//! Opening the database: schema, connections.

use std::{sync::Arc, time::Duration};

use sqlx::{
    Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    PostgresStore,
    connect::{self, SETTINGS, WRITER_SETTINGS},
    engine::{WriteConnection, WriterSlot},
    failed,
    hints::Hints,
    migrate,
};
use crate::{
    engine::Writers,
    error::StoreError,
    nodes::{
        placement::{NodePlacement, WRITERS},
        registry::Registrar,
        server_silence::SilenceAnnouncer,
    },
    queue::{hand_over::HandOver, packing::PackingPolicy},
    retention::RetentionScans,
    sql::{
        PostgresSession,
        durability::{DurabilityRisk, DurabilityWatch},
        schema::{self, Migration, MigrationState},
        server_info::ServerInfo,
    },
    view_definitions,
};

/// The longest a read waits for a connection, so that callers soon learn that the database is unreachable.
const READ_WAIT_MAX: Duration = Duration::from_secs(3);
/// Connections that read, at most.
const READERS: u32 = 8;
impl PostgresStore {
    /// Opens the store in the database that `url` names, making its schema as needed.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let options = connect::options(url)?;
        let mut conn = connect::connect(&options, "").await?;
        migrate::check_encoding(&mut conn).await?;
        schema::check_whole(&mut conn).await?;
        let applied = match schema::is_current(&mut conn).await? {
            true => Vec::new(),
            false => migrate_alone(&options).await?,
        };
        let has_views =
            view_definitions::find_installed(&mut PostgresSession { conn: &mut conn, failed }).await?;
        let packing = PackingPolicy::beside_others(&applied, has_views);
        let durability = DurabilityWatch::new(risks(&mut conn).await?);
        let readers = readers(&options).await?;
        let handover = Arc::new(HandOver::default());
        let peers = Arc::new(NodePlacement::default());
        let silence = Arc::new(SilenceAnnouncer::default());
        let mut engines = Vec::new();
        for writer in 0..WRITERS {
            let conn = connect::connect(&options, WRITER_SETTINGS).await?;
            engines.push(WriteConnection::new(
                conn,
                options.clone(),
                WriterSlot { peers: peers.clone(), writer, silences: silence.listener() },
                handover.clone(),
            ));
        }
        let writers = Writers::start(engines, &handover);
        let hints = Hints::start(options.clone(), &handover);
        let registrar = Registrar::new(conn, silence);
        let walks = RetentionScans::default();
        Ok(Self { writers, packing, readers, handover, walks, peers, hints, registrar, options, durability })
    }

    /// Which migrations the database has.
    pub async fn migration_status(url: &str) -> Result<Vec<MigrationState>, StoreError> {
        let mut conn = connect::connect(&connect::options(url)?, "").await?;
        schema::status(&mut conn).await
    }

    /// What the database says of itself.
    pub async fn facts(url: &str) -> Result<ServerInfo, StoreError> {
        const FACTS: &str = "SELECT current_setting('server_version'), \
                             (extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
                             pg_database_size(current_database())";
        let mut conn = connect::connect(&connect::options(url)?, "").await?;
        let (version, at, bytes) = sqlx::query_as(FACTS).fetch_one(&mut conn).await.map_err(failed)?;
        Ok(ServerInfo { risks: risks(&mut conn).await?, ..ServerInfo::new(version, Some(at), bytes) })
    }

    /// Brings the schema of the database up to date, and returns what that took.
    pub async fn migrate(url: &str) -> Result<Vec<Migration>, StoreError> {
        migrate_alone(&connect::options(url)?).await
    }
}

async fn migrate_alone(options: &PgConnectOptions) -> Result<Vec<Migration>, StoreError> {
    let mut conn = connect::migrator(options).await?;
    let applied = migrate::up(&mut conn).await;
    // The lock goes with its connection.
    if let Err(error) = conn.close().await {
        tracing::debug!(%error, "the migrator's connection was gone already");
    }
    applied
}

async fn readers(options: &PgConnectOptions) -> Result<PgPool, StoreError> {
    PgPoolOptions::new()
        .max_connections(READERS)
        .acquire_timeout(READ_WAIT_MAX)
        .after_connect(|conn, _| {
            Box::pin(async move { sqlx::raw_sql(SETTINGS).execute(conn).await.map(drop) })
        })
        .connect_with(options.clone())
        .await
        .map_err(|error| connect::unreachable(options, error))
}

pub(super) async fn risks(conn: &mut PgConnection) -> Result<Vec<DurabilityRisk>, StoreError> {
    const SETTINGS: &str = "SELECT current_setting('fsync'), current_setting('full_page_writes')";
    let (fsync, full_page_writes): (String, String) =
        sqlx::query_as(SETTINGS).fetch_one(conn).await.map_err(failed)?;
    Ok(DurabilityRisk::of_postgres(&fsync, &full_page_writes))
}
