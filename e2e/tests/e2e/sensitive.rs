//! A secret in a mail is for its recipient alone: no call shows it, and nothing of it stays behind.

use std::fs;

use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{ALLOW_LOOPBACK, Gateway, Opened, files_below, holds, mail_with, text};
use postway_testkit::{HttpSource, Reply, SmtpSink};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// What must not be found: in subject, text, html, metadata, a variable, and files given and fetched.
const SECRET: &str = "correct-horse-battery-staple";

/// A sensitive mail with the secret in every place, its files filled up to `padding`.
fn secret_mail(id: &str, source: &HttpSource, padding: usize) -> Value {
    let file = format!("{SECRET}{}", "x".repeat(padding));
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

#[tokio::test]
async fn a_secret_cannot_be_read_and_leaves_nothing_behind() -> anyhow::Result<()> {
    let (source, sink) = (HttpSource::start().await, SmtpSink::start().await);
    source.serve("/b.txt", Reply::ok(SECRET));
    let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(sink.port()).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    let ids = ["small", "large"];
    for (id, padding) in ids.into_iter().zip([0, 400_000]) {
        gateway.send(secret_mail(id, &source, padding)).await?;
        gateway.wait_for(id, "ready").await?;
    }
    check_hidden(&gateway, &ids).await?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;
    for id in ids {
        let sent = gateway.wait_for(id, "sent").await?;
        assert!(sent["eml_file_path"].is_null() && sent["payload_file_path"].is_null(), "{sent:#}");
    }
    check_hidden(&gateway, &ids).await?;
    for mail in sink.mails() {
        let opened = Opened::of(&mail)?;
        assert_eq!((opened.subject.as_str(), opened.text.as_str()), (SECRET, SECRET), "its recipient has it");
        assert!(opened.files.iter().all(|(_, file)| holds(file, SECRET)));
    }
    eprintln!("while it runs {:?}", found_in(&gateway)?);
    assert!(gateway.terminate().await?.success());
    eprintln!("after {:?}", found_in(&gateway)?);
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
