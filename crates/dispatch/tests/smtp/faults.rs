//! Peers that misbehave before the dot: each is bounded in time and memory, classified, and never in doubt.

use super::*;
use postway_domain::failure::{FailureCategory, FailurePhase};
use postway_testkit::{SinkAction, SinkVerb};

#[tokio::test]
async fn a_refused_connection_is_transient_and_names_the_relay() {
    let sink = SmtpSink::start().await;
    let settings = settings(&sink);
    let mut connection = open(&settings).await.unwrap();
    drop(sink);
    // The port is free once the listening task has ended.
    assert!(not_sent(send(&mut connection).await).is_transient());
    let failure = open(&settings).await.unwrap_err();
    assert_eq!(failure.code, "connect_refused");
    assert!(failure.is_transient());
    assert!(failure.message.contains(&settings.port.to_string()), "{failure}");
}

#[tokio::test]
async fn a_host_that_does_not_resolve_is_transient() {
    // The label is too long for DNS, so the resolver refuses it without a query.
    let mut settings = SmtpSettings::new(format!("{}.invalid", "x".repeat(64)), 25, RelayTlsMode::None);
    settings.deadlines = SmtpDeadlines::uniform(PATIENCE);
    let failure = open(&settings).await.unwrap_err();
    assert_eq!((failure.code.as_ref(), failure.phase), ("connect_dns", FailurePhase::Connect));
    assert!(failure.is_transient());
}

#[tokio::test]
async fn a_bad_greeting_is_classified() {
    for (action, code, category, account) in [
        (SinkAction::Cut, "greeting_closed", FailureCategory::Network, false),
        (SinkAction::Silence, "greeting_timeout", FailureCategory::Timeout, false),
        (
            SinkAction::Drip("220 sink.example ESMTP".to_owned(), DRIP),
            "greeting_timeout",
            FailureCategory::Timeout,
            false,
        ),
        (SinkAction::Endless, "greeting_protocol", FailureCategory::Protocol, false),
        (
            SinkAction::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            "greeting_protocol",
            FailureCategory::Protocol,
            false,
        ),
        (SinkAction::Raw(b"250-a\r\n".repeat(500)), "greeting_protocol", FailureCategory::Protocol, false),
        (SinkAction::reply("554 5.7.1 go away"), "smtp_554", FailureCategory::Policy, true),
        (
            SinkAction::ReplyThenCut("421 4.3.2 busy".to_owned()),
            "smtp_421",
            FailureCategory::ServerBusy,
            false,
        ),
        (SinkAction::reply("250 odd"), "smtp_250", FailureCategory::Protocol, false),
    ] {
        let sink = SmtpSink::builder().on(SinkVerb::Connect, action.clone()).start().await;
        let failure = open(&hasty(&sink)).await.unwrap_err();
        assert_eq!((failure.code.as_ref(), failure.category), (code, category), "{action:?}: {failure}");
        assert_eq!((failure.is_account(), failure.is_transient()), (account, !account));
        assert_eq!(failure.phase, FailurePhase::Greeting);
    }
}

#[tokio::test]
async fn every_fault_at_every_verb_before_the_dot_is_not_sent_and_transient() {
    let faults = [
        SinkAction::Cut,
        SinkAction::Silence,
        SinkAction::Drip("250 2.1.0 Ok".to_owned(), DRIP),
        SinkAction::Endless,
        SinkAction::Raw(b"\x00\xff garbage\r\n".to_vec()),
        SinkAction::reply("421 4.3.2 shutting down"),
        SinkAction::reply("299-a\r\n300 b"),
    ];
    let mut cases = Vec::new();
    for pipelining in ["", "PIPELINING"] {
        for verb in [SinkVerb::Mail, SinkVerb::Rcpt, SinkVerb::Data] {
            cases.extend(
                faults.iter().map(|action| one_fault_before_the_dot(pipelining, verb, action.clone())),
            );
        }
    }
    // All at once, since most of them only wait for a deadline.
    futures::future::join_all(cases).await;
}

async fn one_fault_before_the_dot(without: &str, verb: SinkVerb, action: SinkAction) {
    let sink = SmtpSink::builder().without(without).once(verb, action.clone()).start().await;
    let mut connection = open(&hasty(&sink)).await.expect("the sink behaves until MAIL");
    let mut gate = Gate::default();
    let failure = not_sent(connection.deliver(&envelope(ONE, BODY), BODY, &mut gate).await.end);
    assert!(failure.is_transient() && !failure.is_stale(), "{verb:?} {action:?}: {failure}");
    assert_eq!(gate.commits, 0);
    assert!(!connection.is_reusable(), "{verb:?} {action:?}");
    assert_eq!(sink.ledger().dots, 0);
    // The next connection is not affected.
    assert_accepted(&send(&mut connect(&sink).await).await);
}

#[tokio::test]
async fn refusals_at_data_keep_the_connection() {
    let sink = SmtpSink::builder()
        .once(SinkVerb::Data, SinkAction::reply("451 4.3.0 queue file write error"))
        .start()
        .await;
    let mut connection = connect(&sink).await;
    let delivery = send_to(&mut connection, ONE, BODY).await;
    assert!(delivery.recipients[0].is_accepted());
    let failure = not_sent(delivery.end);
    assert_eq!((failure.phase, failure.is_transient()), (FailurePhase::Data, true));
    assert!(connection.is_reusable());
    assert_accepted(&send(&mut connection).await);
}

#[tokio::test]
async fn a_pooled_connection_that_died_is_stale_and_one_in_use_is_not() {
    let sink = SmtpSink::start().await;
    let mut connection = connect(&sink).await;
    assert_accepted(&send(&mut connection).await);
    // It dies when the next mail is offered, before any reply.
    for action in [SinkAction::Cut, SinkAction::ReplyThenCut("421 4.4.2 timeout exceeded".to_owned())] {
        let mut connection = connect(&sink).await;
        assert_accepted(&send(&mut connection).await);
        sink.add_rule(move |event| (event.verb == SinkVerb::Mail).then(|| action.clone()));
        let failure = not_sent(send(&mut connection).await);
        assert!(failure.is_stale() && failure.is_transient(), "{failure}");
        assert!(!connection.is_reusable());
        sink.clear_rules();
    }
    // It dies in the middle of the next mail, which is a fault of the relay.
    sink.add_rule(|event| (event.verb == SinkVerb::Rcpt).then_some(SinkAction::Cut));
    let failure = not_sent(send(&mut connection).await);
    assert!(!failure.is_stale() && failure.is_transient(), "{failure}");
}

#[tokio::test]
async fn a_connection_that_the_relay_closed_while_idle_is_not_reusable() {
    let closing = SinkAction::ReplyThenCut("250 2.0.0 Ok\r\n421 4.4.2 bye".to_owned()).recorded();
    let sink = SmtpSink::builder().once(SinkVerb::Dot, closing).start().await;
    let mut connection = connect(&sink).await;
    assert_accepted(&send(&mut connection).await);
    sink.wait_until("the end of the connection", PATIENCE, |ledger| ledger.closed == 1).await;
    assert!(!connection.is_reusable());
    assert!(not_sent(send(&mut connection).await).is_stale());
}

#[tokio::test]
async fn a_dropped_delivery_leaves_the_connection_unusable() {
    let sink = SmtpSink::builder().once(SinkVerb::Mail, SinkAction::Silence).start().await;
    let mut connection = connect(&sink).await;
    tokio::select! {
        end = send(&mut connection) => panic!("{end:?}"),
        () = sink.wait_until("MAIL", PATIENCE, |ledger| !ledger.commands_of("MAIL").is_empty()) => {}
    }
    assert!(!connection.is_reusable());
}

#[tokio::test]
async fn a_reply_too_many_is_not_taken_for_the_answer_to_the_dot() {
    for verb in [SinkVerb::Mail, SinkVerb::Rcpt, SinkVerb::Data] {
        let twice = if verb == SinkVerb::Data {
            "354 go ahead\r\n250 2.0.0 Ok"
        } else {
            "250 2.1.0 Ok\r\n250 2.1.0 Ok"
        };
        let sink = SmtpSink::builder().on(verb, SinkAction::reply(twice)).start().await;
        let mut connection = connect(&sink).await;
        let mut gate = Gate::default();
        let failure = not_sent(connection.deliver(&envelope(ONE, BODY), BODY, &mut gate).await.end);
        assert_eq!((failure.category, failure.is_transient()), (FailureCategory::Protocol, true), "{verb:?}");
        assert_eq!((gate.commits, sink.ledger().dots), (0, 0));
        assert!(!connection.is_reusable());
    }
}
