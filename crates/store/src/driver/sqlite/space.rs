//! Space: the write-ahead log stays short, and what was removed is given back to the disk.
//!
//! SQLite checkpoints the log by itself at the end of a commit, and restarts it when no reader needs it.
//! Under load there is always a reader, and one long read keeps everything written in the meantime. So a log
//! that has grown is checkpointed from here, beside the writer, and truncated at a moment without readers; if
//! a reader is in the way for long, that is logged.
//!
//! Pages that were freed stay in the file and are used again. Beyond a reserve they are given back in small
//! transactions, each of which the writer waits for like for another process's.
//!
//! This has a connection of its own. It gives way: whatever is busy is left for the next time.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::{sync::Mutex, time::Instant};

use super::{failed, open};
use crate::{error::StoreError, record::StoreSpace};

/// How long it waits for a lock. While it waits for the last reader it holds the writer's.
const BUSY_MAX: Duration = Duration::from_millis(200);
/// The longest pause after a reader was in the way of cutting the log off.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Frames that are left to fold back when the writer is stopped for the rest.
const LAST_FRAMES: i64 = 1_024;
/// How long one turn of giving back may last.
const TURN_MAX: Duration = Duration::from_millis(100);

/// What is large, and what is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpaceBounds {
    /// A log of more than this is folded back and cut off.
    pub log_bytes_large: u64,
    /// Free pages that stay, for what is written next.
    pub free_pages_kept: i64,
    /// The same bound as a divisor of all pages.
    pub free_part_kept: i64,
    /// Pages given back in one transaction.
    pub slice_pages: u32,
    /// How long a read of our own may last.
    pub read_lasts_max: Duration,
}

impl Default for SpaceBounds {
    /// Twice what the log has when it is folded back in time; 64 MiB, or a tenth; 2 MiB; as long as on the
    /// servers.
    fn default() -> Self {
        Self {
            log_bytes_large: 2 * open::LOG_BYTES_KEPT.unsigned_abs(),
            free_pages_kept: 16_384,
            free_part_kept: 10,
            slice_pages: 512,
            read_lasts_max: Duration::from_secs(30),
        }
    }
}

/// Looks after the space that the files take.
pub(super) struct SpaceKeeper {
    path: PathBuf,
    bounds: SpaceBounds,
    turn: Mutex<Option<SpaceTurn>>,
}

struct SpaceTurn {
    conn: SqliteConnection,
    /// Since when a reader is in the way.
    held_since: Option<Instant>,
    /// When cutting off is tried again, and after how long once more.
    cut_at: Option<Instant>,
    pause: Duration,
}

/// How much of the log is folded back, in frames.
struct LogGrowth {
    is_busy: bool,
    frames: i64,
    folded: i64,
}

impl SpaceKeeper {
    pub async fn open(path: &Path, bounds: SpaceBounds) -> Result<Self, StoreError> {
        let options = open::options(path).busy_timeout(BUSY_MAX).pragma("cache_size", "-2048");
        let conn = options.connect().await.map_err(failed)?;
        let turn = SpaceTurn { conn, held_since: None, cut_at: None, pause: Duration::ZERO };
        Ok(Self { path: path.to_owned(), bounds, turn: Mutex::new(Some(turn)) })
    }

    pub async fn tend(&self) -> Result<StoreSpace, StoreError> {
        let mut turn = self.turn.lock().await;
        let turn = turn.as_mut().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))?;
        if log_bytes(&self.path) > self.bounds.log_bytes_large {
            turn.shorten_log().await?;
        } else {
            turn.held_since = None;
        }
        let more = turn.give_back(&self.bounds).await?;
        let (pages, free, page_bytes) = turn.pages().await?;
        let bytes = |pages: i64| pages.max(0).unsigned_abs() * page_bytes.max(0).unsigned_abs();
        Ok(StoreSpace {
            file_bytes: bytes(pages),
            free_bytes: bytes(free),
            log_bytes: log_bytes(&self.path),
            log_held_for: turn.held_since.map(|since| since.elapsed()),
            more,
        })
    }

    pub async fn close(&self) {
        if let Some(turn) = self.turn.lock().await.take()
            && let Err(error) = turn.conn.close().await
        {
            tracing::debug!(%error, "the connection that looks after the space did not close cleanly");
        }
    }
}

impl SpaceTurn {
    /// Folds back what can be without stopping anybody, and cuts the log off where that is nearly all of it.
    async fn shorten_log(&mut self) -> Result<(), StoreError> {
        let state = self.fold("PRAGMA wal_checkpoint(PASSIVE)").await?;
        if state.is_busy {
            // The writer is folding back itself.
            return Ok(());
        }
        if state.frames - state.folded > LAST_FRAMES {
            self.held_since.get_or_insert_with(Instant::now);
            return Ok(());
        }
        if self.cut_at.is_some_and(|at| Instant::now() < at) {
            return Ok(());
        }
        if self.fold("PRAGMA wal_checkpoint(TRUNCATE)").await?.is_busy {
            self.held_since.get_or_insert_with(Instant::now);
            self.pause = (self.pause * 2).clamp(Duration::from_secs(1), PAUSE_MAX);
            self.cut_at = Some(Instant::now() + self.pause);
        } else {
            (self.held_since, self.cut_at, self.pause) = (None, None, Duration::ZERO);
        }
        Ok(())
    }

    async fn fold(&mut self, how: &'static str) -> Result<LogGrowth, StoreError> {
        let (busy, frames, folded): (i64, i64, i64) =
            sqlx::query_as(how).fetch_one(&mut self.conn).await.map_err(failed)?;
        Ok(LogGrowth { is_busy: busy != 0, frames, folded })
    }

    /// Gives free pages back for a while. Tells whether there are more.
    async fn give_back(&mut self, bounds: &SpaceBounds) -> Result<bool, StoreError> {
        let began = Instant::now();
        loop {
            let spare = self.spare(bounds).await?;
            if spare == 0 || began.elapsed() >= TURN_MAX {
                return Ok(spare > 0);
            }
            let slice = format!("PRAGMA incremental_vacuum({})", spare.min(bounds.slice_pages));
            match sqlx::raw_sql(sqlx::AssertSqlSafe(slice)).execute(&mut self.conn).await.map_err(failed) {
                Ok(_) => {}
                // The writer has work, which goes first.
                Err(StoreError::Unavailable(reason)) => {
                    tracing::debug!(reason, "free pages are given back later");
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Free pages beyond what is kept. A file from before this was kept has none: it cannot shrink.
    async fn spare(&mut self, bounds: &SpaceBounds) -> Result<u32, StoreError> {
        const VACUUM: &str = "SELECT auto_vacuum FROM pragma_auto_vacuum";
        let mode: i64 = sqlx::query_scalar(VACUUM).fetch_one(&mut self.conn).await.map_err(failed)?;
        if mode != INCREMENTAL {
            return Ok(0);
        }
        let (pages, free, _) = self.pages().await?;
        let kept = bounds.free_pages_kept.max(pages / bounds.free_part_kept);
        Ok(u32::try_from(free - kept).unwrap_or(0))
    }

    async fn pages(&mut self) -> Result<(i64, i64, i64), StoreError> {
        const PAGES: &str = "SELECT page_count, freelist_count, page_size \
                             FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        sqlx::query_as(PAGES).fetch_one(&mut self.conn).await.map_err(failed)
    }
}

/// The `PRAGMA auto_vacuum` value of a file that returns pages on request.
const INCREMENTAL: i64 = 2;

/// The name of the log of a database.
pub(super) fn log_path(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// How large the log of a database is.
pub(super) fn log_bytes(path: &Path) -> u64 {
    fs::metadata(log_path(path)).map_or(0, |found| found.len())
}
