//! What an earlier version left, started on by this one: the schema is brought up to date, and nothing that
//! was kept is lost, hidden or held for another reason. On SQLite that is a data folder, elsewhere one with a
//! dump of the database. A release adds its own with `older_data/make`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use postway_e2e::{Client, Gateway, PATIENCE, column, event_types, mail, text};
use postway_testkit::{
    SmtpSink,
    mariadb::{self, MariaDb},
    postgres::PostgresDatabase,
};
use serde_json::{Value, json};

const FOLDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/older_data");

/// Every folder of that database.
fn folders(database: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(FOLDERS)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(&format!("-{database}.tar.gz")));
    paths.sort();
    ensure!(!paths.is_empty(), "no earlier version's {database} in {FOLDERS}");
    Ok(paths)
}

/// A gateway that finds what an earlier version left, and has not been started.
fn left_behind(archive: &Path) -> anyhow::Result<Gateway> {
    let gateway = Gateway::idle()?;
    fs::create_dir_all(gateway.data_dir())?;
    let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(gateway.data_dir()).status()?;
    ensure!(unpacked.success(), "{} cannot be unpacked", archive.display());
    Ok(gateway)
}

#[tokio::test]
async fn what_an_earlier_version_kept_in_sqlite_is_there_and_goes_on() -> anyhow::Result<()> {
    for archive in folders("sqlite")? {
        goes_on(left_behind(&archive)?, &[], &archive).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_an_earlier_version_kept_in_postgresql_is_there_and_goes_on() -> anyhow::Result<()> {
    for archive in folders("postgres")? {
        let (gateway, database) = (left_behind(&archive)?, PostgresDatabase::create());
        database.run(&fs::read_to_string(gateway.data_dir().join("postgres.sql"))?);
        goes_on(gateway, &[("POSTWAY_DATABASE_URL", &database.url())], &archive).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_an_earlier_version_kept_in_mariadb_is_there_and_goes_on() -> anyhow::Result<()> {
    for archive in folders("mariadb")? {
        let (gateway, url) = (left_behind(&archive)?, MariaDb::shared().create_database());
        mariadb::run_in(&url, &fs::read_to_string(gateway.data_dir().join("mariadb.sql"))?);
        goes_on(gateway, &[("POSTWAY_DATABASE_URL", &url)], &archive).await?;
    }
    Ok(())
}

async fn goes_on(mut gateway: Gateway, env: &[(&str, &str)], archive: &Path) -> anyhow::Result<()> {
    gateway.launch(env).await.with_context(|| format!("on {}", archive.display()))?;
    look_at_all_of_it(&gateway).await.with_context(|| format!("on {}", archive.display()))?;
    // A second start finds nothing to bring up to date.
    gateway.kill().await?;
    gateway.launch(env).await?;
    assert_eq!(status(&gateway, "old-held").await?, "captured");
    Ok(())
}

async fn status(gateway: &Client, id: &str) -> anyhow::Result<Value> {
    Ok(gateway.message(id).await?["status"].take())
}

async fn look_at_all_of_it(gateway: &Gateway) -> anyhow::Result<()> {
    let captured = gateway.message("old-captured").await?;
    assert_eq!((text(&captured, "status"), &captured["metadata"]["order"]), ("captured", &json!(7)));
    assert_eq!(event_types(&captured), ["accepted", "validated", "ready", "sending", "captured"]);
    assert_eq!(status(gateway, "old-cancelled").await?, "cancelled");
    assert_eq!(status(gateway, "old-suppressed").await?, "suppressed");
    let found = gateway.get("/v1/messages?tag=old").await?;
    assert_eq!(column(&found, "data", "id"), ["old-captured"], "{found:#}");

    // What was held is held for the same reason, and goes when it may.
    for id in ["old-held", "old-template", "old-large"] {
        let message = gateway.message(id).await?;
        assert_eq!(
            (text(&message, "status"), &message["held_by"]),
            ("ready", &json!(["batch:news"])),
            "{id}"
        );
    }
    let sink = SmtpSink::start().await;
    gateway.post("/v1/batches/news/activate", json!({})).await?;
    gateway.patch("/v1/accounts/relay", json!({"port": sink.port()})).await?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    for id in ["old-held", "old-template", "old-large"] {
        gateway.wait_for(id, "captured").await?;
    }
    assert_eq!(text(&gateway.message("old-template").await?, "subject"), "Welcome, Ada");
    let content = gateway.get("/v1/messages/old-large/content").await?;
    assert!(content.to_string().contains("large large"), "its body is in a blob");
    let sent = sink.wait_for(1, PATIENCE).await;
    assert_eq!(sent[0].header("Subject").as_deref(), Some("Hello"));
    gateway.wait_for("old-ready", "sent").await?;

    // Sealed secrets open, keys work, and lists are whole.
    gateway.send(mail("new", "ada@example.net")).await?;
    let signed = gateway.get("/v1/messages/new/content").await?;
    assert!(signed.to_string().contains("s=old"), "the stored key signs: {signed:#}");
    let recipient = gateway.get("/v1/recipients?personal_number=198001011234").await?;
    assert_eq!(column(&recipient, "data", "external_id"), ["C-1"], "{recipient:#}");
    let key = fs::read_to_string(gateway.data_dir().join("acme.key"))?;
    let acme = reqwest::Client::new().get(format!("{}/v1/messages/acme-1", gateway.url()));
    let acme: Value = acme.bearer_auth(key.trim()).send().await?.error_for_status()?.json().await?;
    assert_eq!((text(&acme, "tenant"), text(&acme, "subject")), ("acme", "Hello"));
    for (path, field, value) in [
        ("/v1/templates", "name", "welcome"),
        ("/v1/suppressions", "address", "gone@example.net"),
        ("/v1/dkim", "selector", "old"),
        ("/v1/webhooks", "url", "http://127.0.0.1:9/hook"),
    ] {
        let list = gateway.get(path).await?;
        assert_eq!(column(&list, "data", field), [value], "{path}");
    }
    Ok(())
}
