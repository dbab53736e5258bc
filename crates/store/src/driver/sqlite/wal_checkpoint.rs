//! Folding the write-ahead log back into the file, beside the writer.
//!
//! SQLite does it at the end of the commit that made the log long: tens of megabytes and an fsync, while
//! everybody waits for the writer. Here a thread with a connection of its own does nearly all of it while the
//! writer goes on. What was written meanwhile is the writer's to fold, between two transactions: it is
//! little, and only then does the next transaction begin the log anew.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
        mpsc,
    },
    thread,
};

use super::connection::{LogState, WriterConnection};
use crate::error::StoreError;

/// The part of a long log that the writer checkpoints itself, as a divisor.
const LAST_PART: i64 = 8;
/// A log of this many times that length is checkpointed by the writer, whatever the thread did: it must not
/// outgrow the disk.
const TIMES_MAX: i64 = 4;

/// How often the thread folds back what was written while it did, before the writer does.
const ROUNDS_MAX: u32 = 3;
/// The state of a log that nobody folds back is read before every fourth transaction: SQLite prepares a pragma
/// anew each time, which takes as long as storing a mail. Four groups of the largest size are shorter than
/// what `TIMES_MAX` leaves.
const LOOK_EVERY: u32 = 4;

/// What the thread does.
const AT_REST: u8 = 0;
const AT_WORK: u8 = 1;
/// It has folded back all that it could, and the writer has not seen that yet.
const DONE: u8 = 2;

/// The writer's end of the thread. It ends when this is dropped.
pub(super) struct LogFolder {
    wake: mpsc::SyncSender<()>,
    thread: thread::JoinHandle<()>,
    state: Arc<AtomicU8>,
    /// Pages of a log that is long enough to be folded back.
    long: i64,
    /// How the log was when it was last folded back, or the thread woken for that.
    woken_at: LogState,
    /// How often the thread was woken since the writer last folded back the rest.
    rounds: u32,
    /// Transactions since the state of the log was last read.
    unseen: u32,
}

impl LogFolder {
    /// For a log that is long with `long_bytes`.
    pub fn start(path: &Path, long_bytes: i64) -> Result<Self, StoreError> {
        let conn = WriterConnection::open(path)?;
        let long = long_bytes / conn.page_bytes()?;
        let (wake, woken) = mpsc::sync_channel::<()>(1);
        let state = Arc::new(AtomicU8::new(AT_REST));
        let of_thread = state.clone();
        let run = move || {
            while woken.recv().is_ok() {
                if let Err(error) = conn.fold_log() {
                    // The writer checkpoints what this could not, and callers that write learn of a broken
                    // disk.
                    tracing::debug!(%error, "the log was not folded back");
                }
                of_thread.store(DONE, Ordering::Release);
            }
            if let Err(error) = conn.close() {
                tracing::debug!(%error, "the connection that folds the log back did not close cleanly");
            }
        };
        let thread = thread::Builder::new().name("store-log".into()).spawn(run);
        let thread = thread
            .map_err(|error| StoreError::Unavailable(format!("cannot start the log's thread: {error}")))?;
        Ok(Self { wake, thread, state, long, woken_at: LogState::default(), rounds: 0, unseen: 0 })
    }

    /// Waits for the thread to end.
    pub fn close(self) {
        drop(self.wake);
        if self.thread.join().is_err() {
            tracing::warn!("the thread that folds the log back ended badly");
        }
    }

    /// Looks after the log between two transactions of the writer.
    pub fn tend(&mut self, writer: &WriterConnection) -> Result<(), StoreError> {
        self.unseen += 1;
        if self.unseen < LOOK_EVERY && self.state.load(Ordering::Acquire) == AT_REST {
            return Ok(());
        }
        self.unseen = 0;
        let log = writer.log_state()?;
        if log.pages < self.woken_at.pages {
            // It was begun anew.
            self.woken_at = LogState::default();
        }
        let (open, last) = (log.pages - log.folded, self.long / LAST_PART);
        let has_grown = log.pages - self.woken_at.pages >= last;
        match self.state.load(Ordering::Acquire) {
            AT_WORK => Ok(()),
            DONE if open <= last => self.fold_here(writer, log),
            // A reader is in the way.
            DONE if log.folded == self.woken_at.folded => {
                self.state.store(AT_REST, Ordering::Release);
                self.rounds = 0;
                Ok(())
            }
            // Much was written meanwhile, of which less is left with each round.
            DONE if self.rounds < ROUNDS_MAX => self.wake(log),
            DONE => self.fold_here(writer, log),
            _ if open <= last || !has_grown => Ok(()),
            _ if log.pages >= TIMES_MAX * self.long => self.fold_here(writer, log),
            _ if open >= self.long => self.wake(log),
            _ => Ok(()),
        }
    }

    fn fold_here(&mut self, writer: &WriterConnection, log: LogState) -> Result<(), StoreError> {
        self.state.store(AT_REST, Ordering::Release);
        (self.woken_at, self.rounds) = (log, 0);
        writer.fold_log()
    }

    fn wake(&mut self, log: LogState) -> Result<(), StoreError> {
        (self.woken_at, self.rounds) = (log, self.rounds + 1);
        self.state.store(AT_WORK, Ordering::Release);
        // A thread that is gone leaves all to the writer.
        if self.wake.try_send(()).is_err() {
            self.state.store(AT_REST, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: i64 = 64;

    fn write_page(writer: &WriterConnection) {
        writer.begin().unwrap();
        writer.query("INSERT INTO page (bytes) VALUES (zeroblob(30000))").unwrap().execute().unwrap();
        writer.commit().unwrap();
    }

    fn count(writer: &WriterConnection) -> i64 {
        writer.query("SELECT count(*) FROM page").unwrap().rows().unwrap()[0].int(0).unwrap()
    }

    /// A fresh file, its writer and its folder.
    fn rig(folder: &tempfile::TempDir) -> (WriterConnection, LogFolder) {
        let path = folder.path().join("log.db");
        let writer = WriterConnection::open(&path).unwrap();
        writer.query("PRAGMA journal_mode = WAL").unwrap().rows().unwrap();
        writer.query("CREATE TABLE page (bytes BLOB)").unwrap().execute().unwrap();
        let log = LogFolder::start(&path, LONG * writer.page_bytes().unwrap()).unwrap();
        (writer, log)
    }

    #[test]
    fn a_log_is_begun_anew_while_its_writer_never_stops() {
        let folder = tempfile::TempDir::new().unwrap();
        let (writer, mut log) = rig(&folder);
        let (mut longest, mut last, mut restarts) = (0, 0, 0);
        // Some eight pages each.
        for _ in 0..2_000 {
            log.tend(&writer).unwrap();
            write_page(&writer);
            let pages = writer.log_state().unwrap().pages;
            restarts += i64::from(pages < last);
            (longest, last) = (longest.max(pages), pages);
        }
        assert!(restarts > 10, "{restarts}");
        // While the thread is at work the log goes on growing, on a busy machine for long.
        assert!(longest < 2_000 * 8 / 2, "{longest}");
        assert_eq!(count(&writer), 2_000);
        log.close();
        writer.close().unwrap();
    }

    #[test]
    fn a_reader_keeps_the_log_and_nothing_else() {
        let folder = tempfile::TempDir::new().unwrap();
        let (writer, mut log) = rig(&folder);
        write_page(&writer);
        let reader = WriterConnection::open(&folder.path().join("log.db")).unwrap();
        reader.query("BEGIN").unwrap().execute().unwrap();
        assert_eq!(count(&reader), 1);
        for _ in 0..200 {
            log.tend(&writer).unwrap();
            write_page(&writer);
        }
        assert_eq!((count(&reader), count(&writer)), (1, 201));
        assert!(writer.log_state().unwrap().pages > TIMES_MAX * LONG);
        reader.commit().unwrap();
        let begun_anew = (0..10_000).any(|_| {
            log.tend(&writer).unwrap();
            write_page(&writer);
            writer.log_state().unwrap().pages <= LONG
        });
        assert!(begun_anew);
    }
}
