//! Python environments for tests that need a program from PyPI.
//!
//! Each is a folder of its own in the user's cache folder, made by the first test process that needs it; the others
//! wait for it. Panics with a sentence where it cannot be made.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::installed::run;

/// The interpreter of an environment with these packages, made if it is not there. `version` is part of the folder's
/// name: change it with the packages.
pub(crate) fn interpreter(name: &str, version: &str, packages: &[&str]) -> PathBuf {
    let python =
        run(Command::new("python3").args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]));
    let cache = env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache.or_else(home).expect("XDG_CACHE_HOME or HOME is set").join("postway-test");
    let folder = cache.join(format!("{name}-{version}-python-{}", python.trim()));
    if !folder.is_dir() {
        make(&cache, name, &folder, packages);
    }
    folder.join("bin/python")
}

fn make(cache: &Path, name: &str, folder: &Path, packages: &[&str]) {
    fs::create_dir_all(cache).unwrap_or_else(|error| panic!("{} cannot be made: {error}", cache.display()));
    let lock = fs::File::create(cache.join(format!("{name}.lock"))).expect("a lock file can be made");
    lock.lock().expect("the lock can be waited for");
    if folder.is_dir() {
        return;
    }
    // Only a whole one gets the name, so that one that was broken off is not used.
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).expect("what is left of an earlier try can be removed");
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&unfinished));
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(unfinished.join("bin/python")).args(pip).args(packages));
    fs::rename(&unfinished, folder).expect("the finished environment can be renamed");
}
