//! Checkers from PyPI that know the forms of other people's files without asking the network: Kubernetes,
//! Compose, hosted CI.
//!
//! They are installed once into the user's cache folder ([`crate::cache`]). Panics with a sentence where they
//! cannot be had.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{package::run, python::interpreter};

/// Names the folder of the packages: change it with them.
const VERSION: &str = "2";
const PACKAGES: [&str; 3] =
    ["kubernetes-validate==1.37.0", "check-jsonschema==0.39.0", "podman-compose==1.6.0"];

/// Python with these checkers.
#[derive(Clone, Debug)]
pub struct SchemaTools(PathBuf);

impl SchemaTools {
    /// Finds them. The first time on a machine this installs them; blocks until they are there.
    pub fn installed() -> Self {
        Self(interpreter("schema-tools", VERSION, &PACKAGES))
    }

    /// Holds manifests against the schemas of Kubernetes; fields that it does not know are errors. Panics
    /// with what is wrong.
    pub fn check_kubernetes(&self, manifests: &[PathBuf]) {
        run(Command::new(&self.0).args(["-m", "kubernetes_validate", "--strict", "--quiet"]).args(manifests));
    }

    /// Holds files against a schema that the checker brings along, such as `vendor.compose-spec`. Panics with
    /// what is wrong.
    pub fn check_form(&self, schema: &str, files: &[PathBuf]) {
        run(Command::new(&self.0).args(["-m", "check_jsonschema", "--builtin-schema", schema]).args(files));
    }

    /// A Compose file as podman-compose reads it: anchors followed, and these variables filled in. Panics with
    /// what is wrong. Nothing is started, so instead of podman there is a program that only repeats what it is
    /// asked.
    pub fn read_compose(&self, file: &Path, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new(&self.0);
        command.args(["-m", "podman_compose", "--podman-path", "/bin/echo", "-f"]).arg(file).arg("config");
        run(command.envs(variables.iter().copied()))
    }
}
