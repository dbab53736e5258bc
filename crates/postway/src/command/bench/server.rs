//! The server of a bench: a child of this binary in a fresh folder, or one that already runs.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::measure::is_in_memory;
use crate::client::Client;
use crate::config::Secret;
use crate::failure::Failure;

const START_MAX: Duration = Duration::from_secs(20);
/// Longer than the server's own bound for a drain.
const STOP_MAX: Duration = Duration::from_secs(40);
const LOG_SHOWN_BYTES: usize = 2000;

/// A server to measure.
#[derive(Debug)]
pub struct Server {
    /// How to speak to it.
    pub client: Client,
    /// Its process, where known.
    pub pid: Option<u32>,
    own: Option<Own>,
}

#[derive(Debug)]
struct Own {
    child: Child,
    /// Removed with everything in it when the bench ends.
    folder: TempDir,
}

impl Server {
    /// One that already runs.
    pub fn running(client: Client, pid: Option<u32>) -> Self {
        Self { client, pid, own: None }
    }

    /// Starts one with an empty database on a free port of this machine, and waits until it is ready.
    pub async fn start(parent: Option<&Path>, database: Option<&str>) -> Result<Self, Failure> {
        let folder = match parent {
            Some(parent) => tempfile::tempdir_in(parent),
            None => tempfile::tempdir(),
        }
        .context("cannot make a temporary folder; name another with --temp-dir")?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let key = format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
        let program = std::env::current_exe().context("cannot find this program to start it as a server")?;
        let log = File::create(folder.path().join("server.log")).context("cannot make the server's log")?;
        let mut command = Command::new(program);
        // Neither the caller's variables nor a postway.toml where the caller stands may change what is measured.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POSTWAY_"))
        {
            command.env_remove(name);
        }
        command
            .arg("serve")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command.env("POSTWAY_DATA_DIR", folder.path().join("data")).env("POSTWAY_HTTP_LISTEN", &address);
        command.env("POSTWAY_ADMIN_KEY", &key).kill_on_drop(true);
        command.envs(database.map(|url| ("POSTWAY_DATABASE_URL", url)));
        let child = command.spawn().context("cannot start the server")?;
        let client = Client::new(&format!("http://{address}"), Some(Secret::new(key)), None)?;
        let mut server = Self { pid: child.id(), client, own: Some(Own { child, folder }) };
        server.wait_until_ready().await?;
        Ok(server)
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

    /// Stops what was started here, as an administrator would; what a reader of the figures should know.
    pub async fn stop(self) -> anyhow::Result<Vec<String>> {
        let Some(Own { mut child, folder }) = self.own else {
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

impl Own {
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
