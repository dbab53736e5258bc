//! A backup is restored: its queue has mail that was sent after it was taken. Started with `--hold` the
//! gateway sends none of it before somebody has looked.

use std::fs;

use postway_e2e::{Gateway, PATIENCE, column, mail, mail_with, text};
use postway_testkit::SmtpSink;
use serde_json::json;

const MAILS: usize = 20;

#[tokio::test]
async fn a_restored_queue_is_held_until_somebody_lets_it_go() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.post("/v1/tenants", json!({"id": "acme", "name": "Acme"})).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    for n in 0..MAILS {
        gateway.send(mail(&format!("mail-{n}"), "ada@example.net")).await?;
    }
    // The backup, taken while all of it waits.
    let backup = gateway.folder().join("backup");
    let taken = gateway.cli(&["backup", &backup.display().to_string()]).await?;
    assert_eq!(taken.code, Some(0), "{taken:?}");
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), MAILS, "and then it was sent");
    assert!(gateway.terminate().await?.success());

    let mut restored = Gateway::idle()?;
    fs::create_dir_all(restored.data_dir())?;
    for file in ["postway.db", "secret.key", "admin.key"] {
        fs::copy(backup.join(file), restored.data_dir().join(file))?;
    }
    restored.launch_as(&["--hold"], &[]).await?;
    restored.post("/v1/accounts/relay/activate", json!({})).await?;
    let explained = restored.get("/v1/messages/mail-0/explain").await?;
    assert_eq!(column(&explained, "gates", "gate"), ["tenant"], "{explained:#}");
    // Mail is still taken, and held as well.
    restored.send(mail_with("new", "ada@example.net", json!({"account": "sandbox"}))).await?;
    // The hold is in the database: a kill and a start without the flag do not end it.
    restored.kill().await?;
    restored.launch(&[]).await?;
    restored.send(mail_with("newer", "ada@example.net", json!({"account": "sandbox"}))).await?;
    let stats = restored.get("/v1/stats").await?;
    assert_eq!(stats["by_status"]["ready"], MAILS + 2, "{stats:#}");
    assert_eq!(sink.mails().len(), MAILS, "nothing was sent again");
    let audit = restored.get("/v1/audit?limit=100").await?;
    let held: Vec<_> = audit["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| text(one, "actor") == "serve --hold")
        .collect();
    assert_eq!(held.len(), 2, "each tenant once: {audit:#}");

    // Somebody looks, and knows what was sent already.
    for n in 0..MAILS {
        restored.post(&format!("/v1/messages/mail-{n}/cancel"), json!({})).await?;
    }
    let ran = restored.cli(&["tenants", "activate", "--all"]).await?;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("acme") && ran.out.contains("default"), "{ran:?}");
    for id in ["new", "newer"] {
        restored.wait_for(id, "sent").await?;
    }
    assert_eq!(sink.mails().len(), MAILS, "nothing was sent again");
    Ok(())
}
