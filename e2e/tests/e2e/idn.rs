//! Domains outside ASCII: one address in either spelling, through a relay that knows nothing of UTF-8.

use postway_e2e::{Gateway, column, eventually, mail, mail_with};
use postway_testkit::SmtpSink;
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
