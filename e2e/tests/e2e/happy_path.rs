//! A mail goes to a relay, and everything about it is on record.

use postway_e2e::{Gateway, PATIENCE, column, event_types, mail, mail_with, text};
use postway_testkit::SmtpSink;
use serde_json::{Value, json};

#[tokio::test]
async fn a_mail_reaches_the_relay_and_every_step_is_recorded() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let copies = json!({"cc": ["carl@example.net"], "bcc": ["Secret <bea@example.net>"]});
    let uid = gateway.send(mail_with("order-1", "ada@example.net", copies)).await?;
    let message = gateway.wait_for("order-1", "sent").await?;

    let mails = sink.mails();
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].sender, "shop@example.com");
    let mut envelope = mails[0].recipients.clone();
    envelope.sort();
    assert_eq!(envelope, ["ada@example.net", "bea@example.net", "carl@example.net"]);
    let raw = String::from_utf8_lossy(&mails[0].raw);
    assert!(mails[0].header("Bcc").is_none() && !raw.contains("bea@") && !raw.contains("Secret"), "{raw}");
    assert_eq!(mails[0].header("Cc").as_deref(), Some("<carl@example.net>"));
    assert_eq!(mails[0].postway_id.as_deref(), Some(uid.as_str()));
    assert_eq!(mails[0].message_id, Some(format!("<{uid}@example.com>")));

    assert_eq!(event_types(&message), ["accepted", "validated", "ready", "sending", "sent"]);
    assert_eq!(text(&message, "message_id"), format!("{uid}@example.com"));
    assert_eq!(text(&message, "provider_message_id"), "SINK1");
    assert!(message["sent_at"].is_string() && message["error"].is_null(), "{message:#}");
    let found = gateway.get("/v1/messages?provider_message_id=SINK1&status=sent").await?;
    assert_eq!(column(&found, "data", "id"), ["order-1"]);

    assert_eq!(column(&message, "recipients", "kind"), ["to", "cc", "bcc"]);
    assert_eq!(column(&message, "recipients", "status"), ["sent"; 3]);
    let attempt = &message["attempts"][0];
    assert_eq!(message["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!((text(attempt, "outcome"), &attempt["smtp_code"]), ("sent", &json!(250)));
    assert_eq!(text(attempt, "remote"), format!("127.0.0.1:{}", sink.port()));
    assert!(text(attempt, "reply").contains("queued as SINK1"), "{attempt}");
    Ok(())
}

#[tokio::test]
async fn many_mails_share_few_connections() -> anyhow::Result<()> {
    const MAILS: usize = 300;
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 3})).await?;
    let messages: Vec<Value> =
        (0..MAILS).map(|n| mail(&format!("m{n}"), &format!("u{n}@example.net"))).collect();
    let answer = gateway.post("/v1/messages/batch", json!({"messages": messages})).await?;
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(MAILS), &json!(0)));
    let mut mails = sink.wait_for(MAILS, PATIENCE).await;
    assert!(sink.ledger().connections <= 3, "{}", sink.ledger().connections);
    mails.sort_by(|a, b| a.postway_id.cmp(&b.postway_id));
    mails.dedup_by(|a, b| a.postway_id == b.postway_id);
    assert_eq!(mails.len(), MAILS, "each came once");
    let stats = gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(stats["by_status"]["sent"], MAILS);
    Ok(())
}
