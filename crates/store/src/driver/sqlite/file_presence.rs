//! Whether the database is still where it was opened.
//!
//! A file that is deleted or moved under a running process takes writes as before, and all of them are gone
//! with the process. So a commit counts only while the names of the file and of its log lead to what was
//! opened.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::error::StoreError;

/// A file by its name, and which it was when it was opened.
struct NamedFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl NamedFile {
    fn find(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }

    fn is_there(&self) -> bool {
        identity(&self.path).is_ok_and(|found| found == self.identity)
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// The database and its write-ahead log.
pub(super) struct DatabaseFiles {
    database: NamedFile,
    /// Made by the first transaction, and there until the last connection closes.
    log: Option<NamedFile>,
}

impl DatabaseFiles {
    /// The files of a database that was just opened.
    pub fn find(path: &Path) -> Result<Self, StoreError> {
        let cannot = |error| StoreError::Unavailable(format!("cannot look at {}: {error}", path.display()));
        Ok(Self { database: NamedFile::find(path.to_owned()).map_err(cannot)?, log: None })
    }

    /// Fails where the files are not there any more: what was written is in files without a name.
    pub fn check(&mut self) -> Result<(), StoreError> {
        if self.log.is_none() {
            let mut log = self.database.path.clone().into_os_string();
            log.push("-wal");
            self.log = NamedFile::find(log.into()).ok();
        }
        let gone =
            [Some(&self.database), self.log.as_ref()].into_iter().flatten().find(|one| !one.is_there());
        match gone {
            Some(file) => Err(StoreError::Unavailable(format!(
                "{} was deleted or moved under the running process: put the data folder back, or restore a backup, and start again",
                file.path.display()
            ))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_or_another_is_found_out() {
        let folder = tempfile::TempDir::new().unwrap();
        let (path, log) = (folder.path().join("postway.db"), folder.path().join("postway.db-wal"));
        fs::write(&path, "").unwrap();
        let mut files = DatabaseFiles::find(&path).unwrap();
        assert!(files.check().is_ok(), "a log that was never there is not missing");
        fs::write(&log, "").unwrap();
        assert!(files.check().is_ok());
        fs::rename(&log, folder.path().join("elsewhere")).unwrap();
        assert!(files.check().is_err());
        fs::rename(folder.path().join("elsewhere"), &log).unwrap();
        assert!(files.check().is_ok(), "it was put back");
        fs::rename(&path, folder.path().join("postway.old")).unwrap();
        fs::write(&path, "").unwrap();
        let error = files.check().unwrap_err();
        assert!(error.to_string().contains("was deleted or moved"), "{error}");
    }
}
