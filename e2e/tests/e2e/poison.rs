//! A mail that breaks its worker is set aside and stops nobody else.

use postway_e2e::{Gateway, column, eventually, mail, mail_with, text};
use postway_testkit::{
    SmtpSink,
    dovecot::{Dovecot, PASSWORD},
};
use serde_json::{Value, json};

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

#[tokio::test]
async fn a_mail_that_kills_the_process_does_not_take_its_neighbours_with_it() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"max_connections": 1})).await?;
    assert!(gateway.terminate().await?.success());
    let deadly = [("FAILPOINTS", "smtp_before_mail=1*return")];
    gateway.launch(&deadly).await?;
    let both = json!({"messages": [mail("killer", "ada@example.net"), mail("neighbour", "ada@example.net")]});
    // The crash may come before the answer.
    gateway.post("/v1/messages/batch", both.clone()).await.ok();
    gateway.ended().await?;
    for _ in 0..4 {
        if gateway.launch(&deadly).await.is_ok() {
            gateway.ended().await?;
        }
    }
    gateway.launch(&[]).await?;
    gateway.post("/v1/messages/batch", both).await?;
    gateway.wait_for("neighbour", "sent").await?;
    Ok(())
}

/// Mail of a watched mailbox, of which some kills whoever deals with it.
fn received(n: usize) -> Vec<u8> {
    let subject = if n == 7 { "Killer".to_owned() } else { format!("Order {n}") };
    format!(
        "From: Customer <customer-{n}@example.org>\r\nTo: desk@example.com\r\nSubject: {subject}\r\n\
         Message-ID: <order-{n}@example.org>\r\nDate: Sun, 15 Nov 2026 10:00:00 +0000\r\n\r\nHello {n}\r\n"
    )
    .into_bytes()
}

async fn of_status(gateway: &Gateway, status: &str) -> anyhow::Result<Vec<Value>> {
    let found = gateway.get(&format!("/v1/inbound?limit=500&status={status}")).await?;
    Ok(found["data"].as_array().cloned().unwrap_or_default())
}

#[tokio::test]
async fn a_received_mail_that_kills_the_process_does_so_twice_and_takes_no_other_with_it()
-> anyhow::Result<()> {
    const MAILS: usize = 40;
    let dovecot = Dovecot::start();
    let mut gateway = Gateway::start().await?;
    let mailbox = json!({
        "id": "desk", "host": "127.0.0.1", "port": dovecot.port(), "tls": "none", "username": "desk", "password": PASSWORD,
        "roles": ["forward"], "start": "beginning", "poll_seconds": 5,
    });
    gateway.post("/v1/mailboxes", mailbox).await?;
    let rule = json!({"id": "all", "mailbox": "desk", "actions": [{"do": "tag", "tag": "seen"}]});
    gateway.post("/v1/rules", rule).await?;
    assert!(gateway.terminate().await?.success());
    dovecot.append_all("desk", "INBOX", &(0..MAILS).map(received).collect::<Vec<_>>());
    // What came of a mail is written a while after: its neighbour may kill the process before.
    let deadly = [("FAILPOINTS", "inbound_deal=return(Killer);inbound_before_settle=sleep(100)")];
    // The first time it is one of many in hand, the second time it is alone.
    for _ in 0..2 {
        // It may die before it has said that it listens.
        gateway.launch(&deadly).await.ok();
        assert!(!gateway.ended().await?.success());
    }
    gateway.launch(&deadly).await?;
    eventually("all other mail", async || {
        Ok((of_status(&gateway, "routed").await?.len() == MAILS - 1).then_some(()))
    })
    .await?;
    let dead =
        eventually("the killer", async || Ok(of_status(&gateway, "dead").await?.first().cloned())).await?;
    assert_eq!(text(&dead, "subject"), "Killer", "{dead:#}");
    assert!(text(&dead, "error").contains("died 2 times"), "{dead:#}");
    assert!(gateway.is_running()?);

    // Once what it met is mended, it can be replayed.
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[]).await?;
    gateway.post(&format!("/v1/inbound/{}/replay", text(&dead, "id")), json!({})).await?;
    eventually("the replayed mail", async || {
        Ok((of_status(&gateway, "routed").await?.len() == MAILS).then_some(()))
    })
    .await
}
