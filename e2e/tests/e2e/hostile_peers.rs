//! A relay that speaks nonsense costs its own mail some time, and nobody else's.

use postway_e2e::{Gateway, mail, mail_with, text};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use serde_json::json;

#[tokio::test]
async fn nonsense_is_classified_and_tried_again_while_others_go_through() -> anyhow::Result<()> {
    let garbage = SinkAction::Raw(b"\x00\xff\xfe not smtp at all \x80\r\n".to_vec());
    let peers = [
        ("garbage", SinkVerb::Connect, garbage.clone(), "protocol"),
        ("garbage-to-mail", SinkVerb::Mail, garbage, "protocol"),
        ("endless-line", SinkVerb::Connect, SinkAction::Endless, "protocol"),
        ("endless-ehlo", SinkVerb::Ehlo, SinkAction::Endless, "protocol"),
        ("hangs-up", SinkVerb::Connect, SinkAction::Cut, "network"),
        ("hangs-up-at-data", SinkVerb::Data, SinkAction::Cut, "network"),
        ("says-no", SinkVerb::Connect, SinkAction::reply("421 4.3.2 too busy"), "server_busy"),
    ];
    let gateway = Gateway::start().await?;
    let good = SmtpSink::start().await;
    gateway.relay_to(good.port()).await?;
    let mut sinks = Vec::new();
    for (id, verb, action, _) in &peers {
        let sink = SmtpSink::builder().on(*verb, action.clone()).start().await;
        let settings = json!({"id": id, "retry": {"delays_s": [3600], "jitter": 0.0}});
        gateway.relay_with(sink.port(), settings).await?;
        gateway.send(mail_with(id, "ada@example.net", json!({"account": id}))).await?;
        sinks.push(sink);
    }
    gateway.send(mail("bystander", "ada@example.net")).await?;
    gateway.wait_for("bystander", "sent").await?;
    for (id, _, _, category) in &peers {
        let message = gateway.wait_for(id, "scheduled").await?;
        assert_eq!(text(&message["error"], "category"), *category, "{id}: {message:#}");
        assert_eq!(message["attempt"], 1, "{id}");
        assert!(message.to_string().len() < 20_000, "{id}: what is kept of nonsense is bounded");
    }
    assert!(sinks.iter().all(|sink| sink.mails().is_empty()));
    Ok(())
}
