//! A relay that never takes the mail makes it a dead letter, which can be replayed.

use postway_e2e::{Gateway, column, event_types, mail};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use serde_json::json;

#[tokio::test]
async fn a_mail_without_retries_left_is_a_dead_letter_and_can_be_replayed() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().on(SinkVerb::Mail, SinkAction::reply("451 4.3.0 not now")).start().await;
    let gateway = Gateway::start().await?;
    let retry = json!({"retry": {"delays_s": [1, 1], "jitter": 0.0}});
    gateway.relay_with(sink.port(), retry).await?;
    gateway.send(mail("weary", "ada@example.net")).await?;

    let message = gateway.wait_for("weary", "failed").await?;
    assert_eq!((&message["exhausted"], &message["attempt"]), (&json!(true), &json!(3)), "{message:#}");
    assert_eq!(column(&message, "attempts", "outcome"), ["deferred", "deferred", "exhausted"]);
    assert_eq!(column(&message, "recipients", "status"), ["failed"]);
    assert_eq!(message["events"][8]["data"]["will_retry"], false, "{message:#}");
    let dead = gateway.get("/v1/dead-letters").await?;
    assert_eq!(column(&dead, "data", "id"), ["weary"]);

    sink.clear_rules();
    let replay = json!({"ids": ["weary", "unknown"]});
    let answer = gateway.post("/v1/dead-letters/replay", replay).await?;
    assert_eq!((&answer["replayed"], &answer["rejected"]), (&json!(1), &json!(1)), "{answer}");
    let message = gateway.wait_for("weary", "sent").await?;
    assert!(event_types(&message).ends_with(&["replayed", "sending", "sent"].map(str::to_owned)));
    assert_eq!(message["exhausted"], false);
    assert_eq!(sink.mails().len(), 1);
    assert_eq!(gateway.get("/v1/dead-letters").await?["data"], json!([]));
    Ok(())
}
