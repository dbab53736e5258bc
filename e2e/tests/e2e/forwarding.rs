//! Mail of a watched mailbox is forwarded once by its rule: none is missed and none is sent twice, whatever
//! happens to the gateway or to the mailbox.

use std::collections::BTreeMap;

use anyhow::Context;
use postway_e2e::{Gateway, PATIENCE, a_while, all_done, check_history, text};
use postway_testkit::{
    SmtpSink,
    dovecot::{Dovecot, PASSWORD},
};
use serde_json::{Value, json};

fn received(n: usize) -> Vec<u8> {
    format!(
        "From: Customer {n} <customer-{n}@example.org>\r\nTo: desk@example.com\r\nSubject: Order {n}\r\n\
         Message-ID: <order-{n}@example.org>\r\nDate: Sun, 15 Nov 2026 10:00:00 +0000\r\n\r\nHello {n}\r\n"
    )
    .into_bytes()
}

/// Has the gateway forward all of a user's mail to one address.
async fn forward_all(gateway: &Gateway, dovecot: &Dovecot, user: &str, form: &str) -> anyhow::Result<()> {
    let mailbox = json!({
        "id": "desk", "host": "127.0.0.1", "port": dovecot.port(), "tls": "none", "username": user, "password": PASSWORD,
        "roles": ["forward"], "start": "beginning", "poll_seconds": 5,
    });
    gateway.post("/v1/mailboxes", mailbox).await?;
    let forward = json!({"do": "forward", "to": ["team@example.net"], "as": form, "account": "relay", "from": "desk@example.com"});
    let orders = json!({"field": "subject", "regex": "^Order (?<number>[0-9]+)$"});
    let tag = json!({"do": "tag", "tag": "order-{number}"});
    let rule = json!({"id": "orders", "mailbox": "desk", "match": [orders], "actions": [forward, tag]});
    gateway.post("/v1/rules", rule).await.map(drop)
}

/// The mails at the sink by what they forward, and how often each message came.
fn forwarded(sink: &SmtpSink) -> BTreeMap<String, BTreeMap<String, usize>> {
    let mut found: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for mail in sink.mails() {
        let raw = String::from_utf8_lossy(&mail.raw);
        let subject = raw.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap_or_default();
        let id = mail.postway_id.unwrap_or_default();
        *found.entry(subject.to_owned()).or_default().entry(id).or_default() += 1;
    }
    found
}

/// Replays mail that was set aside because the process was killed while it was being dealt with alone: nobody
/// can tell such a mail from one that kills.
async fn revive(gateway: &Gateway) -> anyhow::Result<()> {
    let dead = gateway.get("/v1/inbound?status=dead&limit=500").await?;
    for mail in dead["data"].as_array().context("no list")? {
        anyhow::ensure!(text(mail, "error").contains("died 2 times"), "{mail:#}");
        gateway.post(&format!("/v1/inbound/{}/replay", text(mail, "id")), json!({})).await?;
    }
    Ok(())
}

/// Waits until the mailbox is read to its end and nothing waits to be dealt with.
async fn caught_up(gateway: &Gateway, tasks: usize) -> anyhow::Result<()> {
    let mut seen = (Value::Null, 0);
    let waited = all_done("the mailbox to be read and its mail dealt with", PATIENCE, async || {
        revive(gateway).await?;
        let mailbox = gateway.get("/v1/mailboxes/desk").await?;
        let mut routed = 0;
        let mut cursor = String::new();
        loop {
            let page = gateway.get(&format!("/v1/inbound?status=routed&limit=500&cursor={cursor}")).await?;
            routed += page["data"].as_array().context("no list")?.len();
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        anyhow::ensure!(routed <= tasks, "{routed} were routed: {mailbox:#}");
        let left = tasks - routed + usize::from(mailbox["lag"] != 0);
        seen = (mailbox, routed);
        Ok(left)
    })
    .await;
    waited.with_context(|| format!("{} of {tasks} were routed: {:#}\n{}", seen.1, seen.0, gateway.log()))
}

#[tokio::test]
async fn a_mail_is_forwarded_once_also_when_its_mailbox_is_rebuilt() -> anyhow::Result<()> {
    let dovecot = Dovecot::start();
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let user = "desk";
    dovecot.append_all(user, "INBOX", &[received(1), received(2)]);
    forward_all(&gateway, &dovecot, user, "compose").await?;
    caught_up(&gateway, 2).await?;
    sink.wait_for(2, PATIENCE).await;

    dovecot.bump_uid_validity(user, "INBOX");
    dovecot.append(user, "INBOX", &received(3));
    caught_up(&gateway, 3).await?;
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[]).await?;
    dovecot.append(user, "INBOX", &received(4));
    caught_up(&gateway, 4).await?;
    sink.wait_for(4, PATIENCE).await;
    gateway.wait_until_settled(PATIENCE).await?;
    let found = forwarded(&sink);
    let subjects: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(subjects, ["Fwd: Order 1", "Fwd: Order 2", "Fwd: Order 3", "Fwd: Order 4"]);
    assert_eq!(sink.mails().len(), 4);

    let tasks = gateway.get("/v1/inbound?mailbox=desk").await?;
    let task = &tasks["data"][0];
    let shown = gateway.get(&format!("/v1/inbound/{}", text(task, "id"))).await?;
    assert_eq!(shown["tags"], json!(["order-4"]), "{shown:#}");
    assert_eq!(text(&shown["messages"][0], "status"), "sent", "{shown:#}");
    Ok(())
}

#[tokio::test]
async fn nothing_is_missed_or_sent_twice_while_the_gateway_is_killed_again_and_again() -> anyhow::Result<()> {
    const MAILS: usize = 2_000;
    const WAVES: usize = 8;
    let dovecot = Dovecot::start();
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    forward_all(&gateway, &dovecot, "desk", "redirect").await?;
    for wave in 0..WAVES {
        let mails: Vec<Vec<u8>> = (wave * MAILS / WAVES..(wave + 1) * MAILS / WAVES).map(received).collect();
        dovecot.append_all("desk", "INBOX", &mails);
        a_while(50..900).await;
        gateway.kill().await?;
        gateway.launch(&[]).await?;
    }
    caught_up(&gateway, MAILS).await?;
    gateway.wait_until_settled(PATIENCE).await?;

    let found = forwarded(&sink);
    let failed = gateway.get("/v1/messages?status=failed").await?;
    assert_eq!(found.len(), MAILS, "each mail arrived, but for these: {failed:#}");
    for (subject, messages) in &found {
        assert_eq!(messages.len(), 1, "{subject} was forwarded as {messages:?}");
        for (id, copies) in messages.iter().filter(|(_, copies)| **copies > 1) {
            let message: Value = gateway.message(id).await?;
            check_history(&message, *copies)?;
        }
    }
    Ok(())
}
