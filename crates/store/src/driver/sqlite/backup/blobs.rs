//! The folder of blobs, copied beside a database.
//!
//! A blob is written before the row that names it and never changed, and deleted after the last row that
//! named it. So a copy of the blobs made both before and after the database has every blob that the copy
//! names: one that was deleted in between is from the first pass, one that came is from the second. At the
//! end that is checked, and blobs that the copy does not name are removed.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use sqlx::{ConnectOptions, Connection, Row};

use super::super::{failed, open};
use crate::{blob::blob_parts, error::StoreError, record::BlobName};

/// Names read at once.
const PAGE: i64 = 1_000;
/// Those that rows refer to, in the order of digests.
const NAMED: &str = "SELECT b.digest, b.generation, b.size FROM stored_blob b WHERE b.digest > ? AND (\
     EXISTS (SELECT 1 FROM content c WHERE c.raw_blob = b.name) \
     OR EXISTS (SELECT 1 FROM content c WHERE c.payload_blob = b.name) \
     OR EXISTS (SELECT 1 FROM link l WHERE l.blob = b.name) \
     OR EXISTS (SELECT 1 FROM inbound_body i WHERE i.raw_blob = b.name) \
     OR EXISTS (SELECT 1 FROM pec_receipt p WHERE p.raw_blob = b.name)) ORDER BY b.digest LIMIT ?";
/// Also one that nothing refers to: the next sweep of the restored copy finds it by its row.
const KNOWN: &str = "SELECT EXISTS (SELECT 1 FROM stored_blob WHERE name = ?)";
/// The folders of blobs have names of two hexadecimal digits; what else is there is not theirs.
const FOLDER_CHARACTERS: usize = 2;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobsCopied {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A folder of blobs and its copy.
#[derive(Clone, Debug)]
pub struct BlobsBackup {
    source: PathBuf,
    target: PathBuf,
}

impl BlobsBackup {
    /// Of the blobs in `source`, into `target`.
    pub fn new(source: &Path, target: &Path) -> Self {
        Self { source: source.to_owned(), target: target.to_owned() }
    }

    /// Of the blobs at a storage's URL, where that is a folder.
    pub fn of_storage(url: &str, target: &Path) -> Option<Self> {
        Some(Self::new(&Self::folder_of(url)?, target))
    }

    /// The folder of the storage at this URL, if it is one.
    pub fn folder_of(url: &str) -> Option<PathBuf> {
        url::Url::parse(url).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()
    }

    /// Copies what is not there yet. To be done before the database is copied, and again after it.
    pub fn copy(&self) -> io::Result<()> {
        make_folder(&self.target)?;
        for outer in folders(&self.source)? {
            for inner in folders(&outer)? {
                let place = self.target.join(outer.file_name().unwrap_or_default());
                let place = place.join(inner.file_name().unwrap_or_default());
                self.copy_folder(&inner, &place)?;
            }
        }
        sync(&self.target)
    }

    fn copy_folder(&self, inner: &Path, place: &Path) -> io::Result<()> {
        let mut is_made = place.exists();
        for entry in fs::read_dir(inner)? {
            let entry = entry?;
            let target = place.join(entry.file_name());
            if target.exists() {
                continue;
            }
            if !is_made {
                make_folder(place)?;
                is_made = true;
            }
            match copy_file(&entry.path(), &target) {
                Ok(()) => {}
                // It was deleted in the meantime: whether it is missing is checked at the end.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if is_made { sync(place).and_then(|()| sync(place.parent().unwrap_or(place))) } else { Ok(()) }
    }

    /// Fails where one is missing that the copied `database` names, and removes those that it does not name.
    pub async fn check(&self, database: &Path) -> Result<BlobsCopied, StoreError> {
        let unread = |error: io::Error| StoreError::Unavailable(format!("the copied blobs: {error}"));
        let mut conn = open::options_alone(database).connect().await.map_err(failed)?;
        let (mut copied, mut after) = (BlobsCopied::default(), Vec::new());
        loop {
            let page =
                sqlx::query(NAMED).bind(&after).bind(PAGE).fetch_all(&mut conn).await.map_err(failed)?;
            for row in &page {
                after = row.try_get(0).map_err(failed)?;
                let digest = <[u8; 32]>::try_from(after.as_slice());
                let digest =
                    digest.map_err(|_| StoreError::Unexpected("a blob's digest is damaged".into()))?;
                let name = BlobName { digest, generation: row.try_get(1).map_err(failed)? };
                let size = row.try_get::<i64, _>(2).map_err(failed)?.unsigned_abs();
                let path = blob_parts(&name).iter().fold(self.target.clone(), |path, part| path.join(part));
                if !fs::metadata(&path).is_ok_and(|found| found.len() == size) {
                    return Err(StoreError::Unexpected(format!(
                        "the blob {name} is missing or damaged in {}: mail needs it that the database has",
                        self.source.display()
                    )));
                }
                (copied.files, copied.bytes) = (copied.files + 1, copied.bytes + size);
            }
            if page.len() < PAGE as usize {
                break;
            }
        }
        for file in files(&self.target).map_err(unread)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let known: bool =
                sqlx::query_scalar(KNOWN).bind(name).fetch_one(&mut conn).await.map_err(failed)?;
            if !known {
                fs::remove_file(file).map_err(unread)?;
            }
        }
        conn.close().await.map_err(failed)?;
        Ok(copied)
    }
}

/// The folders of blobs in a folder; none where there is no such folder.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    let is_theirs = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_dir() && name.len() == FOLDER_CHARACTERS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    Ok(paths.into_iter().filter(is_theirs).collect())
}

/// The blobs in a folder.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for outer in folders(folder)? {
        for inner in folders(&outer)? {
            for entry in fs::read_dir(&inner)? {
                files.push(entry?.path());
            }
        }
    }
    Ok(files)
}

/// Copies a file; one that breaks off is not taken for the whole, because its backup is not.
fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    fs::copy(source, target)?;
    File::open(target)?.sync_all()
}

fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
    builder.create(path)
}

/// Brings a folder's names to the disk.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
