//! Folders with programs that tests need and no Debian package has: made once, in the user's cache folder.
//!
//! The first test process that needs one makes it; the others wait for it. Panics with a sentence where it
//! cannot be made.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The folder of this name, made by `make` if it is not there. `version` is part of the folder's name: change
/// it with what is in it. `make` gets a path that is free, whose last part is not the folder's final name.
pub(crate) fn folder(name: &str, version: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache.or_else(home).expect("XDG_CACHE_HOME or HOME is set").join("postway-test");
    let folder = cache.join(format!("{name}-{version}"));
    if folder.is_dir() {
        return folder;
    }
    fs::create_dir_all(&cache).unwrap_or_else(|error| panic!("{} cannot be made: {error}", cache.display()));
    let lock = fs::File::create(cache.join(format!("{name}.lock"))).expect("a lock file can be made");
    lock.lock().expect("the lock can be waited for");
    if folder.is_dir() {
        return folder;
    }
    // Only a whole one gets the name, so that one that was broken off is not used.
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).expect("what is left of an earlier try can be removed");
    }
    make(&unfinished);
    fs::rename(&unfinished, &folder).expect("the finished folder can be renamed");
    folder
}
