//! Who is put on the suppression list while mail waits gets none of it.

use postway_e2e::{Gateway, column, event_types, eventually, mail, mail_with, text};
use postway_testkit::SmtpSink;
use serde_json::json;

#[tokio::test]
async fn the_list_is_asked_again_when_mail_is_sent() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"limits": {"per_day": 5}})).await?;
    gateway.post("/v1/accounts/relay/suspend", json!({})).await?;
    let both = json!({"cc": ["bob@example.net"]});
    gateway.send(mail_with("some", "ada@example.net", both)).await?;
    gateway.send(mail("all", "ada@example.net")).await?;
    gateway.post("/v1/suppressions", json!({"address": "ada@example.net", "reason": "complaint"})).await?;
    gateway.post("/v1/accounts/relay/activate", json!({})).await?;

    let some = gateway.wait_for("some", "sent").await?;
    assert_eq!(column(&some, "recipients", "status"), ["suppressed", "sent"], "{some:#}");
    let all = gateway.wait_for("all", "suppressed").await?;
    assert_eq!(column(&all, "recipients", "status"), ["suppressed"]);
    assert_eq!(event_types(&all), ["accepted", "validated", "ready", "sending", "ready", "suppressed"]);
    assert_eq!(all["attempts"], json!([]));
    let mails = sink.mails();
    assert_eq!((mails.len(), &mails[0].recipients), (1, &vec!["bob@example.net".to_owned()]));
    assert_eq!(text(&some, "status"), "sent");
    eventually("what was not sent to be given back", async || {
        let account = gateway.get("/v1/accounts/relay").await?;
        Ok((account["used"]["day"] == 1).then_some(()))
    })
    .await
}
