//! An HTTP client of a gateway. A clone follows the gateway through its restarts.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use anyhow::{Context, ensure};
use jiff::Timestamp;
use reqwest::{Method, RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{GLANCE, PATIENCE, merged, text};

/// The states of a message that has not come to an end.
pub(crate) const UNDER_WAY: [&str; 6] =
    ["accepted", "validating", "ready", "scheduled", "sending", "in_doubt"];

/// How many messages are in one of these states, by the answer to `/v1/stats`.
pub(crate) fn count(stats: &Value, states: &[&str]) -> usize {
    let of = |state: &&str| stats["by_status"][*state].as_u64().unwrap_or_default() as usize;
    states.iter().map(of).sum()
}

/// Where to call, and with which key. Both change when the gateway starts anew.
#[derive(Clone, Default)]
struct Line {
    url: String,
    key: String,
}

/// A caller with the admin key.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    line: Arc<RwLock<Line>>,
    pub(crate) log_file: PathBuf,
}

impl Client {
    pub(crate) fn new(log_file: PathBuf) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Self { http, line: Arc::default(), log_file })
    }

    pub(crate) fn connect(&self, url: &str, key: &str) {
        let line = Line { url: url.to_owned(), key: key.to_owned() };
        *self.line.write().unwrap_or_else(PoisonError::into_inner) = line;
    }

    fn line(&self) -> Line {
        self.line.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the gateway listens.
    pub fn url(&self) -> String {
        self.line().url
    }

    /// The admin key.
    pub fn key(&self) -> String {
        self.line().key
    }

    /// All that the gateway has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log_file).unwrap_or_default()
    }

    /// A request with the admin key, to be completed.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let Line { url, key } = self.line();
        self.http.request(method, format!("{url}{path}")).bearer_auth(key)
    }

    /// Sends a request, and returns the status and the JSON of the answer, or its text if it is not JSON.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        read(request).await
    }

    /// GET; the answer's status, headers and bytes.
    pub async fn bytes(&self, path: &str) -> anyhow::Result<(StatusCode, HeaderMap, Vec<u8>)> {
        let answer = self.request(Method::GET, path).send().await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        Ok((status, headers, answer.bytes().await?.into()))
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

    /// PATCH, expecting success.
    pub async fn patch(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        let (status, value) = self.call(Method::PATCH, path, Some(body)).await?;
        ensure!(status.is_success(), "PATCH {path}: {status} {value}");
        Ok(value)
    }

    /// Hands over a mail, expecting 202; returns its uid.
    pub async fn send(&self, mail: Value) -> anyhow::Result<String> {
        let (status, answer) = self.call(Method::POST, "/v1/messages", Some(mail)).await?;
        ensure!(status == StatusCode::ACCEPTED, "{status} {answer}");
        answer["uid"].as_str().map(str::to_owned).context("the answer has no uid")
    }

    /// Reads a message.
    pub async fn message(&self, id: &str) -> anyhow::Result<Value> {
        self.get(&format!("/v1/messages/{id}")).await
    }

    /// The gateway's own idea of the time: when it took a mail just now.
    pub async fn now(&self) -> anyhow::Result<Timestamp> {
        let probe = json!({"account": "sandbox", "from": "a@example.com", "to": "b@example.net", "subject": "", "text": "?"});
        let uid = self.send(probe).await?;
        Ok(text(&self.message(&uid).await?, "created_at").parse()?)
    }

    /// Makes an account `relay` that sends to `port` on this machine, in plain text, with quick retries.
    pub async fn relay_to(&self, port: u16) -> anyhow::Result<()> {
        self.relay_with(port, json!({})).await
    }

    /// Creates the account `relay` with further settings.
    pub async fn relay_with(&self, port: u16, settings: Value) -> anyhow::Result<()> {
        let account = json!({
            "id": "relay", "kind": "smtp", "host": "127.0.0.1", "port": port, "tls": "none",
            "retry": {"delays_s": [1, 1, 1, 1, 1], "jitter": 0.0},
        });
        self.post("/v1/accounts", merged(account, settings)).await.map(drop)
    }

    /// Waits until a message has a status, and returns it.
    pub async fn wait_for(&self, id: &str, status: &str) -> anyhow::Result<Value> {
        self.wait_until(id, status, |message| message["status"] == status).await
    }

    /// Waits until a message is as `done` wants it, and returns it.
    pub async fn wait_until(
        &self,
        id: &str,
        what: &str,
        done: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let started = Instant::now();
        loop {
            let message = self.message(id).await?;
            if done(&message) {
                return Ok(message);
            }
            ensure!(started.elapsed() < PATIENCE, "{id} is not {what}: {message:#}\n{}", self.log());
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Waits until all subscribers were notified of a message, and returns it.
    pub async fn wait_until_reported(&self, id: &str) -> anyhow::Result<Value> {
        self.wait_until(id, "reported", |message| message["reported_at"].is_string()).await
    }

    /// Waits until the circuit of an account is open, and returns the account.
    pub async fn wait_until_open(&self, account: &str) -> anyhow::Result<Value> {
        crate::eventually("an open circuit", async || {
            let account = self.get(&format!("/v1/accounts/{account}")).await?;
            Ok((account["circuit"]["state"] == "open").then_some(account))
        })
        .await
    }

    /// Waits until it says that it can take mail.
    pub async fn wait_until_ready(&self) -> anyhow::Result<()> {
        crate::eventually("readiness", async || {
            let answer = self.call(Method::GET, "/health/ready", None).await;
            Ok(matches!(answer, Ok((reqwest::StatusCode::OK, _))).then_some(()))
        })
        .await
    }

    /// Waits until no message is under way any more, those in doubt included; as long as it takes, but not
    /// for one that makes no progress for `patience`.
    pub async fn wait_until_settled(&self, patience: Duration) -> anyhow::Result<Value> {
        let mut stats = Value::Null;
        let settled = crate::all_done("messages to settle", patience, async || {
            stats = self.get("/v1/stats").await?;
            Ok(count(&stats, &UNDER_WAY))
        });
        settled.await.with_context(|| format!("not settled: {stats:#}"))?;
        Ok(stats)
    }
}

/// Sends a request, and returns the status and the JSON of the answer, or its text if it is not JSON.
pub(crate) async fn read(request: RequestBuilder) -> anyhow::Result<(StatusCode, Value)> {
    let answer = request.send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    let value = match text.is_empty() {
        true => Value::Null,
        false => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    };
    Ok((status, value))
}
