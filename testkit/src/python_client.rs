//! The clients that applications in Python use, from PyPI, each version pinned.
//!
//! Panics with a sentence where they cannot be had: a test that needs them must not pass without.

use std::{path::PathBuf, process::Stdio, time::Duration};

use crate::python::interpreter;

/// Names the folder of the packages: change it with them.
const VERSION: &str = "1";
/// Those that tests use, and all that they need in turn, so that none of them moves.
const PACKAGES: [&str; 7] = [
    "resend==2.50.1",
    "requests==2.34.2",
    "typing_extensions==4.16.0",
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "idna==3.20",
    "urllib3==2.8.0",
];
/// How long a script may take.
const ENDS_WITHIN: Duration = Duration::from_secs(120);

/// Python with its packages.
#[derive(Clone, Debug)]
pub struct PythonClient {
    program: PathBuf,
}

impl PythonClient {
    /// Finds it. The first time on a machine this installs it; blocks until it is there.
    pub fn installed() -> Self {
        Self { program: interpreter("python-clients", VERSION, &PACKAGES) }
    }

    /// Runs a script that must succeed; what it prints. It gets these variables, and none of ours that would send it by a proxy.
    pub async fn say(&self, script: &str, env: &[(&str, &str)]) -> String {
        let child = tokio::process::Command::new(&self.program)
            .args(["-c", script])
            .env("NO_PROXY", "*")
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let ended = tokio::time::timeout(ENDS_WITHIN, child).await;
        let ended =
            ended.unwrap_or_else(|_| panic!("a script did not end within {ENDS_WITHIN:?}:\n{script}"));
        let output =
            ended.unwrap_or_else(|error| panic!("{} cannot be run: {error}", self.program.display()));
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "a script failed, {}:\n{stdout}{stderr}", output.status);
        stdout
    }
}
