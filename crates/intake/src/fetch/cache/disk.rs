//! The file cache on disk: one file per tenant and digest, under names that nobody chooses.
//!
//! A file is written under a temporary name and then renamed, so that a name means a complete file. A file
//! that a crash damaged is detected by its digest when it is read, and removed. When the files exceed their
//! limit, the least recently used are removed until a quarter is free.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use postway_domain::{Clock, TenantId};
use tempfile::NamedTempFile;

use crate::fetch::{Sha256, hex, sha256};

/// One file may occupy at most this fraction of the disk cache.
const DISK_SHARE: u64 = 4;
/// The prefix of a file that is not complete.
const UNFINISHED: &str = ".unfinished-";

pub(super) struct DiskCache {
    folder: PathBuf,
    bytes_max: u64,
    bytes: AtomicU64,
    sweeping: Mutex<()>,
    clock: Arc<dyn Clock>,
}

struct CachedFile {
    used_at: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl DiskCache {
    /// Opens a folder, creating it if necessary, and removes unfinished files from it.
    pub(super) fn open(folder: PathBuf, bytes_max: u64, clock: Arc<dyn Clock>) -> io::Result<Self> {
        make_folder(&folder)?;
        let mut bytes = 0;
        for cached in cached_files(&folder)? {
            match is_unfinished(&cached.path) {
                true => remove(&cached.path)?,
                false => bytes += cached.bytes,
            }
        }
        let disk = Self { folder, bytes_max, bytes: bytes.into(), sweeping: Mutex::default(), clock };
        disk.sweep_if_full()?;
        Ok(disk)
    }

    /// Reads the tenant's file with this digest. A file whose content does not match is removed.
    pub(super) fn read(&self, tenant: &TenantId, digest: &Sha256) -> Option<Bytes> {
        let path = self.path(tenant, digest);
        let file = File::open(&path).ok()?;
        let mut content =
            Vec::with_capacity(usize::try_from(file.metadata().ok()?.len().min(self.bytes_max)).ok()?);
        let read = (&file).take(self.bytes_max).read_to_end(&mut content);
        if read.is_err() || sha256(&content) != *digest {
            tracing::warn!(bytes = content.len(), "a cached attachment is damaged and is fetched again");
            // If it cannot be removed, it will be detected again.
            fs::remove_file(&path).ok();
            return None;
        }
        // Only the order of removal depends on this time.
        file.set_modified(self.now()).ok();
        Some(content.into())
    }

    /// Adds a file, unless it is there already or too large for the cache.
    pub(super) fn write(&self, tenant: &TenantId, digest: &Sha256, content: &[u8]) -> io::Result<()> {
        let (path, bytes) = (self.path(tenant, digest), content.len() as u64);
        if bytes > self.bytes_max / DISK_SHARE || path.exists() {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.folder);
        make_folder(folder)?;
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        file.write_all(content)?;
        file.as_file().set_modified(self.now())?;
        NamedTempFile::persist(file, &path)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.sweep_if_full()
    }

    fn sweep_if_full(&self) -> io::Result<()> {
        if self.bytes.load(Ordering::Relaxed) <= self.bytes_max {
            return Ok(());
        }
        let _sweeping = match self.sweeping.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread is sweeping.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let mut cached = cached_files(&self.folder)?;
        // Another thread may be writing those.
        cached.retain(|cached| !is_unfinished(&cached.path));
        cached.sort_by_key(|cached| cached.used_at);
        let mut bytes: u64 = cached.iter().map(|cached| cached.bytes).sum();
        for oldest in cached {
            if bytes <= self.bytes_max / 4 * 3 {
                break;
            }
            remove(&oldest.path)?;
            bytes -= oldest.bytes;
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// The path of a tenant's file. Tenants are named by a digest too: two ids may differ only in case, or an
    /// id may be `..`.
    fn path(&self, tenant: &TenantId, digest: &Sha256) -> PathBuf {
        let tenant = hex(&sha256(tenant.as_str().as_bytes())[..16]);
        self.folder.join(tenant).join(hex(digest))
    }

    fn now(&self) -> SystemTime {
        let millis = u64::try_from(self.clock.now().as_millis()).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }
}

/// Creates a folder that only postway can read.
fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn is_unfinished(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()))
}

/// Removes a file that may be gone already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Lists every file, complete or not.
fn cached_files(folder: &Path) -> io::Result<Vec<CachedFile>> {
    let mut found = Vec::new();
    for tenant in fs::read_dir(folder)? {
        let tenant = tenant?;
        if !tenant.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(tenant.path())? {
            let file = file?;
            let metadata = match file.metadata() {
                // A reader has just removed it as damaged.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            if metadata.is_file() {
                found.push(CachedFile {
                    used_at: metadata.modified()?,
                    bytes: metadata.len(),
                    path: file.path(),
                });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use postway_domain::Time;

    use super::*;

    /// A clock that advances one second with every reading.
    #[derive(Default)]
    struct TickingClock(AtomicI64);

    impl Clock for TickingClock {
        fn now(&self) -> Time {
            Time::from_millis(self.0.fetch_add(1_000, Ordering::Relaxed))
        }
    }

    fn disk(folder: &Path, bytes_max: u64) -> DiskCache {
        DiskCache::open(folder.to_owned(), bytes_max, Arc::new(TickingClock::default())).unwrap()
    }

    fn tenant(id: &str) -> TenantId {
        id.parse().unwrap()
    }

    #[test]
    fn a_file_is_found_by_its_tenant_and_no_other_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let digest = sha256(b"hello");
        disk(folder.path(), 1_000).write(&tenant("a"), &digest, b"hello").unwrap();
        let disk = disk(folder.path(), 1_000);
        assert_eq!(disk.read(&tenant("a"), &digest).unwrap(), "hello");
        assert_eq!(disk.read(&tenant("A"), &digest), None);
        assert_eq!(disk.read(&tenant("a"), &sha256(b"other")), None);
        assert_eq!(disk.bytes.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn what_a_crash_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let digest = sha256(b"hello");
        let first = disk(folder.path(), 1_000);
        first.write(&tenant("a"), &digest, b"hello").unwrap();
        let path = first.path(&tenant("a"), &digest);
        let unfinished = path.with_file_name(".unfinished-1");
        fs::write(&unfinished, "hel").unwrap();
        fs::write(&path, "hel").unwrap();
        let second = disk(folder.path(), 1_000);
        assert!(!unfinished.exists());
        assert_eq!(second.read(&tenant("a"), &digest), None);
        assert!(!path.exists());
    }

    #[test]
    fn the_longest_unused_go_when_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk(folder.path(), 100);
        let files: Vec<Vec<u8>> = (0..5).map(|n| vec![n; 24]).collect();
        let digests: Vec<_> = files.iter().map(|file| sha256(file)).collect();
        for n in 0..4 {
            disk.write(&tenant("a"), &digests[n], &files[n]).unwrap();
        }
        assert!(disk.read(&tenant("a"), &digests[0]).is_some(), "the first is used again");
        disk.write(&tenant("b"), &digests[4], &files[4]).unwrap();
        let left = |n: usize, id: &str| disk.read(&tenant(id), &digests[n]).is_some();
        assert_eq!([left(0, "a"), left(1, "a"), left(2, "a"), left(3, "a")], [true, false, false, true]);
        assert!(left(4, "b"));
        assert_eq!(disk.bytes.load(Ordering::Relaxed), 72);
        disk.write(&tenant("a"), &sha256(&[9; 26]), &[9; 26]).unwrap();
        assert_eq!(disk.bytes.load(Ordering::Relaxed), 72, "a quarter is too large a part");
    }
}
