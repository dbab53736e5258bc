//! The spool on disk: taking files over, reading them, and what becomes of them. All of it blocks.

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

/// A file that is no JSON may still be being written for so long.
const SETTLES_IN: Duration = Duration::from_secs(5);
/// Where files are while they are being accepted.
const TAKEN: &str = "taken";
/// Where files go that cannot be accepted.
const FAILED: &str = "failed";
/// What stands between a file's serial and its name.
const MARK: char = '~';
/// How much of a file's name is kept: serial, mark and `.error` must fit beside it.
const NAME_BYTES_MAX: usize = 200;
/// How much of a file's end is looked at to see whether it is complete.
const TAIL_BYTES: u64 = 64;

/// The folder and those in it.
pub(super) struct Folder {
    root: PathBuf,
    taken: PathBuf,
    failed: PathBuf,
}

/// A file that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TakenFile {
    /// What no other file has.
    pub serial: String,
    /// What it was called.
    pub name: String,
}

/// What was found of a file.
pub(super) enum Found {
    /// Nothing for now: somebody else has it, or it is not complete.
    Nothing,
    /// The request that it is, or why it is none; nobody else gets the file while it is held.
    Request { request: Result<Bytes, Refusal>, held: File },
}

impl Folder {
    pub(super) fn open(root: PathBuf) -> io::Result<Self> {
        let (taken, failed) = (root.join(TAKEN), root.join(FAILED));
        fs::create_dir_all(&taken)?;
        fs::create_dir_all(&failed)?;
        Ok(Self { root, taken, failed })
    }

    /// Moves complete files to where they are ours, in the order of their names. Once this returns they are there
    /// whatever happens: a move that is forgotten would make a second message of a file.
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
            // Later files come after earlier ones also where they are taken by name.
            let serial = format!("{:012x}{moved:04x}{serial:016x}", now.as_millis());
            let file = TakenFile { serial, name: clipped(&name).to_owned() };
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

    /// The next files that are ours, also those that an earlier run or another node took over.
    pub(super) fn taken(&self, limit: usize) -> io::Result<Vec<TakenFile>> {
        let names = first_names(&self.taken, limit, |name| name.contains(MARK))?;
        let split = |name: String| {
            let (serial, name) = name.split_once(MARK)?;
            Some(TakenFile { serial: serial.to_owned(), name: name.to_owned() })
        };
        Ok(names.into_iter().filter_map(split).collect())
    }

    /// Reads a file that is ours, unless somebody else is at it.
    pub(super) fn read(&self, wanted: &TakenFile, bytes_max: usize, now: Time) -> io::Result<Found> {
        let Some(mut held) = lock(&self.path(wanted))? else { return Ok(Found::Nothing) };
        let length = held.metadata()?.len();
        if length > bytes_max as u64 {
            let message = format!("the file is larger than {bytes_max} bytes (http.max_request_bytes)");
            return Ok(Found::Request { request: Err(Refusal::TooLarge { message }), held });
        }
        let mut bytes = Vec::new();
        Read::by_ref(&mut held).take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
        let request = request::request(&bytes).map(Bytes::from);
        match request {
            Err(_) if is_fresh(&held, now)? => Ok(Found::Nothing),
            request => Ok(Found::Request { request, held }),
        }
    }

    /// Removes a file whose message is durable.
    pub(super) fn remove(&self, file: &TakenFile) -> io::Result<()> {
        fs::remove_file(self.path(file))
    }

    /// Moves a file aside, after the file that says why is there.
    pub(super) fn set_aside(&self, file: &TakenFile, why: &str) -> io::Result<()> {
        let mut place = self.failed.join(&file.name);
        if place.exists() {
            place = self.failed.join(format!("{}{MARK}{}", file.serial, file.name));
        }
        let mut explained = place.clone().into_os_string();
        explained.push(".error");
        fs::write(explained, why)?;
        fs::rename(self.path(file), place)
    }

    fn path(&self, file: &TakenFile) -> PathBuf {
        self.taken.join(format!("{}{MARK}{}", file.serial, file.name))
    }
}

/// The first files by name, however many there are; those whose names are no text are not ours to read.
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

/// Whether a file ends as an object does, or has been left as it is.
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

/// Whether a file was written just now. Clocks of disks and nodes differ, so one that is a little ahead is fresh too.
fn is_fresh(file: &File, now: Time) -> io::Result<bool> {
    let now: SystemTime = UNIX_EPOCH + Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(0));
    let written = file.metadata()?.modified()?;
    let apart = now.duration_since(written).unwrap_or_else(|ahead| ahead.duration());
    Ok(apart < SETTLES_IN)
}

/// The file, if it is there and nobody else has it. A link or a pipe in its place is not ours to open.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let opened = fs::symlink_metadata(path).and_then(|found| match found.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a regular file")),
    });
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock() {
        // Whoever had it may have removed it before we could lock it.
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

    fn spool() -> (tempfile::TempDir, Folder) {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::open(temporary.path().to_owned()).unwrap();
        (temporary, folder)
    }

    fn put(folder: &Folder, name: &str, text: &str, age: Duration) {
        fs::write(folder.root.join(name), text).unwrap();
        let written = UNIX_EPOCH + Duration::from_millis(now().as_millis() as u64) - age;
        File::options().write(true).open(folder.root.join(name)).unwrap().set_modified(written).unwrap();
    }

    fn names(folder: &Folder) -> Vec<String> {
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
        assert_eq!(fs::read_dir(&folder.failed).unwrap().count(), 6, "each has its own place");
    }

    #[test]
    fn a_held_file_is_left_and_a_removed_one_is_not_found() {
        let (_temporary, folder) = spool();
        put(&folder, "a.json", "{}", Duration::ZERO);
        folder.take_over(now(), 1, 100).unwrap();
        let file = folder.taken(100).unwrap().remove(0);
        let Found::Request { request, held } = folder.read(&file, 100, now()).unwrap() else {
            panic!("nothing")
        };
        assert_eq!(request.unwrap(), "{}");
        assert!(matches!(folder.read(&file, 100, now()).unwrap(), Found::Nothing));
        drop(held);
        let Found::Request { request, .. } = folder.read(&file, 1, now()).unwrap() else { panic!("nothing") };
        assert!(matches!(request, Err(Refusal::TooLarge { .. })));
        folder.remove(&file).unwrap();
        assert!(matches!(folder.read(&file, 100, now()).unwrap(), Found::Nothing));
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
