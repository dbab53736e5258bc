//! `postway backup` beside a gateway that works: what was acknowledged before it began is in it, and a try
//! that is killed leaves nothing that looks like a backup.

use std::{fs, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{Gateway, Load, audit, mail, mail_with, noise, text};
use postway_testkit::{SmtpSink, postgres::PostgresDatabase};
use serde_json::{Value, json};

/// Copies a folder into another.
fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => fs::copy(entry.path(), target).map(drop)?,
        }
    }
    Ok(())
}

fn large(id: &str) -> Value {
    let file = BASE64_STANDARD.encode(noise(300_000));
    mail_with(id, "ada@example.net", json!({"attachments": [{"filename": "noise.bin", "content": file}]}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_has_all_that_was_acknowledged_before_it_began() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let mut before: Vec<_> = (0..200).map(|n| mail(&format!("before-{n}"), "ada@example.net")).collect();
    before.push(large("large"));
    let before = Load::of(&[gateway.client()], &before).finish().await?;
    let ids: Vec<_> = before.iter().map(|one| (one.id.clone(), one.uid.clone())).collect();
    let load = Load::start(&[gateway.client()], false);
    load.wait_for(20).await?;
    let target = gateway.folder().join("monday");
    let name = target.display().to_string();
    let ran = gateway.cli(&["--json", "backup", &name]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: Value = serde_json::from_str(&ran.out)?;
    assert_eq!((&told["target"], &told["blobs"]), (&json!(name), &json!(2)), "{told}");
    assert_eq!(told["keys"], json!(["secret.key", "admin.key"]));
    load.wait_for(load.acknowledged() + 20).await?;
    let mut acknowledged = load.stop().await?;
    acknowledged.extend(before);
    audit(&gateway, &sink, &acknowledged).await?;
    let again = gateway.cli(&["backup", &name]).await?;
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("is there already"), "{again:?}");
    assert!(gateway.terminate().await?.success());

    let mut restored = Gateway::idle()?;
    copy_folder(&target, &restored.data_dir())?;
    restored.launch_as(&["--hold"], &[]).await?;
    for (id, uid) in &ids {
        let message = restored.message(id).await?;
        assert_eq!(text(&message, "uid"), uid, "{message}");
    }
    // The bytes of a large body are there as well.
    let (status, _, raw) = restored.bytes("/v1/messages/large/raw").await?;
    assert!(status.is_success() && raw.len() > 300_000, "{status}, {}", raw.len());
    Ok(())
}

#[tokio::test]
async fn a_backup_that_is_killed_leaves_nothing_that_looks_like_one() -> anyhow::Result<()> {
    let (sink, gateway) = (SmtpSink::start().await, Gateway::start().await?);
    gateway.relay_to(sink.port()).await?;
    gateway.send(large("large")).await?;
    let target = gateway.folder().join("tuesday");
    let name = target.display().to_string();
    let killed = gateway.run(&["backup", &name], &[("FAILPOINTS", "backup_after_piece=return")], b"").await?;
    assert_eq!(killed.code, None, "it died: {killed:?}");
    assert!(!target.exists());
    let rest = gateway.folder().join("tuesday.unfinished");
    assert!(rest.exists() && !rest.join("postway.db").exists(), "no server would start on it");
    // The gateway is none the worse, and the next try takes its place.
    gateway.send(large("later")).await?;
    let ran = gateway.cli(&["backup", &name]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("checked and whole"), "{ran:?}");
    assert!(target.join("postway.db").exists() && !rest.exists() && !target.join("backup.lock").exists());
    Ok(())
}

#[tokio::test]
async fn a_server_is_backed_up_by_its_own_tools() -> anyhow::Result<()> {
    let (gateway, database) = (Gateway::idle()?, PostgresDatabase::create());
    let env = [("POSTWAY_DATABASE_URL", database.url())];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    let ran = gateway.run(&["backup", "wednesday"], &env, b"").await?;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("pg_dump"), "{ran:?}");
    Ok(())
}
