//! Python environments for tests that need a program from PyPI, each in a folder of its own
//! ([`crate::cache`]).

use std::{path::PathBuf, process::Command};

use crate::{cache, package::run};

/// The interpreter of an environment with these packages, made if it is not there. `version` is part of the
/// folder's name: change it with the packages.
pub(crate) fn interpreter(name: &str, version: &str, packages: &[&str]) -> PathBuf {
    let python =
        run(Command::new("python3").args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]));
    let version = format!("{version}-python-{}", python.trim());
    let folder = cache::folder(name, &version, |unfinished| {
        run(Command::new("python3").args(["-m", "venv"]).arg(unfinished));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(unfinished.join("bin/python")).args(pip).args(packages));
    });
    folder.join("bin/python")
}
