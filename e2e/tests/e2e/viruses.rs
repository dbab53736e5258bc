//! The virus scanner: a real clamd finds the harmless test file in mail that is sent and in mail that comes in; and
//! what becomes of mail while it is away.

use std::net::TcpListener;

use anyhow::ensure;
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_e2e::{ALLOW_LOOPBACK, Gateway, eventually, mail_with, text};
use postway_testkit::clamd::{Clamd, EICAR_NAME, eicar};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

/// A mail that the sandbox takes.
fn to_sandbox(id: &str) -> Value {
    mail_with(id, "ada@example.net", json!({"account": "sandbox"}))
}

fn with_file(id: &str, content: &str) -> Value {
    let mut mail = to_sandbox(id);
    mail["attachments"] = json!([{"filename": "a.txt", "content": BASE64_STANDARD.encode(content)}]);
    mail
}

#[tokio::test]
async fn an_infected_file_is_refused_at_the_door_and_told_of_in_mail_that_comes_in() -> anyhow::Result<()> {
    let clamd = Clamd::start();
    let socket = clamd.socket().display().to_string();
    let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let gateway = Gateway::start_with(&[
        ALLOW_LOOPBACK,
        ("POSTWAY_CLAMD_ADDRESS", &socket),
        ("POSTWAY_RECEPTION_LISTEN", &listen.to_string()),
        ("POSTWAY_RECEPTION_SENDERS", "off"),
    ])
    .await?;
    gateway.send(with_file("clean", "nothing in it")).await?;
    let (status, answer) =
        gateway.call(Method::POST, "/v1/messages", Some(with_file("bad", &eicar()))).await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    let fault = &answer["error"]["details"][0];
    ensure!(text(fault, "field") == "attachments" && text(fault, "message").contains(EICAR_NAME), "{answer}");
    let (status, _) = gateway.call(Method::GET, "/v1/messages/bad", None).await?;
    assert_eq!(status, StatusCode::NOT_FOUND, "nothing of it is stored");

    gateway
        .post("/v1/mailboxes", json!({"id": "desk", "addresses": ["desk@in.test"], "roles": ["events"]}))
        .await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("eicar.txt");
    std::fs::write(&file, eicar())?;
    let attached = format!("@{}", file.display());
    let port = listen.port().to_string();
    let delivered = Command::new("swaks")
        .args(["--server", "127.0.0.1", "--port", &port, "--from", "a@example.org", "--to", "desk@in.test"])
        .args(["--attach", &attached])
        .output()
        .await?;
    ensure!(delivered.status.success(), "{}", String::from_utf8_lossy(&delivered.stdout));
    let found = eventually("the mail", async || {
        let listed = gateway.get("/v1/inbound?mailbox=desk&status=no_match").await?;
        Ok(listed["data"].as_array().and_then(|mails| mails.first().cloned()))
    })
    .await?;
    ensure!(text(&found, "error").contains(EICAR_NAME), "{found:#}");
    let received = eventually("the event", async || {
        let events = gateway.get("/v1/events?limit=100").await?;
        let received =
            events["data"].as_array().into_iter().flatten().find(|one| one["type"] == "email.received");
        Ok(received.cloned())
    })
    .await?;
    assert_eq!(text(&received["data"], "infected"), EICAR_NAME, "{received:#}");
    Ok(())
}

#[tokio::test]
async fn while_the_scanner_is_away_mail_passes_or_waits_as_its_tenant_wishes() -> anyhow::Result<()> {
    let gateway =
        Gateway::start_with(&[ALLOW_LOOPBACK, ("POSTWAY_CLAMD_ADDRESS", "/nonexistent/clamd.ctl")]).await?;
    gateway.send(with_file("open", "x")).await?;
    gateway.patch("/v1/tenants/default", json!({"virus_policy": "closed"})).await?;
    eventually("the setting is known", async || {
        let id = format!("closed-{}", gateway.now().await?.as_millisecond());
        let (status, _) = gateway.call(Method::POST, "/v1/messages", Some(with_file(&id, "x"))).await?;
        Ok((status == StatusCode::SERVICE_UNAVAILABLE).then_some(()))
    })
    .await?;
    gateway.send(to_sandbox("no-file")).await?;
    gateway.patch("/v1/tenants/default", json!({"virus_policy": "off"})).await?;
    eventually("it passes again", async || {
        let id = format!("off-{}", gateway.now().await?.as_millisecond());
        let (status, _) = gateway.call(Method::POST, "/v1/messages", Some(with_file(&id, "x"))).await?;
        Ok((status == StatusCode::ACCEPTED).then_some(()))
    })
    .await
}
