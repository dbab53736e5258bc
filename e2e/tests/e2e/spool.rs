//! The spool folder: files become messages, each once, whatever happens to the server meanwhile.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use postway_e2e::{Acknowledged, Gateway, Opened, a_while, audit, eventually, files_below, text};
use postway_testkit::SmtpSink;
use serde_json::{Value, json};

/// A folder that is watched, and whose mail goes to a relay.
struct Stage {
    gateway: Gateway,
    sink: SmtpSink,
    folder: PathBuf,
}

impl Stage {
    async fn set() -> anyhow::Result<Self> {
        let sink = SmtpSink::start().await;
        let gateway = Gateway::idle()?;
        let folder = gateway.folder().join("spool");
        let mut stage = Self { gateway, sink, folder };
        stage.launch().await?;
        stage.gateway.relay_with(stage.sink.port(), json!({"max_connections": 4})).await?;
        stage.gateway.patch("/v1/tenants/default", json!({"default_account": "relay"})).await?;
        Ok(stage)
    }

    async fn launch(&mut self) -> anyhow::Result<()> {
        let folder = self.folder.to_string_lossy().into_owned();
        self.gateway.launch(&[("POSTWAY_SPOOL_FOLDER", &folder)]).await
    }

    /// Waits until nothing is left in the folder but `failed`; returns the names of what is in there.
    async fn taken(&self) -> anyhow::Result<Vec<String>> {
        let failed = self.folder.join("failed");
        eventually("an empty spool", async || {
            let left =
                files_below(&self.folder)?.into_iter().filter(|file| !file.starts_with(&failed)).count();
            Ok((left == 0).then_some(()))
        })
        .await?;
        let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(files_below(&failed)?.iter().map(name).collect())
    }
}

/// Puts a file into the folder as an application should: under another name first.
fn drop_file(folder: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let unfinished = folder.join(format!("{name}.part"));
    fs::write(&unfinished, content)?;
    // One that cannot be read is not taken for one that is being written.
    let file = File::options().write(true).open(&unfinished)?;
    let past = file.metadata()?.modified()? - Duration::from_secs(60);
    file.set_modified(past)?;
    fs::rename(unfinished, folder.join(name))?;
    Ok(())
}

fn order(n: usize) -> Value {
    json!({"id": format!("order-{n}"), "from": "Shop <shop@example.com>", "to": format!("u{n}@example.net"),
        "subject": format!("Order {n}"), "body_html": "<p>Thanks</p>", "body_text": "Thanks\n"})
}

#[tokio::test]
async fn a_file_in_the_old_shape_becomes_a_mail() -> anyhow::Result<()> {
    let stage = Stage::set().await?;
    let mail = json!({"id": "order-1", "from": "shop@example.com", "reply_to": "help@example.com",
        "to": ["ada@example.net"], "subject": "Your order", "body_html": "<p>Thank you</p>", "body_text": "Thank you",
        "attachments": ["base64:aGVsbG8="], "custom_headers": {"X-Order": "1"}});
    drop_file(&stage.folder, "1.json", &mail.to_string())?;
    stage.taken().await?;
    stage.gateway.wait_for("order-1", "sent").await?;
    let received = &stage.sink.mails()[0];
    assert_eq!(received.header("X-Order").as_deref(), Some("1"));
    assert_eq!(received.header("Reply-To").as_deref(), Some("<help@example.com>"));
    let opened = Opened::of(received)?;
    assert_eq!((opened.subject.as_str(), opened.text.trim()), ("Your order", "Thank you"));
    assert_eq!(opened.files.len(), 1);
    assert_eq!(opened.files[0].1, b"hello");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_file_is_one_message_however_often_the_server_is_killed() -> anyhow::Result<()> {
    const FILES: usize = 200;
    const KILLS: usize = 4;
    let mut stage = Stage::set().await?;
    let folder = stage.folder.clone();
    let is_bad = |n: usize| n % 20 == 7;
    let dropping = tokio::spawn(async move {
        for n in 0..FILES {
            let content = match (is_bad(n), n % 40 == 7) {
                (false, _) => order(n).to_string(),
                (true, true) => "{\"id\": \"half a fi".to_owned(),
                (true, false) => order(n).to_string().replace(&format!("u{n}@example.net"), "nobody"),
            };
            drop_file(&folder, &format!("{n:04}.json"), &content)?;
            tokio::time::sleep(Duration::from_millis(8)).await;
        }
        anyhow::Ok(())
    });
    for _ in 0..KILLS {
        a_while(200..700).await;
        stage.gateway.kill().await?;
        stage.launch().await?;
    }
    dropping.await??;

    let mut expected: Vec<String> = (0..FILES)
        .filter(|n| is_bad(*n))
        .flat_map(|n| [format!("{n:04}.json"), format!("{n:04}.json.error")])
        .collect();
    expected.sort();
    assert_eq!(stage.taken().await?, expected, "the bad ones are set aside, each with its reason");
    let reason = |n: usize| fs::read_to_string(stage.folder.join(format!("failed/{n:04}.json.error")));
    assert!(reason(7)?.contains("JSON"), "{}", reason(7)?);
    let address: Value = serde_json::from_str(&reason(27)?)?;
    let detail = &address["details"][0];
    assert_eq!((text(detail, "code"), text(detail, "check")), ("INVALID_EMAIL", "RECIPIENT"), "{address:#}");

    let list = stage.gateway.get("/v1/messages?limit=500").await?;
    let list = list["data"].as_array().map_or(&[][..], Vec::as_slice);
    let taken: Vec<Acknowledged> = list
        .iter()
        .map(|one| Acknowledged { id: text(one, "id").to_owned(), uid: text(one, "uid").to_owned() })
        .collect();
    assert_eq!(taken.len(), FILES - FILES / 20);
    audit(&stage.gateway, &stage.sink, &taken).await?;
    Ok(())
}
