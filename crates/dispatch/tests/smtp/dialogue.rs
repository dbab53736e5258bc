//! What both sides said is there after a failure, and only then.

use super::*;
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_dispatch::transport::HandshakeMilestones;
use postway_testkit::{SinkAction, SinkVerb};

async fn dialogue_of(sink: &SmtpSink, recipients: &[&str]) -> Option<String> {
    let mut connection = connect(sink).await;
    send_to(&mut connection, recipients, BODY).await.dialogue
}

/// What the lines say that came after the connection was opened.
fn of_mail(dialogue: &str) -> Vec<&str> {
    dialogue.lines().skip_while(|line| !line.starts_with("C: MAIL")).collect()
}

#[tokio::test]
async fn a_mail_that_everybody_gets_has_no_dialogue() {
    let sink = SmtpSink::start().await;
    assert_eq!(dialogue_of(&sink, &["a@example.org", "b@example.org"]).await, None);
}

#[tokio::test]
async fn a_refused_recipient_is_shown_with_all_that_was_said() {
    for pipelining in ["", "PIPELINING"] {
        let sink =
            SmtpSink::builder().without(pipelining).rcpt("nobody@", "550 5.1.1 no such user").start().await;
        let dialogue = dialogue_of(&sink, &["a@example.org", "nobody@example.org"]).await.unwrap();
        assert!(dialogue.starts_with("S: 220"), "{dialogue}");
        assert!(dialogue.contains("\nC: EHLO client.example\nS: 250-"), "{dialogue}");
        let lines = of_mail(&dialogue);
        let said: Vec<&str> = lines
            .iter()
            .filter(|line| !line.starts_with("S: 2") && !line.starts_with("S: 3"))
            .copied()
            .collect();
        assert_eq!(said[0].split(" SIZE").next(), Some("C: MAIL FROM:<from@example.net>"), "{dialogue}");
        assert_eq!(
            said[1..],
            [
                "C: RCPT TO:<a@example.org>",
                "C: RCPT TO:<nobody@example.org>",
                "S: 550 5.1.1 no such user",
                "C: DATA",
                &format!("C: ({} bytes of mail, not shown)", BODY.len()),
                "C: .",
            ],
            "{dialogue}"
        );
        assert!(lines.last().is_some_and(|line| line.starts_with("S: 250")), "{dialogue}");
        assert!(
            !dialogue.contains("Hello") && !dialogue.contains("Subject"),
            "no part of the mail: {dialogue}"
        );
    }
}

#[tokio::test]
async fn what_ended_the_mail_comes_last() {
    for (verb, action, last, after) in [
        (SinkVerb::Mail, SinkAction::reply("451 4.3.2 later"), "S: 451 4.3.2 later", "C: MAIL"),
        (SinkVerb::Data, SinkAction::reply("554 5.7.1 no"), "S: 554 5.7.1 no", "C: DATA"),
        (
            SinkVerb::Dot,
            SinkAction::reply("550-5.7.1 spam\r\n550 5.7.1 go away"),
            "S: 550 5.7.1 spam go away",
            "C: .",
        ),
        (SinkVerb::Dot, SinkAction::Cut, "-- ", "C: ."),
        (SinkVerb::Rcpt, SinkAction::Cut, "-- ", "C: RCPT"),
    ] {
        let sink = SmtpSink::builder().without("PIPELINING").on(verb, action.clone()).start().await;
        let dialogue = dialogue_of(&sink, ONE).await.unwrap();
        let lines = of_mail(&dialogue);
        assert!(lines.last().is_some_and(|line| line.starts_with(last)), "{action:?}: {dialogue}");
        let command = lines.iter().rev().find(|line| line.starts_with("C: "));
        assert!(command.is_some_and(|line| line.starts_with(after)), "{action:?}: {dialogue}");
        assert_eq!(lines.iter().filter(|line| line.starts_with(last)).count(), 1, "{dialogue}");
    }
}

#[tokio::test]
async fn a_refused_sign_in_shows_no_credential() {
    let secrets = ["hunter2-secret".to_owned(), BASE64_STANDARD.encode("\0bob\0hunter2-secret")];
    let sink = SmtpSink::builder()
        .auth("bob", "hunter2-secret")
        .on(SinkVerb::Auth, SinkAction::reply("535 5.7.8 not bob with hunter2-secret"))
        .start()
        .await;
    let settings = SmtpSettings {
        credentials: credentials("hunter2-secret"),
        allow_plaintext_auth: true,
        ..settings(&sink)
    };
    let mut reached = HandshakeMilestones::default();
    let opened = SmtpConnection::open_watched(&settings, &TlsClient::new(), &mut reached).await;
    let dialogue = reached.opening.ended_by(&opened.unwrap_err());
    assert!(dialogue.contains("C: AUTH PLAIN ***\nS: 535 5.7.8 not bob with ***"), "{dialogue}");
    for secret in secrets {
        assert!(!dialogue.contains(&secret), "{dialogue}");
    }
}

#[tokio::test]
async fn a_relay_that_is_not_there_is_told() {
    let closed = postway_testkit::ClosedPort::take();
    let mut settings = SmtpSettings::new("127.0.0.1", closed.port(), RelayTlsMode::None);
    settings.guard = Arc::new(AddressGuard::with_loopback());
    let mut reached = HandshakeMilestones::default();
    let opened = SmtpConnection::open_watched(&settings, &TlsClient::new(), &mut reached).await;
    let dialogue = reached.opening.ended_by(&opened.unwrap_err());
    assert!(dialogue.starts_with("-- ") && dialogue.contains("127.0.0.1"), "{dialogue}");
}

#[tokio::test]
async fn many_refusals_stay_within_bounds() {
    let sink = SmtpSink::builder().rcpt("nobody", &format!("550 5.1.1 {}", "x".repeat(400))).start().await;
    let recipients: Vec<String> = (0..500).map(|number| format!("nobody{number}@example.org")).collect();
    let recipients: Vec<&str> = recipients.iter().map(String::as_str).collect();
    let dialogue = dialogue_of(&sink, &recipients).await.unwrap();
    assert!(dialogue.len() <= 8 * 1024, "{}", dialogue.len());
    assert!(dialogue.starts_with("S: 220") && dialogue.contains("lines are left out"));
}
