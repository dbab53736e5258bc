//! The archive: what was sent has its copy, whenever the server dies, and an archive that is away holds up nothing.

use std::fs;

use postway_e2e::{Gateway, eventually, mail_with, text};
use postway_testkit::SmtpSink;
use serde_json::{Value, json};

/// Gives the tenant an archive that stores.
async fn with_archive(gateway: &Gateway, archive: Value) -> anyhow::Result<()> {
    gateway.patch("/v1/tenants/default", json!({"archive": archive})).await?;
    Ok(())
}

/// Waits until this many copies are stored and none waits; the copies.
async fn stored(gateway: &Gateway, count: usize) -> anyhow::Result<Vec<Value>> {
    eventually("copies in the archive", async || {
        let page = gateway.get("/v1/archive").await?;
        let data = page["data"].as_array().cloned().unwrap_or_default();
        Ok((data.len() == count && page["waiting"] == 0).then_some(data))
    })
    .await
}

/// Before the object, between object and row, and between row and the end: one copy under one name.
#[tokio::test]
async fn a_copy_survives_a_kill_at_any_point() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start_with(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    with_archive(&gateway, json!({"storage": true, "encrypt": true})).await?;
    for (n, point) in
        ["archive_before_write", "archive_after_write", "archive_after_note"].into_iter().enumerate()
    {
        gateway.kill().await?;
        gateway.launch(&[("FAILPOINTS", &format!("{point}=1*return"))]).await?;
        let id = format!("mail-{n}");
        gateway.send(mail_with(&id, "ada@example.net", json!({"subject": point}))).await?;
        assert!(!gateway.ended().await?.success(), "{point} was not met");
        gateway.launch(&[]).await?;
        let copies = stored(&gateway, n + 1).await?;
        let message = gateway.wait_for(&id, "sent").await?;
        let uid = text(&message, "uid");
        let copy = copies.iter().find(|copy| text(copy, "id") == uid).expect("the mail has a copy");
        let file = gateway.data_dir().join("blobs").join(text(copy, "object"));
        let bytes = fs::read(&file)?;
        assert!(bytes.starts_with(b"postway-sealed 1 archive/default/"));
        assert!(!bytes.windows(point.len()).any(|at| at == point.as_bytes()));
        let (_, _, mail) = gateway.bytes(&format!("/v1/archive/{uid}/raw")).await?;
        let mail = String::from_utf8(mail)?;
        assert!(
            mail.contains(&format!("Subject: {point}")) && mail.contains("X-Envelope-To: <ada@example.net>")
        );
    }
    assert_eq!(sink.mails().len(), 3, "each was sent once");
    Ok(())
}
