//! An account delivers over LMTP: into a real Dovecot, and past answers that refuse, or never come.

use postway_e2e::{Gateway, column, events_of, mail_with, text};
use postway_testkit::{Dovecot, SinkAction, SinkVerb, SmtpSink};
use serde_json::json;

#[tokio::test]
async fn mail_goes_into_the_mailboxes_of_dovecot() -> anyhow::Result<()> {
    let dovecot = Dovecot::start();
    let gateway = Gateway::start().await?;
    gateway.relay_with(dovecot.lmtp_port(), json!({"kind": "lmtp", "tls": "opportunistic"})).await?;
    let tested = gateway.post("/v1/accounts/relay/test", json!({})).await?;
    assert_eq!(tested["ok"], true, "{tested:#}");
    let to = json!({"to": ["ada@example.net", "bob@example.net"]});
    gateway.send(mail_with("boxes", "", to)).await?;
    let message = gateway.wait_for("boxes", "sent").await?;
    assert_eq!(column(&message, "recipients", "status"), ["sent", "sent"]);
    for user in ["ada@example.net", "bob@example.net"] {
        let found = dovecot.client(user).run("SELECT INBOX");
        assert!(found.iter().any(|line| line.contains("1 EXISTS")), "{user}: {found:?}");
    }
    Ok(())
}

#[tokio::test]
async fn each_recipient_has_the_outcome_of_its_own_answer() -> anyhow::Result<()> {
    let sink = SmtpSink::builder()
        .rule(|event| match (event.verb, event.argument) {
            (SinkVerb::Answer, "gone@example.net") => Some(SinkAction::reply("550 5.1.1 no such mailbox")),
            (SinkVerb::Answer, "full@example.net") if event.message == 1 => {
                Some(SinkAction::reply("452 4.2.2 mailbox full"))
            }
            _ => None,
        })
        .start()
        .await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"kind": "lmtp"})).await?;
    let to = json!({"to": ["here@example.net", "gone@example.net", "full@example.net"]});
    gateway.send(mail_with("mixed", "", to)).await?;
    let message = gateway.wait_for("mixed", "sent").await?;
    assert_eq!(column(&message, "recipients", "status"), ["sent", "failed", "sent"], "{message:#}");
    assert_eq!(column(&message, "attempts", "outcome"), ["deferred", "sent"]);
    assert_eq!(events_of(&message, "recipient_failed"), 1);
    let envelopes: Vec<_> = sink.mails().iter().map(|mail| mail.recipients.join(",")).collect();
    assert_eq!(envelopes, ["here@example.net", "full@example.net"], "nobody gets it twice");
    Ok(())
}

#[tokio::test]
async fn only_recipients_without_an_answer_are_in_doubt_and_sent_to_again() -> anyhow::Result<()> {
    let sink = SmtpSink::builder()
        .rule(|event| {
            let dies =
                event.verb == SinkVerb::Answer && event.argument.starts_with("two") && event.connection == 1;
            dies.then_some(SinkAction::Cut)
        })
        .start()
        .await;
    let gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"kind": "lmtp"})).await?;
    let to = json!({"to": ["one@example.net", "two@example.net", "three@example.net"]});
    gateway.send(mail_with("cut", "", to)).await?;
    let message = gateway.wait_for("cut", "sent").await?;
    assert_eq!((events_of(&message, "in_doubt"), events_of(&message, "resent")), (1, 1), "{message:#}");
    assert_eq!(column(&message, "recipients", "status"), ["sent", "sent", "sent"]);
    let envelopes: Vec<_> = sink.mails().iter().map(|mail| mail.recipients.join(",")).collect();
    assert_eq!(envelopes, ["one@example.net", "two@example.net,three@example.net"]);
    Ok(())
}

#[tokio::test]
async fn a_crash_among_the_answers_leaves_the_mail_in_doubt() -> anyhow::Result<()> {
    let sink = SmtpSink::start().await;
    let mut gateway = Gateway::start().await?;
    gateway.relay_with(sink.port(), json!({"kind": "lmtp"})).await?;
    assert!(gateway.terminate().await?.success());
    gateway.launch(&[("FAILPOINTS", "lmtp_between_answers=1*return")]).await?;
    let to = json!({"to": ["one@example.net", "two@example.net"]});
    let sent = gateway.send(mail_with("struck", "", to.clone())).await;
    assert!(!gateway.ended().await?.success(), "the failpoint was not met");
    gateway.launch(&[]).await?;
    if sent.is_err() {
        gateway.send(mail_with("struck", "", to)).await?;
    }
    let message = gateway.wait_for("struck", "sent").await?;
    assert_eq!((events_of(&message, "in_doubt"), text(&message, "status")), (1, "sent"), "{message:#}");
    assert_eq!(column(&message, "recipients", "status"), ["sent", "sent"]);
    Ok(())
}
