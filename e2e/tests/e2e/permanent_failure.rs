//! A relay that refuses for good is not asked again.

use postway_e2e::{Gateway, column, event_types, mail};
use postway_testkit::SmtpSink;
use serde_json::json;

#[tokio::test]
async fn a_refused_recipient_fails_the_mail_at_once() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().rcpt("nobody@", "550 5.1.1 no such user here").start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.send(mail("lost-cause", "nobody@example.net")).await?;

    let message = gateway.wait_for("lost-cause", "failed").await?;
    let error = &message["error"];
    assert_eq!((&error["smtp_code"], &error["enhanced_code"]), (&json!(550), &json!("5.1.1")), "{error}");
    assert_eq!(
        (&error["phase"], &error["category"]),
        (&json!("rcpt"), &json!("unknown_recipient")),
        "{error}"
    );
    assert!(message["reason"].to_string().contains("no such user here"), "{message:#}");
    assert_eq!((&message["exhausted"], &message["attempt"]), (&json!(false), &json!(1)));
    assert!(message["failed_at"].is_string());
    assert_eq!(
        event_types(&message),
        ["accepted", "validated", "ready", "sending", "recipient_failed", "failed"]
    );
    assert_eq!(column(&message, "recipients", "status"), ["failed"]);
    assert!(column(&message, "recipients", "reply")[0].contains("no such user"));

    let dead = gateway.get("/v1/dead-letters").await?;
    assert_eq!(dead["data"], json!([]), "a refusal is no dead letter");
    assert_eq!((sink.ledger().dots, sink.ledger().offers["nobody@example.net"]), (0, 1));
    Ok(())
}
