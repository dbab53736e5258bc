//! Clients that applications in Python use with Resend and Postmark: their SDKs, and Django with anymail.
//!
//! They come from PyPI, each version pinned, and are installed once into the user's cache folder. Panics with
//! a sentence where they cannot be had: a test that needs them must not pass without.

use std::{path::PathBuf, process::Stdio, time::Duration};

use crate::python::interpreter;

/// Names the folder of the packages: change it with them.
const VERSION: &str = "2";
/// Those that tests use, and what they need in turn, so that none of them moves.
const PACKAGES: [&str; 10] = [
    "resend==2.50.1",
    "postmarker==1.0",
    "django-anymail==15.2",
    "django==5.2.19",
    "requests==2.34.2",
    "typing_extensions==4.16.0",
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "idna==3.20",
    "urllib3==2.8.0",
];
/// How long a script may take.
const ENDS_WITHIN: Duration = Duration::from_secs(120);

/// Python with these clients.
#[derive(Clone, Debug)]
pub struct PythonClients(PathBuf);

impl PythonClients {
    /// Finds them. The first time on a machine this installs them; blocks until they are there.
    pub fn installed() -> Self {
        Self(interpreter("python-clients", VERSION, &PACKAGES))
    }

    /// Runs a script and returns what it prints. It gets these variables, and no proxy of ours.
    pub async fn say(&self, script: &str, env: &[(&str, &str)]) -> String {
        let mut python = tokio::process::Command::new(&self.0);
        python.args(["-c", script]).envs(env.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            python.env_remove(name);
        }
        let ended = tokio::time::timeout(ENDS_WITHIN, python.output()).await;
        let ended =
            ended.unwrap_or_else(|_| panic!("a script did not end within {ENDS_WITHIN:?}:\n{script}"));
        let output = ended.unwrap_or_else(|error| panic!("{} cannot be run: {error}", self.0.display()));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "a script failed: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
