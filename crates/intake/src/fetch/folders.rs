//! Files of this machine, in the folders that the operator has opened to a tenant.
//!
//! Promises: only regular files whose real path is in one of the tenant's folders are read, whatever links,
//! `..` or races lead there; opening never waits for a pipe or a device; and the error for a path outside, or
//! for a link that leads out, is the same whether a file exists there or not.

use std::{
    borrow::Cow,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Component, Path, PathBuf},
};

use postway_domain::TenantId;

use super::{config::AttachmentFolder, error::FetchFault};

/// Without this flag, opening a pipe waits for a writer. The standard library has no name for it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const O_NONBLOCK: i32 = 0o4000;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const O_NONBLOCK: i32 = 0x4;

/// The longest path, in bytes.
const PATH_BYTES_MAX: usize = 4_096;

/// The folders that a tenant's attachments may come from.
#[derive(Clone, Debug, Default)]
pub(super) struct TenantFolders {
    folders: Vec<PathBuf>,
}

impl TenantFolders {
    /// The folders that this tenant may use. They need not exist yet.
    pub(super) fn for_tenant(tenant: &TenantId, folders: &[AttachmentFolder]) -> Self {
        Self { folders: folders.iter().filter_map(|folder| folder.for_tenant(tenant)).collect() }
    }

    /// Reads a file of at most `bytes_max` bytes, after `take` has allowed its size. Blocks.
    pub(super) fn read(
        &self,
        path: &Path,
        bytes_max: usize,
        take: impl FnOnce(usize) -> Result<(), FetchFault>,
    ) -> Result<Vec<u8>, FetchFault> {
        let path = self.resolve_relative(path);
        let folder = self.folder_of(&path)?;
        let (mut file, metadata) = open(&folder, &path)?;
        if !metadata.is_file() {
            return Err(FetchFault::permanent("is not a regular file"));
        }
        let too_large = || FetchFault::permanent(format!("is larger than {bytes_max} bytes"));
        let length = usize::try_from(metadata.len()).ok().filter(|length| *length <= bytes_max);
        let length = length.ok_or_else(too_large)?;
        take(length)?;
        let mut content = Vec::with_capacity(length);
        (&mut file).take(length as u64 + 1).read_to_end(&mut content).map_err(|error| unreadable(&error))?;
        match content.len() > length {
            true => Err(FetchFault::transient("is being written: it grew while it was read")),
            false => Ok(content),
        }
    }

    /// Resolves a relative path in the first folder that contains it. A path that climbs out of a folder is
    /// not resolved.
    fn resolve_relative<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        let is_below = |path: &Path| {
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        if path.is_absolute() || !is_below(path) {
            return Cow::Borrowed(path);
        }
        let mut candidates = self.folders.iter().map(|folder| folder.join(path));
        let found = candidates.clone().find(|candidate| fs::symlink_metadata(candidate).is_ok());
        found.or_else(|| candidates.next()).map_or(Cow::Borrowed(path), Cow::Owned)
    }

    /// The real path of the folder that a path belongs to. Other paths are not looked up.
    fn folder_of(&self, path: &Path) -> Result<PathBuf, FetchFault> {
        if self.folders.is_empty() {
            return Err(FetchFault::permanent(
                "no folder is open to attachments of this tenant: ask the operator to add one to attachments.folders \
                 (POSTWAY_ATTACHMENTS_FOLDERS), such as /srv/files/{tenant} or TENANT:/srv/files",
            ));
        }
        let bytes = path.as_os_str().as_encoded_bytes();
        let is_plain = path.is_absolute()
            && bytes.len() <= PATH_BYTES_MAX
            && !bytes.contains(&0)
            && !path.components().any(|part| part == Component::ParentDir);
        let folder = self.folders.iter().find(|folder| path.starts_with(folder)).filter(|_| is_plain);
        fs::canonicalize(folder.ok_or_else(absent)?).map_err(|error| unresolved(&error))
    }
}

/// Opens a file whose real path is in the folder. The path is checked again after opening: if a folder was
/// replaced by a link in between, the opened file is not the file at that path.
fn open(folder: &Path, path: &Path) -> Result<(File, Metadata), FetchFault> {
    let real_path = fs::canonicalize(path).map_err(|error| unresolved(&error))?;
    if !real_path.starts_with(folder) {
        return Err(absent());
    }
    // Checked before opening, because opening some devices has effects.
    let seen = fs::symlink_metadata(&real_path).map_err(|error| unresolved(&error))?;
    if !seen.is_file() {
        return Err(FetchFault::permanent("is not a regular file"));
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(&real_path)
        .map_err(|error| unreadable(&error))?;
    let opened = file.metadata().map_err(|error| unreadable(&error))?;
    let again = fs::canonicalize(&real_path).and_then(|again| Ok((fs::symlink_metadata(&again)?, again)));
    match again {
        Ok((there, again))
            if again == real_path && (there.dev(), there.ino()) == (opened.dev(), opened.ino()) =>
        {
            Ok((file, opened))
        }
        Ok(_) => Err(absent()),
        Err(error) => Err(unresolved(&error)),
    }
}

fn absent() -> FetchFault {
    FetchFault::permanent("there is no such file under the folders that are open to attachments")
}

/// The error for a path that cannot be resolved. It must not reveal what exists outside the folders.
fn unresolved(error: &io::Error) -> FetchFault {
    use io::ErrorKind::{Interrupted, NotConnected, StaleNetworkFileHandle, TimedOut};
    match error.kind() {
        Interrupted | NotConnected | StaleNetworkFileHandle | TimedOut => {
            FetchFault::transient("its folder cannot be read just now")
        }
        _ => absent(),
    }
}

/// The error for a file in the folder that cannot be read. Here the reason may be given.
fn unreadable(error: &io::Error) -> FetchFault {
    match error.kind() {
        io::ErrorKind::NotFound => absent(),
        io::ErrorKind::PermissionDenied => {
            FetchFault::permanent("may not be read: give postway the right to read it")
        }
        _ => FetchFault::transient(format!("cannot be read: {error}")),
    }
}
