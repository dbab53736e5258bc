//! What a power cut leaves of a small program's files, by the rules that a file system keeps: a byte is safe
//! after a sync of its file, a name after a sync of its folder.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, ExitStatus},
};

use postway_testkit::{DiskFault, Unsynced, WatchedDisk};

/// Steps on files, as shorthand.
const PRELUDE: &str = "
import os, sys
folder = os.open('.', os.O_RDONLY)
def write(name, data, at=0):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600); os.pwrite(fd, data, at); return fd
";

fn run(disk: &WatchedDisk, folder: &Path, steps: &str) -> ExitStatus {
    let mut python = Command::new("python3");
    python.args(["-c", &format!("{PRELUDE}{steps}")]).current_dir(folder).envs(disk.env());
    python.status().unwrap()
}

/// The files that are left, with what is in them.
fn left(disk: &WatchedDisk, unsynced: Unsynced) -> BTreeMap<String, String> {
    let target = tempfile::tempdir().unwrap();
    let log = disk.log().unwrap();
    log.restore(disk.position(), unsynced, target.path()).unwrap();
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path()).unwrap())
    };
    fs::read_dir(target.path()).unwrap().map(read).collect()
}

fn files(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(name, held)| ((*name).to_owned(), (*held).to_owned())).collect()
}

struct Stage {
    folder: tempfile::TempDir,
    _scratch: tempfile::TempDir,
    disk: WatchedDisk,
}

fn stage() -> Stage {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = WatchedDisk::new(folder.path(), scratch.path()).unwrap();
    Stage { folder, _scratch: scratch, disk }
}

#[test]
fn only_what_was_synced_is_left() {
    let stage = stage();
    let steps = "
fd = write('kept', b'synced'); os.fsync(fd); os.fsync(folder)
os.pwrite(fd, b'LOST', 6)
fd = write('nameless', b'synced'); os.fsync(fd)
";
    assert!(run(&stage.disk, stage.folder.path(), steps).success());
    assert_eq!(fs::read_to_string(stage.folder.path().join("kept")).unwrap(), "syncedLOST", "it was written");
    assert_eq!(left(&stage.disk, Unsynced::Lost), files(&[("kept", "synced")]));
    // A later life of the program knows the file anew; what it had not synced is not safe for that.
    assert!(run(&stage.disk, stage.folder.path(), "write('kept', b'S')").success());
    assert_eq!(left(&stage.disk, Unsynced::Lost), files(&[("kept", "synced")]));
}

#[test]
fn a_rename_is_whole_and_safe_with_its_folder() {
    let stage = stage();
    let before = "
fd = write('old', b'1'); os.fsync(fd); os.fsync(folder)
fd = write('new', b'2'); os.fsync(fd); os.rename('new', 'old')
";
    assert!(run(&stage.disk, stage.folder.path(), before).success());
    assert_eq!(left(&stage.disk, Unsynced::Lost), files(&[("old", "1")]));
    assert!(run(&stage.disk, stage.folder.path(), "os.fsync(folder)").success());
    assert_eq!(left(&stage.disk, Unsynced::Lost), files(&[("old", "2")]));
    assert!(run(&stage.disk, stage.folder.path(), "os.unlink('old')").success());
    assert_eq!(left(&stage.disk, Unsynced::Lost), files(&[("old", "2")]));
}

#[test]
fn what_was_not_synced_may_be_torn() {
    let stage = stage();
    let steps =
        "fd = write('torn', b'a' * 4096); os.fsync(fd); os.fsync(folder); os.pwrite(fd, b'b' * 4096, 0)";
    assert!(run(&stage.disk, stage.folder.path(), steps).success());
    let mut seen = [false; 3];
    for seed in 0..50 {
        let found = left(&stage.disk, Unsynced::Torn(seed)).remove("torn").unwrap();
        let written = found.bytes().take_while(|byte| *byte == b'b').count();
        assert!(found.len() == 4096 && written % 512 == 0, "{written} of {}", found.len());
        assert!(found[written..].bytes().all(|byte| byte == b'a'));
        seen[match written {
            0 => 0,
            4096 => 2,
            _ => 1,
        }] = true;
    }
    assert_eq!(seen, [true; 3], "lost, torn and whole");
}

#[test]
fn faults_strike_where_they_are_wanted() {
    let stage = stage();
    for (fault, steps) in [
        (DiskFault::Write(DiskFault::ENOSPC), "write('bad', b'x')"),
        (DiskFault::Sync(DiskFault::EIO), "os.fsync(os.open('bad', os.O_RDWR))"),
        (DiskFault::Create(DiskFault::ENOSPC), "os.mkdir('badly')"),
    ] {
        stage.disk.break_with(fault, "/bad").unwrap();
        let hits = stage.disk.hits().unwrap();
        let steps = format!(
            "
fd = write('good', b'x'); os.fsync(fd)
try:
    {steps}
except OSError:
    sys.exit(7)
"
        );
        assert_eq!(run(&stage.disk, stage.folder.path(), &steps).code(), Some(7), "{fault:?}");
        assert_eq!(stage.disk.hits().unwrap(), hits + 1, "{fault:?}");
        stage.disk.mend().unwrap();
    }
    stage.disk.set_clock(7_200_000).unwrap();
    let steps = "import time; sys.exit(0 if time.time() - os.stat('good').st_mtime > 7000 else 1)";
    assert!(run(&stage.disk, stage.folder.path(), steps).success());
}
