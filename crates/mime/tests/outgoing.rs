//! Ready-made mail: what is read from it, what is removed, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use mail_parser::MessageParser;
use postway_mime::{
    FinishedRaw, RawChange, RawError, RawFinish, SmtpTrace, control_fields, finish_raw, inspect_raw,
};
use proptest::prelude::*;

const UID: &str = "0190b5a2-7c1e-7d3a-9f00-0123456789ab";

const FINISH: RawFinish<'_> = RawFinish {
    message_id: "new@example.org",
    uid: UID,
    date_unix: 1_700_000_000,
    author: None,
    trace: None,
    unsubscribe: &[],
    is_to_be_signed: false,
};

fn finished(bytes: &[u8]) -> FinishedRaw {
    finish_raw(bytes, &FINISH).unwrap()
}

fn finish(bytes: &[u8]) -> String {
    String::from_utf8(finished(bytes).bytes).unwrap()
}

fn changes(bytes: &[u8]) -> Vec<&'static str> {
    finished(bytes).changes.into_iter().map(RawChange::as_str).collect()
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
    let plain =
        |list: &[postway_domain::NamedAddress]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(info.from.unwrap().to_string(), "\"Doe, Jane\" <jane@example.org>");
    assert_eq!(plain(&info.to), ["a@b.test", "c@d.test", "Zoë <e@f.test>"]);
    assert_eq!(plain(&info.cc), ["g@h.test"]);
    assert_eq!(plain(&info.bcc), ["i@j.test", "k@l.test"]);
    assert_eq!(info.subject.as_deref(), Some("Grüße"));
    assert_eq!((info.bad_recipient, info.bad_header), (None, None));
}

#[test]
fn a_mail_is_finished_exactly() {
    let mail = b"Return-Path: <x@y>\nReceived: from here\n\tby there\nFrom: a@b\nMessage-Id: <old>\n\
          X-Postway-ID: forged\nx-postway-other: forged\nBCC: hidden@example.org,\n more@example.org\nSubject: s\n\n\
          one\r\ntwo\nthree\rfour";
    assert_eq!(
        finish(mail),
        "X-Postway-ID: 0190b5a2-7c1e-7d3a-9f00-0123456789ab\r\nMessage-ID: <new@example.org>\r\n\
         Date: Tue, 14 Nov 2023 22:13:20 +0000\r\nMIME-Version: 1.0\r\n\
         Received: from here\r\n\tby there\r\nFrom: a@b\r\nX-Original-Message-ID: <old>\r\nSubject: s\r\n\r\n\
         one\r\ntwo\r\nthree\r\nfour\r\n"
    );
    assert_eq!(changes(mail), ["message_id_replaced", "date_added", "mime_version_added", "bcc_removed"]);
}

#[test]
fn date_and_mime_version_of_the_user_stay() {
    let finished = finish(b"Date: Mon, 1 Jan 2024 00:00:00 +0100\r\nMime-Version: 1.0\r\nFrom: a@b\r\n\r\n");
    assert_eq!(finished.to_lowercase().matches("\r\nmime-version:").count(), 1);
    assert!(finished.contains("\r\nDate: Mon, 1 Jan 2024 00:00:00 +0100\r\n"));
    assert!(!finished.contains("X-Original"));
}

#[test]
fn a_whole_mail_is_passed_on_byte_for_byte() {
    let mail = "DKIM-Signature: v=1; a=rsa-sha256; c=simple/simple; d=x.example; s=y;\r\n\th=From:To:Subject:Message-ID; bh=x=;\r\n b=y=\r\n\
        fROM:  \tAda   <ada@example.org>\r\nTo: root,\r\n\t (nobody) ,\r\n  Doe, John <ada@example.net>\r\nTo: Customers\r\n\
        Subject:  two  spaces \r\n\tand a fold\r\nSubject: again\r\nDate: yesterday\r\nMESSAGE-ID:\r\n <ticket-77.1@desk>\r\n\
        MIME-Version: 1.0 (odd)\r\nX-SES-CONFIGURATION-SET: mine\r\n\r\n body\t\r\n\r\n";
    let finished = finished(mail.as_bytes());
    let id = format!("X-Postway-ID: {UID}\r\n");
    assert_eq!(String::from_utf8(finished.bytes).unwrap(), format!("{id}{mail}"));
    assert_eq!(finished.message_id, "ticket-77.1@desk");
    assert!(finished.changes.is_empty() && !finished.eight_bit && !finished.smtputf8);
}

#[test]
fn a_valid_message_id_is_kept() {
    let long = format!("<{}@x>", "i".repeat(510));
    for kept in ["<a@b>", "  <a@b>\t", "<a.b!c=d@[192.0.2.1]>", "<a@b@c>", &long] {
        let mail = format!("From: a@b\nMessage-ID: {kept}\n\n");
        assert_eq!(finished(mail.as_bytes()).message_id, kept.trim().trim_matches(['<', '>']), "{kept}");
    }
    let longer = format!("<{}@x>", "i".repeat(511));
    for odd in ["", "a@b", "<a>", "<@b>", "<a@>", "<a b@c>", "<a@\n b>", "<a@b> <c@d>", "<\u{e9}@b>", &longer]
    {
        let mail = format!("From: a@b\nMessage-ID: {odd}\n\n");
        let finished = finished(mail.as_bytes());
        assert_eq!(finished.message_id, "new@example.org", "{odd}");
        assert!(finished.changes.contains(&RawChange::MessageIdReplaced));
    }
    let several =
        finish(b"From: a@b\nMessage-ID: <a@b>\nMessage-ID: <c@d>\nX-Original-Message-ID: <e@f>\n\n");
    assert_eq!(several.matches("Message-ID: ").count(), 2);
    assert!(several.contains("\r\nX-Original-Message-ID: <a@b>\r\n"));
}

#[test]
fn nothing_is_added_that_somebody_signed_as_missing() {
    let signed = finish(b"DKIM-Signature: v=1; h=from:date:\n mime-version : message-id; b=x\nFrom: a@b\n\n");
    assert_eq!(signed.lines().filter(|line| !line.is_empty()).count(), 4, "{signed}");
}

#[test]
fn an_author_is_completed_and_what_was_there_is_kept() {
    let author = "Cron Daemon <root@host.example>".parse().unwrap();
    let finish = RawFinish { author: Some(&author), ..FINISH };
    let mail = b"From: root (Cron Daemon)\nTo: root\n\nx\n";
    let info = inspect_raw(mail).unwrap();
    assert_eq!((info.from, info.from_name.as_deref()), (None, Some("Cron Daemon")));
    let finished = finish_raw(mail, &finish).unwrap();
    let text = String::from_utf8(finished.bytes).unwrap();
    assert!(text.contains(
        "\r\nFrom: \"Cron Daemon\" <root@host.example>\r\nX-Original-From: root (Cron Daemon)\r\nTo: root\r\n"
    ));
    assert!(finished.changes.contains(&RawChange::FromCompleted));
}

#[test]
fn of_several_authors_one_counts_for_every_reader() {
    let mail = b"From: nobody\nFrom: a@b\nSender: s@b\nFrom: c@d\nSender: t@b\nMessage-ID: <a@b>\nDate: x\nMIME-Version: 1.0\n\n";
    assert_eq!(inspect_raw(mail).unwrap().from.unwrap().to_string(), "a@b");
    assert!(finish(mail).ends_with(
        "X-Original-From: nobody\r\nFrom: a@b\r\nSender: s@b\r\nX-Original-From: c@d\r\nX-Original-Sender: t@b\r\n\
         Message-ID: <a@b>\r\nDate: x\r\nMIME-Version: 1.0\r\n\r\n"
    ));
    assert_eq!(changes(mail), ["author_repeated"]);
}

#[test]
fn header_text_is_encoded_unless_somebody_signed_it() {
    let latin = b"From: Zo\xeb <zoe@example.org>\nSubject: Gr\xfc\xdfe\nTo: root\n\nx\n";
    let sent = finished(latin);
    assert!(sent.bytes.is_ascii() && !sent.smtputf8 && !sent.eight_bit);
    let parsed = MessageParser::new().parse(&sent.bytes).unwrap();
    assert_eq!(parsed.subject(), Some("Gr\u{fc}\u{df}e"));
    assert_eq!(parsed.from().unwrap().first().unwrap().name(), Some("Zo\u{eb}"));
    assert!(changes(latin).contains(&"header_8bit_encoded"));
    let signed = "DKIM-Signature: h=subject; b=x\nFrom: a@b\nSubject: \u{fc}\nX-A: \u{fc}\n\n".as_bytes();
    let sent = finished(signed);
    assert!(
        sent.smtputf8 && String::from_utf8(sent.bytes).unwrap().contains("\r\nSubject: \u{fc}\r\nX-A: =?")
    );
    let address = finished("From: zo\u{eb}@example.org\n\nx\n".as_bytes());
    assert!(address.smtputf8 && address.eight_bit, "an address cannot be encoded");
}

#[test]
fn long_lines_are_folded_and_encoded_so_that_nothing_is_lost() {
    let (words, text) = ("word ".repeat(300), "text \u{fc} ".repeat(300));
    let mail = format!(
        "From: a@b\nSubject: {words}\nTo: {}\nContent-Type: text/plain; charset=utf-8\n\n{text}\n",
        "a@b.example,".repeat(200)
    );
    let sent = finished(mail.as_bytes());
    assert!(sent.bytes.split(|byte| *byte == b'\n').all(|line| line.len() <= 999));
    let parsed = MessageParser::new().parse(&sent.bytes).unwrap();
    assert_eq!(parsed.subject(), Some(words.trim_end()));
    assert_eq!(parsed.body_text(0).unwrap().trim_end(), text.trim_end());
    let reported = changes(mail.as_bytes());
    assert!(
        reported.contains(&"header_lines_folded") && reported.contains(&"long_lines_reencoded"),
        "{reported:?}"
    );
}

#[test]
fn what_we_sign_is_seven_bit_first_and_what_others_signed_is_not_touched() {
    let finish = RawFinish { is_to_be_signed: true, ..FINISH };
    let mail = "From: a@b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nGr\u{fc}\u{df}e\r\n";
    let ours = finish_raw(mail.as_bytes(), &finish).unwrap();
    assert!(!ours.eight_bit && ours.bytes.is_ascii() && ours.changes.contains(&RawChange::BodyEncoded));
    assert_eq!(
        MessageParser::new().parse(&ours.bytes).unwrap().body_text(0).unwrap().trim_end(),
        "Gr\u{fc}\u{df}e"
    );
    assert!(finished(mail.as_bytes()).eight_bit, "without a signature of ours it stays as it is");
    let theirs = format!("DKIM-Signature: h=from; b=x\r\n{mail}");
    let theirs = finish_raw(theirs.as_bytes(), &finish).unwrap();
    assert!(theirs.eight_bit && theirs.bytes.ends_with("\r\n\r\nGr\u{fc}\u{df}e\r\n".as_bytes()));
}

#[test]
fn a_header_that_breaks_off_ends_there_but_never_so_that_bcc_is_read() {
    let broken = b"Subject: one\nand two\nX-More: x\n\nbody\n";
    assert_eq!(inspect_raw(broken).unwrap().bad_header, Some(RawError::Malformed { line: 2 }));
    assert!(finish(broken).ends_with("\r\nSubject: one\r\n\r\nand two\r\nX-More: x\r\n\r\nbody\r\n"));
    assert!(changes(broken).contains(&"header_ended"));
    let endless = format!("From: a@b\n{}: x\nSubject: s\n\nbody\n", "n".repeat(1_500));
    let ended = finished(endless.as_bytes());
    assert!(ended.changes.contains(&RawChange::HeaderEnded), "a name that must be broken is none");
    assert_eq!(inspect_raw(&ended.bytes).unwrap().bad_header, None);
    assert!(finish(b"just text\n").ends_with("\r\n\r\njust text\r\n"));
    for hidden in
        ["From: a@b\nand two\nBCC: secret@x\n\nbody", "and\n resent-bcc : secret@x", "x\n\tBcc: secret@x\n"]
    {
        assert!(
            matches!(finish_raw(hidden.as_bytes(), &FINISH), Err(RawError::Malformed { .. })),
            "{hidden}"
        );
    }
    assert!(finish_raw(b"From: a@b\nand two\n\nBcc: a word in the text\n", &FINISH).is_ok());
}

#[test]
fn fields_for_other_services_go_unless_somebody_signed_them() {
    let mail = b"From: a@b\nX-PM-Tag: one\nx-pm-keepid: true\nResend-Idempotency-Key: k\nX-SES-Tag: y\n\n";
    let sent = finish(mail).to_lowercase();
    assert!(!sent.contains("x-pm-") && !sent.contains("resend-") && sent.contains("x-ses-tag: y"));
    assert!(changes(mail).contains(&"service_fields_removed"));
    let signed = finish(b"DKIM-Signature: h=From:X-PM-Tag; b=x\nFrom: a@b\nX-PM-Tag: one\n\n");
    assert!(signed.contains("\r\nX-PM-Tag: one\r\n"));
}

#[test]
fn the_longest_header_takes_no_longer_than_its_length() {
    let started = std::time::Instant::now();
    for (name, piece) in [
        ("To", "a@b,"),
        ("To", "\u{e9} <"),
        ("From", "("),
        ("Subject", "\u{e9}"),
        ("X", "x"),
        ("DKIM-Signature", "h=a:b;"),
        ("Message-ID", "<"),
    ] {
        let mail = format!("{name}: \u{e9}{}\n\nx\n", piece.repeat(250 * 1024 / piece.len()));
        let many = format!(
            "{}\nx\n",
            format!("{name}: \u{e9}{piece}\n").repeat(250 * 1024 / (name.len() + piece.len() + 5))
        );
        for mail in [mail, many] {
            match finish_raw(mail.as_bytes(), &FINISH) {
                Ok(done) => assert!(done.bytes.split(|byte| *byte == b'\n').all(|line| line.len() <= 999)),
                // Encoded, it would exceed our own limit.
                Err(error) => assert_eq!(error, RawError::HeaderTooLong),
            }
        }
    }
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
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
    let long_header = "X-A: b\n".repeat(40_000);
    for (bytes, expected) in [
        (&b"From: a@b\n\na\0b"[..], RawError::Nul { line: 3 }),
        (b"From: a\0@b\n\nx", RawError::Nul { line: 1 }),
        (long_header.as_bytes(), RawError::HeaderTooLong),
    ] {
        assert_eq!(inspect_raw(bytes), Err(expected.clone()));
        assert_eq!(finish_raw(bytes, &FINISH), Err(expected));
    }
    for (bytes, expected) in [
        (&b""[..], RawError::NoHeader),
        (b"\n\nbody", RawError::NoHeader),
        (b"just text\n", RawError::Malformed { line: 1 }),
        (b"From: a@b\nno field here\n\n", RawError::Malformed { line: 2 }),
        (b" From: a@b\n\n", RawError::Malformed { line: 1 }),
    ] {
        assert_eq!(inspect_raw(bytes).unwrap().bad_header, Some(expected));
    }
    assert!(finish_raw(b"From: a@b\n\n", &RawFinish { message_id: "a\r\nb@c", ..FINISH }).is_err());
    // It is short enough until it is encoded.
    let grows = [&b"From: a@b\n"[..], &b"Subject: \xfc\xfc\xfc\xfc \xfc\n".repeat(15_000), b"\nx"].concat();
    assert!(inspect_raw(&grows).is_ok());
    assert_eq!(finish_raw(&grows, &FINISH), Err(RawError::HeaderTooLong));
}

#[test]
fn a_bad_recipient_is_reported_beside_the_good_ones() {
    let info = inspect_raw(b"To: root, ada@example.net\nCc: (none)\nTo: b@example.net\n\n").unwrap();
    assert_eq!(
        info.to.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["ada@example.net", "b@example.net"]
    );
    assert!(matches!(info.bad_recipient, Some(RawError::Address { field: "To", .. })));
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
            let Ok(FinishedRaw { bytes: finished, message_id, .. }) = finish_raw(&bytes, &FINISH) else {
                prop_assert!(inspected.is_err() || inspected.unwrap().bad_header.is_some());
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
            prop_assert_eq!(message.message_id(), Some(message_id.as_str()));
            prop_assert_eq!(inspect_raw(&finished).unwrap().bad_header, None);
            let again = finish_raw(&finished, &FINISH).unwrap();
            prop_assert_eq!(again.message_id, message_id);
        }
    }
}

#[test]
fn fields_that_speak_to_us_are_read_unfolded_and_from_the_header_only() {
    let mail = b"From: a@b\nx-postway-batch: one\n two \nX-Postway-Tag : t\n\nX-Postway-Account: body\n";
    let found = control_fields(mail).unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(found, [pair("x-postway-batch", "one two"), pair("X-Postway-Tag", "t")]);
    let encoded = b"X-Postway-Batch: =?utf-8?q?spring-?=\r\n =?utf-8?q?news?=\r\nX-Postway-Tag: a, =?UTF-8?B?QsO8Y2hlcg==?=\r\n\r\n";
    let read = [pair("X-Postway-Batch", "spring-news"), pair("X-Postway-Tag", "a, B\u{fc}cher")];
    assert_eq!(control_fields(encoded).unwrap(), read);
    assert_eq!(control_fields(b"X-PM-Tag: t\nResend-Idempotency-Key: k\nno field").unwrap().len(), 2);
}

#[test]
fn a_trace_repeats_only_what_a_host_may_be_called() {
    let trace = |greeted_as| SmtpTrace {
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
    let sent = finish(mail.as_bytes());
    assert!(sent.ends_with(&format!(
        "From: a@b.example\r\nX-Postway-Forwarded: {mark}\r\nx-postway-forwarded: {}\r\n\r\nx\r\n",
        mark.to_uppercase()
    )));
    let many = format!("From: a@b.example\n{}\nx\n", format!("X-Postway-Forwarded: {mark}\n").repeat(1_000));
    let sent = finish(many.as_bytes());
    assert_eq!(sent.matches(mark).count(), 32);
}
