//! Domains outside ASCII: one address in either spelling, through a relay that knows nothing of UTF-8.

use postway_e2e::{Gateway, PATIENCE, column, eventually, mail, mail_with, text};
use postway_testkit::{
    SinkAction, SinkPause, SinkVerb, SmtpSink,
    dovecot::{Dovecot, PASSWORD},
};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn mail_to_an_internationalised_domain_needs_nothing_of_the_relay() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().without("SMTPUTF8").without("8BITMIME").start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let fields = json!({"from": "Müller <shop@müller.example>", "cc": ["Zoë <zoe@xn--exmple-cua.net>"]});
    gateway.send(mail_with("one", "ada@exämple.net", fields)).await?;
    let sent = gateway.wait_for("one", "sent").await?;
    assert_eq!(column(&sent, "recipients", "address"), ["ada@xn--exmple-cua.net", "zoe@xn--exmple-cua.net"]);
    assert_eq!(column(&sent, "recipients", "address_unicode"), ["ada@exämple.net", "zoe@exämple.net"]);
    let mails = sink.mails();
    assert_eq!(mails[0].recipients, ["ada@xn--exmple-cua.net", "zoe@xn--exmple-cua.net"]);
    assert_eq!(mails[0].sender, "shop@xn--mller-kva.example");
    assert!(mails[0].raw.is_ascii() && !mails[0].mail_parameters.contains("UTF8"), "{:?}", mails[0]);
    for spelling in ["ada@ex%C3%A4mple.net", "ada@xn--exmple-cua.net"] {
        let found = gateway.get(&format!("/v1/messages?recipient={spelling}")).await?;
        assert_eq!(column(&found, "data", "id"), ["one"], "{spelling}");
    }
    Ok(())
}

#[tokio::test]
async fn a_suppression_in_one_spelling_holds_for_the_other() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().without("SMTPUTF8").start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    gateway.post("/v1/suppressions", json!({"address": "gone@exämple.net"})).await?;
    for (id, to) in [("ascii", "gone@xn--exmple-cua.net"), ("unicode", "Gone@EXÄMPLE.net")] {
        gateway.send(mail(id, to)).await?;
        gateway.wait_for(id, "suppressed").await?;
    }
    let mut removed = 0;
    eventually("both to be erased", async || {
        let erased = gateway.post("/v1/erase", json!({"address": "gone@exämple.net"})).await?;
        removed += erased["removed"].as_i64().unwrap_or_default();
        Ok((removed == 2).then_some(()))
    })
    .await?;
    let (status, _) = gateway.call(Method::DELETE, "/v1/suppressions/gone@xn--exmple-cua.net", None).await?;
    assert_eq!(status, 204);
    gateway.send(mail("again", "gone@exämple.net")).await?;
    gateway.wait_for("again", "sent").await?;
    assert_eq!(sink.mails().len(), 1);
    Ok(())
}

/// Settings are written as people write names; what they are held against has A-labels.
#[tokio::test]
async fn limits_of_destinations_and_the_envelope_sender_take_u_labels() -> anyhow::Result<()> {
    let at_dot = SinkPause::new();
    let sink = SmtpSink::builder()
        .without("SMTPUTF8")
        .once(SinkVerb::Dot, SinkAction::Hold(at_dot.clone()).recorded())
        .start()
        .await;
    let gateway = Gateway::start().await?;
    let limits = json!({"max_connections": 4, "destinations": {"exämple.net": {"connections": 1}}});
    gateway.relay_with(sink.port(), limits).await?;
    gateway.patch("/v1/tenants/default", json!({"bounce_domain": "bücher.example"})).await?;
    gateway.send(mail("first", "ada@xn--exmple-cua.net")).await?;
    at_dot.reached().await;
    gateway.send(mail("second", "bob@exämple.net")).await?;
    gateway.send(mail("other", "eve@example.net")).await?;
    gateway.wait_for("other", "sent").await?;
    eventually("the second to wait for its destination", async || {
        let explained = gateway.get("/v1/messages/second/explain").await?;
        let gates = explained["gates"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(gates.iter().any(|gate| text(gate, "gate") == "destination").then_some(()))
    })
    .await?;
    at_dot.release();
    gateway.wait_for("second", "sent").await?;
    for sent in sink.mails() {
        assert!(sent.sender.is_ascii() && sent.sender.ends_with("@xn--bcher-kva.example"), "{}", sent.sender);
    }
    Ok(())
}

#[tokio::test]
async fn rules_take_either_spelling_and_forward_to_either() -> anyhow::Result<()> {
    let (dovecot, sink) = (Dovecot::shared(), SmtpSink::builder().without("SMTPUTF8").start().await);
    let gateway = Gateway::start_untouched(&[]).await?;
    gateway.relay_to(sink.port()).await?;
    const USER: &str = "idn-desk";
    for (n, from) in ["ada@xn--exmple-cua.net", "ada@exämple.net", "ada@example.net"].iter().enumerate() {
        let mail = format!(
            "From: <{from}>\r\nTo: desk@example.com\r\nSubject: Case {n}\r\nMessage-ID: <{n}@x.example>\r\n\r\nHi\r\n"
        );
        dovecot.append(USER, "INBOX", mail.as_bytes());
    }
    gateway
        .post(
            "/v1/mailboxes",
            json!({"id": "desk", "host": "127.0.0.1", "port": dovecot.port(), "tls": "none", "username": USER,
            "password": PASSWORD, "start": "beginning", "poll_seconds": 5}),
        )
        .await?;
    let forward = json!({"do": "forward", "to": ["team@müller.example"], "account": "relay", "from": "desk@example.com"});
    let rule = json!({"id": "theirs", "mailbox": "desk", "match": [{"field": "from", "contains": "@exämple.net"}], "actions": [forward]});
    gateway.post("/v1/rules", rule).await?;
    let mails = sink.wait_for(2, PATIENCE).await;
    for mail in &mails {
        assert_eq!(mail.recipients, ["team@xn--mller-kva.example"]);
    }
    eventually("the third to match nothing", async || {
        let left = gateway.get("/v1/inbound?status=no_match").await?;
        Ok(left["data"]
            .as_array()
            .is_some_and(|list| list.len() == 1 && text(&list[0], "subject") == "Case 2")
            .then_some(()))
    })
    .await?;
    gateway.wait_until_settled(PATIENCE).await?;
    assert_eq!(sink.mails().len(), 2);
    Ok(())
}
