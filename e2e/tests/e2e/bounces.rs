//! What becomes of a mail after the relay took it: a real Postfix relays it, a server refuses it, Postfix
//! bounces it into a real Dovecot mailbox, and the message says so.

use postway_e2e::{ALLOW_LOOPBACK, Gateway, Receiver, events_of, eventually, mail, text};
use postway_testkit::{
    Postfix, SinkAction, SinkVerb, SmtpSink, SourceReply,
    dovecot::{Dovecot, PASSWORD},
};
use serde_json::{Value, json};

const DOMAIN: &str = "bounces.test";
const MAILBOX: &str = "catch-all@bounces.test";

/// A relay whose next server knows nobody.
struct World {
    dovecot: Dovecot,
    postfix: Postfix,
    _next: SmtpSink,
}

impl World {
    async fn make() -> Self {
        let refuses = SinkAction::reply("550 5.1.1 no such user here");
        let next = SmtpSink::builder().on(SinkVerb::Rcpt, refuses).start().await;
        let dovecot = Dovecot::start();
        let postfix = Postfix::start(DOMAIN, MAILBOX, dovecot.lmtp_port(), next.port());
        Self { dovecot, postfix, _next: next }
    }

    /// Has a gateway watch the mailbox that bounces land in.
    async fn watch(&self, gateway: &Gateway, roles: &[&str]) -> anyhow::Result<()> {
        let mailbox = json!({
            "id": "bounces", "host": "127.0.0.1", "port": self.dovecot.port(), "tls": "none", "username": MAILBOX,
            "password": PASSWORD, "roles": roles, "start": "beginning", "poll_seconds": 5,
        });
        gateway.post("/v1/mailboxes", mailbox).await.map(drop)
    }
}

/// Waits until a message has bounced.
async fn bounced(gateway: &Gateway, id: &str) -> anyhow::Result<Value> {
    gateway.wait_until(id, "bounced", |message| events_of(message, "bounced") > 0).await
}

#[tokio::test]
async fn a_mail_to_nobody_comes_back_and_its_message_says_so() -> anyhow::Result<()> {
    let world = World::make().await;
    let gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
    gateway.relay_to(world.postfix.port()).await?;
    gateway.patch("/v1/tenants/default", json!({"bounce_domain": DOMAIN})).await?;
    world.watch(&gateway, &["bounces"]).await?;
    let receiver = Receiver::subscribe(&gateway, vec![SourceReply::status(200)]).await?;
    let uid = gateway.send(mail("to-nobody", "nobody@gone.test")).await?;

    let message = bounced(&gateway, "to-nobody").await?;
    assert_eq!((text(&message, "status"), text(&message, "outcome")), ("sent", "bounced"), "{message:#}");
    let recipient = &message["recipients"][0];
    assert_eq!((text(recipient, "status"), text(recipient, "outcome")), ("sent", "bounced"), "{message:#}");
    let bounce = &message["bounce"];
    assert_eq!([text(bounce, "type"), text(bounce, "code")], ["hard", "5.1.1"], "{message:#}");
    let events = message["events"].as_array().map_or(&[][..], Vec::as_slice);
    let event = events.iter().find(|event| event["type"] == "bounced").unwrap_or(&Value::Null);
    assert_eq!(
        [text(&event["data"], "status"), text(&event["data"], "proof")],
        ["5.1.1", "verp"],
        "{event:#}"
    );

    // The application is notified, and the address gets no more mail.
    eventually("the webhook", async || {
        let calls = receiver.calls()?;
        Ok(calls.iter().find(|call| call.kind() == "email.bounced").map(|call| call.body.clone()))
    })
    .await
    .inspect(|call| assert_eq!(text(&call["data"], "uid"), uid, "{call:#}"))?;
    let suppressed = gateway.get("/v1/suppressions/nobody@gone.test").await?;
    assert_eq!(text(&suppressed, "reason"), "hard_bounce");
    gateway.send(mail("again", "nobody@gone.test")).await?;
    gateway.wait_for("again", "suppressed").await?;

    let task = eventually("the task", async || {
        let tasks = gateway.get("/v1/inbound?kind=bounce").await?;
        Ok(tasks["data"].as_array().and_then(|tasks| tasks.first().cloned()))
    })
    .await?;
    assert_eq!(text(&task, "status"), "routed", "{task:#}");
    Ok(())
}

#[tokio::test]
async fn a_crash_while_a_bounce_is_dealt_with_tells_it_once() -> anyhow::Result<()> {
    for point in ["inbound_before_register", "inbound_after_register", "inbound_before_settle"] {
        let world = World::make().await;
        let mut gateway = Gateway::start_with(&[ALLOW_LOOPBACK]).await?;
        // Without a path of its own for each message: the bounce tells by the header it brings back.
        let back = format!("back@{DOMAIN}");
        gateway.relay_with(world.postfix.port(), json!({"return_path": back})).await?;
        world.watch(&gateway, &["bounces", "forward"]).await?;
        assert!(gateway.terminate().await?.success());
        gateway.launch(&[ALLOW_LOOPBACK, ("FAILPOINTS", &format!("{point}=1*return"))]).await?;
        let sent = gateway.send(mail("struck", "nobody@gone.test")).await;
        // It may die before it answers.
        assert!(!gateway.ended().await?.success(), "{point} was not met");
        gateway.launch(&[ALLOW_LOOPBACK]).await?;
        if sent.is_err() {
            gateway.send(mail("struck", "nobody@gone.test")).await?;
        }
        let message = bounced(&gateway, "struck").await?;
        assert_eq!(events_of(&message, "bounced"), 1, "{point}: {message:#}");
        let events = message["events"].as_array().map_or(&[][..], Vec::as_slice);
        let event = events.iter().find(|event| event["type"] == "bounced").unwrap_or(&Value::Null);
        assert_eq!(text(&event["data"], "proof"), "postway_id", "{event:#}");
    }
    Ok(())
}
