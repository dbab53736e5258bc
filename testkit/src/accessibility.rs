//! axe-core, which judges whether a page is accessible: a script that is run in it. From PyPI, where it is
//! packed for Python.

use std::{fs, process::Command};

use crate::{package::run, python::interpreter};

/// Change it together with the package.
const VERSION: &str = "0.1.0";

/// The script. Panics if it cannot be installed.
pub fn script() -> String {
    let python = interpreter("axe", VERSION, &["axe-core-python==0.1.0"]);
    let find = "import axe_core_python, os; print(os.path.dirname(axe_core_python.__file__))";
    let folder = run(Command::new(python).args(["-c", find]));
    let file = format!("{}/axe.min.js", folder.trim());
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file} cannot be read: {error}"))
}
