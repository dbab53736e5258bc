//! Ready-made mail: what is read from it, what is taken out, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use mail_parser::MessageParser;
use postway_mime::{RawError, Trace, finish_raw, inspect_raw, own_fields};
use proptest::prelude::*;

const UID: &str = "0190b5a2-7c1e-7d3a-9f00-0123456789ab";

fn finish(bytes: &[u8]) -> String {
    String::from_utf8(finish_raw(bytes, "new@example.org", UID, 1_700_000_000).unwrap()).unwrap()
}

#[test]
fn recipients_and_subject_are_read() {
    let info = inspect_raw(
        b"From: \"Doe, Jane\" <jane@example.org>\n\
          To: a@b.test, Friends: c@d.test, =?utf-8?q?Zo=C3=AB?= <e@f.test>;\n\
          cc: g@h.test\n\
          Bcc : i@j.test,\n\tk@l.test\n\
          Subject: =?utf-8?b?R3LDvMOfZQ==?=\n\nbody\n",
    )
    .unwrap();
    let plain = |list: &[postway_domain::Mailbox]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(info.from.unwrap().to_string(), "\"Doe, Jane\" <jane@example.org>");
    assert_eq!(plain(&info.to), ["a@b.test", "c@d.test", "Zoë <e@f.test>"]);
    assert_eq!(plain(&info.cc), ["g@h.test"]);
    assert_eq!(plain(&info.bcc), ["i@j.test", "k@l.test"]);
    assert_eq!(info.subject.as_deref(), Some("Grüße"));
    assert!(!info.eight_bit && !info.smtputf8);
}

#[test]
fn a_mail_is_finished_exactly() {
    let finished = finish(
        b"Return-Path: <x@y>\nReceived: from here\n\tby there\nFrom: a@b\nMessage-Id: <old@host>\n\
          X-Postway-ID: forged\nx-postway-other: forged\nBCC: hidden@example.org,\n more@example.org\nSubject: s\n\n\
          one\r\ntwo\nthree\rfour",
    );
    assert_eq!(
        finished,
        "Received: from here\r\n\tby there\r\nFrom: a@b\r\nSubject: s\r\nX-Original-Message-ID: <old@host>\r\n\
         Date: Tue, 14 Nov 2023 22:13:20 +0000\r\nMessage-ID: <new@example.org>\r\nX-Postway-ID: 0190b5a2-7c1e-7d3a-9f00-0123456789ab\r\n\
         MIME-Version: 1.0\r\n\r\none\r\ntwo\r\nthree\r\nfour\r\n"
    );
}

#[test]
fn date_and_mime_version_of_the_user_stay() {
    let finished = finish(b"Date: Mon, 1 Jan 2024 00:00:00 +0100\r\nMime-Version: 1.0\r\nFrom: a@b\r\n\r\n");
    assert_eq!(finished.to_lowercase().matches("\r\nmime-version:").count(), 1);
    assert!(finished.starts_with("Date: Mon, 1 Jan 2024 00:00:00 +0100\r\n"));
    assert!(!finished.contains("X-Original"));
}

#[test]
fn bcc_cannot_hide() {
    for header in [
        "From: a@b\nbcc: secret@x\n\nbody",
        "From: a@b\rBcc: secret@x\r\rbody",
        "From: a@b\nBcc \t: secret@x\n\nbody",
        "From: a@b\n \nBcc: secret@x\n\nbody",
        "From: a@b\nBcc:\n secret@x\n\nbody",
        "From: a@b\nResent-Bcc: secret@x\n\nbody",
        "From x@y Mon Jan  1 00:00:00 2024\nBcc: secret@x\nFrom: a@b\n\nbody",
        "Bcc: secret@x",
    ] {
        let finished = finish(header.as_bytes());
        assert!(!finished.contains("secret"), "{header:?} became {finished:?}");
    }
}

#[test]
fn mail_that_no_server_would_take_is_refused() {
    let long_line = format!("From: a@b\n\n{}\n", "x".repeat(999));
    let long_header = "X-A: b\n".repeat(40_000);
    for (bytes, expected) in [
        (&b""[..], RawError::NoHeader),
        (b"\n\nbody", RawError::NoHeader),
        (b"just text\n", RawError::Malformed { line: 1 }),
        (b"From: a@b\nno field here\n\n", RawError::Malformed { line: 2 }),
        (b" From: a@b\n\n", RawError::Malformed { line: 1 }),
        (b"From: a@b\n\na\0b", RawError::Nul { line: 3 }),
        (b"From: a@b\nFrom: c@d\n\n", RawError::Repeated { field: "From" }),
        (b"From: a@b\nSubject: \xe4\n\n", RawError::NotUtf8),
        (long_line.as_bytes(), RawError::LineTooLong { line: 3 }),
        (long_header.as_bytes(), RawError::HeaderTooLong),
    ] {
        assert_eq!(inspect_raw(bytes), Err(expected));
    }
    assert!(matches!(inspect_raw(b"To: not an address\n\n"), Err(RawError::Address { field: "To", .. })));
    assert!(finish_raw(b"From: a@b\n\n", "a\r\nb@c", UID, 0).is_err());
    assert!(finish_raw(b"no header", "a@b", UID, 0).is_err());
}

#[test]
fn eight_bit_content_is_noticed_where_it_is() {
    let body = inspect_raw("From: a@b\n\nZoë\n".as_bytes()).unwrap();
    assert!(body.eight_bit && !body.smtputf8);
    let header = inspect_raw("From: zoë@example.org\n\nZoe\n".as_bytes()).unwrap();
    assert!(header.eight_bit && header.smtputf8);
    let bcc = inspect_raw("From: a@b\nBcc: Zoë <zoe@example.org>\n\nZoe\n".as_bytes()).unwrap();
    assert!(!bcc.eight_bit && !bcc.smtputf8);
}

#[test]
fn a_decoded_subject_has_no_line_breaks() {
    let info = inspect_raw(b"From: a@b\nSubject: =?utf-8?q?a=0D=0ABcc:_x?=\n\n").unwrap();
    assert_eq!(info.subject.as_deref(), Some("a  Bcc: x"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_what_is_finished_is_fit_for_the_wire(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        near in "((From|To|Bcc|bcc |Message-ID|Subject|X-Postway-ID)?:?[ \t]?[a-z@<>,;:\"=?]{0,20}(\r\n|\n|\r|\n |\n\n)){0,20}",
    ) {
        for bytes in [noise, near.into_bytes()] {
            let inspected = inspect_raw(&bytes);
            let Ok(finished) = finish_raw(&bytes, "new@example.org", UID, 0) else {
                prop_assert!(inspected.is_err());
                continue;
            };
            let bare = finished.iter().enumerate().any(|(at, byte)| match byte {
                b'\n' => at == 0 || finished[at - 1] != b'\r',
                b'\r' => finished.get(at + 1) != Some(&b'\n'),
                _ => false,
            });
            prop_assert!(!bare);
            prop_assert!(finished.split(|byte| *byte == b'\n').all(|line| line.len() <= 999));
            let message = MessageParser::new().parse(&finished).unwrap();
            prop_assert!(message.bcc().is_none());
            prop_assert_eq!(message.message_id(), Some("new@example.org"));
            prop_assert!(inspect_raw(&finished).is_ok() || inspected.is_err());
        }
    }
}

#[test]
fn fields_that_speak_to_us_are_read_unfolded_and_from_the_header_only() {
    let mail = b"From: a@b\nx-postway-batch: one\n two \nX-Postway-Tag : t\n\nX-Postway-Account: body\n";
    let found = own_fields(mail).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(found, [pair("x-postway-batch", "one two"), pair("X-Postway-Tag", "t")]);
    let encoded = b"X-Postway-Batch: =?utf-8?q?spring-?=\r\n =?utf-8?q?news?=\r\nX-Postway-Tag: a, =?UTF-8?B?QsO8Y2hlcg==?=\r\n\r\n";
    let read = [pair("X-Postway-Batch", "spring-news"), pair("X-Postway-Tag", "a, B\u{fc}cher")];
    assert_eq!(own_fields(encoded).unwrap(), read);
    assert_eq!(own_fields(b"no header"), Err(RawError::Malformed { line: 1 }));
}

#[test]
fn a_trace_repeats_only_what_a_host_may_be_called() {
    let trace = |greeted_as| Trace {
        greeted_as,
        peer: "2001:db8::1".parse().unwrap(),
        by: "mx.example",
        with: "ESMTPSA",
        id: "s-1",
    };
    assert_eq!(
        trace("me.example").field(1_700_000_000),
        "Received: from me.example ([IPv6:2001:db8::1])\r\n\tby mx.example with ESMTPSA id s-1;\r\n\t\
         Tue, 14 Nov 2023 22:13:20 +0000\r\n"
    );
    for name in ["", "a b", "x;\r\nBcc: c@d", "\u{e9}"] {
        assert!(trace(name).field(0).starts_with("Received: from unknown ("), "{name}");
    }
}

#[test]
fn marks_against_loops_pass_the_door_and_nothing_else_under_our_name_does() {
    let mark = "00112233445566778899aabbccddeeff";
    let mail = format!(
        "From: a@b.example\nX-Postway-Forwarded: {mark}\nx-postway-forwarded: {}\nX-Postway-Forwarded: {mark} {mark}\n\
         X-Postway-Forwarded: not a mark\nX-Postway-Batch: one\n\nx\n",
        mark.to_uppercase()
    );
    let sent = String::from_utf8(finish_raw(mail.as_bytes(), "u@example.net", "u", 0).unwrap()).unwrap();
    assert!(sent.starts_with(&format!(
        "From: a@b.example\r\nX-Postway-Forwarded: {mark}\r\nx-postway-forwarded: {}\r\nDate:",
        mark.to_uppercase()
    )));
    let many = format!("From: a@b.example\n{}\nx\n", format!("X-Postway-Forwarded: {mark}\n").repeat(1_000));
    let sent = String::from_utf8(finish_raw(many.as_bytes(), "u@example.net", "u", 0).unwrap()).unwrap();
    assert_eq!(sent.matches(mark).count(), 32);
}
