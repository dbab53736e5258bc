//! Parsers of what strangers send: none may panic, and none may take more than linear time.

// A test fails by panicking.
#![allow(clippy::unwrap_used)]

use postway_fuzz::{feed, feed_from, mail::HostileMail};
use postway_intake::smtp::parse_command;
use postway_mime::{
    RawError, RawFinish, control_fields,
    downgrade::{RelayLacks, downgrade},
    finish_raw, gist, inspect_raw, pec,
    reader::{
        ReadMail,
        limit::{
            DEPTH_MAX, FIELDS_IN_ALL_MAX, IMAGE_BYTES_MAX, PARTS_MAX, SHOWN_HTML_BYTES_MAX, STEPS_MIN,
            STEPS_PER_BYTE_MAX,
        },
    },
    reading, received,
};

const BOUNCE: &[u8] = b"Return-Path: <>\nFrom: MAILER-DAEMON@mx.example.org (Mail Delivery System)\n\
To: b+aaaa@bounces.example.com\nSubject: Undelivered Mail Returned to Sender\nMIME-Version: 1.0\n\
Content-Type: multipart/report; report-type=delivery-status; boundary=\"b1\"\n\n--b1\n\
Content-Type: text/plain\n\nThe mail could not be delivered: 550 5.1.1 no such user\n--b1\n\
Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.org\n\n\
Final-Recipient: rfc822; ada@example.org\nAction: failed\nStatus: 5.1.1\nRemote-MTA: dns; mail.example.org\n\
Diagnostic-Code: smtp; 550 5.1.1 <ada@example.org>: unknown user\n\n--b1\n\
Content-Type: text/rfc822-headers\n\nMessage-ID: <0190a000-0000-7000-8000-000000000000@example.com>\n\
X-Postway-ID: 0190a000-0000-7000-8000-000000000000\nTo: ada@example.org\n\n--b1--\n";

const PLAIN_BOUNCE: &[u8] = b"From: MAILER-DAEMON@example.org\r\nSubject: failure notice\r\n\r\n\
Hi. This is the qmail-send program at example.org.\r\n<ada@example.net>:\r\n192.0.2.1 does not like recipient.\r\n\
Remote host said: 550 5.1.1 user unknown\r\nGiving up on 192.0.2.1.\r\n\r\n--- Below this line is a copy of the message.\r\n\r\n\
Return-Path: <shop@example.com>\r\nMessage-ID: <x@example.com>\r\n\r\nHello\r\n";

const COMPLAINT: &[u8] = b"From: fbl@example.net\r\nMIME-Version: 1.0\r\n\
Content-Type: multipart/report; report-type=feedback-report; boundary=f\r\n\r\n--f\r\nContent-Type: text/plain\r\n\r\nabuse\r\n\
--f\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\n\
Original-Rcpt-To: <ada@example.net>\r\n\r\n--f\r\nContent-Type: message/rfc822\r\n\r\nFrom: shop@example.com\r\n\
Message-ID: <y@example.com>\r\n\r\nHi\r\n--f--\r\n";

const RECEIPT: &[u8] = b"X-Ricevuta: avvenuta-consegna\r\nX-Riferimento-Message-ID: <u@example.it>\r\n\
X-TipoRicevuta: completa\r\nFrom: posta-certificata@pec.example.it\r\nMIME-Version: 1.0\r\n\
Content-Type: multipart/mixed; boundary=p\r\n\r\n--p\r\nContent-Type: application/xml; name=\"daticert.xml\"\r\n\r\n\
<?xml version=\"1.0\" encoding=\"UTF-8\"?><postacert tipo=\"avvenuta-consegna\" errore=\"nessuno\"><intestazione>\
<mittente>a@pec.example.it</mittente><destinatari tipo=\"certificato\">b@pec.example.it</destinatari>\
<oggetto>x</oggetto></intestazione><dati><gestore-emittente>G</gestore-emittente><data zona=\"+0200\">\
<giorno>01/06/2026</giorno><ora>10:00:00</ora></data><identificativo>i</identificativo><msgid>&lt;u@example.it&gt;</msgid>\
<consegna>b@pec.example.it</consegna></dati></postacert>\r\n--p--\r\n";

const SIGNED: &[u8] = b"From: posta-certificata@pec.example.it\r\nMIME-Version: 1.0\r\n\
Content-Type: multipart/signed; protocol=\"application/pkcs7-signature\"; micalg=sha-256; boundary=s\r\n\r\n--s\r\n\
Content-Type: text/plain\r\n\r\nsigned\r\n--s\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\
Content-Transfer-Encoding: base64\r\n\r\nMIAGCSqGSIb3DQEHAqCAMIACAQExDzANBglghkgBZQMEAgEFADCABgkqhkiG9w0BBwEAADGCAQAwggEA\r\n--s--\r\n";

const MAIL: &[u8] = b"From: =?utf-8?q?Ada?= <ada@example.org>\r\nTo: Bob <bob@example.net>, \"x, y\" <z@example.net>\r\n\
Subject: =?iso-2022-jp?b?GyRCJEYbKEI=?=\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n\
Content-Type: text/html; charset=shift_jis\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>=83e=83X<img src=3D\"cid:i\">\r\n--m\r\n\
Content-Type: image/png\r\nContent-ID: <i>\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0=\r\n--m--\r\n";

const SEEDS: &[&[u8]] = &[BOUNCE, PLAIN_BOUNCE, COMPLAINT, RECEIPT, SIGNED, MAIL];

const WORDS: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"--",
    b"--b1",
    b"--b1--",
    b"--b1\n\n",
    b": ",
    b"=?utf-8?b?",
    b"?=",
    b"<",
    b">",
    b"\"",
    b"Content-Type: multipart/mixed; boundary=b1\n\n--b1\n",
    b"Content-Type: message/rfc822\n\n",
    b"boundary=\"b\"",
    b"Content-Type: message/delivery-status\n\n",
    b"Content-Transfer-Encoding: base64\n",
    b"Final-Recipient: rfc822; a@b\n",
    b"Status: 5.1.1\n",
    b"Action: delayed\n",
    b"Diagnostic-Code: smtp; 451 4.7.1 x\n",
    b"550 5.1.1",
    b"Auto-Submitted: auto-replied\n",
    b"X-Ricevuta: accettazione\n",
    b"X-Trasporto: posta-certificata\n",
    b"<!DOCTYPE x [<!ENTITY a \"b\">]>",
    b"&a;",
    b"&#x41;",
    b"<postacert ",
    b"\xff\xfe",
    b"\xe2\x80\xa8",
    b"charset=utf-16",
    b"; name*0=a; name*1=b",
    b"(",
    b")",
    b"\\",
    b"0\x80\x06\x09",
];

#[test]
fn a_received_mail_is_judged_whatever_it_holds() {
    feed(SEEDS, WORDS, |raw| {
        let report = received::inspect(raw);
        assert!(report.recipients.len() <= 10_000);
    });
}

#[test]
fn line_endings_change_no_judgement() {
    feed(SEEDS, WORDS, |raw| {
        let lf: Vec<u8> = raw.iter().copied().filter(|byte| *byte != b'\r').collect();
        let crlf = lf.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
        assert_eq!(received::inspect(&lf).kind, received::inspect(&crlf).kind);
    });
}

#[test]
fn a_receipt_is_read_whatever_it_holds() {
    feed(SEEDS, WORDS, |raw| drop(pec::inspect(raw)));
}

#[test]
fn a_signature_is_judged_whatever_it_holds() {
    let at = postway_domain::Time::from_millis(1_800_000_000_000);
    let trust = pec::TrustStore::default();
    feed(SEEDS, WORDS, |raw| {
        assert!(
            !matches!(pec::verify(raw, &trust, at), pec::SignatureCheck::Verified { .. }),
            "nobody is trusted"
        );
    });
}

#[test]
fn a_mail_is_shown_whatever_it_holds() {
    feed(SEEDS, WORDS, |raw| drop(reading::read(raw)));
}

#[test]
fn a_mail_that_is_handed_in_is_taken_or_refused() {
    feed(SEEDS, WORDS, |raw| {
        drop(inspect_raw(raw));
        assert_carried(raw);
    });
}

/// What is carried is fit for the wire, whatever came in, and for a relay that offers nothing.
fn assert_carried(raw: &[u8]) {
    let finish = RawFinish {
        message_id: "a@b.example",
        uid: "u",
        date_unix: 0,
        author: None,
        trace: None,
        unsubscribe: &[],
        is_to_be_signed: raw.len().is_multiple_of(2),
    };
    let Ok(finished) = finish_raw(raw, &finish) else { return };
    let lacks = RelayLacks { eight_bit_mime: true, smtputf8: true };
    let downgraded = downgrade(&finished.bytes, lacks).map(|mail| mail.bytes);
    for (bytes, is_downgraded) in
        downgraded.iter().map(|bytes| (bytes, true)).chain([(&finished.bytes, false)])
    {
        assert!(bytes.split(|byte| *byte == b'\n').all(|line| line.len() <= 999), "{}", bytes.escape_ascii());
        let bare = (0..bytes.len()).any(|at| match bytes[at] {
            b'\n' => at == 0 || bytes[at - 1] != b'\r',
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        assert!(!bare, "{}", bytes.escape_ascii());
        let header = match inspect_raw(bytes) {
            // Text that is encoded for a relay grows, and only the relay reads it then.
            Err(RawError::HeaderTooLong) if is_downgraded => continue,
            inspected => inspected.unwrap(),
        };
        assert!(header.bcc.is_empty() && header.bad_header.is_none(), "{}", bytes.escape_ascii());
    }
}

/// What the reader promises of any bytes.
fn assert_read_within_limits(raw: &[u8]) {
    let mail = ReadMail::read(raw);
    assert!(mail.steps() <= raw.len() * STEPS_PER_BYTE_MAX + STEPS_MIN);
    assert!(mail.parts().count() <= PARTS_MAX);
    assert!(mail.parts().map(|part| part.header().len()).sum::<usize>() <= FIELDS_IN_ALL_MAX);
    for part in mail.parts() {
        let (entity, body) = (part.entity_range(), part.body_range());
        assert!(entity.start <= body.start && body.start <= body.end && body.end == entity.end);
        assert!(entity.end <= raw.len() && part.depth() <= DEPTH_MAX);
        if let Some(parent) = part.parent() {
            let around = parent.body_range();
            assert!(around.start <= entity.start && entity.end <= around.end, "parts nest");
            assert!(parent.index() < part.index() && parent.depth() + 1 == part.depth());
        }
    }
    let roles = mail.roles();
    let of_roles = roles.text.iter().chain(&roles.html).chain(&roles.attachments);
    assert!(of_roles.max().is_none_or(|last| mail.part(*last).is_some_and(|part| !part.has_children())));
}

#[test]
fn hostile_mail_is_read_within_its_limits_by_all_who_read_it() {
    let at = postway_domain::Time::from_millis(1_800_000_000_000);
    let trust = pec::TrustStore::default();
    feed_from(&HostileMail, |raw| {
        assert_read_within_limits(raw);
        let reading = reading::read(raw);
        assert!(reading.html.is_none_or(|html| html.len() <= SHOWN_HTML_BYTES_MAX + IMAGE_BYTES_MAX));
        for place in 0..reading.attachments.len().min(3) {
            let (file, bytes) = reading::attachment(raw, place).unwrap();
            assert_eq!((&file, bytes.len()), (&reading.attachments[place], file.size));
        }
        assert!(received::inspect(raw).recipients.len() <= 10_000);
        drop(pec::inspect(raw));
        assert!(!matches!(pec::verify(raw, &trust, at), pec::SignatureCheck::Verified { .. }));
        drop((gist(raw), inspect_raw(raw), control_fields(raw)));
        assert_carried(raw);
    });
}

#[test]
fn any_bytes_are_read_within_limits() {
    feed(SEEDS, WORDS, assert_read_within_limits);
}

const COMMANDS: &[&[u8]] = &[
    b"EHLO client.example",
    b"AUTH PLAIN AGRlZmF1bHQAcHdfeA==",
    b"MAIL FROM:<shop@example.com> SIZE=1234 BODY=8BITMIME SMTPUTF8 AUTH=<>",
    b"RCPT TO:<\"a>\\\"b\"@example.net>",
    b"RCPT TO:<@a.example,@b.example:c@[IPv6:2001:db8::1]>",
    b"BDAT 4096 LAST",
    b"VRFY ada",
];

const COMMAND_WORDS: &[&[u8]] = &[
    b" ",
    b"<",
    b">",
    b"\"",
    b"\\",
    b":",
    b"@",
    b"=",
    b",",
    b"\r",
    b"\n",
    b"\0",
    b"MAIL FROM:",
    b"RCPT TO:<",
    b"BDAT ",
    b"SIZE=",
    b"SMTPUTF8",
    b"LAST",
    b"99999999999999999999",
    b"\xc3\xb6",
    b"\xff",
    b"xn--",
    b"..",
];

#[test]
fn a_line_of_smtp_is_a_command_or_is_told_why_not() {
    feed(COMMANDS, COMMAND_WORDS, |line| {
        if let Err(fault) = parse_command(line) {
            assert!((500..600).contains(&fault.reply.code));
            assert!(
                fault.reply.text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
                    && fault.reply.text.len() <= 400
            );
        }
    });
}
