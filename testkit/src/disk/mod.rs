//! A disk that can be watched, cut off and broken: a small library (`shim.c`, compiled on the spot by `cc`)
//! stands between a program and its files.
//!
//! It notes every write, sync and change of names below a folder. [`DiskLog`] makes of these notes what a
//! disk would hold had the power failed at any moment: what was synced, and of the rest nothing, or some of
//! it, torn. That is what SIGKILL cannot show, because the kernel survives it with every byte that was ever
//! written.
//!
//! While the program runs, its writes, syncs and new files can be made to fail, its syncs to take their time
//! or to be lost, and its clock of the day can be set.

mod log;

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

pub use log::{DiskLog, Unsynced};

/// The library's source.
const SHIM: &str = include_str!("shim.c");
/// Where each word of `struct control` is.
const WRITE_ERRNO: u64 = 0;
const SYNC_ERRNO: u64 = 4;
const CREATE_ERRNO: u64 = 8;
const SYNC_DELAY: u64 = 12;
const SYNCS_LOST: u64 = 16;
const HITS: u64 = 20;
const SYNCS: u64 = 24;
const CLOCK: u64 = 32;
const MATCH: u64 = 40;
const MATCH_BYTES_MAX: usize = 256;

/// What the disk does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Writes fail with this number.
    Write(i32),
    /// Syncs fail with this number.
    Sync(i32),
    /// Files and folders cannot be made, as where there is no inode left.
    Create(i32),
    /// Each sync takes this many milliseconds.
    SlowSync(u32),
    /// Syncs say that all is well, and nothing reaches the disk.
    LostSync,
}

impl DiskFault {
    /// The numbers of Linux.
    pub const EIO: i32 = 5;
    /// No space left on the device.
    pub const ENOSPC: i32 = 28;
}

/// What stands between a program and its files.
pub struct WatchedDisk {
    folder: PathBuf,
    root: PathBuf,
    control: File,
}

impl WatchedDisk {
    /// Compiles the library into `folder`, where its notes go too, to watch what is below `root`.
    pub fn new(root: &Path, folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
        fs::write(&source, SHIM)?;
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .args(["-ldl", "-lpthread"])
            .output()?;
        if !compiled.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&compiled.stderr).into_owned()));
        }
        fs::write(folder.join("log"), "")?;
        let control = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(folder.join("control"))?;
        control.set_len(MATCH + MATCH_BYTES_MAX as u64)?;
        Ok(Self { folder: folder.to_owned(), root: root.canonicalize()?, control })
    }

    /// What a program on this disk is started with.
    pub fn env(&self) -> Vec<(String, String)> {
        let of = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        vec![
            ("LD_PRELOAD".to_owned(), of("shim.so")),
            ("DISK_SHIM_ROOT".to_owned(), self.root.to_string_lossy().into_owned()),
            ("DISK_SHIM_LOG".to_owned(), of("log")),
            ("DISK_SHIM_CONTROL".to_owned(), of("control")),
        ]
    }

    /// How far the notes have come. Whatever the program has said by now, the disk must hold what it needs at
    /// this point.
    pub fn position(&self) -> u64 {
        fs::metadata(self.folder.join("log")).map_or(0, |log| log.len())
    }

    /// The notes so far.
    pub fn log(&self) -> io::Result<DiskLog> {
        DiskLog::new(self.root.clone(), fs::read(self.folder.join("log"))?)
    }

    /// From now on this is wrong with files whose path has `part` in it.
    pub fn break_with(&self, fault: DiskFault, part: &str) -> io::Result<()> {
        let mut padded = [0; MATCH_BYTES_MAX];
        padded[..part.len()].copy_from_slice(part.as_bytes());
        self.control.write_all_at(&padded, MATCH)?;
        match fault {
            DiskFault::Write(number) => self.set(WRITE_ERRNO, number.to_ne_bytes()),
            DiskFault::Sync(number) => self.set(SYNC_ERRNO, number.to_ne_bytes()),
            DiskFault::Create(number) => self.set(CREATE_ERRNO, number.to_ne_bytes()),
            DiskFault::SlowSync(millis) => self.set(SYNC_DELAY, millis.to_ne_bytes()),
            DiskFault::LostSync => self.set(SYNCS_LOST, 1_u32.to_ne_bytes()),
        }
    }

    /// From now on all is well.
    pub fn mend(&self) -> io::Result<()> {
        [WRITE_ERRNO, SYNC_ERRNO, CREATE_ERRNO, SYNC_DELAY, SYNCS_LOST]
            .into_iter()
            .try_for_each(|place| self.set(place, [0; 4]))
    }

    /// Sets the program's clock of the day to this distance from the right time.
    pub fn set_clock(&self, ahead_ms: i64) -> io::Result<()> {
        self.control.write_all_at(&ahead_ms.to_ne_bytes(), CLOCK)
    }

    /// How often a fault has struck.
    pub fn hits(&self) -> io::Result<u32> {
        self.get(HITS)
    }

    /// How often something was synced.
    pub fn syncs(&self) -> io::Result<u32> {
        self.get(SYNCS)
    }

    fn set(&self, place: u64, bytes: [u8; 4]) -> io::Result<()> {
        self.control.write_all_at(&bytes, place)
    }

    fn get(&self, place: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.control.read_exact_at(&mut bytes, place)?;
        Ok(u32::from_ne_bytes(bytes))
    }
}
