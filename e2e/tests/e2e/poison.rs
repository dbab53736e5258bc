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
