//! The cache's part on disk: one file per tenant and digest, under names that nobody chooses.
//!
//! A file is written aside and moved to its name, so that a name means a whole file; what a crash has spoilt all the same is
//! found by its digest when it is read, and removed. When the files outgrow their bound, those unused for longest go, until a
//! quarter is free.

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

/// A file may take this part of the disk's share.
const DISK_SHARE: u64 = 4;
/// What a file is called until it is whole.
const UNFINISHED: &str = ".unfinished-";

pub(super) struct Disk {
    folder: PathBuf,
    bytes_max: u64,
    bytes: AtomicU64,
    sweeping: Mutex<()>,
    clock: Arc<dyn Clock>,
}

struct Kept {
    used_at: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl Disk {
    /// Takes over a folder, which is made if need be, and removes what was left unfinished in it.
    pub(super) fn open(folder: PathBuf, bytes_max: u64, clock: Arc<dyn Clock>) -> io::Result<Self> {
        make_folder(&folder)?;
        let mut bytes = 0;
        for kept in kept(&folder)? {
            match is_unfinished(&kept.path) {
                true => remove(&kept.path)?,
                false => bytes += kept.bytes,
            }
        }
        let disk = Self { folder, bytes_max, bytes: bytes.into(), sweeping: Mutex::default(), clock };
        disk.sweep_if_full()?;
        Ok(disk)
    }

    /// The tenant's file of that digest. A file that has another one is removed.
    pub(super) fn read(&self, tenant: &TenantId, digest: &Sha256) -> Option<Bytes> {
        let path = self.path(tenant, digest);
        let file = File::open(&path).ok()?;
        let mut content =
            Vec::with_capacity(usize::try_from(file.metadata().ok()?.len().min(self.bytes_max)).ok()?);
        let read = (&file).take(self.bytes_max).read_to_end(&mut content);
        if read.is_err() || sha256(&content) != *digest {
            tracing::warn!(bytes = content.len(), "a kept attachment is damaged and is fetched again");
            // Where it cannot be removed, it will be found damaged again.
            fs::remove_file(&path).ok();
            return None;
        }
        // Only the order of removal depends on it.
        file.set_modified(self.now()).ok();
        Some(content.into())
    }

    /// Keeps a file, unless it is there already or too large a part of the whole.
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
            // Someone is at it.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let mut kept = kept(&self.folder)?;
        // Someone may be at work on those.
        kept.retain(|kept| !is_unfinished(&kept.path));
        kept.sort_by_key(|kept| kept.used_at);
        let mut bytes: u64 = kept.iter().map(|kept| kept.bytes).sum();
        for oldest in kept {
            if bytes <= self.bytes_max / 4 * 3 {
                break;
            }
            remove(&oldest.path)?;
            bytes -= oldest.bytes;
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Tenants are known by a digest too: an id may differ from another by case alone, or be `..`.
    fn path(&self, tenant: &TenantId, digest: &Sha256) -> PathBuf {
        let tenant = hex(&sha256(tenant.as_str().as_bytes())[..16]);
        self.folder.join(tenant).join(hex(digest))
    }

    fn now(&self) -> SystemTime {
        let millis = u64::try_from(self.clock.now().as_millis()).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }
}

/// Makes a folder that only postway can look into.
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

/// Every file, whole or not.
fn kept(folder: &Path) -> io::Result<Vec<Kept>> {
    let mut found = Vec::new();
    for tenant in fs::read_dir(folder)? {
        let tenant = tenant?;
        if !tenant.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(tenant.path())? {
            let file = file?;
            let metadata = match file.metadata() {
                // Found damaged by a reader just now, and removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            if metadata.is_file() {
                found.push(Kept { used_at: metadata.modified()?, bytes: metadata.len(), path: file.path() });
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

    /// Every look at it is a second later.
    #[derive(Default)]
    struct Ticking(AtomicI64);

    impl Clock for Ticking {
        fn now(&self) -> Time {
            Time::from_millis(self.0.fetch_add(1_000, Ordering::Relaxed))
        }
    }

    fn disk(folder: &Path, bytes_max: u64) -> Disk {
        Disk::open(folder.to_owned(), bytes_max, Arc::new(Ticking::default())).unwrap()
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
