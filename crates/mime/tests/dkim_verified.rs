//! Verifies our signatures with dkimpy: composed mail, awkward mail, and mail that an attacker changed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use std::sync::{Mutex, MutexGuard, OnceLock};

use postway_mime::dkim::{Algorithm, DkimError, DkimSigner, dns_name, dns_record, generate};
use postway_mime::{MailAttachment, MailDraft, compose};
use postway_testkit::Dkimpy;
use proptest::prelude::*;
use secrecy::ExposeSecret as _;

const SIGNED_AT: i64 = 1_760_000_000;
const DOMAIN: &str = "mail.example.com";

/// A signer with the record that publishes its key.
struct Published {
    signer: DkimSigner,
    name: String,
    record: String,
}

impl Published {
    fn new(selector: &str, algorithm: Algorithm) -> Self {
        let key = generate(algorithm).unwrap();
        let signer = DkimSigner::new(DOMAIN, selector, algorithm, key.private_pkcs8.expose_secret()).unwrap();
        Self { signer, name: dns_name(selector, DOMAIN), record: dns_record(algorithm, &key.public) }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let field = self.signer.sign(message, SIGNED_AT).unwrap();
        assert!(field.split("\r\n").all(|line| line.len() < 78), "{field}");
        [field.as_bytes(), message].concat()
    }
}

/// One key of each kind.
fn published() -> &'static [Published; 2] {
    static KEYS: OnceLock<[Published; 2]> = OnceLock::new();
    KEYS.get_or_init(|| {
        [Published::new("postway-rsa", Algorithm::Rsa), Published::new("postway-ed", Algorithm::Ed25519)]
    })
}

fn judge() -> MutexGuard<'static, Dkimpy> {
    static JUDGE: OnceLock<Mutex<Dkimpy>> = OnceLock::new();
    JUDGE.get_or_init(|| Mutex::new(Dkimpy::start())).lock().unwrap_or_else(|broken| broken.into_inner())
}

fn verify(message: &[u8]) -> Result<(), String> {
    let records = published().each_ref().map(|key| (key.name.as_str(), key.record.as_str()));
    judge().verify(message, &records)
}

/// The message with a signature of each key.
fn signed(message: &[u8]) -> Vec<u8> {
    published().iter().fold(message.to_vec(), |message, key| key.sign(&message))
}

fn composed() -> Vec<u8> {
    let headers = [("List-Unsubscribe".to_owned(), format!("<https://example.com/{}>", "u".repeat(400)))];
    let draft = MailDraft {
        from: &"Büro <office@mail.example.com>".parse().unwrap(),
        sender: Some(&"robot@mail.example.com".parse().unwrap()),
        to: &["Ada <ada@example.net>".parse().unwrap(), "bob@example.net".parse().unwrap()],
        cc: &["cc@example.net".parse().unwrap()],
        reply_to: &["reply@mail.example.com".parse().unwrap()],
        subject: "Grüße, and a subject that is long enough to be folded into more than one line of header",
        text: Some("Hello,  Ada \n\n\nbye\n \n\t\n"),
        html: Some("<p>Hello,\t<b>Ada</b></p>\n\n"),
        alternatives: &[],
        headers: &headers,
        attachments: &[MailAttachment {
            filename: "a.bin".into(),
            content_type: "application/octet-stream".into(),
            content: vec![0xa5; 300_000],
            content_id: None,
            inline: false,
        }],
        message_id: "0190a4c2@mail.example.com",
        uid: "0190a4c2",
        date_unix: SIGNED_AT,
    };
    compose(&draft).unwrap().bytes
}

#[test]
fn composed_mail_verifies_under_both_algorithms() {
    verify(&signed(&composed())).unwrap();
}

#[test]
fn awkward_bodies_verify() {
    for body in [
        "",
        "\r\n",
        " \r\n\t\r\n",
        "a\r\n \r\n\t \r\n",
        "a \t b  \r\n",
        "\r\n\r\na",
        ".\r\n..\r\n",
        "é\u{a0} \r\n",
    ] {
        let message = format!("From: a@{DOMAIN}\r\nSubject: s\r\n\r\n{body}");
        verify(&signed(message.as_bytes())).unwrap_or_else(|wrong| panic!("{body:?}: {wrong}"));
    }
}

#[test]
fn awkward_headers_verify() {
    for header in [
        "From:\ta@b.example \r\nSUBJECT:\r\n",
        "From:a@b.example\r\nSubject: a\r\n\tb\r\n \t c  \r\n",
        "References: <1@x>\r\nFrom: a@b.example\r\nReferences: <2@x>\r\nreferences:\t<3@x>\r\n",
        "From: é  <é@b.example>\r\nTo: x\r\nX-Unsigned: y\r\n",
    ] {
        let message = format!("{header}\r\nbody\r\n");
        verify(&signed(message.as_bytes())).unwrap_or_else(|wrong| panic!("{header:?}: {wrong}"));
    }
    let without_body = b"From: a@b.example\r\nSubject: no blank line\r\n";
    verify(&signed(without_body)).unwrap();
}

#[test]
fn what_is_added_or_changed_on_the_way_breaks_the_signature() {
    let good = String::from_utf8(signed(&composed())).unwrap();
    for added in [
        "From: x@evil.example",
        "Subject: pay",
        "To: x",
        "Cc: x",
        "Date: x",
        "Reply-To: x",
        "Content-Type: text/html",
    ] {
        let forged = format!("{added}\r\n{good}");
        assert!(verify(forged.as_bytes()).is_err(), "{added} was not noticed");
    }
    for (from, to) in
        [("Hello,  Ada", "Hello, Eve"), ("<https://example.com/", "<https://evil.example/"), ("ada@", "eve@")]
    {
        assert!(good.contains(from));
        assert!(verify(good.replace(from, to).as_bytes()).is_err(), "{from} → {to} was not noticed");
    }
    // The changes that relays make do not break the signature.
    let relayed = format!("Received: from a by b\r\n{}", good.replace("Hello,  Ada ", "Hello, Ada"));
    verify(relayed.as_bytes()).unwrap();
}

#[test]
fn the_judge_does_not_believe_another_key() {
    let [rsa, ed] = published();
    let message = rsa.sign(b"From: a@b.example\r\n\r\nbody\r\n");
    assert!(judge().verify(&message, &[(&rsa.name, &ed.record)]).is_err());
    assert!(judge().verify(&message, &[]).is_err());
    assert!(judge().verify(b"From: a@b.example\r\n\r\nbody\r\n", &[]).is_err());
    judge().verify(&message, &[(&rsa.name, &rsa.record)]).unwrap();
}

#[test]
fn mail_that_cannot_be_signed_to_last_is_refused() {
    let [rsa, _] = published();
    let sign = |message: &str| rsa.signer.sign(message.as_bytes(), SIGNED_AT);
    assert_eq!(sign("Subject: s\r\n\r\nbody"), Err(DkimError::NoFrom));
    assert_eq!(sign(""), Err(DkimError::NoFrom));
    assert_eq!(sign("From: a\nSubject: s\r\n\r\n"), Err(DkimError::LineBreak { at: 7 }));
    assert_eq!(sign("From: a\r\n\r\nb\rc"), Err(DkimError::LineBreak { at: 12 }));
}

/// White space, folds and words in any order, as relays and editors leave them.
fn mess(breaks: &'static str) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-zA-Z0-9=:;<>@._é-]{1,12}",
        2 => "[ \t]{1,4}",
        1 => Just(breaks.to_owned()),
        1 => Just(format!("{breaks}{breaks}")),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn header() -> impl Strategy<Value = String> {
    const NAMES: [&str; 9] =
        ["From", "to", "CC", "Subject", "Date", "Message-ID", "References", "X-Other", "Content-Type"];
    let field = (prop::sample::select(&NAMES[..]), mess("\r\n ")).prop_map(|(name, value)| {
        // Some parsers take a line of white space for the end of the header; the composer never writes one.
        let lines: Vec<_> = value.split("\r\n").filter(|line| !line.trim().is_empty()).collect();
        format!("{name}:{}\r\n", lines.join("\r\n"))
    });
    prop::collection::vec(field, 0..12).prop_map(|fields| format!("From: a@b.example\r\n{}", fields.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_mess_of_white_space_verifies(header in header(), body in mess("\r\n")) {
        let mut message = format!("{header}\r\n{body}");
        // As on the wire, where the last line always has an ending.
        if !message.ends_with("\r\n") {
            message.push_str("\r\n");
        }
        let verdict = verify(&signed(message.as_bytes()));
        prop_assert_eq!(verdict, Ok(()), "{:?}", message);
    }
}
