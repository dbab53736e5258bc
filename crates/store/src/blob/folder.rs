//! Writing blobs to a folder, so that they are complete and survive a loss of power.
//!
//! Bytes are written to a temporary file beside the blobs and synced, and only then renamed; the folders are
//! synced last. A writer that dies leaves such a file, which [`BlobFolder::clear`] removes once it is old.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use bytes::Bytes;
use postway_domain::Time;

use super::{BlobError, location};
use crate::record::BlobName;

/// The folder of temporary files: on the same disk, and never the name of a folder of blobs.
const UNFINISHED: &str = "unfinished";

/// A folder of blobs.
#[derive(Clone, Debug)]
pub(super) struct BlobFolder {
    root: PathBuf,
}

impl BlobFolder {
    /// Creates the folder if it does not exist.
    pub fn open(root: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(root.join(UNFINISHED))?;
        Ok(Self { root })
    }

    /// Writes a blob, or syncs an existing one.
    pub async fn write(&self, name: &BlobName, bytes: Bytes) -> Result<(), BlobError> {
        let (folder, name) = (self.clone(), name.clone());
        self.run(move || folder.write_now(&name, &bytes)).await
    }

    /// Removes temporary files that writers left before this time.
    pub async fn clear(&self, before: Time) -> Result<(), BlobError> {
        let folder = self.clone();
        self.run(move || folder.clear_now(before)).await
    }

    async fn run(&self, work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<(), BlobError> {
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|error| BlobError::Unavailable(error.to_string()))?;
        done.map_err(|error| BlobError::Unavailable(format!("the folder {}: {error}", self.root.display())))
    }

    /// Writes an object under a path below the root.
    pub async fn write_object(&self, path: &str, bytes: Bytes) -> Result<(), BlobError> {
        let (folder, target) = (self.clone(), self.root.join(path));
        self.run(move || {
            let inner = target.parent().unwrap_or(&folder.root);
            fs::create_dir_all(inner)?;
            folder.write_whole(&target, &bytes)?;
            let mut below = inner.ancestors().take_while(|outer| outer.starts_with(&folder.root));
            below.try_for_each(sync)
        })
        .await
    }

    fn write_now(&self, name: &BlobName, bytes: &[u8]) -> io::Result<()> {
        let [first, second, file] = location::parts(name);
        let (outer, inner) = (self.root.join(&first), self.root.join(&first).join(second));
        fs::create_dir_all(&inner)?;
        let target = inner.join(file);
        // The process that wrote the blob may not have synced the folders yet, so they are synced in any
        // case.
        if !fs::metadata(&target).is_ok_and(|found| found.len() == bytes.len() as u64) {
            self.write_whole(&target, bytes)?;
        }
        [&inner, &outer, &self.root].into_iter().try_for_each(|folder| sync(folder))
    }

    fn write_whole(&self, target: &Path, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.root.join(UNFINISHED).join(format!("{:032x}", rand::random::<u128>()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&unfinished).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished, target)
        });
        if written.is_err()
            && let Err(error) = fs::remove_file(&unfinished)
        {
            tracing::debug!(%error, "an unfinished blob stays until it is old");
        }
        written
    }

    fn clear_now(&self, before: Time) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(UNFINISHED))? {
            let entry = entry?;
            // A writer may finish in the meantime.
            let Ok(modified) = entry.metadata().and_then(|found| found.modified()) else { continue };
            let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            if i64::try_from(age.as_millis()).is_ok_and(|ms| Time::from_millis(ms) < before)
                && let Err(error) = fs::remove_file(entry.path())
            {
                tracing::warn!(%error, "an unfinished blob could not be removed");
            }
        }
        Ok(())
    }
}

/// Syncs a folder.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
