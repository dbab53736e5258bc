//! Peers that misbehave before the dot: each is bounded in time and memory, classified, and never in doubt.

use super::*;
use postway_domain::failure::{Category, Phase};
use postway_testkit::{Action, Verb};

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
    let mut settings = SmtpSettings::new(format!("{}.invalid", "x".repeat(64)), 25, TlsMode::None);
    settings.deadlines = Deadlines::uniform(PATIENCE);
    let failure = open(&settings).await.unwrap_err();
    assert_eq!((failure.code.as_ref(), failure.phase), ("connect_dns", Phase::Connect));
    assert!(failure.is_transient());
}

#[tokio::test]
async fn a_bad_greeting_is_classified() {
    for (action, code, category, account) in [
        (Action::Cut, "greeting_closed", Category::Network, false),
        (Action::Silence, "greeting_timeout", Category::Timeout, false),
        (
            Action::Drip("220 sink.example ESMTP".to_owned(), DRIP),
            "greeting_timeout",
            Category::Timeout,
            false,
        ),
        (Action::Endless, "greeting_protocol", Category::Protocol, false),
        (
            Action::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
            "greeting_protocol",
            Category::Protocol,
            false,
        ),
        (Action::Raw(b"250-a\r\n".repeat(500)), "greeting_protocol", Category::Protocol, false),
        (Action::reply("554 5.7.1 go away"), "smtp_554", Category::Policy, true),
        (Action::ReplyThenCut("421 4.3.2 busy".to_owned()), "smtp_421", Category::ServerBusy, false),
        (Action::reply("250 odd"), "smtp_250", Category::Protocol, false),
    ] {
        let sink = SmtpSink::builder().on(Verb::Connect, action.clone()).start().await;
        let failure = open(&hasty(&sink)).await.unwrap_err();
        assert_eq!((failure.code.as_ref(), failure.category), (code, category), "{action:?}: {failure}");
        assert_eq!((failure.is_account(), failure.is_transient()), (account, !account));
        assert_eq!(failure.phase, Phase::Greeting);
    }
}

#[tokio::test]
async fn every_fault_at_every_verb_before_the_dot_is_not_sent_and_transient() {
    let faults = [
        Action::Cut,
        Action::Silence,
        Action::Drip("250 2.1.0 Ok".to_owned(), DRIP),
        Action::Endless,
        Action::Raw(b"\x00\xff garbage\r\n".to_vec()),
        Action::reply("421 4.3.2 shutting down"),
        Action::reply("299-a\r\n300 b"),
    ];
    let mut cases = Vec::new();
    for pipelining in ["", "PIPELINING"] {
        for verb in [Verb::Mail, Verb::Rcpt, Verb::Data] {
            cases.extend(
                faults.iter().map(|action| one_fault_before_the_dot(pipelining, verb, action.clone())),
            );
        }
    }
    // All at once, since most of them only wait for a deadline.
    futures::future::join_all(cases).await;
}

async fn one_fault_before_the_dot(without: &str, verb: Verb, action: Action) {
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
    let sink =
        SmtpSink::builder().once(Verb::Data, Action::reply("451 4.3.0 queue file write error")).start().await;
    let mut connection = connect(&sink).await;
    let delivery = send_to(&mut connection, ONE, BODY).await;
    assert!(delivery.recipients[0].is_accepted());
    let failure = not_sent(delivery.end);
    assert_eq!((failure.phase, failure.is_transient()), (Phase::Data, true));
    assert!(connection.is_reusable());
    assert_accepted(&send(&mut connection).await);
}

#[tokio::test]
async fn a_pooled_connection_that_died_is_stale_and_one_in_use_is_not() {
    let sink = SmtpSink::start().await;
    let mut connection = connect(&sink).await;
    assert_accepted(&send(&mut connection).await);
    // It dies when the next mail is offered, before any reply.
    for action in [Action::Cut, Action::ReplyThenCut("421 4.4.2 timeout exceeded".to_owned())] {
        let mut connection = connect(&sink).await;
        assert_accepted(&send(&mut connection).await);
        sink.add_rule(move |event| (event.verb == Verb::Mail).then(|| action.clone()));
        let failure = not_sent(send(&mut connection).await);
        assert!(failure.is_stale() && failure.is_transient(), "{failure}");
        assert!(!connection.is_reusable());
        sink.clear_rules();
    }
    // It dies in the middle of the next mail, which is a fault of the relay.
    sink.add_rule(|event| (event.verb == Verb::Rcpt).then_some(Action::Cut));
    let failure = not_sent(send(&mut connection).await);
    assert!(!failure.is_stale() && failure.is_transient(), "{failure}");
}

#[tokio::test]
async fn a_connection_that_the_relay_closed_while_idle_is_not_reusable() {
    let closing = Action::ReplyThenCut("250 2.0.0 Ok\r\n421 4.4.2 bye".to_owned()).recorded();
    let sink = SmtpSink::builder().once(Verb::Dot, closing).start().await;
    let mut connection = connect(&sink).await;
    assert_accepted(&send(&mut connection).await);
    sink.wait_until("the end of the connection", PATIENCE, |ledger| ledger.closed == 1).await;
    assert!(!connection.is_reusable());
    assert!(not_sent(send(&mut connection).await).is_stale());
}

#[tokio::test]
async fn a_dropped_delivery_leaves_the_connection_unusable() {
    let sink = SmtpSink::builder().once(Verb::Mail, Action::Silence).start().await;
    let mut connection = connect(&sink).await;
    tokio::select! {
        end = send(&mut connection) => panic!("{end:?}"),
        () = sink.wait_until("MAIL", PATIENCE, |ledger| !ledger.commands_of("MAIL").is_empty()) => {}
    }
    assert!(!connection.is_reusable());
}

#[tokio::test]
async fn a_reply_too_many_is_not_taken_for_the_answer_to_the_dot() {
    for verb in [Verb::Mail, Verb::Rcpt, Verb::Data] {
        let twice =
            if verb == Verb::Data { "354 go ahead\r\n250 2.0.0 Ok" } else { "250 2.1.0 Ok\r\n250 2.1.0 Ok" };
        let sink = SmtpSink::builder().on(verb, Action::reply(twice)).start().await;
        let mut connection = connect(&sink).await;
        let mut gate = Gate::default();
        let failure = not_sent(connection.deliver(&envelope(ONE, BODY), BODY, &mut gate).await.end);
        assert_eq!((failure.category, failure.is_transient()), (Category::Protocol, true), "{verb:?}");
        assert_eq!((gate.commits, sink.ledger().dots), (0, 0));
        assert!(!connection.is_reusable());
    }
}
