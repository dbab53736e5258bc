//! Files of this machine, under the folders that the operator has opened to a tenant.
//!
//! Promises: nothing but a regular file whose true place is under one of the tenant's folders is read, whatever links, `..`
//! or races lead there; opening never waits for a pipe or a device; and what is said about a path outside, or a link that
//! leads out, is the same whether there is a file or not.

use std::{
    borrow::Cow,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Component, Path, PathBuf},
};

use postway_domain::TenantId;

use super::{config::AttachmentFolder, error::Fault};

/// Without it, opening a pipe waits for someone to write into it. The standard library has no name for it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const O_NONBLOCK: i32 = 0o4000;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const O_NONBLOCK: i32 = 0x4;

/// The longest path, in bytes.
const PATH_BYTES_MAX: usize = 4_096;

/// The folders that a tenant's attachments may come from.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    folders: Vec<PathBuf>,
}

impl Folders {
    /// Those of these folders that are this tenant's, and what is below them. They need not exist yet.
    pub(super) fn of(tenant: &TenantId, folders: &[AttachmentFolder]) -> Self {
        Self { folders: folders.iter().filter_map(|folder| folder.of(tenant)).collect() }
    }

    /// Reads a file of at most `bytes_max`, once `take` has allowed as many bytes as it has. Blocks.
    pub(super) fn read(
        &self,
        path: &Path,
        bytes_max: usize,
        take: impl FnOnce(usize) -> Result<(), Fault>,
    ) -> Result<Vec<u8>, Fault> {
        let path = self.place_of(path);
        let folder = self.folder_of(&path)?;
        let (mut file, metadata) = open(&folder, &path)?;
        if !metadata.is_file() {
            return Err(Fault::permanent("is not a regular file"));
        }
        let too_large = || Fault::permanent(format!("is larger than {bytes_max} bytes"));
        let length = usize::try_from(metadata.len()).ok().filter(|length| *length <= bytes_max);
        let length = length.ok_or_else(too_large)?;
        take(length)?;
        let mut content = Vec::with_capacity(length);
        (&mut file).take(length as u64 + 1).read_to_end(&mut content).map_err(|error| unreadable(&error))?;
        match content.len() > length {
            true => Err(Fault::transient("is being written: it grew while it was read")),
            false => Ok(content),
        }
    }

    /// Where a path is that does not begin at the root: below the first of the folders that has something there. What climbs
    /// out of a folder is looked up in none.
    fn place_of<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        let is_below = |path: &Path| {
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        if path.is_absolute() || !is_below(path) {
            return Cow::Borrowed(path);
        }
        let mut places = self.folders.iter().map(|folder| folder.join(path));
        let found = places.clone().find(|place| fs::symlink_metadata(place).is_ok());
        found.or_else(|| places.next()).map_or(Cow::Borrowed(path), Cow::Owned)
    }

    /// The true place of the folder that a path is written to be in. Nothing is looked up for other paths.
    fn folder_of(&self, path: &Path) -> Result<PathBuf, Fault> {
        if self.folders.is_empty() {
            return Err(Fault::permanent(
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

/// Opens what is truly below the folder. The place is made sure of again once the file is open: whoever swaps a folder for
/// a link in between is found out, because then the file opened is not the file in that place.
fn open(folder: &Path, path: &Path) -> Result<(File, Metadata), Fault> {
    let place = fs::canonicalize(path).map_err(|error| unresolved(&error))?;
    if !place.starts_with(folder) {
        return Err(absent());
    }
    // Looked at first, because opening some devices is an act in itself.
    let seen = fs::symlink_metadata(&place).map_err(|error| unresolved(&error))?;
    if !seen.is_file() {
        return Err(Fault::permanent("is not a regular file"));
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(&place)
        .map_err(|error| unreadable(&error))?;
    let opened = file.metadata().map_err(|error| unreadable(&error))?;
    let again = fs::canonicalize(&place).and_then(|again| Ok((fs::symlink_metadata(&again)?, again)));
    match again {
        Ok((there, again))
            if again == place && (there.dev(), there.ino()) == (opened.dev(), opened.ino()) =>
        {
            Ok((file, opened))
        }
        Ok(_) => Err(absent()),
        Err(error) => Err(unresolved(&error)),
    }
}

fn absent() -> Fault {
    Fault::permanent("there is no such file under the folders that are open to attachments")
}

/// A path that leads nowhere may lead nowhere outside: that is not told.
fn unresolved(error: &io::Error) -> Fault {
    use io::ErrorKind::{Interrupted, NotConnected, StaleNetworkFileHandle, TimedOut};
    match error.kind() {
        Interrupted | NotConnected | StaleNetworkFileHandle | TimedOut => {
            Fault::transient("its folder cannot be read just now")
        }
        _ => absent(),
    }
}

/// The file is inside and there: why it cannot be read may be told.
fn unreadable(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound => absent(),
        io::ErrorKind::PermissionDenied => {
            Fault::permanent("may not be read: give postway the right to read it")
        }
        _ => Fault::transient(format!("cannot be read: {error}")),
    }
}
