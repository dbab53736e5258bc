//! Not before, not after, not at all.

use jiff::{SignedDuration, Timestamp};
use postway_e2e::{Gateway, column, event_types, mail, mail_with, text};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

fn time(message: &Value, field: &str) -> anyhow::Result<Timestamp> {
    Ok(text(message, field).parse()?)
}

#[tokio::test]
async fn a_mail_for_later_waits_for_its_time() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let send_at = gateway.now().await? + SignedDuration::from_secs(8);
    gateway.send(mail_with("later", "ada@example.net", json!({"send_at": send_at.to_string()}))).await?;
    let waiting = gateway.message("later").await?;
    assert_eq!(
        (text(&waiting, "status"), waiting["attempt"].as_i64()),
        ("scheduled", Some(0)),
        "{waiting:#}"
    );
    let explained = gateway.get("/v1/messages/later/explain").await?;
    assert_eq!(column(&explained, "gates", "gate"), ["schedule"], "{explained:#}");
    assert!(sink.mails().is_empty());

    let sent = gateway.wait_for("later", "sent").await?;
    assert!(time(&sent, "sent_at")? >= send_at, "{sent:#}");
    assert!(time(&sent, "sent_at")?.duration_since(send_at) < SignedDuration::from_secs(30), "{sent:#}");
    assert_eq!(event_types(&sent), ["accepted", "validated", "scheduled", "sending", "sent"]);
    Ok(())
}

#[tokio::test]
async fn a_mail_that_waits_can_be_cancelled_and_a_sent_one_cannot() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let soon = (gateway.now().await? + SignedDuration::from_secs(8)).as_second();
    gateway.send(mail_with("regretted", "ada@example.net", json!({"send_at": soon}))).await?;
    let (status, answer) = gateway.call(Method::POST, "/v1/messages/regretted/cancel", None).await?;
    assert_eq!((status, text(&answer, "status")), (StatusCode::OK, "cancelled"), "{answer}");
    let again = gateway.call(Method::POST, "/v1/messages/regretted/cancel", None).await?;
    assert_eq!(again.0, StatusCode::CONFLICT);

    gateway.send(mail_with("kept", "ada@example.net", json!({"send_at": soon + 1}))).await?;
    gateway.wait_for("kept", "sent").await?;
    let (status, answer) = gateway.call(Method::POST, "/v1/messages/kept/cancel", None).await?;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    assert!(text(&answer["error"], "message").contains("sent"), "{answer}");
    let message = gateway.message("regretted").await?;
    assert_eq!(event_types(&message), ["accepted", "validated", "scheduled", "cancelled"]);
    assert_eq!(column(&message, "recipients", "status"), ["cancelled"]);
    assert_eq!(sink.mails().len(), 1, "its time has passed, and it was not sent");
    Ok(())
}

#[tokio::test]
async fn a_mail_past_its_time_is_never_sent() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().on(SinkVerb::Mail, SinkAction::reply("451 4.3.0 not now")).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [12], "jitter": 0.0}})).await?;
    let expires_at = gateway.now().await? + SignedDuration::from_secs(8);
    gateway.send(mail_with("news", "ada@example.net", json!({"expires_at": expires_at.to_string()}))).await?;
    let due = time(&gateway.wait_for("news", "scheduled").await?, "due_at")?;
    sink.clear_rules();
    let message = gateway.wait_for("news", "expired").await?;
    assert!(time(&message, "updated_at")? >= expires_at);
    assert_eq!(event_types(&message), ["accepted", "validated", "ready", "sending", "scheduled", "expired"]);
    assert_eq!(column(&message, "recipients", "status"), ["expired"]);

    // Another mail that is due when the expired one would have been goes through; the expired one does not.
    let due = json!({"send_at": due.to_string()});
    gateway.send(mail_with("other", "ada@example.net", due)).await?;
    gateway.wait_for("other", "sent").await?;
    assert_eq!(sink.mails().len(), 1);
    assert_eq!(text(&gateway.message("news").await?, "status"), "expired");
    let late = mail_with("too-late", "ada@example.net", json!({"expires_at": expires_at.to_string()}));
    let (status, answer) = gateway.call(Method::POST, "/v1/messages", Some(late)).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    gateway.send(mail("plain", "ada@example.net")).await?;
    gateway.wait_for("plain", "sent").await?;
    Ok(())
}
