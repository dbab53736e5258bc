//! A relay that is busy at first gets the mail later, once.

use postway_e2e::{Gateway, column, event_types, mail, text};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use serde_json::json;

#[tokio::test]
async fn a_deferred_mail_is_sent_at_the_third_attempt() -> anyhow::Result<()> {
    let busy = SinkAction::reply("451 4.3.2 busy, please come back");
    let sink = SmtpSink::builder().times(2, SinkVerb::Dot, busy).start().await;
    let gateway = Gateway::start().await?;
    // Long enough to be looked at while it waits.
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [5, 1], "jitter": 0.0}})).await?;
    let uid = gateway.send(mail("patient", "ada@example.net")).await?;

    let waiting = gateway.wait_for("patient", "scheduled").await?;
    assert!(text(&waiting, "due_at") > text(&waiting, "updated_at"), "{waiting:#}");
    assert_eq!(waiting["error"]["smtp_code"], 451);
    let explained = gateway.get("/v1/messages/patient/explain").await?;
    if explained["status"] == "scheduled" {
        assert_eq!(column(&explained, "gates", "gate"), ["retry"], "{explained:#}");
    }

    let message = gateway.wait_for("patient", "sent").await?;
    let steps =
        ["accepted", "validated", "ready", "sending", "scheduled", "sending", "scheduled", "sending", "sent"];
    assert_eq!(event_types(&message), steps);
    let deferred = &message["events"][4]["data"];
    assert_eq!(deferred["will_retry"], true, "{deferred}");
    assert_eq!((&deferred["attempt"], &deferred["next_attempt"]), (&1.into(), &2.into()), "{deferred}");
    assert_eq!(deferred["backoff_ms"], 5000, "{deferred}");
    assert!(deferred["original_code"].to_string().contains("451"), "{deferred}");
    let sent = message["events"][8]["data"].as_object().unwrap();
    for key in ["code", "category", "original_code", "next_attempt", "backoff_ms"] {
        assert!(sent.get(key).is_some_and(|value| value.is_null()), "{key} of {sent:?}");
    }
    assert_eq!((&sent["attempt"], &sent["will_retry"]), (&3.into(), &false.into()));
    assert_eq!(column(&message, "attempts", "outcome"), ["deferred", "deferred", "sent"]);
    assert_eq!((&message["attempt"], &message["error"]), (&3.into(), &().into()));

    let mails = sink.mails();
    assert_eq!((mails.len(), sink.ledger().dots), (1, 3));
    assert_eq!(mails[0].postway_id, Some(uid));
    Ok(())
}
