//! A gateway's process: started, signalled, killed, started again on the same data.

use std::{
    ops::Deref,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, bail, ensure};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdout, Command},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

use crate::{ALLOW_LOOPBACK, Client, PATIENCE, binary::binary, eventually};

/// A gateway with its data, alive or dead. Speaks HTTP through its [`Client`].
pub struct Gateway {
    data: TempDir,
    life: Option<Life>,
    printed: Arc<Mutex<String>>,
    client: Client,
    /// The program to run, if it is not the one under test.
    program: Option<PathBuf>,
}

struct Life {
    child: Child,
    reading: JoinHandle<()>,
    first_line: oneshot::Receiver<String>,
    key: Option<String>,
    /// Where its part of the log begins.
    log_from: usize,
}

/// What it logs when it takes connections.
const LISTENING: &str = "listening;";

/// How a command of the binary ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: Option<i32>,
    /// What it printed.
    pub out: String,
    /// What it complained about.
    pub err: String,
}

impl Deref for Gateway {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Gateway {
    /// Starts one with nothing configured but its folder and a free port, for tests: what its sandbox
    /// captures counts as sent.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(&[]).await
    }

    /// Starts one with these variables as well.
    pub async fn start_with(env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let gateway = Self::start_untouched(env).await?;
        gateway.patch("/v1/tenants/default", json!({"test": true})).await?;
        Ok(gateway)
    }

    /// Starts one with default settings: mail is captured until there is an account that sends.
    pub async fn start_untouched(env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut gateway = Self::idle()?;
        gateway.launch(env).await?;
        Ok(gateway)
    }

    /// A gateway that has a folder and has not been started.
    pub fn idle() -> anyhow::Result<Self> {
        let data = TempDir::new()?;
        let client = Client::new(data.path().join("stderr.log"))?;
        Ok(Self { data, life: None, printed: Arc::default(), client, program: None })
    }

    /// Runs another program than the one under test, from the next start on.
    pub fn become_program(&mut self, program: PathBuf) {
        self.program = Some(program);
    }

    /// Starts it, again on the same data, with these variables, and waits until it is ready.
    pub async fn launch(&mut self, env: &[(&str, &str)]) -> anyhow::Result<()> {
        self.spawn(env)?;
        self.announced().await
    }

    /// The same with further arguments for `serve`.
    pub async fn launch_as(&mut self, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
        self.spawn_as(args, env)?;
        self.announced().await
    }

    /// Starts it, and waits only until it listens. Its database may be away.
    pub async fn launch_early(&mut self, env: &[(&str, &str)]) -> anyhow::Result<()> {
        self.spawn(env)?;
        let life = self.life.as_ref().context("it is not running")?;
        let (log_from, key) = (life.log_from, life.key.clone());
        let address = eventually("a word of where it listens", async || {
            let log = self.log();
            let line = log.get(log_from..).and_then(|log| log.lines().find(|line| line.contains(LISTENING)));
            let address = line.and_then(|line| line.split("address=").nth(1)?.split_whitespace().next());
            Ok(address.map(str::to_owned))
        })
        .await?;
        // Without a key nothing but its health can be asked.
        self.client.connect(&format!("http://{address}"), key.as_deref().unwrap_or_default());
        Ok(())
    }

    fn spawn(&mut self, env: &[(&str, &str)]) -> anyhow::Result<()> {
        self.spawn_as(&[], env)
    }

    fn spawn_as(&mut self, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
        ensure!(self.life.is_none(), "it is still running");
        let log_from = self.log().len();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log_file)?;
        let mut child = self
            .command(&[&["serve"], args].concat())?
            .env("POSTWAY_HTTP_LISTEN", "127.0.0.1:0")
            .env(ALLOW_LOOPBACK.0, ALLOW_LOOPBACK.1)
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let stdout = child.stdout.take().context("no standard output")?;
        let (on_first, first_line) = oneshot::channel();
        let reading = tokio::spawn(read_along(stdout, on_first, self.printed.clone()));
        let key = env.iter().find(|(name, _)| *name == "POSTWAY_ADMIN_KEY").map(|(_, key)| key.to_string());
        self.life = Some(Life { child, reading, first_line, key, log_from });
        Ok(())
    }

    /// Waits until a gateway that was started says that it is ready. One that does not is no longer running.
    pub async fn announced(&mut self) -> anyhow::Result<()> {
        let mut life = self.life.take().context("it is not running")?;
        let first = timeout(PATIENCE, &mut life.first_line).await.context("it said nothing")?;
        let Some(url) = first.as_deref().ok().and_then(|line| line.strip_prefix("postway listens on "))
        else {
            let status = life.child.wait().await?;
            bail!("it did not start ({status}): {first:?}\n{}", self.log());
        };
        let key = match &life.key {
            Some(key) => key.clone(),
            None => std::fs::read_to_string(self.data_dir().join("admin.key"))?,
        };
        self.client.connect(url, key.trim());
        self.life = Some(life);
        Ok(())
    }

    fn command(&self, args: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(self.program.clone().map_or_else(binary, Ok)?);
        command
            .args(args)
            .current_dir(self.data.path())
            .env_remove("FAILPOINTS")
            .env_remove("FAILPOINTS_CLOCK_SKEW_MS")
            .env("POSTWAY_DATA_DIR", self.data_dir())
            .kill_on_drop(true);
        Ok(command)
    }

    /// Runs a command of the binary beside the server, in the same folder, with this standard input.
    pub async fn run(&self, args: &[&str], env: &[(&str, &str)], input: &[u8]) -> anyhow::Result<Ran> {
        let mut child = self
            .command(args)?
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("no standard input")?;
        stdin.write_all(input).await?;
        drop(stdin);
        let output = timeout(PATIENCE, child.wait_with_output()).await.context("it did not end")??;
        Ok(Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }

    /// Runs a command that speaks to this server.
    pub async fn cli(&self, args: &[&str]) -> anyhow::Result<Ran> {
        self.cli_with(args, b"").await
    }

    /// The same with a standard input.
    pub async fn cli_with(&self, args: &[&str], input: &[u8]) -> anyhow::Result<Ran> {
        self.run(args, &[("POSTWAY_URL", &self.url())], input).await
    }

    /// The folder it works in.
    pub fn folder(&self) -> PathBuf {
        self.data.path().to_owned()
    }

    /// Its data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.data.path().join("data")
    }

    /// A caller that can be sent to other tasks and follows this gateway through restarts.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What it has printed on standard output, in all its lives; complete once a life has ended.
    pub fn printed(&self) -> String {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it at once, by SIGKILL.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        let mut life = self.life.take().context("it is not running")?;
        life.child.kill().await?;
        Ok(())
    }

    /// Sends a signal by name.
    pub async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let pid = self.life.as_ref().and_then(|life| life.child.id()).context("it is not running")?;
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().await?;
        ensure!(status.success(), "kill -{name} failed");
        Ok(())
    }

    /// The most memory that the process has held at once, in bytes.
    pub fn peak_memory(&self) -> anyhow::Result<u64> {
        let pid = self.life.as_ref().and_then(|life| life.child.id()).context("it is not running")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
    }

    /// Whether the process is alive.
    pub fn is_running(&mut self) -> anyhow::Result<bool> {
        match &mut self.life {
            Some(life) => Ok(life.child.try_wait()?.is_none()),
            None => Ok(false),
        }
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let mut life = self.life.take().context("it is not running")?;
        let status = timeout(PATIENCE, life.child.wait()).await.context("it did not end")??;
        life.reading.await?;
        Ok(status)
    }

    /// Asks it to stop, and waits until it has.
    pub async fn terminate(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal("TERM").await?;
        self.ended().await
    }

    /// Waits until the log has this many lines with `words`.
    pub async fn wait_for_log(&self, words: &str, times: usize) -> anyhow::Result<()> {
        eventually(words, async || Ok((self.log().matches(words).count() >= times).then_some(()))).await
    }
}

/// Collects everything that the process prints, and sends its first line.
async fn read_along(stdout: ChildStdout, on_first: oneshot::Sender<String>, printed: Arc<Mutex<String>>) {
    let mut lines = BufReader::new(stdout).lines();
    let mut on_first = Some(on_first);
    while let Ok(Some(line)) = lines.next_line().await {
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.push_str(&line);
        printed.push('\n');
        if let Some(on_first) = on_first.take() {
            // The receiver is gone only if the test has given up.
            on_first.send(line).ok();
        }
    }
}
