//! Opening the file: lock, connections, schema.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::ToSql;
use sqlx::{
    ConnectOptions, Connection, SqliteConnection,
    sqlite::{
        SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
    },
};

use super::{
    SqliteStore,
    connection::WriterConnection,
    engine::WriteConnection,
    failed,
    file_presence::DatabaseFiles,
    migrate,
    space::{SpaceBounds, SpaceKeeper},
    wal_checkpoint::LogFolder,
};
use crate::{
    engine::Writers,
    error::StoreError,
    nodes::single::LocalNodes,
    queue::{hand_over::HandOver, packing::PackingPolicy},
    retention::RetentionScans,
    sql::{
        SqliteSession,
        schema::{self, Migration, MigrationState},
        server_info::ServerInfo,
    },
    view_definitions,
};

/// Connections that read.
const READERS: u32 = 4;
/// Holds two packed bodies. Most pages that a group writes are of indexes, of which it touches a few entries
/// each: larger pages write more for the same. A file keeps the pages that it was made with.
const PAGE_BYTES: u32 = 4_096;
/// Steps of SQLite's machine between two looks at the time: about a millisecond.
const STEPS_UNWATCHED: i32 = 50_000;
/// The size at which the WAL is checkpointed: rarely enough to keep fsyncs few. This much of it stays when it
/// is restarted.
pub(super) const LOG_BYTES_KEPT: i64 = 64 * 1024 * 1024;
/// How long another process may lock the file before waiting calls fail.
pub(super) const BUSY_MAX: Duration = Duration::from_secs(4);
/// Page cache of the writer, in KiB, negative as SQLite wants it. As long as the file is below 1 GiB, most
/// commits walk through all of the cache, so more than the pages in use costs time.
const WRITER_CACHE_KIB: i64 = -8_192;
/// Page cache of each reader.
const READER_CACHE_KIB: &str = "-4096";
/// Prepared statements to keep: some eighteen multi-row statements in twenty sizes, and the rest.
pub(super) const STATEMENTS: usize = 512;

pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_MAX)
        .pragma("journal_size_limit", LOG_BYTES_KEPT.to_string())
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging()
}

/// For a file that no other process has open, and that is only read: nothing is created beside it.
pub(super) fn options_alone(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).read_only(true).immutable(true).disable_statement_logging()
}

/// What the writer asks for beyond what the file says of itself.
pub(super) const WRITER_PRAGMAS: [(&str, &dyn ToSql); 7] = [
    ("synchronous", &"FULL"),
    ("journal_size_limit", &LOG_BYTES_KEPT),
    ("wal_autocheckpoint", &0),
    ("cache_size", &WRITER_CACHE_KIB),
    ("temp_store", &"MEMORY"),
    ("secure_delete", &"ON"),
    ("foreign_keys", &"OFF"),
];

/// Ends whatever a reader is asked for `lasts_max` from now on: a read keeps all that is written meanwhile in
/// the log, and others from its connection.
async fn bound_reads(conn: &mut SqliteConnection, lasts_max: Duration) -> Result<(), sqlx::Error> {
    let ends_at = Instant::now() + lasts_max;
    conn.lock_handle().await?.set_progress_handler(STEPS_UNWATCHED, move || Instant::now() < ends_at);
    Ok(())
}

/// For creating the file and its schema.
fn maker_options(path: &Path) -> SqliteConnectOptions {
    options(path)
        .create_if_missing(true)
        .page_size(PAGE_BYTES)
        // Of a file that has none yet; another file takes it over when it is compacted.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .pragma("cache_size", WRITER_CACHE_KIB.to_string())
        .pragma("temp_store", "memory")
        .pragma("secure_delete", "on")
        .foreign_keys(false)
}

impl SqliteStore {
    /// Opens the store in `path`, making the file and its schema as needed. Refuses if another process has it
    /// open.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = take_lock(path)?;
        let mut conn = connect(path).await?;
        schema::check_whole(&mut conn).await?;
        Self::open_locked(path, lock, conn, SpaceBounds::default()).await
    }

    /// The same for the copy itself, which may find its own work half done.
    pub(crate) async fn open_half_copied(path: &Path) -> Result<Self, StoreError> {
        let lock = take_lock(path)?;
        let conn = connect(path).await?;
        Self::open_locked(path, lock, conn, SpaceBounds::default()).await
    }

    pub(super) async fn open_locked(
        path: &Path,
        lock: File,
        mut conn: SqliteConnection,
        bounds: SpaceBounds,
    ) -> Result<Self, StoreError> {
        migrate::up(&mut conn).await?;
        let writer = WriterConnection::open(path)?;
        conn.close().await.map_err(failed)?;
        Self::start(path, lock, writer, bounds).await
    }

    /// Starts the store on a file that has its schema.
    pub(super) async fn start(
        path: &Path,
        lock: File,
        writer: WriterConnection,
        bounds: SpaceBounds,
    ) -> Result<Self, StoreError> {
        let space = SpaceKeeper::open(path, bounds).await?;
        let lasts_max = bounds.read_lasts_max;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            // Setting the bound asks the connection as much as a test of it would.
            .test_before_acquire(false)
            .after_connect(move |conn, _| Box::pin(bound_reads(conn, lasts_max)))
            .before_acquire(move |conn, _| {
                Box::pin(async move { bound_reads(conn, lasts_max).await.map(|()| true) })
            })
            .connect_with(options(path).read_only(true).pragma("cache_size", READER_CACHE_KIB))
            .await
            .map_err(failed)?;
        let handover = Arc::new(HandOver::default());
        let engine = WriteConnection::new(
            writer,
            LogFolder::start(path, LOG_BYTES_KEPT)?,
            DatabaseFiles::find(path)?,
            handover.clone(),
        );
        let writers = Writers::start_on_thread(engine, &handover)?;
        let mut reader = SqliteSession { conn: readers.acquire().await.map_err(failed)?, failed };
        let packing = PackingPolicy::alone(view_definitions::find_installed(&mut reader).await?);
        drop(reader);
        Ok(Self {
            writers,
            packing,
            readers,
            space,
            handover,
            walks: RetentionScans::default(),
            nodes: LocalNodes::default(),
            _lock: lock,
        })
    }

    /// Which migrations the file in `path` has.
    pub async fn migration_status(path: &Path) -> Result<Vec<MigrationState>, StoreError> {
        let mut conn = connect(path).await?;
        let status = schema::status(&mut conn).await;
        conn.close().await.map_err(failed)?;
        status
    }

    /// What the file in `path` says of itself.
    pub async fn facts(path: &Path) -> Result<ServerInfo, StoreError> {
        const FACTS: &str =
            "SELECT sqlite_version(), page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        let mut conn = connect(path).await?;
        let facts = sqlx::query_as(FACTS).fetch_one(&mut conn).await.map_err(failed);
        conn.close().await.map_err(failed)?;
        facts.map(|(version, bytes)| ServerInfo::new(version, None, bytes))
    }

    /// What is wrong with the file in `path`, as `PRAGMA quick_check` finds it; empty if it is sound. Reads
    /// all of it.
    pub async fn faults(path: &Path) -> Result<Vec<String>, StoreError> {
        let mut conn = connect(path).await?;
        let faults = sqlx::query_scalar("PRAGMA quick_check(10)").fetch_all(&mut conn).await.map_err(failed);
        conn.close().await.map_err(failed)?;
        faults.map(|lines: Vec<String>| lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Rewrites the file in `path` without its free pages, and so that it returns later free pages by itself.
    /// Needs free disk space of the size of the file, and no other process may have it open.
    pub async fn compact(path: &Path) -> Result<(), StoreError> {
        let _lock = take_lock(path)?;
        let mut conn = connect(path).await?;
        let compacted = sqlx::query("VACUUM").execute(&mut conn).await.map_err(failed);
        conn.close().await.map_err(failed)?;
        compacted.map(drop)
    }

    /// Brings the schema of the file in `path` up to date, and returns what that took.
    pub async fn migrate(path: &Path) -> Result<Vec<Migration>, StoreError> {
        let _lock = take_lock(path)?;
        let mut conn = connect(path).await?;
        let applied = migrate::up(&mut conn).await;
        conn.close().await.map_err(failed)?;
        applied
    }
}

pub(super) async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    SqliteConnection::connect_with(&maker_options(path))
        .await
        .map_err(|error| StoreError::Unavailable(format!("cannot open {}: {error}", path.display())))
}

/// Holds the file for this process, as long as the answer is kept.
pub(crate) fn take_lock(path: &Path) -> Result<File, StoreError> {
    let mut lock_path = PathBuf::from(path).into_os_string();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    let cannot = |error: std::io::Error| {
        StoreError::Unavailable(format!("cannot open the lock file {}: {error}", lock_path.display()))
    };
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path).map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked(format!(
            "another postway has {} open: stop it first, or give this one its own data folder",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}
