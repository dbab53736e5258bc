//! The dot: mail that is sent, not sent, or in doubt.

use super::*;
use postway_domain::failure::{FailureCategory, FailurePhase};
use postway_testkit::{SinkAction, SinkPause, SinkVerb, TestCert};

/// Checks from inside the commit that the sink has the body and not the dot.
struct Watching<'a> {
    sink: &'a SmtpSink,
    commits: usize,
    refuse: bool,
}

#[async_trait::async_trait]
impl WireGate for Watching<'_> {
    async fn commit(&mut self, _: &[RecipientReply]) -> Result<(), GateRefused> {
        self.sink.wait_until("the body", PATIENCE, |ledger| ledger.body_bytes >= BODY.len()).await;
        let ledger = self.sink.ledger();
        assert_eq!((ledger.body_bytes, ledger.dots), (BODY.len(), 0));
        self.commits += 1;
        if self.refuse { Err(GateRefused) } else { Ok(()) }
    }
}

#[tokio::test]
async fn the_gate_is_asked_once_after_the_body_and_before_the_dot() {
    let sink = SmtpSink::start().await;
    let mut connection = connect(&sink).await;
    let mut gate = Watching { sink: &sink, commits: 0, refuse: false };
    let delivery = connection.deliver(&envelope(ONE, BODY), BODY, &mut gate).await;
    assert_accepted(&delivery.end);
    assert_eq!((gate.commits, sink.ledger().dots), (1, 1));
}

#[tokio::test]
async fn a_refused_gate_drops_the_connection_without_the_dot() {
    let sink = SmtpSink::start().await;
    let mut connection = connect(&sink).await;
    let mut gate = Watching { sink: &sink, commits: 0, refuse: true };
    let delivery = connection.deliver(&envelope(ONE, BODY), BODY, &mut gate).await;
    assert!(matches!(delivery.end, DeliveryEnd::GateRefused), "{:?}", delivery.end);
    assert!(!connection.is_reusable());
    sink.wait_until("the end of the connection", PATIENCE, |ledger| ledger.closed == 1).await;
    let ledger = sink.ledger();
    assert_eq!((gate.commits, ledger.dots, ledger.mails.len()), (1, 0, 0));
}

#[tokio::test]
async fn a_dot_without_a_well_formed_answer_is_in_doubt() {
    for (action, code, received) in [
        (SinkAction::Cut, "dot_closed", 0),
        (SinkAction::Cut.recorded(), "dot_closed", 1),
        (SinkAction::Silence.recorded(), "dot_timeout", 1),
        (SinkAction::Drip("250 2.0.0 Ok".to_owned(), DRIP).recorded(), "dot_timeout", 1),
        (SinkAction::Endless.recorded(), "dot_protocol", 1),
        (SinkAction::Raw(b"\xff\xfe\r\n".to_vec()).recorded(), "dot_protocol", 1),
        (SinkAction::reply("354 what").recorded(), "smtp_354", 1),
        (SinkAction::ReplyThenCut("250-2.0.0 O".to_owned()).recorded(), "dot_closed", 1),
    ] {
        let sink = SmtpSink::builder().on(SinkVerb::Dot, action.clone()).start().await;
        let mut connection = open(&hasty(&sink)).await.unwrap();
        let mut gate = Gate::default();
        let failure = in_doubt(connection.deliver(&envelope(ONE, BODY), BODY, &mut gate).await.end);
        assert_eq!((failure.code.as_ref(), failure.phase), (code, FailurePhase::Dot), "{action:?}");
        assert!(failure.is_transient());
        assert_eq!((gate.commits, sink.mails().len()), (1, received));
        assert!(!connection.is_reusable());
    }
}

#[tokio::test]
async fn a_refusal_of_the_dot_is_not_in_doubt() {
    for (reply, category, transient) in [
        ("451 4.3.0 queue file write error", FailureCategory::ServerBusy, true),
        ("554 5.7.1 Spam message rejected", FailureCategory::Spam, false),
        ("552 5.2.2 mailbox full", FailureCategory::MailboxFull, true),
    ] {
        let sink = SmtpSink::builder().once(SinkVerb::Dot, SinkAction::reply(reply)).start().await;
        let mut connection = connect(&sink).await;
        let failure = not_sent(send(&mut connection).await);
        assert_eq!((failure.category, failure.is_transient()), (category, transient));
        assert!(connection.is_reusable());
        assert_accepted(&send(&mut connection).await);
        assert_eq!(sink.ledger().connections, 1);
    }
    let sink = SmtpSink::builder()
        .once(SinkVerb::Dot, SinkAction::ReplyThenCut("421 4.3.2 closing".to_owned()))
        .start()
        .await;
    let mut connection = connect(&sink).await;
    assert_eq!(not_sent(send(&mut connection).await).code, "smtp_421");
    assert!(!connection.is_reusable());
}

/// Commits only after the relay has closed the connection.
struct Late<'a>(&'a SmtpSink);

#[async_trait::async_trait]
impl WireGate for Late<'_> {
    async fn commit(&mut self, _: &[RecipientReply]) -> Result<(), GateRefused> {
        self.0.wait_until("the end of the connection", PATIENCE, |ledger| ledger.closed == 1).await;
        Ok(())
    }
}

#[tokio::test]
async fn a_relay_that_left_before_the_dot_leaves_no_doubt() {
    for (action, code) in [
        (SinkAction::Cut, "data_closed"),
        (SinkAction::ReplyThenCut("451 4.3.0 disk full".to_owned()), "smtp_451"),
        (SinkAction::ReplyThenCut("421 4.4.2 timeout".to_owned()), "smtp_421"),
    ] {
        let sink = SmtpSink::builder().on(SinkVerb::Body, action.clone()).start().await;
        let mut connection = connect(&sink).await;
        let delivery = connection.deliver(&envelope(ONE, BODY), BODY, &mut Late(&sink)).await;
        let failure = not_sent(delivery.end);
        assert_eq!((failure.code.as_ref(), failure.phase), (code, FailurePhase::Data), "{action:?}");
        assert!(failure.is_transient());
        assert_eq!(sink.ledger().dots, 0);
        assert!(!connection.is_reusable());
    }
}

#[tokio::test]
async fn a_relay_that_leaves_in_the_middle_of_a_large_body_leaves_no_doubt() {
    let body: Vec<u8> = b"0123456789abcdef0123456789abcdef\r\n".repeat(500_000);
    let sink = SmtpSink::builder().on(SinkVerb::Body, SinkAction::Cut).start().await;
    let mut connection = connect(&sink).await;
    let mut gate = Gate::default();
    let envelope = MailEnvelope { size: 1, ..envelope(ONE, &body) };
    let failure = not_sent(connection.deliver(&envelope, &body, &mut gate).await.end);
    assert!(failure.is_transient(), "{failure}");
    assert_eq!((gate.commits, sink.ledger().dots), (0, 0));
}

#[tokio::test]
async fn a_relay_that_stops_reading_the_body_is_given_up() {
    let body: Vec<u8> = b"0123456789abcdef0123456789abcdef\r\n".repeat(1_000_000);
    let hold = SinkPause::new();
    let sink = SmtpSink::builder().on(SinkVerb::Body, SinkAction::Hold(hold.clone())).start().await;
    let mut connection = open(&hasty(&sink)).await.unwrap();
    let mut gate = Gate::default();
    let envelope = MailEnvelope { size: 1, ..envelope(ONE, &body) };
    let failure = not_sent(connection.deliver(&envelope, &body, &mut gate).await.end);
    assert_eq!((failure.code.as_ref(), gate.commits), ("data_timeout", 0));
    hold.release();
}

#[tokio::test]
async fn a_slow_answer_to_the_dot_is_waited_for() {
    let hold = SinkPause::new();
    let sink = SmtpSink::builder().once(SinkVerb::Dot, SinkAction::Hold(hold.clone())).start().await;
    let mut connection = connect(&sink).await;
    let (end, ()) = tokio::join!(send(&mut connection), async {
        hold.reached().await;
        assert!(sink.mails().is_empty());
        hold.release();
    });
    assert_accepted(&end);
    assert_eq!(sink.mails().len(), 1);
}

#[tokio::test]
async fn the_same_holds_under_tls() {
    let cert = TestCert::localhost();
    for (verb, doubt) in [(SinkVerb::Body, false), (SinkVerb::Dot, true)] {
        let sink = SmtpSink::builder().implicit_tls(&cert).on(verb, SinkAction::Cut).start().await;
        let mut settings = settings(&sink);
        settings.tls = RelayTlsMode::Implicit;
        settings.extra_roots_pem = Some(cert.ca_pem.clone());
        let mut connection = open(&settings).await.unwrap();
        if doubt {
            in_doubt(send(&mut connection).await);
        } else {
            not_sent(connection.deliver(&envelope(ONE, BODY), BODY, &mut Late(&sink)).await.end);
        }
        assert!(!connection.is_reusable());
    }
}
