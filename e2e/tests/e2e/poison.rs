//! A mail that breaks its worker is set aside and stops nobody else.

use postway_e2e::{Gateway, column, mail, mail_with, text};
use postway_testkit::SmtpSink;
use serde_json::json;

#[tokio::test]
async fn a_mail_that_panics_its_courier_fails_alone() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    gateway.send(mail("before", "ada@example.net")).await?;
    let poison = json!({"headers": {"X-Poison": "break courier"}});
    gateway.send(mail_with("poison", "ada@example.net", poison)).await?;
    gateway.send(mail("after", "ada@example.net")).await?;

    for id in ["before", "after"] {
        gateway.wait_for(id, "sent").await?;
    }
    let message = gateway.wait_for("poison", "failed").await?;
    assert!(!text(&message, "reason").is_empty(), "{message:#}");
    assert_eq!(message["error"]["category"], "poison", "{message:#}");
    assert_eq!(column(&message, "recipients", "status"), ["failed"]);
    assert_eq!(sink.mails().len(), 2);
    assert!(gateway.is_running()?);
    let log = gateway.log();
    assert!(log.contains("a message broke its courier"), "{log}");
    assert!(!log.contains("ada@example.net") && !log.contains("shop@example.com"), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_mail_that_kills_the_process_does_not_take_its_neighbours_with_it() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    assert!(gateway.terminate().await?.success());
    let deadly = [("FAILPOINTS", "smtp_before_mail=1*return")];
    gateway.launch(&deadly).await?;
    let both = json!({"messages": [mail("killer", "ada@example.net"), mail("neighbour", "ada@example.net")]});
    // The crash may come before the answer.
    gateway.post("/v1/messages/batch", both.clone()).await.ok();
    gateway.ended().await?;
    for _ in 0..4 {
        if gateway.launch(&deadly).await.is_ok() {
            gateway.ended().await?;
        }
    }
    gateway.launch(&[]).await?;
    gateway.post("/v1/messages/batch", both).await?;
    gateway.wait_for("neighbour", "sent").await?;
    Ok(())
}
