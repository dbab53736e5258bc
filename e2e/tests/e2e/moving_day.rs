//! Moving day: the databases of the reference systems, filled as their documents describe them, are rehearsed
//! and brought here by the real binary. One file for each system; here is what all of them share, and what
//! may go wrong whatever the system.

mod reference_000;
mod reference_001;
mod reference_002;
mod reference_003;
mod reference_004;

use std::{io::Write as _, path::Path, process::Stdio};

use anyhow::{Context, ensure};
use postway_e2e::{Gateway, Ran};
use serde_json::Value;

/// Runs `postway moving` and reads its report.
async fn moving(gateway: &Gateway, args: &[&str]) -> anyhow::Result<(Option<i32>, Value)> {
    moving_with(gateway, args, "").await
}

/// The same with failpoints.
async fn moving_with(gateway: &Gateway, args: &[&str], points: &str) -> anyhow::Result<(Option<i32>, Value)> {
    let args: Vec<&str> = ["--json", "moving"].iter().chain(args).copied().collect();
    let env = [("POSTWAY_URL", gateway.url()), ("FAILPOINTS", points.to_owned())];
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let Ran { code, out, err } = gateway.run(&args, &env, b"").await?;
    let report = match out.is_empty() {
        true => Value::String(err),
        false => serde_json::from_str(&out).with_context(|| format!("{out}\n{err}"))?,
    };
    Ok((code, report))
}

/// The wrong rows of a report: table, key and field.
fn wrong(report: &Value) -> Vec<(String, String, String)> {
    let rows = report["wrong_rows"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (text(row, "table"), text(row, "key"), text(row, "field"))).collect()
}

/// How many rows stay, by what they are.
fn stays(report: &Value, what: &str) -> u64 {
    let rows = report["stayed"].as_array().map_or(&[][..], Vec::as_slice);
    rows.iter().filter(|row| row["what"] == what).filter_map(|row| row["count"].as_u64()).sum()
}

/// Runs statements in a SQLite file, which they make.
fn sqlite(path: &Path, sql: &str) -> anyhow::Result<()> {
    let mut python = std::process::Command::new("python3")
        .args(["-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()?;
    python.stdin.take().context("no standard input")?.write_all(sql.as_bytes())?;
    ensure!(python.wait()?.success(), "python3 could not run the statements");
    Ok(())
}

/// How many messages of a tenant are in a state.
async fn count(gateway: &Gateway, tenant: &str, status: &str) -> anyhow::Result<u64> {
    let request = gateway.request(reqwest::Method::GET, "/v1/stats").header("X-Tenant", tenant);
    let stats: Value = serde_json::from_str(&request.send().await?.text().await?)?;
    Ok(stats["by_status"][status].as_u64().unwrap_or_default())
}

#[tokio::test]
async fn what_cannot_be_read_at_all_says_what_to_do() -> anyhow::Result<()> {
    let gateway = Gateway::start().await?;
    let file = |name: &str| format!("sqlite://{}", gateway.folder().join(name).display());
    let (code, error) = moving(&gateway, &["check", "001", "--database", &file("none.db")]).await?;
    assert!(code == Some(5) && error.to_string().contains("none.db"), "{error}");
    let address = "mysql://root:hunter2@127.0.0.1:1/old";
    let (code, error) = moving(&gateway, &["check", "000", "--database", address, "--payloads", "."]).await?;
    assert!(code == Some(1) && error.to_string().contains("cannot connect"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    sqlite(&gateway.folder().join("old.db"), "CREATE TABLE messages (id TEXT PRIMARY KEY, payload TEXT);")?;
    let (code, error) = moving(&gateway, &["check", "000", "--database", &file("old.db")]).await?;
    assert!(code == Some(2) && error.to_string().contains("--payloads"), "{error}");

    // A database that is not whole is listed by table and column, and nothing of it is brought.
    let (code, report) =
        moving(&gateway, &["import", "001", "--database", &file("old.db"), "--skip-wrong"]).await?;
    assert_eq!(code, Some(1), "{report:#}");
    let missing: Vec<_> = wrong(&report).into_iter().map(|(table, _, column)| (table, column)).collect();
    let expected = ["account_id", "priority", "deferred_ts", "sent_ts", "error_ts"];
    assert_eq!(missing, expected.map(|column| ("messages".to_owned(), column.to_owned())), "{report:#}");
    sqlite(&gateway.folder().join("empty.db"), "CREATE TABLE other (id TEXT);")?;
    let (code, report) = moving(&gateway, &["check", "004", "--database", &file("empty.db")]).await?;
    assert_eq!(
        (code, wrong(&report)),
        (Some(1), vec![("email_outbox".into(), String::new(), String::new())])
    );
    Ok(())
}
