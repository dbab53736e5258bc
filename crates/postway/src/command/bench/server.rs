//! The servers of a bench: children of this binary in fresh folders, or one that already runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::args::BenchArgs;
use super::measure::is_in_memory;
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::config::ConfigSecret;

const START_MAX: Duration = Duration::from_secs(60);
/// Longer than the server's own bound for a drain.
const STOP_MAX: Duration = Duration::from_secs(40);
const LOG_SHOWN_BYTES: usize = 2000;

/// How the servers of a bench are started: on one database, with the same keys.
#[derive(Debug)]
pub struct ServerRecipe {
    parent: Option<PathBuf>,
    database: Option<String>,
    admin_key: String,
    secret_key: String,
    settings: Vec<(&'static str, String)>,
}

/// A server to measure.
#[derive(Debug)]
pub struct BenchServer {
    /// A client of it.
    pub client: ApiClient,
    /// Its process id, if known.
    pub pid: Option<u32>,
    own: Option<OwnProcess>,
}

#[derive(Debug)]
struct OwnProcess {
    child: Child,
    /// Removed with everything in it when the bench ends.
    folder: TempDir,
    address: String,
}

impl ServerRecipe {
    /// What the arguments ask for, with fresh keys.
    pub fn new(args: &BenchArgs) -> Self {
        Self {
            parent: args.temp_dir.clone(),
            database: args.database.clone(),
            admin_key: format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>()),
            secret_key: BASE64_STANDARD.encode(rand::random::<[u8; 32]>()),
            settings: Vec::new(),
        }
    }

    /// Adds a setting, as a variable of the environment.
    pub fn with(mut self, variable: &'static str, value: String) -> Self {
        self.settings.push((variable, value));
        self
    }

    /// Starts `count` servers, each on a free port of this machine and in a folder of its own, and waits
    /// until they are ready.
    pub async fn start(&self, count: u32) -> Result<Vec<BenchServer>, CommandFailure> {
        let mut nodes = Vec::new();
        for _ in 0..count {
            nodes.push(self.start_one().await?);
        }
        Ok(nodes)
    }

    /// A client with the admin key, for a tenant or for the default one.
    pub fn client(&self, url: &str, tenant: Option<String>) -> Result<ApiClient, CommandFailure> {
        ApiClient::new(url, Some(ConfigSecret::new(self.admin_key.clone())), tenant)
    }

    /// The key that may do everything on these servers.
    pub fn admin_key(&self) -> &str {
        &self.admin_key
    }

    async fn start_one(&self) -> Result<BenchServer, CommandFailure> {
        let folder = match &self.parent {
            Some(parent) => tempfile::tempdir_in(parent),
            None => tempfile::tempdir(),
        }
        .context("cannot make a temporary folder; name another with --temp-dir")?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let child = self.spawn(folder.path(), &address)?;
        let client = self.client(&format!("http://{address}"), None)?;
        let mut node =
            BenchServer { pid: child.id(), client, own: Some(OwnProcess { child, folder, address }) };
        node.wait_until_ready().await?;
        Ok(node)
    }

    /// Kills a server, starts it again in its folder, and returns how long it was not ready.
    pub async fn kill_and_start(&self, node: &mut BenchServer) -> Result<Duration, CommandFailure> {
        let own = node.own.as_mut().context("a server that was not started here is not killed")?;
        let killed = Instant::now();
        own.child.kill().await.context("cannot kill the server")?;
        own.child = self.spawn(own.folder.path(), &own.address)?;
        node.pid = own.child.id();
        node.wait_until_ready().await?;
        Ok(killed.elapsed())
    }

    fn spawn(&self, folder: &Path, address: &str) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("cannot find this program to start it as a server")?;
        let log = File::create(folder.join("server.log")).context("cannot make the server's log")?;
        let mut command = Command::new(program);
        // Neither the caller's variables nor a postway.toml where the caller stands may change what is
        // measured.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POSTWAY_"))
        {
            command.env_remove(name);
        }
        command.arg("serve").current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.env("POSTWAY_DATA_DIR", folder.join("data")).env("POSTWAY_HTTP_LISTEN", address);
        command.env("POSTWAY_ADMIN_KEY", &self.admin_key).env("POSTWAY_SECRET_KEY", &self.secret_key);
        // Relays, mailboxes and receivers of a bench are on this machine.
        command.env("POSTWAY_ALLOW_PRIVATE_TARGETS", "127.0.0.0/8");
        command.envs(self.database.as_ref().map(|url| ("POSTWAY_DATABASE_URL", url)));
        command.envs(self.settings.iter().map(|(name, value)| (name, value))).kill_on_drop(true);
        command.spawn().context("cannot start the server")
    }
}

/// Stops what was started here, and returns warnings about the figures.
pub async fn stop(nodes: Vec<BenchServer>) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    for node in nodes {
        warnings.extend(node.stop().await?);
    }
    Ok(warnings)
}

impl BenchServer {
    /// A server that already runs.
    pub fn running(client: ApiClient, pid: Option<u32>) -> Self {
        Self { client, pid, own: None }
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        let ready = async {
            while self.client.get(&["health", "ready"], &[]).await.is_err() {
                if let Some(status) = own.child.try_wait().context("cannot ask for the server")? {
                    anyhow::bail!("the server ended at once ({status}): {}", own.log());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(START_MAX, ready).await {
            Ok(ready) => ready,
            Err(_) => anyhow::bail!("the server is not ready after {START_MAX:?}: {}", own.log()),
        }
    }

    /// Stops it as an administrator would, if it was started here.
    async fn stop(self) -> anyhow::Result<Vec<String>> {
        let Some(OwnProcess { mut child, folder, .. }) = self.own else {
            return Ok(Vec::new());
        };
        let mut warnings = Vec::new();
        if is_in_memory(folder.path()) {
            let folder = folder.path().display();
            warnings.push(format!(
                "{folder} is memory, where a commit costs nothing; name a disk with --temp-dir"
            ));
        }
        if let Some(pid) = child.id() {
            let asked = Command::new("sh").arg("-c").arg(format!("kill -TERM {pid}")).status().await;
            asked.context("cannot signal the server")?;
        }
        match tokio::time::timeout(STOP_MAX, child.wait()).await {
            Ok(status) => {
                let status = status.context("cannot wait for the server")?;
                if !status.success() {
                    warnings.push(format!("the server did not stop cleanly: {status}"));
                }
            }
            Err(_) => {
                child.kill().await.context("cannot kill the server")?;
                warnings.push(format!("the server did not stop within {STOP_MAX:?} and was killed"));
            }
        }
        Ok(warnings)
    }
}

impl OwnProcess {
    /// The end of its log, for an error message.
    fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("server.log")).unwrap_or_default();
        let shown = &bytes[bytes.len().saturating_sub(LOG_SHOWN_BYTES)..];
        String::from_utf8_lossy(shown).trim().to_owned()
    }
}

/// A port that is free now. Another process could take it first; then the start fails and says so.
pub fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr().context("cannot read the port")?.port())
}
