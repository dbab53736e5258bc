//! The spool on disk: moves files to `taken`, reads them, and removes them or sets them aside. Everything
//! here blocks.

use std::{
    collections::BinaryHeap,
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use postway_domain::Time;

use super::request;
use crate::refusal::Refusal;

/// A file that is not valid JSON may still be being written for this long.
const SETTLES_IN: Duration = Duration::from_secs(5);
/// The folder for files that are being accepted.
const TAKEN: &str = "taken";
/// The folder for files that cannot be accepted.
const FAILED: &str = "failed";
/// The separator between a file's serial and its name.
const MARK: char = '~';
/// The longest part of a file's name that is preserved: serial, separator and `.error` must fit beside it.
const NAME_BYTES_MAX: usize = 200;
/// How many bytes at the end of a file show whether it is complete.
const TAIL_BYTES: u64 = 64;

/// The spool folder and its subfolders.
pub(super) struct SpoolFiles {
    root: PathBuf,
    taken: PathBuf,
    failed: PathBuf,
}

/// A file in `taken`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpoolFile {
    /// The serial, which is unique.
    pub serial: String,
    /// The original name.
    pub name: String,
}

/// What reading a file gave.
pub(super) enum SpooledRequest {
    /// Nothing for now: another reader has the file, or it is not complete.
    Nothing,
    /// The request in the file, or why it is refused. The file stays locked as long as `lock` lives.
    Request { request: Result<Bytes, Refusal>, lock: File },
}

impl SpoolFiles {
    pub(super) fn open(root: PathBuf) -> io::Result<Self> {
        let (taken, failed) = (root.join(TAKEN), root.join(FAILED));
        fs::create_dir_all(&taken)?;
        fs::create_dir_all(&failed)?;
        Ok(Self { root, taken, failed })
    }

    /// Moves complete files to `taken`, in the order of their names. Once this returns, the moves are
    /// durable: a move that was undone by a crash would turn one file into two messages.
    pub(super) fn take_over(&self, now: Time, serial: u64, limit: usize) -> io::Result<()> {
        let mut moved = 0;
        for name in first_names(&self.root, limit, |name| name.ends_with(".json") && !name.starts_with('.'))?
        {
            let path = self.root.join(&name);
            match is_complete(&path, now) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    tracing::warn!(%error, file = name, "a spooled file cannot be read");
                    continue;
                }
            }
            // Serials sort by time, so that later files come after earlier ones.
            let serial = format!("{:012x}{moved:04x}{serial:016x}", now.as_millis());
            let file = SpoolFile { serial, name: clipped(&name).to_owned() };
            match fs::rename(&path, self.path(&file)) {
                Ok(()) => moved += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if moved > 0 {
            File::open(&self.taken)?.sync_all()?;
            File::open(&self.root)?.sync_all()?;
        }
        Ok(())
    }

    /// The next files in `taken`, including those that an earlier run or another node moved there.
    pub(super) fn taken(&self, limit: usize) -> io::Result<Vec<SpoolFile>> {
        let names = first_names(&self.taken, limit, |name| name.contains(MARK))?;
        let split = |name: String| {
            let (serial, name) = name.split_once(MARK)?;
            Some(SpoolFile { serial: serial.to_owned(), name: name.to_owned() })
        };
        Ok(names.into_iter().filter_map(split).collect())
    }

    /// Reads a file in `taken`, unless another reader has it.
    pub(super) fn read(&self, wanted: &SpoolFile, bytes_max: usize, now: Time) -> io::Result<SpooledRequest> {
        let Some(mut lock) = lock_file(&self.path(wanted))? else { return Ok(SpooledRequest::Nothing) };
        let length = lock.metadata()?.len();
        if length > bytes_max as u64 {
            let message = format!("the file is larger than {bytes_max} bytes (http.max_request_bytes)");
            return Ok(SpooledRequest::Request { request: Err(Refusal::TooLarge { message }), lock });
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut lock).take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
        let request = request::request(&bytes).map(Bytes::from);
        match request {
            Err(_) if is_fresh(&lock, now)? => Ok(SpooledRequest::Nothing),
            request => Ok(SpooledRequest::Request { request, lock }),
        }
    }

    /// Removes a file whose message is durable.
    pub(super) fn remove(&self, file: &SpoolFile) -> io::Result<()> {
        fs::remove_file(self.path(file))
    }

    /// Moves a file to `failed`, after writing the file that says why.
    pub(super) fn set_aside(&self, file: &SpoolFile, why: &str) -> io::Result<()> {
        let mut path = self.failed.join(&file.name);
        if path.exists() {
            path = self.failed.join(format!("{}{MARK}{}", file.serial, file.name));
        }
        let mut explained = path.clone().into_os_string();
        explained.push(".error");
        fs::write(explained, why)?;
        fs::rename(self.path(file), path)
    }

    fn path(&self, file: &SpoolFile) -> PathBuf {
        self.taken.join(format!("{}{MARK}{}", file.serial, file.name))
    }
}

/// The first files by name, however many there are. Names that are not valid text are ignored.
fn first_names(folder: &Path, limit: usize, is_wanted: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let mut first = BinaryHeap::with_capacity(limit + 1);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_wanted(&name) && entry.file_type()?.is_file() {
            first.push(name);
            if first.len() > limit {
                first.pop();
            }
        }
    }
    Ok(first.into_sorted_vec())
}

fn clipped(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

/// Whether a file ends like a JSON object, or has not been written to for a while.
fn is_complete(path: &Path, now: Time) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    Read::by_ref(&mut file).take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail.trim_ascii_end().ends_with(b"}") || !is_fresh(&file, now)?)
}

/// Whether a file was written just now. Clocks of disks and nodes differ, so a time slightly in the future
/// counts as fresh too.
fn is_fresh(file: &File, now: Time) -> io::Result<bool> {
    let now: SystemTime = UNIX_EPOCH + Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(0));
    let written = file.metadata()?.modified()?;
    let apart = now.duration_since(written).unwrap_or_else(|ahead| ahead.duration());
    Ok(apart < SETTLES_IN)
}

/// Locks a file; `None` if it does not exist or another reader has it. Links and pipes are not opened.
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    let opened = fs::symlink_metadata(path).and_then(|found| match found.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a regular file")),
    });
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock() {
        // The previous reader may have removed the file before we locked it.
        Ok(()) => Ok((file.metadata()?.nlink() > 0).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Time {
        Time::from_millis(1_704_067_200_000)
    }

    fn spool() -> (tempfile::TempDir, SpoolFiles) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = SpoolFiles::open(temporary.path().to_owned()).unwrap();
        (temporary, folder)
    }

    fn put(folder: &SpoolFiles, name: &str, text: &str, age: Duration) {
        fs::write(folder.root.join(name), text).unwrap();
        let written = UNIX_EPOCH + Duration::from_millis(now().as_millis() as u64) - age;
        File::options().write(true).open(folder.root.join(name)).unwrap().set_modified(written).unwrap();
    }

    fn names(folder: &SpoolFiles) -> Vec<String> {
        folder.taken(100).unwrap().into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn complete_files_are_taken_over_in_order_and_others_are_left() {
        let (_temporary, folder) = spool();
        for name in ["b.json", "a.json", ".c.json", "d.json.tmp", "e.txt"] {
            put(&folder, name, "{}", Duration::ZERO);
        }
        put(&folder, "f.json", "{\"from\":", Duration::from_secs(1));
        put(&folder, "g.json", "{\"from\":", Duration::from_secs(60));
        fs::create_dir(folder.root.join("h.json")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.root.join("i.json")).unwrap();
        folder.take_over(now(), 1, 100).unwrap();
        assert_eq!(names(&folder), ["a.json", "b.json", "g.json"]);
        assert!(folder.root.join("f.json").exists());
    }

    #[test]
    fn a_name_that_is_used_again_is_another_file() {
        let (_temporary, folder) = spool();
        for (serial, name) in [(1, "a.json"), (2, "a.json"), (3, &*format!("{}.json", "é".repeat(120)))] {
            put(&folder, name, "{}", Duration::ZERO);
            folder.take_over(now(), serial, 100).unwrap();
        }
        assert_eq!(folder.taken(100).unwrap().len(), 3);
        for file in folder.taken(100).unwrap() {
            folder.set_aside(&file, "why").unwrap();
        }
        assert_eq!(fs::read_dir(&folder.failed).unwrap().count(), 6, "each has its own path");
    }

    #[test]
    fn a_held_file_is_left_and_a_removed_one_is_not_found() {
        let (_temporary, folder) = spool();
        put(&folder, "a.json", "{}", Duration::ZERO);
        folder.take_over(now(), 1, 100).unwrap();
        let file = folder.taken(100).unwrap().remove(0);
        let SpooledRequest::Request { request, lock } = folder.read(&file, 100, now()).unwrap() else {
            panic!("nothing")
        };
        assert_eq!(request.unwrap(), "{}");
        assert!(matches!(folder.read(&file, 100, now()).unwrap(), SpooledRequest::Nothing));
        drop(lock);
        let SpooledRequest::Request { request, .. } = folder.read(&file, 1, now()).unwrap() else {
            panic!("nothing")
        };
        assert!(matches!(request, Err(Refusal::TooLarge { .. })));
        folder.remove(&file).unwrap();
        assert!(matches!(folder.read(&file, 100, now()).unwrap(), SpooledRequest::Nothing));
    }

    #[test]
    fn only_so_many_names_are_held_at_a_time() {
        let (_temporary, folder) = spool();
        for n in (0..50).rev() {
            put(&folder, &format!("{n:02}.json"), "{}", Duration::ZERO);
        }
        folder.take_over(now(), 1, 10).unwrap();
        assert_eq!(names(&folder), (0..10).map(|n| format!("{n:02}.json")).collect::<Vec<_>>());
    }
}
