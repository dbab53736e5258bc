//! Relays that behave.

use super::*;
use postway_testkit::{SinkAction, SinkVerb};

#[tokio::test]
async fn a_mail_arrives_with_its_envelope_and_the_relays_id() {
    let sink = SmtpSink::start().await;
    let mut connection = connect(&sink).await;
    let mut gate = Gate::default();
    let recipients = ["a@example.org", "b@example.org"];
    let delivery = connection.deliver(&envelope(&recipients, BODY), BODY, &mut gate).await;
    let DeliveryEnd::Accepted { reply, provider_message_id } = delivery.end else {
        panic!("{:?}", delivery.end)
    };
    assert_eq!((reply.code, provider_message_id.as_deref()), (250, Some("SINK1")));
    assert!(delivery.recipients.iter().all(RecipientReply::is_accepted));
    assert_eq!((gate.commits, gate.accepted), (1, 2));

    let mails = sink.wait_for(1, PATIENCE).await;
    assert_eq!(mails[0].raw, BODY);
    assert_eq!(mails[0].sender, "from@example.net");
    assert_eq!(mails[0].recipients, recipients);
    assert_eq!(mails[0].helo, "client.example");
    assert_eq!(mails[0].mail_parameters, format!("SIZE={}", BODY.len()));
    assert_eq!(mails[0].postway_id.as_deref(), Some("7"));
    assert_eq!(mails[0].message_id.as_deref(), Some("<1@example.org>"));
    assert!(!mails[0].tls);
}

/// RFC 3461: the wishes are sent to relays that offer DSN; to others the mail is sent without them.
#[tokio::test]
async fn wishes_about_reports_are_said_to_relays_that_offer_dsn() {
    let wishes = r#"{"ret":"HDRS","envid":"QQ314159","recipients":
        {"a@example.org":{"notify":"SUCCESS,DELAY","orcpt":"rfc822;a+40elsewhere.example"},"b@example.org":{"notify":"NEVER"}}}"#;
    let wishes: postway_domain::dsn::DsnWishes = serde_json::from_str(wishes).unwrap();
    let recipients = ["a@example.org", "b@example.org", "c@example.org"];
    for (offers, mail, rcpt) in [
        (
            true,
            " RET=HDRS ENVID=QQ314159",
            [" NOTIFY=SUCCESS,DELAY ORCPT=rfc822;a+40elsewhere.example", " NOTIFY=NEVER", ""],
        ),
        (false, "", ["", "", ""]),
    ] {
        let capabilities: &[&str] = if offers { &["PIPELINING", "DSN"] } else { &["PIPELINING"] };
        let sink = SmtpSink::builder().capabilities(capabilities).start().await;
        let mut connection = connect(&sink).await;
        assert_eq!(connection.offers_dsn(), offers);
        let envelope = MailEnvelope { dsn: Some(&wishes), ..envelope(&recipients, BODY) };
        let delivery = connection.deliver(&envelope, BODY, &mut Gate::default()).await;
        assert_accepted(&delivery.end);
        let ledger = sink.ledger();
        assert_eq!(ledger.commands_of("MAIL"), [format!("MAIL FROM:<from@example.net>{mail}")]);
        let expected: Vec<String> =
            recipients.iter().zip(rcpt).map(|(to, wished)| format!("RCPT TO:<{to}>{wished}")).collect();
        assert_eq!(ledger.commands_of("RCPT"), expected);
    }
}

#[tokio::test]
async fn many_mails_share_one_connection_with_and_without_pipelining() {
    for sink in [SmtpSink::start().await, SmtpSink::builder().without("PIPELINING").start().await] {
        let mut connection = connect(&sink).await;
        for n in 1..=20 {
            assert_accepted(&send(&mut connection).await);
            assert!(connection.is_reusable());
            assert_eq!(connection.messages_sent(), n);
        }
        connection.noop().await.unwrap();
        connection.rset().await.unwrap();
        connection.quit().await;
        let ledger = sink.ledger();
        assert_eq!((ledger.mails.len(), ledger.connections, ledger.commands_of("QUIT").len()), (20, 1, 1));
    }
}

#[tokio::test]
async fn a_thousand_recipients_go_in_bounded_batches() {
    let sink = SmtpSink::start().await;
    let mut connection = connect(&sink).await;
    let addresses: Vec<String> = (0..1_000).map(|n| format!("{}{n}@example.org", "x".repeat(50))).collect();
    let recipients: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let delivery = send_to(&mut connection, &recipients, BODY).await;
    assert_accepted(&delivery.end);
    assert_eq!(sink.mails()[0].recipients, addresses);
}

#[tokio::test]
async fn every_kind_of_body_arrives_as_it_was() {
    let sink = SmtpSink::start().await;
    let mut connection = connect(&sink).await;
    let large: Vec<u8> =
        (0..200_000).flat_map(|n| format!("{}line {n}\r\n", ".".repeat(n % 3)).into_bytes()).collect();
    let bodies: &[&[u8]] = &[
        b"",
        b".\r\n",
        b"..\r\n.\r\n",
        b"\r\n",
        b"a\r\n.",
        b".hidden\r\n\r\n.\r\nQUIT\r\n",
        b"no end",
        &large,
    ];
    for (at, body) in bodies.iter().enumerate() {
        assert_accepted(&send_to(&mut connection, ONE, body).await.end);
        let mut expected = body.to_vec();
        if !body.is_empty() && !body.ends_with(b"\r\n") {
            expected.extend_from_slice(b"\r\n");
        }
        assert!(sink.mails()[at].raw == expected, "body {at} changed on the way");
    }
    assert_eq!(sink.ledger().connections, 1);
}

#[tokio::test]
async fn parameters_follow_the_offer_and_the_need() {
    let full = SmtpSink::start().await;
    let bare = SmtpSink::builder().capabilities(&[]).start().await;
    let body = "Subject: ü\r\n\r\nü\r\n".as_bytes();
    let mail = MailEnvelope { eight_bit: true, ..envelope(ONE, body) };
    for (sink, expected) in [(&full, "SIZE=19 BODY=8BITMIME"), (&bare, "")] {
        let mut connection = connect(sink).await;
        assert_accepted(&connection.deliver(&mail, body, &mut Gate::default()).await.end);
        assert_eq!(sink.mails()[0].mail_parameters, expected);
    }
    let mut connection = connect(&full).await;
    let mail = MailEnvelope { sender: "", recipients: &["ü@example.org"], ..mail };
    assert_accepted(&connection.deliver(&mail, body, &mut Gate::default()).await.end);
    let mails = full.mails();
    assert_eq!((mails[1].sender.as_str(), mails[1].recipients[0].as_str()), ("", "ü@example.org"));
    assert_eq!(mails[1].mail_parameters, "SIZE=19 BODY=8BITMIME SMTPUTF8");
}

#[tokio::test]
async fn what_the_relay_cannot_take_is_refused_before_it_is_asked() {
    let sink = SmtpSink::builder().capabilities(&["SIZE 10"]).start().await;
    let mut connection = connect(&sink).await;
    let failure = not_sent(send(&mut connection).await);
    assert_eq!(failure.code, "message_too_large");
    assert!(failure.is_permanent());
    let mail = MailEnvelope { smtputf8: true, ..envelope(ONE, b"") };
    let failure = not_sent(connection.deliver(&mail, b"", &mut Gate::default()).await.end);
    assert_eq!(failure.code, "smtputf8_unsupported");
    assert!(failure.is_permanent());
    for smuggled in [&b"a\n.\nMAIL FROM:<x@y>\r\n"[..], b"a\r.\r\n", b"a\r\n.\n"] {
        let failure = not_sent(send_to(&mut connection, ONE, smuggled).await.end);
        assert_eq!(failure.code, "bare_line_end");
    }
    let mail = MailEnvelope { sender: "a@b> SIZE=1\r\nRSET", ..envelope(ONE, b"") };
    let failure = not_sent(connection.deliver(&mail, b"", &mut Gate::default()).await.end);
    assert_eq!(failure.code, "address_invalid");
    assert!(sink.ledger().commands_of("MAIL").is_empty());
    assert_accepted(&send_to(&mut connection, ONE, b"hi\r\n").await.end);
}

#[tokio::test]
async fn a_server_that_knows_only_helo_is_spoken_to_in_helo() {
    let sink =
        SmtpSink::builder().once(SinkVerb::Ehlo, SinkAction::reply("502 5.5.1 not here")).start().await;
    let mut connection = connect(&sink).await;
    assert_accepted(&send(&mut connection).await);
    assert_eq!(sink.ledger().commands_of("HELO").len(), 1);
    assert_eq!(sink.mails()[0].mail_parameters, "");
}
