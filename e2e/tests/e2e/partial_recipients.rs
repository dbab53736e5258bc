//! Recipients have their own outcome: only who is still open is tried again.

use postway_e2e::{Gateway, column, events_of, mail_with};
use postway_testkit::{SinkAction, SinkVerb, SmtpSink};
use serde_json::{Value, json};

#[tokio::test]
async fn only_the_open_recipient_is_tried_again() -> anyhow::Result<()> {
    let sink = SmtpSink::builder()
        .rcpt("gone@", "550 5.1.1 no such user")
        .rule(|event| {
            let first =
                event.verb == SinkVerb::Rcpt && event.argument.starts_with("later@") && event.tries == 1;
            first.then(|| SinkAction::reply("450 4.2.0 greylisted"))
        })
        .start()
        .await;
    let gateway = Gateway::start().await?;
    gateway.relay_to(sink.port()).await?;
    let to = json!({"to": ["here@example.net", "gone@example.net", "later@example.net"]});
    gateway.send(mail_with("mixed", "", to)).await?;

    let message = gateway.wait_for("mixed", "sent").await?;
    assert_eq!(column(&message, "recipients", "status"), ["sent", "failed", "sent"]);
    assert_eq!(message["recipients"][1]["smtp_code"], 550);
    assert_eq!(events_of(&message, "recipient_failed"), 1);
    let failed =
        message["events"].as_array().unwrap().iter().find(|event| event["type"] == "recipient_failed");
    let failed = &failed.unwrap()["data"];
    assert_eq!((&failed["recipient"], &failed["address"]), (&json!(1), &json!("gone@example.net")));
    assert_eq!((&failed["will_retry"], failed.get("backoff_ms")), (&json!(false), Some(&Value::Null)));
    assert_eq!((events_of(&message, "scheduled"), events_of(&message, "sent")), (1, 1));
    assert_eq!(column(&message, "attempts", "outcome"), ["deferred", "sent"]);

    let mails = sink.mails();
    let envelopes: Vec<_> = mails.iter().map(|mail| mail.recipients.join(",")).collect();
    assert_eq!(envelopes, ["here@example.net", "later@example.net"], "nobody gets it twice");
    assert_eq!(mails[0].message_id, mails[1].message_id);
    let offers = sink.ledger().offers;
    let offered = ["here", "gone", "later"].map(|name| offers[&format!("{name}@example.net")]);
    assert_eq!(offered, [1, 1, 2]);
    Ok(())
}

#[tokio::test]
async fn a_mail_of_which_some_was_sent_is_sent_even_if_the_rest_runs_out_of_retries() -> anyhow::Result<()> {
    let sink = SmtpSink::builder().rcpt("full@", "452 4.2.2 mailbox full").start().await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"retry": {"delays_s": [1], "jitter": 0.0}})).await?;
    gateway.send(mail_with("half", "", json!({"to": ["here@example.net", "full@example.net"]}))).await?;

    let message = gateway.wait_for("half", "sent").await?;
    assert_eq!(column(&message, "recipients", "status"), ["sent", "failed"]);
    assert_eq!((message["attempt"].as_i64(), sink.mails().len()), (Some(2), 1));
    Ok(())
}
