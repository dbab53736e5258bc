//! A secret in a mail is for its recipient alone: no call shows it, and nothing of it stays behind.

use std::fs;

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{ALLOW_LOOPBACK, Gateway, Opened, files_below, holds, mail_with, text};
use postway_testkit::{HttpSource, SmtpSink, SourceReply};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// What must not be found: in subject, text, html, metadata, a variable, and files given and fetched.
const SECRET: &str = "correct-horse-battery-staple";

/// A sensitive mail with the secret in every place.
fn secret_mail(id: &str, source: &HttpSource, file: &str) -> Value {
    mail_with(
        id,
        "ada@example.net",
        json!({"sensitive": true, "subject": SECRET, "text": SECRET, "html": format!("<p>{SECRET}</p>"),
            "metadata": {"code": SECRET},
            "attachments": [{"filename": "a.txt", "content": BASE64_STANDARD.encode(file)},
                {"filename": "b.txt", "url": source.url("/b.txt")}]}),
    )
}

/// The files of the data folder in which the secret stands, as text or as base64.
fn found_in(gateway: &Gateway) -> anyhow::Result<Vec<String>> {
    let encoded = BASE64_STANDARD.encode(SECRET);
    let encoded = &encoded[..SECRET.len()];
    let mut found = Vec::new();
    for file in files_below(&gateway.data_dir())? {
        let bytes = fs::read(&file)?;
        if holds(&bytes, SECRET) || holds(&bytes, encoded) {
            found.push(file.display().to_string());
        }
    }
    Ok(found)
}

/// A gateway that has these mails, composed, and holds them.
async fn held(
    sink: &SmtpSink,
    source: &HttpSource,
    files: &[(&'static str, String)],
) -> anyhow::Result<Gateway> {
    source.serve("/b.txt", SourceReply::ok(SECRET));
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    for (id, file) in files {
        gateway.send(secret_mail(id, source, file)).await?;
        gateway.wait_for(id, "ready").await?;
    }
    Ok(gateway)
}

#[tokio::test]
async fn a_secret_is_read_by_its_recipient_and_by_nobody_else() -> anyhow::Result<()> {
    let (source, sink) = (HttpSource::start().await, SmtpSink::start().await);
    // One that is kept in the database, and one that is not.
    let files = [("small", SECRET.to_owned()), ("large", format!("{SECRET}{}", "x".repeat(400_000)))];
    let gateway = held(&sink, &source, &files).await?;
    let ids = files.each_ref().map(|(id, _)| *id);
    check_hidden(&gateway, &ids).await?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    for id in ids {
        let sent = gateway.wait_for(id, "sent").await?;
        assert!(sent["eml_file_path"].is_null() && sent["payload_file_path"].is_null(), "{sent:#}");
    }
    check_hidden(&gateway, &ids).await?;
    let mails = sink.mails();
    assert_eq!(mails.len(), 2);
    for mail in mails {
        let opened = Opened::of(&mail)?;
        assert_eq!((opened.subject.as_str(), opened.text.as_str()), (SECRET, SECRET));
        assert!(opened.files.len() == 2 && opened.files.iter().all(|(_, file)| holds(file, SECRET)));
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_that_was_sent_is_not_left_on_the_disk() -> anyhow::Result<()> {
    let (source, sink) = (HttpSource::start().await, SmtpSink::start().await);
    // In a page of the database, and in pages that overflow.
    let files = [("small", SECRET.to_owned()), ("larger", format!("{SECRET}{}", "x".repeat(40_000)))];
    let mut gateway = held(&sink, &source, &files).await?;
    assert!(!found_in(&gateway)?.is_empty(), "it is there until it is sent");
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    for (id, _) in files {
        gateway.wait_for(id, "sent").await?;
    }
    // While it runs, the log of the database still has what it had before.
    assert!(gateway.terminate().await?.success());
    assert_eq!(found_in(&gateway)?, Vec::<String>::new());
    Ok(())
}

/// No call, command or log line shows the secret.
async fn check_hidden(gateway: &Gateway, ids: &[&str]) -> anyhow::Result<()> {
    for id in ids {
        for part in ["raw", "payload"] {
            let (status, answer) =
                gateway.call(Method::GET, &format!("/v1/messages/{id}/{part}"), None).await?;
            assert_eq!(
                (status, text(&answer["error"], "code")),
                (StatusCode::FORBIDDEN, "sensitive"),
                "{id}/{part}"
            );
        }
        let message = gateway.message(id).await?;
        assert_eq!((text(&message, "subject"), &message["metadata"]), ("[hidden]", &Value::Null));
        for path in ["", "/events", "/explain"] {
            let shown = gateway.get(&format!("/v1/messages/{id}{path}")).await?;
            assert!(!shown.to_string().contains(SECRET), "{path}: {shown:#}");
        }
        let shown = gateway.cli(&["messages", "show", id]).await?;
        assert!(shown.code == Some(0) && !shown.out.contains(SECRET), "{shown:?}");
    }
    for path in ["/v1/messages", "/v1/audit", "/v1/stats", "/metrics"] {
        let shown = gateway.get(path).await?;
        assert!(!shown.to_string().contains(SECRET), "{path}: {shown:#}");
    }
    assert!(!gateway.log().contains(SECRET), "{}", gateway.log());
    Ok(())
}
