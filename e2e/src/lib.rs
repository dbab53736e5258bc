//! The real binary as a test drives it: started in a folder of its own, spoken to over HTTP, killed at will.

use std::{
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::{Instant, timeout},
};

/// The longest a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How often a test looks whether something has happened that it cannot be told of.
const GLANCE: Duration = Duration::from_millis(20);

/// The binary under test, built with failpoints.
fn binary() -> anyhow::Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("POSTWAY_E2E_BINARY") {
            return Ok(path.into());
        }
        // Cargo knows whether there is anything to do; after `./test` built it there is not.
        let done = std::process::Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "postway", "--features", "failpoints"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .status();
        match done {
            Ok(status) if status.success() => {}
            other => return Err(format!("cargo build failed: {other:?}")),
        }
        let test = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = test.ancestors().nth(2).ok_or("the test has no target folder")?;
        Ok(target.join("postway"))
    });
    built.clone().map_err(anyhow::Error::msg)
}

/// A gateway with its data, alive or dead.
pub struct Gateway {
    data: TempDir,
    env: Vec<(String, String)>,
    child: Option<Child>,
    url: String,
    key: String,
    http: reqwest::Client,
}

impl Gateway {
    /// Starts one with nothing configured but its folder and a free port.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(&[]).await
    }

    /// Starts one with these variables as well.
    pub async fn start_with(env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let mut gateway = Self {
            data: TempDir::new()?,
            env: Vec::new(),
            child: None,
            url: String::new(),
            key: String::new(),
            http: reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?,
        };
        gateway.launch(env).await?;
        Ok(gateway)
    }

    /// Starts it again on the same data, with these variables.
    pub async fn launch(&mut self, env: &[(&str, &str)]) -> anyhow::Result<()> {
        ensure!(self.child.is_none(), "it is still running");
        self.env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log_file())?;
        let mut child = Command::new(binary()?)
            .arg("serve")
            .current_dir(self.data.path())
            .env_remove("FAILPOINTS")
            .env("POSTWAY_HTTP_LISTEN", "127.0.0.1:0")
            .env("POSTWAY_DATA_DIR", self.data.path().join("data"))
            .envs(self.env.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let first = timeout(PATIENCE, lines.next_line()).await.context("it said nothing")??;
        let Some(url) = first.as_deref().and_then(|line| line.strip_prefix("postway listens on ")) else {
            let status = child.wait().await?;
            bail!("it did not start ({status}): {first:?}\n{}", self.log());
        };
        self.url = url.to_owned();
        self.key = std::fs::read_to_string(self.data.path().join("data/admin.key"))?.trim().to_owned();
        self.child = Some(child);
        Ok(())
    }

    /// Its data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.data.path().join("data")
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The admin key.
    pub fn key(&self) -> &str {
        &self.key
    }

    fn log_file(&self) -> PathBuf {
        self.data.path().join("stderr.log")
    }

    /// All that it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Ends it as a power cut would.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        let mut child = self.child.take().context("it is not running")?;
        child.kill().await?;
        Ok(())
    }

    /// Sends a signal by name.
    pub async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let pid = self.child.as_ref().and_then(Child::id).context("it is not running")?;
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status().await?;
        ensure!(status.success(), "kill -{name} failed");
        Ok(())
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let mut child = self.child.take().context("it is not running")?;
        Ok(timeout(PATIENCE, child.wait()).await.context("it did not end")??)
    }

    /// Asks it to stop, and waits until it has.
    pub async fn terminate(&mut self) -> anyhow::Result<ExitStatus> {
        self.signal("TERM").await?;
        self.ended().await
    }

    /// A request with the admin key; the answer's status and JSON.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let mut request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        let value = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Ok((status, value))
    }

    /// GET, expecting 200.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let (status, value) = self.call(Method::GET, path, None).await?;
        ensure!(status == StatusCode::OK, "GET {path}: {status} {value}");
        Ok(value)
    }

    /// POST, expecting success.
    pub async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        let (status, value) = self.call(Method::POST, path, Some(body)).await?;
        ensure!(status.is_success(), "POST {path}: {status} {value}");
        Ok(value)
    }

    /// Makes an account `relay` that sends to `port` on this machine, in plain text, with quick retries.
    pub async fn relay_to(&self, port: u16) -> anyhow::Result<()> {
        self.relay_with(port, json!({})).await
    }

    /// The same with other settings besides.
    pub async fn relay_with(&self, port: u16, settings: Value) -> anyhow::Result<()> {
        let mut account = json!({
            "id": "relay", "kind": "smtp", "host": "127.0.0.1", "port": port, "tls": "none",
            "retry": {"delays_s": [1, 1, 1, 1, 1], "jitter": 0.0},
        });
        if let (Some(account), Some(settings)) = (account.as_object_mut(), settings.as_object()) {
            account.extend(settings.clone());
        }
        self.post("/v1/accounts", account).await.map(drop)
    }

    /// Waits until a message has a status, and returns it.
    pub async fn wait_for(&self, id: &str, status: &str) -> anyhow::Result<Value> {
        let started = Instant::now();
        loop {
            let message = self.get(&format!("/v1/messages/{id}")).await?;
            if message["status"] == status {
                return Ok(message);
            }
            ensure!(started.elapsed() < PATIENCE, "{id} is not {status}: {message:#}\n{}", self.log());
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Waits until no message is under way any more: all are final or in doubt.
    pub async fn wait_until_quiet(&self, patience: Duration) -> anyhow::Result<Value> {
        let started = Instant::now();
        loop {
            let stats = self.get("/v1/stats").await?;
            let count = |status: &str| stats["by_status"][status].as_i64().unwrap_or(0);
            let open: i64 =
                ["accepted", "validating", "ready", "scheduled", "sending"].iter().map(|s| count(s)).sum();
            if open == 0 {
                return Ok(stats);
            }
            ensure!(started.elapsed() < patience, "not quiet: {stats:#}\n{}", self.log());
            tokio::time::sleep(GLANCE * 5).await;
        }
    }
}

/// A small mail for the account `relay`.
pub fn mail(id: &str, to: &str) -> Value {
    json!({"id": id, "account": "relay", "from": "Shop <shop@example.com>", "to": [to], "subject": "Hello", "text": "Hi\n"})
}

/// The types of a message's events, in order.
pub fn event_types(message: &Value) -> Vec<String> {
    let events = message["events"].as_array().cloned().unwrap_or_default();
    events.iter().filter_map(|event| event["type"].as_str().map(str::to_owned)).collect()
}
