//! A copy of a database that a server is writing to, as it is at one moment.
//!
//! A snapshot that is read for minutes keeps all that is written meanwhile in the log. So the file is copied
//! in pieces, and between two of them the log is folded back and begun anew: it never holds more than was
//! written while one piece was copied. A piece is read while a read transaction keeps the file as it is. At
//! the end the pages that changed since they were copied are copied once more, in ever smaller rounds, and
//! the last round makes the copy one moment's.
//!
//! The moment between two pieces stops the writer like a transaction of another process would. It takes the
//! writer's lock, looks through the rest of the log for changed pages, folds the log back, and begins the
//! next read transaction before it lets the writer go on; so no frame is ever lost from sight.
//!
//! Another reader may keep the log from being folded back. Then the copy goes on, and only its end waits, for
//! some time.

mod blobs;
mod pages;

use std::{io, path::Path, time::Duration};

use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::time::{Instant, sleep};

pub use self::blobs::{BlobsBackup, BlobsCopied};
use self::pages::PageCopy;
use super::{failed, is_locked, open};
use crate::{error::StoreError, failpoint::crash_point};

/// Pages between two moments: 32 MiB.
const PIECE_PAGES: u64 = 4_096;
/// Changed pages that are few enough for the last round: 16 MiB.
const LAST_PAGES: usize = 2_048;
/// Rounds, once all that was there at the beginning is copied, after which the last one is as large as it is:
/// more is written than can be copied.
const ROUNDS_MAX: u32 = 32;
/// How long the writer's lock is waited for, and how long it is held for a reader that is in the way.
const LOCK_MAX: Duration = Duration::from_secs(60);
const FOLD_MAX: Duration = Duration::from_millis(500);
/// The pause between two tries to fold back, and to get the lock: a busy writer lets go of it for less than a
/// millisecond at a time, and the log grows until it is had.
const PAUSE: Duration = Duration::from_millis(20);
const LOCK_PAUSE: Duration = Duration::from_millis(1);
/// How long a reader may keep the copy from its end.
const HELD_MAX: Duration = Duration::from_secs(120);

/// How far a copy is.
#[derive(Clone, Copy, Debug)]
pub struct BackupProgress {
    /// Pages that were copied.
    pub done: u64,
    /// Pages there are.
    pub total: u64,
}

/// Copies the database in `source` into `target`, which must not be there yet; the copy's size. It is on the
/// disk when this returns, and was found sound.
pub async fn copy(
    source: &Path,
    target: &Path,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<u64, StoreError> {
    copy_in_pieces(source, target, PIECE_PAGES, progress).await
}

pub(super) async fn copy_in_pieces(
    source: &Path,
    target: &Path,
    piece_pages: u64,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<u64, StoreError> {
    let mut moments = BackupMoments::open(source).await?;
    let copied = copy_pages(&mut moments, source, target, piece_pages, progress).await;
    // Before the files: closing those lets go of the locks of these.
    moments.close().await;
    copied?;
    check(target).await?;
    std::fs::metadata(target).map(|copy| copy.len()).map_err(|error| unusable(target, &error))
}

async fn copy_pages(
    moments: &mut BackupMoments,
    source: &Path,
    target: &Path,
    piece_pages: u64,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<PageCopy, StoreError> {
    let unusable = |error: io::Error| unusable(target, &error);
    let mut pages = PageCopy::begin(source, target).map_err(unusable)?;
    let (mut rounds, mut held_since) = (0, None);
    let first_total = pages.pages().map_err(unusable)?;
    loop {
        let is_whole = moments.next(&mut pages).await?;
        let total = pages.pages().map_err(unusable)?;
        let is_copied = pages.copied() >= total;
        let is_held = !is_whole && (is_copied || rounds >= ROUNDS_MAX);
        if is_held && held_since.get_or_insert_with(Instant::now).elapsed() > HELD_MAX {
            return Err(StoreError::Conflict(
                "another program reads the database for long: end it, and take the backup again".into(),
            ));
        }
        let is_nearly_done = is_copied && pages.changed() <= LAST_PAGES;
        let is_last = is_whole && (is_nearly_done || rounds >= ROUNDS_MAX);
        let budget = if is_last { u64::MAX } else { piece_pages };
        pages = blocking(pages, move |pages| pages.copy(is_whole, budget)).await?.map_err(unusable)?;
        progress(BackupProgress { done: pages.copied(), total });
        crash_point("backup_after_piece");
        if is_last {
            // While the file is still as long as it was.
            return blocking(pages, |pages| pages.finish()).await?.map_err(unusable);
        }
        rounds += u32::from(pages.copied() >= first_total);
    }
}

fn unusable(target: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot copy to {}: {error}", target.display()))
}

/// Does work on the copy off the runtime's threads, because disks take their time, and gives it back.
async fn blocking(
    mut pages: PageCopy,
    work: impl FnOnce(&mut PageCopy) -> io::Result<()> + Send + 'static,
) -> Result<io::Result<PageCopy>, StoreError> {
    let done = tokio::task::spawn_blocking(move || work(&mut pages).map(|()| pages)).await;
    done.map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// Fails where a copy is not sound.
async fn check(target: &Path) -> Result<(), StoreError> {
    let options = open::options_alone(target);
    let mut conn = options.connect().await.map_err(failed)?;
    let faults: Vec<String> =
        sqlx::query_scalar("PRAGMA quick_check(10)").fetch_all(&mut conn).await.map_err(failed)?;
    conn.close().await.map_err(failed)?;
    match faults.iter().all(|line| line == "ok") {
        true => Ok(()),
        false => Err(StoreError::Unexpected(format!("the copy is not sound: {}", faults.join("; ")))),
    }
}

/// The connections that make moments.
struct BackupMoments {
    /// Stops the writer.
    lock: SqliteConnection,
    /// Folds the log back.
    fold: SqliteConnection,
    /// Keeps the file unchanged while it is copied, and the log while it is read.
    hold: SqliteConnection,
    bridge: SqliteConnection,
    is_held: bool,
}

impl BackupMoments {
    async fn open(source: &Path) -> Result<Self, StoreError> {
        let connect = async || open::options(source).connect().await.map_err(failed);
        let lock = open::options(source).busy_timeout(Duration::ZERO).connect().await.map_err(failed)?;
        Ok(Self {
            lock,
            fold: connect().await?,
            hold: connect().await?,
            bridge: connect().await?,
            is_held: false,
        })
    }

    /// The next moment: from now on the file stays as it is. Tells whether it holds all that was committed.
    async fn next(&mut self, pages: &mut PageCopy) -> Result<bool, StoreError> {
        let unread = |error: io::Error| StoreError::Unavailable(format!("the log cannot be read: {error}"));
        // Most of it while the writer goes on: what is in the log now stays there for the bridge.
        read_on(&mut self.bridge).await?;
        pages.look_at_log().map_err(unread)?;
        if self.is_held {
            end(&mut self.hold).await?;
            self.is_held = false;
        }
        fold(&mut self.fold).await?;
        self.take_lock().await?;
        let looked = pages.look_at_log().map_err(unread);
        let moment = async {
            looked?;
            end(&mut self.bridge).await?;
            let began = Instant::now();
            let mut is_whole = fold(&mut self.fold).await?;
            while !is_whole && began.elapsed() < FOLD_MAX {
                sleep(PAUSE).await;
                is_whole = fold(&mut self.fold).await?;
            }
            read_on(&mut self.hold).await?;
            self.is_held = true;
            Ok(is_whole)
        };
        let moment = moment.await;
        end(&mut self.lock).await?;
        moment
    }

    async fn take_lock(&mut self) -> Result<(), StoreError> {
        let began = Instant::now();
        loop {
            match sqlx::query("BEGIN IMMEDIATE").execute(&mut self.lock).await {
                Ok(_) => return Ok(()),
                Err(error) if is_locked(&error) && began.elapsed() < LOCK_MAX => sleep(LOCK_PAUSE).await,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    async fn close(self) {
        for conn in [self.lock, self.fold, self.hold, self.bridge] {
            if let Err(error) = conn.close().await {
                tracing::debug!(%error, "a connection did not close cleanly");
            }
        }
    }
}

/// Begins a read transaction, which begins with its first read.
async fn read_on(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlx::query("BEGIN").execute(&mut *conn).await.map_err(failed)?;
    sqlx::query("SELECT count(*) FROM sqlite_schema").execute(&mut *conn).await.map(drop).map_err(failed)
}

async fn end(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlx::query("ROLLBACK").execute(conn).await.map(drop).map_err(failed)
}

/// Folds back what can be; whether that is all.
async fn fold(conn: &mut SqliteConnection) -> Result<bool, StoreError> {
    let (busy, frames, folded): (i64, i64, i64) =
        sqlx::query_as("PRAGMA wal_checkpoint(PASSIVE)").fetch_one(conn).await.map_err(failed)?;
    Ok(busy == 0 && frames == folded)
}
