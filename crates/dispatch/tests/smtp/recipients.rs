//! Recipients have their own outcome.

use super::*;
use postway_domain::failure::FailureCategory;
use postway_testkit::{SinkAction, SinkVerb};

#[tokio::test]
async fn a_refused_recipient_does_not_stop_the_others() {
    for pipelining in ["", "PIPELINING"] {
        let sink = SmtpSink::builder()
            .without(pipelining)
            .rcpt("nobody@", "550 5.1.1 no such user")
            .rcpt("full@", "452 4.2.2 mailbox full")
            .start()
            .await;
        let mut connection = connect(&sink).await;
        let recipients =
            ["nobody@example.org", "a@example.org", "full@example.org", "b@example.org", "bad one@x"];
        let mut gate = Gate::default();
        let delivery = connection.deliver(&envelope(&recipients, BODY), BODY, &mut gate).await;
        assert_accepted(&delivery.end);
        let [nobody, a, full, b, bad] = &delivery.recipients[..] else { panic!("one reply per recipient") };
        assert!(a.is_accepted() && b.is_accepted());
        assert!(
            matches!(nobody, RecipientReply::Refused(f) if f.is_permanent() && f.code == "smtp_550"),
            "{nobody:?}"
        );
        assert!(
            matches!(full, RecipientReply::Refused(f) if f.category == FailureCategory::MailboxFull && f.is_transient())
        );
        assert!(matches!(bad, RecipientReply::Refused(f) if f.code == "address_invalid"));
        assert_eq!(gate.accepted, 2);
        assert_eq!(sink.mails()[0].recipients, ["a@example.org", "b@example.org"]);

        // The connection is reset and used again.
        assert!(connection.is_reusable());
        assert_accepted(&send(&mut connection).await);
        assert_eq!(sink.ledger().commands_of("RSET").len(), 1);
        assert_accepted(&send(&mut connection).await);
        assert_eq!(sink.ledger().commands_of("RSET").len(), 1);
        assert_eq!(sink.ledger().connections, 1);
    }
}

#[tokio::test]
async fn when_all_are_refused_the_gate_is_not_asked_and_the_connection_lives() {
    for pipelining in ["", "PIPELINING"] {
        let sink =
            SmtpSink::builder().without(pipelining).rcpt("nobody@", "550 5.1.1 no such user").start().await;
        let mut connection = connect(&sink).await;
        let mut gate = Gate::default();
        let recipients = ["nobody@example.org", "nobody@example.net"];
        let delivery = connection.deliver(&envelope(&recipients, BODY), BODY, &mut gate).await;
        assert!(matches!(delivery.end, DeliveryEnd::NoRecipients), "{:?}", delivery.end);
        assert_eq!(gate.commits, 0);
        assert!(connection.is_reusable());
        assert_accepted(&send(&mut connection).await);
    }
}

#[tokio::test]
async fn a_go_ahead_without_recipients_is_answered_by_hanging_up() {
    let sink = SmtpSink::builder()
        .rcpt("nobody@", "550 5.1.1 no such user")
        .on(SinkVerb::Data, SinkAction::reply("354 go ahead"))
        .start()
        .await;
    let mut connection = connect(&sink).await;
    let delivery = send_to(&mut connection, &["nobody@example.org"], BODY).await;
    assert!(matches!(delivery.end, DeliveryEnd::NoRecipients), "{:?}", delivery.end);
    assert!(!connection.is_reusable());
    sink.wait_until("the end of the connection", PATIENCE, |ledger| ledger.closed == 1).await;
    assert_eq!(sink.ledger().dots, 0);
}

#[tokio::test]
async fn too_many_recipients_are_deferred_not_failed() {
    let sink = SmtpSink::builder()
        .rule(|event| {
            let late = event.verb == SinkVerb::Rcpt
                && (event.argument.starts_with('c') || event.argument.starts_with('d'));
            late.then(|| SinkAction::reply("452 4.5.3 Error: too many recipients"))
        })
        .start()
        .await;
    let mut connection = connect(&sink).await;
    let recipients = ["a@example.org", "b@example.org", "c@example.org", "d@example.org"];
    let delivery = send_to(&mut connection, &recipients, BODY).await;
    assert_accepted(&delivery.end);
    assert!(delivery.recipients[..2].iter().all(RecipientReply::is_accepted));
    assert!(delivery.recipients[2..].iter().all(|reply| matches!(reply, RecipientReply::Deferred(_))));
    // A relay that refuses even the first recipient as too many would be split for ever, so that is a
    // failure.
    let delivery = send_to(&mut connection, &["c@example.org"], BODY).await;
    assert!(matches!(delivery.end, DeliveryEnd::NoRecipients));
    assert!(matches!(&delivery.recipients[0], RecipientReply::Refused(f) if f.is_transient()));
}

#[tokio::test]
async fn a_greylisted_recipient_is_taken_later() {
    let sink = SmtpSink::builder().greylist(2).start().await;
    let mut connection = connect(&sink).await;
    for _ in 0..2 {
        let delivery = send_to(&mut connection, ONE, BODY).await;
        let RecipientReply::Refused(failure) = &delivery.recipients[0] else { panic!("{delivery:?}") };
        assert_eq!((failure.category, failure.is_transient()), (FailureCategory::Greylisted, true));
    }
    assert_accepted(&send(&mut connection).await);
}

#[tokio::test]
async fn a_refused_sender_leaves_recipients_untried() {
    for pipelining in ["", "PIPELINING"] {
        let reply = SinkAction::reply("553 5.7.1 Sender address rejected: not owned by user");
        let sink = SmtpSink::builder().without(pipelining).once(SinkVerb::Mail, reply).start().await;
        let mut connection = connect(&sink).await;
        let delivery = send_to(&mut connection, ONE, BODY).await;
        assert_eq!(delivery.recipients, [RecipientReply::NotTried]);
        let failure = not_sent(delivery.end);
        assert_eq!((failure.category, failure.is_permanent()), (FailureCategory::SenderRejected, true));
        assert!(connection.is_reusable());
        assert_accepted(&send(&mut connection).await);
    }
}
