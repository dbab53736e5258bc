//! LMTP: an answer for each recipient after the dot, against a sink that misbehaves and a real Dovecot.

use super::*;
use postway_dispatch::transport::RelayProtocol;
use postway_domain::failure::{FailureCategory, FailurePhase};
use postway_testkit::{Dovecot, SinkAction, SinkVerb};

const THREE: &[&str] = &["a@example.org", "b@example.org", "c@example.org"];

fn lmtp(sink: &SmtpSink) -> SmtpSettings {
    SmtpSettings { protocol: RelayProtocol::Lmtp, ..hasty(sink) }
}

/// A sink that answers about `b@example.org` in this way.
async fn sink_with(action: SinkAction) -> SmtpSink {
    let sink = SmtpSink::start().await;
    sink.add_rule(move |event| {
        (event.verb == SinkVerb::Answer && event.argument.starts_with("b@")).then(|| action.clone())
    });
    sink
}

async fn deliver_to_three(sink: &SmtpSink) -> (DeliveryResult, SmtpConnection) {
    let mut connection = open(&lmtp(sink)).await.expect("the sink answers");
    let delivery = send_to(&mut connection, THREE, BODY).await;
    (delivery, connection)
}

/// What is known about each recipient, in one letter: taken, refused, or in doubt.
fn letters(delivery: &DeliveryResult) -> String {
    let letter = |reply: &RecipientReply| match reply {
        RecipientReply::Taken(_) => 't',
        RecipientReply::Refused(failure) if failure.is_permanent() => 'r',
        RecipientReply::Refused(_) => 'l',
        RecipientReply::Doubtful(_) => 'd',
        RecipientReply::Accepted(_) => 'a',
        RecipientReply::Deferred(_) | RecipientReply::NotTried => '-',
    };
    delivery.recipients.iter().map(letter).collect()
}

#[tokio::test]
async fn every_recipient_has_an_answer_and_the_connection_serves_the_next_mail() {
    let sink = SmtpSink::start().await;
    let (delivery, mut connection) = deliver_to_three(&sink).await;
    assert_accepted(&delivery.end);
    assert_eq!((letters(&delivery).as_str(), delivery.dialogue), ("ttt", None));
    assert!(
        matches!(&delivery.recipients[1], RecipientReply::Taken(reply) if reply.text.contains("b@example.org"))
    );
    assert!(connection.is_reusable());
    assert_eq!(letters(&send_to(&mut connection, ONE, BODY).await), "t");
    assert_eq!(sink.mails().len(), 2);
    assert_eq!(sink.ledger().commands_of("LHLO"), ["LHLO client.example"]);
}

#[tokio::test]
async fn a_recipient_that_is_refused_after_the_dot_is_refused_alone() {
    for (reply, letter) in
        [("552 5.2.2 mailbox full", 'l'), ("550 5.7.1 not you", 'r'), ("451 4.3.0 later", 'l')]
    {
        let sink = sink_with(SinkAction::reply(reply)).await;
        let (delivery, mut connection) = deliver_to_three(&sink).await;
        assert_accepted(&delivery.end);
        assert_eq!(letters(&delivery), format!("t{letter}t"), "{reply}");
        let dialogue = delivery.dialogue.clone().unwrap();
        assert!(dialogue.contains(&format!("S: {reply}")) && dialogue.contains("LHLO"), "{dialogue}");
        assert!(dialogue.contains("C: RCPT TO:<b@example.org>\nS: 250"), "its RCPT was accepted: {dialogue}");
        assert!(connection.is_reusable());
        assert_eq!(letters(&send_to(&mut connection, ONE, BODY).await), "t", "{reply}");
        assert_eq!(sink.mails()[0].recipients, ["a@example.org", "c@example.org"]);
    }
}

#[tokio::test]
async fn all_refused_is_no_delivery_and_no_doubt() {
    let sink = SmtpSink::builder().on(SinkVerb::Answer, SinkAction::reply("550 5.1.1 who?")).start().await;
    let (delivery, _) = deliver_to_three(&sink).await;
    assert!(matches!(delivery.end, DeliveryEnd::NoRecipients), "{:?}", delivery.end);
    assert_eq!(letters(&delivery), "rrr");
}

#[tokio::test]
async fn a_connection_that_dies_among_the_answers_leaves_only_the_others_in_doubt() {
    for (action, code) in [
        (SinkAction::Cut, "dot_closed"),
        (SinkAction::Silence, "dot_timeout"),
        (SinkAction::Drip("250 2.0.0 Ok".to_owned(), DRIP), "dot_timeout"),
        (SinkAction::Endless, "dot_protocol"),
        (SinkAction::Raw(b"\xff\xfe\r\n".to_vec()), "dot_protocol"),
        (SinkAction::reply("354 what"), "smtp_354"),
    ] {
        let sink = sink_with(action.clone()).await;
        let (delivery, mut connection) = deliver_to_three(&sink).await;
        assert_accepted(&delivery.end);
        assert_eq!(letters(&delivery), "tdd", "{action:?}");
        for reply in &delivery.recipients[1..] {
            let RecipientReply::Doubtful(failure) = reply else { panic!("{reply:?}") };
            assert_eq!((failure.code.as_ref(), failure.phase), (code, FailurePhase::Dot), "{action:?}");
        }
        assert!(!connection.is_reusable(), "{action:?}");
    }
}

#[tokio::test]
async fn without_any_answer_the_whole_mail_is_in_doubt() {
    let sink = SmtpSink::builder().on(SinkVerb::Dot, SinkAction::Cut).start().await;
    let (delivery, _) = deliver_to_three(&sink).await;
    assert_eq!(letters(&delivery), "ddd");
    assert_eq!(in_doubt(delivery.end).code, "dot_closed");
    // A refusal that came before the end of the connection still stands.
    let sink = SmtpSink::start().await;
    sink.add_rule(|event| match (event.verb, event.argument) {
        (SinkVerb::Answer, "a@example.org") => Some(SinkAction::reply("550 5.1.1 who?")),
        (SinkVerb::Answer, _) => Some(SinkAction::Cut),
        _ => None,
    });
    let (delivery, _) = deliver_to_three(&sink).await;
    assert_eq!(letters(&delivery), "rdd");
    in_doubt(delivery.end);
}

#[tokio::test]
async fn a_server_that_shuts_down_among_the_answers_has_refused_one_and_leaves_the_rest_in_doubt() {
    let sink = sink_with(SinkAction::ReplyThenCut("421 4.3.2 shutting down".to_owned())).await;
    let (delivery, mut connection) = deliver_to_three(&sink).await;
    assert_eq!(letters(&delivery), "tld");
    assert!(!connection.is_reusable());
}

#[tokio::test]
async fn answers_are_only_for_recipients_that_were_accepted() {
    let sink = SmtpSink::builder().rcpt("b@", "550 5.1.1 no such user").start().await;
    let (delivery, _) = deliver_to_three(&sink).await;
    assert_accepted(&delivery.end);
    assert_eq!(letters(&delivery), "trt");
}

#[tokio::test]
async fn a_server_with_too_many_answers_is_not_used_again() {
    let sink = sink_with(SinkAction::Raw(b"250 2.0.0 b\r\n250 2.0.0 c\r\n250 2.0.0 d\r\n".to_vec())).await;
    let (delivery, mut connection) = deliver_to_three(&sink).await;
    assert_eq!(letters(&delivery), "ttt");
    assert!(!connection.is_reusable(), "the next reply would be taken for another command's");
}

#[tokio::test]
async fn a_server_that_speaks_only_smtp_gets_no_mail() {
    let sink = SmtpSink::builder().on(SinkVerb::Ehlo, SinkAction::reply("502 5.5.2 unknown")).start().await;
    let failure = open(&lmtp(&sink)).await.unwrap_err();
    assert!(failure.is_account() && failure.category == FailureCategory::Configuration, "{failure:?}");
    assert!(failure.message.contains("does not speak LMTP"), "{}", failure.message);
    assert_eq!(sink.mails().len(), 0);
}

#[tokio::test]
async fn dovecot_takes_mail_for_each_recipient_and_refuses_what_is_no_mailbox() {
    let dovecot = Dovecot::shared();
    let settings = SmtpSettings {
        protocol: RelayProtocol::Lmtp,
        deadlines: SmtpDeadlines::uniform(PATIENCE),
        guard: Arc::new(AddressGuard::with_loopback()),
        ..SmtpSettings::new("127.0.0.1", dovecot.lmtp_port(), RelayTlsMode::Opportunistic)
    };
    let mut connection = open(&settings).await.unwrap();
    let delivery = send_to(&mut connection, &["lmtp-one", "lmtp-two"], BODY).await;
    assert_accepted(&delivery.end);
    assert_eq!(letters(&delivery), "tt");
    for user in ["lmtp-one", "lmtp-two"] {
        let found = dovecot.client(user).run("SELECT INBOX");
        assert!(found.iter().any(|line| line.contains("1 EXISTS")), "{user}: {found:?}");
    }
    // A body that its server refuses after the dot, for one of two, is refused for that one.
    assert!(connection.is_reusable());
    assert_eq!(letters(&send_to(&mut connection, &["lmtp-one"], BODY).await), "t");
}
