//! Reaching the server: address, connections, schema.

use std::{sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions, Connection, MySqlConnection, Row,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};
use tokio::time::timeout;

use super::{
    Migration, MigrationState, MysqlStore,
    engine::{WriteConnection, WriterSlot},
    error::refusal,
    failed, migrate,
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
        MysqlSession,
        durability::{DurabilityRisk, DurabilityWatch},
        schema,
        server_info::ServerInfo,
    },
    view_definitions,
};

/// Connections that read.
const READERS: u32 = 8;
/// The longest a read waits for a connection, so that callers soon learn that the database is unreachable.
const READ_WAIT_MAX: Duration = Duration::from_secs(3);
/// How long a connection may take to be made, or to become free.
const CONNECT_LASTS_MAX: Duration = Duration::from_secs(10);
/// How long taking leave may take.
pub(super) const CLOSE_LASTS_MAX: Duration = Duration::from_secs(5);
/// Prepared statements to keep: some eighteen multi-row statements in twenty sizes, and the rest.
const STATEMENTS: usize = 512;
/// Below this, a message of the usual 25 MB does not fit.
const PACKET_BYTES_WISH: u64 = 64 * 1024 * 1024;

const WRITER_SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 5";
/// REPEATABLE READ, so that the statements of one transaction see one snapshot. The limit of 30 s has a name
/// of its own in MySQL (in ms) and in MariaDB (in s).
const READER_SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; \
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' \
     /*!80000 , max_execution_time = 30000 */ /*M!100600 , max_statement_time = 30 */";
/// Named locks are the server's, not the database's, and their names have 64 characters at most. A second is
/// enough for those that start together.
const LOCK: &str = "SELECT GET_LOCK(CONCAT('postway.', SHA2(DATABASE(), 224)), 1)";

/// Where the database is.
pub(super) struct MysqlServer {
    options: MySqlConnectOptions,
}

impl MysqlServer {
    fn parse(url: &str) -> Result<Self, StoreError> {
        // The driver knows one scheme for both.
        let url = match url.strip_prefix("mariadb://") {
            Some(rest) => format!("mysql://{rest}"),
            None => url.to_owned(),
        };
        let wrong = |why: String| {
            StoreError::Unexpected(format!(
                "{why}: the address must be like mysql://user:password@host/database"
            ))
        };
        if !url.starts_with("mysql://") {
            return Err(wrong("not an address of MySQL or MariaDB".to_owned()));
        }
        let options: MySqlConnectOptions =
            url.parse().map_err(|error: sqlx::Error| wrong(error.to_string()))?;
        if options.get_database().is_none() {
            return Err(wrong("the address names no database".to_owned()));
        }
        let options = options
            .charset("utf8mb4")
            .pipes_as_concat(false)
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        Ok(Self { options })
    }

    async fn connect(&self, session: &'static str) -> Result<MySqlConnection, StoreError> {
        let (host, port) = (self.options.get_host(), self.options.get_port());
        let place = format!("{} on {host}:{port}", self.options.get_database().unwrap_or_default());
        let cannot = |why: String| StoreError::Unavailable(format!("cannot reach {place}: {why}"));
        let connecting = async {
            let mut conn = self.options.connect().await?;
            sqlx::raw_sql(session).execute(&mut conn).await?;
            Ok::<_, sqlx::Error>(conn)
        };
        match timeout(CONNECT_LASTS_MAX, connecting).await {
            Ok(connected) => connected.map_err(|error| match refusal(&error) {
                Some(why) => StoreError::Unexpected(format!("{place} refuses: {why}")),
                None => cannot(error.to_string()),
            }),
            Err(_) => Err(cannot("no answer in time".to_owned())),
        }
    }

    /// A connection that writes.
    pub async fn writer(&self) -> Result<MySqlConnection, StoreError> {
        self.connect(WRITER_SESSION).await
    }

    /// Migrates the schema under a lock; other starting processes wait for it. On a cluster the lock is
    /// useless, because it is known to one server only: there, concurrent migrations do the same work twice.
    async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        let mut conn = self.connect(WRITER_SESSION).await?;
        if !is_cluster(&mut conn).await? {
            let got: Option<i64> = sqlx::query_scalar(LOCK).fetch_one(&mut conn).await.map_err(failed)?;
            if got != Some(1) {
                return Err(StoreError::Locked(format!(
                    "the database {} on {} is being migrated by another postway",
                    self.options.get_database().unwrap_or_default(),
                    self.options.get_host(),
                )));
            }
        }
        let applied = migrate::up(&mut conn).await;
        // The lock goes with its connection.
        close(conn).await;
        applied
    }
}

impl MysqlStore {
    /// Opens the store at `url` (`mysql://user:password@host:port/database`), making its schema as needed.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let server = Arc::new(MysqlServer::parse(url)?);
        let mut conn = server.writer().await?;
        check_version(&mut conn).await?;
        schema::check_whole(&mut conn).await?;
        let applied = match schema::is_current(&mut conn).await? {
            true => Vec::new(),
            false => server.migrate().await?,
        };
        let has_views =
            view_definitions::find_installed(&mut MysqlSession { conn: &mut conn, failed }).await?;
        let packing = PackingPolicy::beside_others(&applied, has_views);
        let is_cluster = is_cluster(&mut conn).await?;
        let durability = DurabilityWatch::new(risks(&mut conn).await?);
        let packet_bytes_max: u64 =
            sqlx::query_scalar("SELECT @@max_allowed_packet").fetch_one(&mut conn).await.map_err(failed)?;
        if packet_bytes_max < PACKET_BYTES_WISH {
            tracing::warn!(
                packet_bytes_max,
                "larger messages are refused: raise the server's max_allowed_packet"
            );
        }
        let readers = MySqlPoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(READ_WAIT_MAX)
            .after_connect(|conn, _| {
                Box::pin(async move { sqlx::raw_sql(READER_SESSION).execute(conn).await.map(drop) })
            })
            .connect_lazy_with(server.options.clone());
        let handover = Arc::new(HandOver::default());
        let peers = Arc::new(NodePlacement::default());
        let silence = Arc::new(SilenceAnnouncer::default());
        let engines = (0..WRITERS)
            .map(|writer| {
                let seat =
                    WriterSlot { peers: peers.clone(), writer, is_cluster, silences: silence.listener() };
                WriteConnection::new(server.clone(), packet_bytes_max, seat, handover.clone())
            })
            .collect();
        let writers = Writers::start(engines, &handover);
        let registrar = Registrar::new(conn, silence);
        Ok(Self {
            writers,
            packing,
            readers,
            handover,
            walks: RetentionScans::default(),
            server,
            peers,
            registrar,
            durability,
        })
    }

    /// Which migrations the database at `url` has.
    pub async fn migration_status(url: &str) -> Result<Vec<MigrationState>, StoreError> {
        let mut conn = MysqlServer::parse(url)?.writer().await?;
        let status = schema::status(&mut conn).await;
        close(conn).await;
        status
    }

    /// What the database at `url` says of itself.
    pub async fn facts(url: &str) -> Result<ServerInfo, StoreError> {
        const FACTS: &str = "SELECT VERSION(), CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED), \
                             CAST(COALESCE((SELECT SUM(data_length + index_length) FROM information_schema.tables \
                             WHERE table_schema = DATABASE()), 0) AS SIGNED)";
        let mut conn = MysqlServer::parse(url)?.writer().await?;
        let facts = sqlx::query_as(FACTS).fetch_one(&mut conn).await.map_err(failed);
        let risks = risks(&mut conn).await;
        close(conn).await;
        let (version, at, bytes) = facts?;
        Ok(ServerInfo { risks: risks?, ..ServerInfo::new(version, Some(at), bytes) })
    }

    /// Brings the schema of the database at `url` up to date, and returns what that took.
    pub async fn migrate(url: &str) -> Result<Vec<Migration>, StoreError> {
        MysqlServer::parse(url)?.migrate().await
    }
}

pub(super) async fn risks(conn: &mut MySqlConnection) -> Result<Vec<DurabilityRisk>, StoreError> {
    const SETTINGS: &str = "SELECT CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS SIGNED), \
                            CAST(@@GLOBAL.sync_binlog AS SIGNED), CAST(@@GLOBAL.log_bin AS SIGNED)";
    let (flush, sync_binlog, has_binlog): (i64, i64, i64) =
        sqlx::query_as(SETTINGS).fetch_one(conn).await.map_err(failed)?;
    Ok(DurabilityRisk::of_mysql(flush, sync_binlog, has_binlog != 0))
}

/// Takes leave: all that was asked is answered. Over TLS the server may be gone before the last word, or a
/// lost one be waited for.
pub(super) async fn close(conn: MySqlConnection) {
    if !matches!(timeout(CLOSE_LASTS_MAX, conn.close()).await, Ok(Ok(()))) {
        tracing::debug!("a connection was gone already");
    }
}

/// Whether the server is a node of a Galera cluster.
async fn is_cluster(conn: &mut MySqlConnection) -> Result<bool, StoreError> {
    let row = sqlx::query("SHOW VARIABLES LIKE 'wsrep_on'").fetch_optional(conn).await.map_err(failed)?;
    let value: Option<String> = row.map(|row| row.try_get(1)).transpose().map_err(failed)?;
    Ok(value.is_some_and(|value| value.eq_ignore_ascii_case("on")))
}

/// SKIP LOCKED came with MySQL 8.0.1 and MariaDB 10.6.
async fn check_version(conn: &mut MySqlConnection) -> Result<(), StoreError> {
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(conn).await.map_err(failed)?;
    if is_recent(&version) {
        return Ok(());
    }
    Err(StoreError::Unexpected(format!("the server is {version}: use MySQL 8 or MariaDB 10.6, or later")))
}

fn is_recent(version: &str) -> bool {
    let mut parts = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    found >= if version.contains("MariaDB") { (10, 6) } else { (8, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_told_from_recent_ones() {
        for recent in
            ["8.0.36", "8.4.0-log", "9.1.0", "10.6.0-MariaDB", "10.11.19-MariaDB-0+deb12u1", "11.4.2-MariaDB"]
        {
            assert!(is_recent(recent), "{recent}");
        }
        for old in ["5.7.44-log", "10.5.23-MariaDB", "", "unknown"] {
            assert!(!is_recent(old), "{old}");
        }
    }

    #[test]
    fn an_address_must_name_a_database() {
        for wrong in ["mysql://root@localhost", "postgres://a/b", "mysql:", ""] {
            assert!(
                matches!(MysqlServer::parse(wrong), Err(StoreError::Unexpected(text)) if text.contains("must be like"))
            );
        }
        assert!(MysqlServer::parse("mariadb://root@localhost/mail").is_ok());
    }
}
