//! Another program holds the SQLite file for writing: callers are asked to come back, and nothing is lost or
//! done twice.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use futures::future::join_all;
use postway_e2e::{Gateway, PATIENCE, eventually, mail};
use postway_testkit::SmtpSink;
use reqwest::{Method, StatusCode, header::RETRY_AFTER};
use serde_json::{Value, json};

/// Takes the write lock of a SQLite file, says so, and keeps it until its input ends.
const LOCK: &str = "import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.read()
";

/// Another program's transaction, which ends with this value.
struct LockedFile(Child);

impl LockedFile {
    fn of(file: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", LOCK]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().context("no output")?).read_line(&mut said)?;
        let locked = Self(child);
        ensure!(said.trim() == "locked", "{said}");
        Ok(locked)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("it was started");
    }
}

#[tokio::test]
async fn callers_of_a_gateway_whose_file_is_locked_are_told_to_come_back() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("before", "ada@example.net")).await?;
    sink.wait_for(1, PATIENCE).await;

    let locked = LockedFile::of(&gateway.data_dir().join("postway.db"))?;
    let webhook = json!({"url": "https://example.com/hook", "events": ["*"]});
    let calls: [(&str, Value); 5] = [
        ("/v1/messages", mail("during", "ada@example.net")),
        ("/v1/messages/batch", json!({"messages": [mail("during-1", "ada@example.net")]})),
        ("/v1/webhooks", webhook),
        ("/v1/batches/spring/suspend", json!({})),
        ("/v1/suppressions", json!({"address": "eve@example.net", "reason": "manual"})),
    ];
    let answers = join_all(calls.iter().map(async |(path, body)| {
        let answer = gateway.request(Method::POST, path).json(body).send().await?;
        let (status, again) = (answer.status(), answer.headers().get(RETRY_AFTER).cloned());
        anyhow::Ok((path, status, again, answer.json::<Value>().await?))
    }));
    for answer in answers.await {
        let (path, status, again, body) = answer?;
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{path} is {status}: {body}");
        ensure!(body["error"]["code"] == "unavailable", "{path}: {body}");
        let seconds = again.as_ref().and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        ensure!(seconds.is_some_and(|seconds| seconds > 0), "{path} says to come back {again:?}");
    }
    // Whoever only reads is answered, and the gateway says of itself that it cannot take mail.
    ensure!(gateway.get("/v1/messages/before").await?["status"] == "sent", "a read waits for a writer");
    let ready = gateway.request(Method::GET, "/health/ready").send().await?;
    ensure!(ready.status() == StatusCode::SERVICE_UNAVAILABLE, "it is {}", ready.status());
    drop(locked);

    eventually("mail to be taken again", async || {
        let again = gateway.request(Method::POST, "/v1/messages").json(&mail("during", "ada@example.net"));
        Ok(again.send().await?.status().is_success().then_some(()))
    })
    .await?;
    gateway.wait_for("during", "sent").await?;
    ensure!(sink.wait_for(2, PATIENCE).await.len() == 2, "each once");
    Ok(())
}
