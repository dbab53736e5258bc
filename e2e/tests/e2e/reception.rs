//! Mail from other servers, straight to the gateway: swaks as a stranger, Postfix as the server that bounces, and
//! what is left of a mail when the process dies or the database is away.

use std::net::TcpListener;

use anyhow::ensure;
use postway_e2e::{ALLOW_LOOPBACK, Gateway, Receiver, events_of, eventually, mail, node_env, text};
use postway_testkit::{
    Postfix, SinkAction, SinkVerb, SmtpSink, SourceReply, TcpProxy, postgres::PostgresDatabase,
};
use serde_json::{Value, json};
use tokio::process::Command;

const DOMAIN: &str = "bounces.test";
const DESK: &str = "desk@in.test";

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The variables of a gateway that receives mail on this port, and checks no senders: there is no DNS here.
fn listen(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

async fn mailboxes(gateway: &Gateway) -> anyhow::Result<()> {
    for mailbox in [
        json!({"id": "desk", "addresses": [DESK], "roles": ["events"]}),
        json!({"id": "paths", "addresses": [format!("@{DOMAIN}")], "roles": ["bounces"]}),
    ] {
        gateway.post("/v1/mailboxes", mailbox).await?;
    }
    Ok(())
}

/// Delivers a mail with swaks; returns what was said, and whether the mail was taken.
async fn swaks(port: u16, to: &str, subject: &str, more: &[&str]) -> anyhow::Result<(bool, String)> {
    let output = Command::new("swaks")
        .args(["--server", "127.0.0.1", "--port", &port.to_string(), "--from", "ada@example.org", "--to", to])
        .args(["--header", &format!("Subject: {subject}"), "--helo", "mx.example.org", "--timeout", "20"])
        .args([
            "--header",
            &format!("Message-Id: <{subject}@example.org>"),
            "--header",
            "Date: Mon, 1 Jan 2024 00:00:00 +0000",
        ])
        .args(more)
        .output()
        .await?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Opens a link of an event, without a key.
async fn open(gateway: &Gateway, token: &str) -> anyhow::Result<Vec<u8>> {
    let url = format!("{}/files/{token}", gateway.url());
    let output = Command::new("curl").args(["-sSf", &url]).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

async fn inbound(gateway: &Gateway) -> anyhow::Result<Vec<Value>> {
    let listed = gateway.get("/v1/inbound?mailbox=desk").await?;
    Ok(listed["data"].as_array().cloned().unwrap_or_default())
}

#[tokio::test]
async fn a_stranger_delivers_to_a_known_address_and_to_nobody_else() -> anyhow::Result<()> {
    let port = free_port()?;
    let listen = listen(port);
    let gateway = Gateway::start_with(&[
        ALLOW_LOOPBACK,
        ("POSTWAY_RECEPTION_LISTEN", &listen),
        ("POSTWAY_RECEPTION_SENDERS", "off"),
        ("POSTWAY_PUBLIC_URL", "https://mail.example.com"),
    ])
    .await?;
    mailboxes(&gateway).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    let attached = ["--tls", "--attach", "@/etc/hostname"];
    let (taken, said) = swaks(port, DESK, "question", &attached).await?;
    ensure!(taken && said.contains("250 2.0.0 Ok: kept as reception-"), "{said}");
    let call = eventually("the webhook", async || {
        let calls = receiver.calls()?;
        Ok(calls.iter().find(|call| call.kind() == "email.received").map(|call| call.body.clone()))
    })
    .await?;
    let data = &call["data"];
    assert_eq!([text(data, "subject"), text(data, "mailbox")], ["question", "desk"], "{data:#}");
    assert_eq!(data["envelope"], json!({"from": "ada@example.org", "to": [DESK]}));
    ensure!(text(data, "text").contains("This is a test mailing"), "{data:#}");
    // The link in the event gives the file to whoever has it, without a key.
    let token = text(&data["files"][0], "url").rsplit('/').next().unwrap_or_default().to_owned();
    let file = open(&gateway, &token).await?;
    assert_eq!(file, std::fs::read("/etc/hostname")?);
    let raw = text(&data["raw"], "url").rsplit('/').next().unwrap_or_default().to_owned();
    let raw = String::from_utf8(open(&gateway, &raw).await?)?;
    ensure!(raw.starts_with("Return-Path: <ada@example.org>\r\nDelivered-To: desk@in.test\r\n"), "{raw}");
    ensure!(raw.contains("with ESMTPS id reception-"), "{raw}");

    for (to, code) in
        [("nobody@in.test", "550 5.1.1"), ("ada@example.net", "550 5.1.1"), ("b+x@bounces.test", "550 5.1.1")]
    {
        let (taken, said) = swaks(port, to, "no", &[]).await?;
        ensure!(!taken && said.contains(code), "{to}: {said}");
    }
    let (taken, said) = swaks(
        port,
        "ada@example.net",
        "relay",
        &["--auth-user", "x", "--auth-password", "y", "--auth-optional"],
    )
    .await?;
    ensure!(!taken && !said.contains("235"), "{said}");
    assert_eq!(inbound(&gateway).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn postfix_bounces_straight_into_the_gateway() -> anyhow::Result<()> {
    let port = free_port()?;
    let listen = listen(port);
    let refuses = SinkAction::reply("550 5.1.1 no such user here");
    let next = SmtpSink::builder().on(SinkVerb::Rcpt, refuses).start().await;
    let postfix = Postfix::start_delivering(DOMAIN, port, next.port());
    let gateway = Gateway::start_with(&[
        ALLOW_LOOPBACK,
        ("POSTWAY_RECEPTION_LISTEN", &listen),
        ("POSTWAY_RECEPTION_SENDERS", "off"),
    ])
    .await?;
    mailboxes(&gateway).await?;
    gateway.relay_to(postfix.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"bounce_domain": DOMAIN})).await?;
    gateway.send(mail("to-nobody", "nobody@gone.test")).await?;
    let message =
        gateway.wait_until("to-nobody", "bounced", |message| events_of(message, "bounced") > 0).await?;
    let events = message["events"].as_array().map_or(&[][..], Vec::as_slice);
    let event = events.iter().find(|event| event["type"] == "bounced").unwrap_or(&Value::Null);
    assert_eq!(
        [text(&event["data"], "status"), text(&event["data"], "proof")],
        ["5.1.1", "verp"],
        "{event:#}"
    );
    let suppressed = gateway.get("/v1/suppressions/nobody@gone.test").await?;
    assert_eq!(text(&suppressed, "reason"), "hard_bounce");
    Ok(())
}

#[tokio::test]
async fn a_crash_before_and_after_a_mail_is_durable_leaves_it_there_once() -> anyhow::Result<()> {
    for (point, is_kept) in [("reception_before_register", false), ("reception_after_register", true)] {
        let port = free_port()?;
        let listen = listen(port);
        let env = [
            ALLOW_LOOPBACK,
            ("POSTWAY_RECEPTION_LISTEN", listen.as_str()),
            ("POSTWAY_RECEPTION_SENDERS", "off"),
        ];
        let mut gateway = Gateway::start_with(&env).await?;
        mailboxes(&gateway).await?;
        assert!(gateway.terminate().await?.success());
        let failpoint = format!("{point}=1*return");
        gateway.launch(&[&env[..], &[("FAILPOINTS", failpoint.as_str())]].concat()).await?;
        let (taken, said) = swaks(port, DESK, "struck", &[]).await?;
        ensure!(!taken && !said.contains("Ok: kept"), "{point}: no 250 was said: {said}");
        assert!(!gateway.ended().await?.success(), "{point} was not met");
        gateway.launch(&env).await?;
        assert_eq!(inbound(&gateway).await?.len(), usize::from(is_kept), "{point}");
        // The server that got no answer delivers it again.
        let (taken, said) = swaks(port, DESK, "struck", &[]).await?;
        ensure!(taken, "{said}");
        assert_eq!(inbound(&gateway).await?.len(), 1, "{point}");
    }
    Ok(())
}

#[tokio::test]
async fn while_the_database_is_away_mail_stays_with_its_server() -> anyhow::Result<()> {
    let port = free_port()?;
    let listen = listen(port);
    let database = PostgresDatabase::create();
    let cable = TcpProxy::to(&database.url()).await;
    let mut gateway = Gateway::idle()?;
    let mut env = node_env(cable.url(), "postway.example");
    env.extend([("POSTWAY_RECEPTION_LISTEN", listen.as_str()), ("POSTWAY_RECEPTION_SENDERS", "off")]);
    gateway.launch(&env).await?;
    mailboxes(&gateway).await?;
    let (taken, said) = swaks(port, DESK, "first", &[]).await?;
    ensure!(taken, "{said}");
    cable.cut();
    let (taken, said) = swaks(port, DESK, "second", &[]).await?;
    ensure!(!taken && said.contains("451 4.3.0"), "{said}");
    cable.mend();
    gateway.wait_until_ready().await?;
    eventually("it is taken again", async || {
        let (taken, _) = swaks(port, DESK, "second", &[]).await?;
        Ok(taken.then_some(()))
    })
    .await?;
    assert_eq!(inbound(&gateway).await?.len(), 2);
    Ok(())
}
