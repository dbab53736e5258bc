//! Relays that lack an extension get mail that does not need it.

use postway_dispatch::transport::{DeliveryEnd, MailEnvelope};
use postway_testkit::SmtpSink;

use crate::{Gate, ONE, assert_accepted, connect, envelope, not_sent};

const FOREIGN: &str = "From: Zo\u{eb} <zoe@example.org>\r\nSubject: Gr\u{fc}\u{df}e\r\nMIME-Version: 1.0\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGr\u{fc}\u{df}e from a town on the Rhine\r\n";

async fn delivered(sink: &SmtpSink, mail: &str) -> (Vec<u8>, String, &'static [&'static str]) {
    let smtputf8 = mail.split_once("\r\n\r\n").is_some_and(|(header, _)| !header.is_ascii());
    let envelope = MailEnvelope { eight_bit: true, smtputf8, ..envelope(ONE, mail.as_bytes()) };
    let delivery = connect(sink).await.deliver(&envelope, mail.as_bytes(), &mut Gate::default()).await;
    assert_accepted(&delivery.end);
    let got = sink.mails().remove(0);
    (got.raw, got.mail_parameters, delivery.converted)
}

#[tokio::test]
async fn a_relay_that_has_all_gets_the_mail_as_it_is() {
    let sink = SmtpSink::start().await;
    let (raw, parameters, converted) = delivered(&sink, FOREIGN).await;
    assert_eq!(raw, FOREIGN.as_bytes());
    assert_eq!(parameters, format!("SIZE={} BODY=8BITMIME SMTPUTF8", FOREIGN.len()));
    assert!(converted.is_empty());
}

#[tokio::test]
async fn without_smtputf8_the_header_is_encoded_and_the_body_stays() {
    let sink = SmtpSink::builder().without("SMTPUTF8").start().await;
    let (raw, parameters, converted) = delivered(&sink, FOREIGN).await;
    let text = String::from_utf8(raw).unwrap();
    let (header, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(header.is_ascii() && header.contains("\r\nSubject: =?utf-8?"), "{header}");
    assert!(header.starts_with("From: =?utf-8?B?Wm/Dqw==?= <zoe@example.org>\r\n"), "{header}");
    assert_eq!(body, "Gr\u{fc}\u{df}e from a town on the Rhine\r\n");
    assert_eq!(parameters, format!("SIZE={} BODY=8BITMIME", text.len()));
    assert_eq!(converted, ["header"]);
}

#[tokio::test]
async fn without_either_nothing_beyond_ascii_is_left() {
    let sink = SmtpSink::builder().capabilities(&["PIPELINING"]).start().await;
    let (raw, parameters, converted) = delivered(&sink, FOREIGN).await;
    let text = String::from_utf8(raw).unwrap();
    assert!(
        text.is_ascii() && text.contains("\r\nContent-Transfer-Encoding: quoted-printable\r\n"),
        "{text}"
    );
    assert!(text.ends_with("\r\n\r\nGr=C3=BC=C3=9Fe from a town on the Rhine\r\n"), "{text}");
    assert!(!text.contains("8bit") && parameters.is_empty());
    assert_eq!(converted, ["header", "body"]);
}

#[tokio::test]
async fn a_body_that_somebody_signed_is_passed_on_as_it_is() {
    let sink = SmtpSink::builder().without("8BITMIME").start().await;
    let signed = format!(
        "DKIM-Signature: v=1; h=from; b=x\r\n{}",
        FOREIGN.replace("Gr\u{fc}\u{df}e\r", "x\r").replace('\u{eb}', "e")
    );
    let (raw, parameters, converted) = delivered(&sink, &signed).await;
    assert_eq!(raw, signed.as_bytes());
    assert_eq!(parameters, format!("SIZE={}", signed.len()));
    assert!(converted.is_empty());
}

#[tokio::test]
async fn an_address_that_cannot_be_encoded_still_fails() {
    let sink = SmtpSink::builder().without("SMTPUTF8").start().await;
    let mail = "From: zo\u{eb}@example.org\r\n\r\nx\r\n";
    for recipients in [ONE, &["\u{fc}@example.org"]] {
        let envelope =
            MailEnvelope { eight_bit: true, smtputf8: true, ..envelope(recipients, mail.as_bytes()) };
        let delivery = connect(&sink).await.deliver(&envelope, mail.as_bytes(), &mut Gate::default()).await;
        assert!(matches!(delivery.end, DeliveryEnd::NotSent(_)));
        assert_eq!(not_sent(delivery.end).code, "smtputf8_unsupported");
    }
    assert!(sink.ledger().commands_of("MAIL").is_empty());
}
