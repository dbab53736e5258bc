//! What our own clients are packed, checked and tried with: Python's build tools and type checker, npm and
//! TypeScript, and the frameworks that their examples are written for.
//!
//! Packages come from PyPI and npm, versions pinned, and are installed once into the user's cache folder
//! ([`crate::cache`]). Panics with a sentence where they cannot be had: a test that needs them must not pass
//! without.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::process::Command;

use crate::{node::NodeJs, python::interpreter};

/// Names the folders of the packages: change it with them.
const VERSION: &str = "1";
const PYTHON: [&str; 6] =
    ["build==1.6.1", "setuptools==80.9.0", "wheel==0.45.1", "mypy==2.4.1", "flask==3.1.2", "django==5.2.19"];
const NODE: [&str; 3] = ["typescript@5.9.3", "@types/node@24.10.0", "express@5.1.0"];
/// How long a program may take.
const ENDS_WITHIN: Duration = Duration::from_secs(300);

/// Python and Node with these packages.
#[derive(Clone, Debug)]
pub struct ClientTools {
    python: PathBuf,
    node: NodeJs,
}

impl ClientTools {
    /// Finds them. The first time on a machine this installs them; blocks until they are there.
    pub fn installed() -> Self {
        Self {
            python: interpreter("client-tools", VERSION, &PYTHON),
            node: NodeJs::with_packages("client-tools-node", VERSION, &NODE),
        }
    }

    /// Python in this folder. It writes no compiled files beside its sources, and looks at no proxy.
    pub fn python(&self, folder: &Path) -> Command {
        let mut command = plain(&self.python, folder);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Node in this folder.
    pub fn node(&self, folder: &Path) -> Command {
        plain(self.node.program(), folder)
    }

    /// npm in this folder; what it keeps goes there, too.
    pub fn npm(&self, folder: &Path) -> Command {
        let mut command = self.node(folder);
        let wheel = self.node.program().parent().and_then(Path::parent).expect("Node is in a folder `bin`");
        command.arg(wheel.join("lib/node_modules/npm/bin/npm-cli.js"));
        command.args(["--offline", "--no-audit", "--no-fund", "--loglevel=error"]);
        command.arg("--cache").arg(folder.join("npm-cache"));
        command
    }

    /// The folder with the packages of Node.
    pub fn node_modules(&self) -> PathBuf {
        self.node.packages().join("node_modules")
    }

    /// Runs a command that must succeed; what it prints.
    pub async fn run(command: &mut Command) -> String {
        let ended = tokio::time::timeout(ENDS_WITHIN, command.output()).await;
        let ended = ended.unwrap_or_else(|_| panic!("it did not end within {ENDS_WITHIN:?}: {command:?}"));
        let output = ended.unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{command:?} failed:\n{stdout}{stderr}");
        stdout
    }
}

fn plain(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command.env_remove("NODE_OPTIONS").env_remove("NODE_USE_ENV_PROXY");
    command
}
