//! Encrypted relays and signing in: credentials are safe at rest and on the wire, and a wrong one costs no
//! mail.

use postway_e2e::{Gateway, column, event_types, files_below, holds, mail};
use postway_testkit::{SmtpSink, TestCert};
use reqwest::Method;
use serde_json::json;

const USER: &str = "gateway-user";
const PASSWORD: &str = "correct horse battery staple";

/// Asserts that a text is in none of the files of the data folder.
fn assert_not_on_disk(gateway: &Gateway, secret: &str) -> anyhow::Result<()> {
    let files = files_below(&gateway.data_dir())?;
    assert!(files.len() >= 3, "the data folder was not read");
    for file in files {
        assert!(!holds(&std::fs::read(&file)?, secret), "{} has it in plain text", file.display());
    }
    Ok(())
}

/// Whether it was tried, and is not being tried just now.
fn is_tried(message: &serde_json::Value) -> bool {
    message["attempt"] != 0 && message["status"] != "sending"
}

#[tokio::test]
async fn mail_goes_under_tls_signed_in_and_the_password_is_nowhere_to_be_read() -> anyhow::Result<()> {
    let cert = TestCert::localhost();
    let starttls = SmtpSink::builder().starttls(&cert).auth(USER, PASSWORD).start().await;
    let implicit =
        SmtpSink::builder().implicit_tls(&cert).auth(USER, PASSWORD).auth_mechanisms("LOGIN").start().await;
    let mut gateway = Gateway::start_with(&[("POSTWAY_LOG", "debug")]).await?;
    for (id, sink) in [("starttls", &starttls), ("implicit", &implicit)] {
        let settings = json!({
            "id": id, "tls": id, "ca_pem": cert.ca_pem, "username": USER, "password": PASSWORD,
        });
        gateway.relay_with(sink.port(), settings).await?;
        let mut mail = mail(id, "ada@example.net");
        mail["account"] = json!(id);
        gateway.send(mail).await?;
        gateway.wait_for(id, "sent").await?;
        let mails = sink.mails();
        assert!(mails[0].tls, "{id}");
        assert_eq!(mails[0].user.as_deref(), Some(USER), "{id}");
    }
    let accounts = gateway.get("/v1/accounts").await?.to_string();
    assert!(accounts.contains("\"password_set\":true") && !accounts.contains(PASSWORD), "{accounts}");
    assert_not_on_disk(&gateway, PASSWORD)?;
    assert!(gateway.terminate().await?.success());
    assert_not_on_disk(&gateway, PASSWORD)?;
    assert!(!gateway.log().contains(PASSWORD));
    Ok(())
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_not_trusted() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().starttls(&TestCert::localhost()).auth(USER, PASSWORD).start().await;
    let gateway = Gateway::start().await?;
    let settings = json!({"tls": "starttls", "username": USER, "password": PASSWORD});
    gateway.relay_with(sink.port(), settings).await?;
    gateway.send(mail("wary", "ada@example.net")).await?;
    let message = gateway.wait_until("wary", "tried", is_tried).await?;
    assert_eq!((&message["status"], &message["error"]["category"]), (&json!("ready"), &json!("tls")));
    assert_eq!(sink.ledger().commands_of("AUTH"), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn with_a_wrong_password_mail_waits_until_it_is_right() -> anyhow::Result<()> {
    let cert = TestCert::localhost();
    let sink = SmtpSink::builder().starttls(&cert).auth(USER, PASSWORD).start().await;
    let gateway = Gateway::start().await?;
    let settings = json!({
        "tls": "starttls", "ca_pem": cert.ca_pem, "username": USER, "password": "wrong",
        // No retry to spare: waiting for the account must not use one.
        "retry": {"delays_s": [], "jitter": 0.0}, "max_connections": 1,
    });
    gateway.relay_with(sink.port(), settings).await?;
    gateway.send(mail("first", "ada@example.net")).await?;
    let message = gateway.wait_until("first", "tried", is_tried).await?;
    assert_eq!((&message["status"], &message["failed_at"]), (&json!("ready"), &json!(null)));
    assert_eq!(message["error"]["category"], "authentication", "{message:#}");
    let explained = gateway.get("/v1/messages/first/explain").await?;
    assert_eq!(column(&explained, "gates", "gate"), ["circuit"], "{explained:#}");
    // The circuit is open: others are not even tried. On a slow machine the first may have gone a second
    // time, as a probe.
    gateway.send(mail("second", "ada@example.net")).await?;
    assert!(sink.ledger().commands_of("AUTH").len() <= 2);

    let right = json!({"password": PASSWORD});
    let (status, answer) = gateway.call(Method::PATCH, "/v1/accounts/relay", Some(right)).await?;
    assert!(status.is_success(), "{status} {answer}");
    let second = gateway.wait_for("second", "sent").await?;
    assert_eq!(event_types(&second), ["accepted", "validated", "ready", "sending", "sent"]);
    gateway.wait_for("first", "sent").await?;
    assert_eq!(sink.mails().len(), 2);
    Ok(())
}

#[tokio::test]
async fn a_password_never_crosses_a_plain_connection_unless_allowed() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().auth(USER, PASSWORD).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"username": USER, "password": PASSWORD})).await?;
    gateway.send(mail("discreet", "ada@example.net")).await?;
    let message = gateway.wait_until("discreet", "tried", is_tried).await?;
    assert_eq!((&message["status"], &message["error"]["phase"]), (&json!("ready"), &json!("auth")));
    let ledger = sink.ledger();
    assert!(ledger.commands_of("AUTH").is_empty() && ledger.commands_of("MAIL").is_empty(), "{ledger:?}");

    let allowed = json!({"allow_plaintext_auth": true, "password": PASSWORD});
    gateway.call(Method::PATCH, "/v1/accounts/relay", Some(allowed)).await?;
    gateway.wait_for("discreet", "sent").await?;
    assert_eq!(sink.mails()[0].user.as_deref(), Some(USER));
    Ok(())
}
