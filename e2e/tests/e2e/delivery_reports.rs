//! Reports of success: a real Postfix is asked for them, delivers into a real Dovecot, and reports; the
//! message is `delivered` by that proof. What it only handed on is not.

use postway_e2e::{ALLOW_LOOPBACK, Gateway, events_of, eventually, mail, mail_with, text};
use postway_testkit::{
    Postfix, SmtpSink,
    dovecot::{Dovecot, PASSWORD},
};
use serde_json::{Value, json};

const DOMAIN: &str = "reports.test";
/// Mail to it is delivered. Mail to any other address of the domain is an alias for it, and Postfix reports such
/// mail as expanded.
const MAILBOX: &str = "catch-all@reports.test";

/// A relay that delivers what is for one domain, and hands on the rest to a server without DSN.
struct DeliveringRelay {
    dovecot: Dovecot,
    postfix: Postfix,
    next: SmtpSink,
}

impl DeliveringRelay {
    async fn make() -> Self {
        let next = SmtpSink::start().await;
        let dovecot = Dovecot::start();
        let postfix = Postfix::start(DOMAIN, MAILBOX, dovecot.lmtp_port(), next.port());
        Self { dovecot, postfix, next }
    }

    async fn gateway(&self, settings: Value) -> anyhow::Result<Gateway> {
        let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
        gateway.relay_with(self.postfix.port(), settings).await?;
        let mailbox = json!({
            "id": "reports", "host": "127.0.0.1", "port": self.dovecot.port(), "tls": "none", "username": MAILBOX,
            "password": PASSWORD, "roles": ["bounces"], "start": "beginning", "poll_seconds": 5,
        });
        gateway.post("/v1/mailboxes", mailbox).await?;
        Ok(gateway)
    }
}

fn event<'m>(message: &'m Value, kind: &str) -> &'m Value {
    let events = message["events"].as_array().map_or(&[][..], Vec::as_slice);
    events.iter().find(|event| event["type"] == kind).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn a_mail_is_delivered_where_the_relay_reports_it_and_not_where_it_was_handed_on() -> anyhow::Result<()>
{
    let relay = DeliveringRelay::make().await;
    let gateway = relay.gateway(json!({"dsn": "NOTIFY=SUCCESS,FAILURE RET=HDRS"})).await?;
    gateway.patch("/v1/tenants/default", json!({"bounce_domain": DOMAIN})).await?;
    gateway.send(mail("here", MAILBOX)).await?;
    let message =
        gateway.wait_until("here", "delivered", |message| events_of(message, "delivered") > 0).await?;
    assert_eq!((text(&message, "status"), text(&message, "outcome")), ("sent", "delivered"), "{message:#}");
    let delivered = &event(&message, "delivered")["data"];
    assert_eq!([text(delivered, "proof"), text(delivered, "action")], ["verp", "delivered"], "{delivered:#}");
    assert_eq!(text(&event(&message, "sent")["data"], "dsn"), "passed_on", "{message:#}");

    gateway.send(mail("away", "bob@elsewhere.test")).await?;
    eventually("the report of the mail that was handed on", async || {
        let tasks = gateway.get("/v1/inbound?kind=success").await?;
        Ok(tasks["data"].as_array().filter(|tasks| tasks.len() == 2).map(drop))
    })
    .await?;
    assert_eq!(relay.next.mails().len(), 1);
    let message = gateway.message("away").await?;
    assert_eq!((events_of(&message, "delivered"), text(&message, "status")), (0, "sent"), "{message:#}");
    Ok(())
}

#[tokio::test]
async fn a_message_asks_for_itself_and_its_report_is_found_by_its_uid() -> anyhow::Result<()> {
    let relay = DeliveringRelay::make().await;
    let gateway = relay.gateway(json!({"return_path": format!("back@{DOMAIN}")})).await?;
    let asks = json!({"dsn": "NOTIFY=SUCCESS RET=HDRS"});
    gateway.send(mail_with("asks", MAILBOX, asks)).await?;
    let message =
        gateway.wait_until("asks", "delivered", |message| events_of(message, "delivered") > 0).await?;
    assert_eq!(text(&event(&message, "delivered")["data"], "proof"), "postway_id", "{message:#}");
    let wrong = mail_with("wrong", "ada@reports.test", json!({"dsn": "SUCCESS"}));
    let refused = gateway.send(wrong).await.unwrap_err().to_string();
    assert!(refused.contains("NOTIFY"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_relay_without_dsn_is_not_asked() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"dsn": "NOTIFY=SUCCESS"})).await?;
    gateway.send(mail("plain", "ada@example.net")).await?;
    let message = gateway.wait_for("plain", "sent").await?;
    assert_eq!(text(&event(&message, "sent")["data"], "dsn"), "not_offered", "{message:#}");
    let commands = sink.ledger().commands;
    assert!(
        !commands.iter().any(|(_, line)| line.contains("NOTIFY") || line.contains("ENVID")),
        "{commands:?}"
    );

    let asking = SmtpSink::builder().capabilities(&["PIPELINING", "DSN"]).start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(asking.port(), json!({"dsn": "NOTIFY=SUCCESS RET=HDRS"})).await?;
    let uid = gateway.send(mail("asked", "a+b@example.net")).await?;
    gateway.wait_for("asked", "sent").await?;
    let ledger = asking.ledger();
    let mail_line = ledger.commands_of("MAIL").concat();
    assert!(mail_line.contains(&format!(" RET=HDRS ENVID={uid}")), "{mail_line}");
    let rcpt_line = ledger.commands_of("RCPT").concat();
    assert!(rcpt_line.ends_with(" NOTIFY=SUCCESS ORCPT=rfc822;a+2Bb@example.net"), "{rcpt_line}");
    Ok(())
}
