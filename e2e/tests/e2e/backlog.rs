//! A cold start on a very long queue: the first mail leaves at once, memory stays small, and the API answers.

use std::{path::Path, time::Duration};

use anyhow::ensure;
use postway_e2e::{Gateway, PATIENCE, eventually, mail, mail_with};
use postway_testkit::SmtpSink;
use serde_json::json;
use tokio::{process::Command, time::Instant};

/// How many messages wait when it starts.
const QUEUED: u64 = 1_000_000;
/// A bound that a queue in memory would pass several times over.
const MEMORY_BYTES_MAX: u64 = 400 * 1024 * 1024;
/// On a slow machine. What would go through the whole queue first takes much longer.
const FIRST_WITHIN: Duration = Duration::from_secs(30);

/// Makes of the one message in a database a million: what the queue needs of it is there once for each.
const MULTIPLY: &str = "
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA temp_store = MEMORY;
BEGIN;
CREATE TEMP TABLE pattern AS SELECT uid FROM message;
CREATE TEMP TABLE fresh AS SELECT uid FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < QUEUED)
    SELECT randomblob(16) AS uid FROM n) ORDER BY uid;
";

async fn sqlite3(file: &Path, sql: &str) -> anyhow::Result<String> {
    let output = Command::new("sqlite3").args(["-bail"]).arg(file).arg(sql).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Fills the queue with copies of the one message that is in it.
async fn multiply(file: &Path) -> anyhow::Result<()> {
    let mut script = MULTIPLY.replace("QUEUED", &(QUEUED - 1).to_string());
    for table in ["message", "content", "recipient"] {
        let columns =
            format!("SELECT group_concat(name, ', ') FROM pragma_table_info('{table}') WHERE name <> 'uid'");
        let columns = sqlite3(file, &columns).await?;
        script += &format!(
            "INSERT INTO {table} (uid, {columns}) SELECT fresh.uid, {columns} FROM fresh CROSS JOIN {table} AS old \
             WHERE old.uid = (SELECT uid FROM pattern);\n"
        );
    }
    script += &format!("UPDATE tally SET count = {QUEUED} WHERE count = 1; COMMIT;");
    sqlite3(file, &script).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_queued_do_not_delay_the_start() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 2})).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    let pattern = json!({"account": "relay", "from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hi"});
    gateway.send(pattern).await?;
    assert!(gateway.terminate().await?.success());
    multiply(&gateway.data_dir().join("postway.db")).await?;

    let started = Instant::now();
    gateway.launch(&[]).await?;
    let listens = started.elapsed();
    assert!(listens < FIRST_WITHIN, "it took {listens:?} to start");
    assert_eq!(gateway.get("/v1/stats").await?["by_status"]["ready"], QUEUED);
    // Another account's mail does not wait behind them.
    gateway.send(mail_with("aside", "ada@example.net", json!({"account": "sandbox"}))).await?;
    gateway.wait_for("aside", "sent").await?;

    let activated = Instant::now();
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    sink.wait_for(1, FIRST_WITHIN).await;
    let first = activated.elapsed();
    sink.wait_for(300, PATIENCE).await;
    for path in [
        "/v1/messages?limit=100",
        "/v1/messages?status=ready&account=relay",
        "/v1/messages?recipient=ada@example.net",
        "/v1/overview",
        "/v1/accounts",
    ] {
        let asked = Instant::now();
        gateway.get(path).await?;
        assert!(asked.elapsed() < Duration::from_secs(10), "{path} took {:?}", asked.elapsed());
    }
    gateway.send(mail("last", "ada@example.net")).await?;
    let memory = gateway.peak_memory()?;
    assert!(memory < MEMORY_BYTES_MAX, "{} MiB", memory / 1024 / 1024);
    println!("listens after {listens:?}, first mail after {first:?}, {} MiB", memory / 1024 / 1024);

    // A start in the midst of it: nothing is gone through.
    gateway.kill().await?;
    let before = sink.mails().len();
    gateway.launch(&[]).await?;
    eventually("mail after the kill", async || Ok((sink.mails().len() > before).then_some(()))).await?;
    gateway.kill().await
}
