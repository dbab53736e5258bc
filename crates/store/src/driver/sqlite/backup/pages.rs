//! The pages of a database, copied from its file while others write, and which of them must be copied once
//! more.
//!
//! Writes go to the log first, as frames that name their pages. Having read every frame since the copy began,
//! the copy knows every page that may differ; unneeded frames are harmless: those of a rolled-back
//! transaction, or from before.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::super::space::log_path;

/// The offset of the page size in a database's header, two bytes; 1 means 65,536.
const PAGE_BYTES_AT: u64 = 16;
/// The log's header, and where in it and in a frame's is what they have in common.
const LOG_HEADER: u64 = 32;
const LOG_SALTS_AT: usize = 16;
const FRAME_HEADER: u64 = 24;
const FRAME_SALTS_AT: usize = 8;
/// Read and written at once.
const RUN_BYTES: u64 = 1024 * 1024;

/// A database's file, its copy, and how far the copy is.
pub(super) struct PageCopy {
    /// Closed after the connections to the same file: closing it lets go of their locks, too, as POSIX has
    /// it.
    source: File,
    log: PathBuf,
    target: File,
    page_bytes: u64,
    /// Pages from the first on that were copied at least once.
    copied: u64,
    /// Pages that may have changed since they were copied, or are not in the file yet; the first is 1.
    changed: BTreeSet<u64>,
    /// The life of the log that was looked at, and how many frames of it.
    seen: ([u8; 8], u64),
}

impl PageCopy {
    /// Begins a copy into a new file.
    pub fn begin(source: &Path, target: &Path) -> io::Result<Self> {
        let file = File::open(source)?;
        let mut size = [0; 2];
        file.read_exact_at(&mut size, PAGE_BYTES_AT)?;
        let page_bytes = match u16::from_be_bytes(size) {
            1 => 65_536,
            size => u64::from(size),
        };
        if page_bytes < 512 {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is no SQLite database"));
        }
        let target = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(target)?;
        let seen = ([0; 8], 0);
        let (log, changed) = (log_path(source), BTreeSet::new());
        Ok(Self { source: file, log, target, page_bytes, copied: 0, changed, seen })
    }

    /// Records the pages that the log has frames of. The log must not be restarted between two calls.
    pub fn look_at_log(&mut self) -> io::Result<()> {
        let log = match File::open(&self.log) {
            Ok(log) => log,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut header = [0; LOG_HEADER as usize];
        if !read_whole(&log, &mut header, 0)? {
            return Ok(());
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[LOG_SALTS_AT..][..8]);
        if salts != self.seen.0 {
            self.seen = (salts, 0);
        }
        let mut frame = [0; FRAME_HEADER as usize];
        loop {
            let at = LOG_HEADER + self.seen.1 * (FRAME_HEADER + self.page_bytes);
            // Frames of an earlier life of the log have other salts.
            if !read_whole(&log, &mut frame, at)? || frame[FRAME_SALTS_AT..][..8] != salts {
                return Ok(());
            }
            self.changed.insert(u64::from(u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]])));
            self.seen.1 += 1;
        }
    }

    /// Pages of the file, now.
    pub fn pages(&self) -> io::Result<u64> {
        Ok(self.source.metadata()?.len() / self.page_bytes)
    }

    /// Pages that were copied at least once.
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Pages that must be copied again.
    pub fn changed(&self) -> usize {
        self.changed.range(..=self.copied).count()
    }

    /// Copies at most `limit` pages. A page that is copied while the file has everything committed is done,
    /// until it changes.
    pub fn copy(&mut self, is_whole: bool, pages_max: u64) -> io::Result<()> {
        let pages = self.pages()?;
        let mut left = pages_max;
        while is_whole && left > 0 {
            let Some(&page) = self.changed.range(..=self.copied).next() else { break };
            self.copy_run(page - 1, 1.min(pages.saturating_sub(page - 1)))?;
            self.changed.remove(&page);
            left -= 1;
        }
        while left > 0 && self.copied < pages {
            let run = (RUN_BYTES / self.page_bytes).max(1).min(left).min(pages - self.copied);
            self.copy_run(self.copied, run)?;
            if is_whole {
                let done: Vec<u64> =
                    self.changed.range(self.copied + 1..=self.copied + run).copied().collect();
                for page in done {
                    self.changed.remove(&page);
                }
            }
            self.copied += run;
            left -= run;
        }
        Ok(())
    }

    fn copy_run(&self, first: u64, pages: u64) -> io::Result<()> {
        let mut run = vec![0; usize::try_from(pages * self.page_bytes).map_err(io::Error::other)?];
        self.source.read_exact_at(&mut run, first * self.page_bytes)?;
        self.target.write_all_at(&run, first * self.page_bytes)
    }

    /// Makes the copy as long as the file and brings it to the disk.
    pub fn finish(&mut self) -> io::Result<()> {
        self.target.set_len(self.pages()? * self.page_bytes)?;
        self.target.sync_all()
    }
}

/// Reads all of it, or says that the file ends before.
fn read_whole(file: &File, bytes: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(bytes, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
