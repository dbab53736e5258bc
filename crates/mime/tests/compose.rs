//! Composed mail can be read by an independent parser, and respects the limits of the wire.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

use mail_parser::{HeaderForm, Message, MessageParser, MimeHeaders, PartType};
use postway_domain::address::NamedAddress;
use postway_mime::{
    BodyAlternative, ComposeError, ComposedMail, HeaderError, MailAttachment, MailDraft, compose,
};
use proptest::prelude::*;

const UID: &str = "0190b5a2-7c1e-7d3a-9f00-0123456789ab";

fn mailbox(text: &str) -> NamedAddress {
    text.parse().unwrap()
}

fn file(name: &str, content_type: &str, content: &[u8]) -> MailAttachment {
    MailAttachment {
        filename: name.to_owned(),
        content_type: content_type.to_owned(),
        content: content.to_vec(),
        content_id: None,
        inline: false,
    }
}

fn image(id: &str) -> MailAttachment {
    MailAttachment {
        content_id: Some(id.to_owned()),
        inline: true,
        ..file("logo.png", "image/png", &[0, 1, 255])
    }
}

fn draft(from: &NamedAddress) -> MailDraft<'_> {
    MailDraft {
        from,
        sender: None,
        to: &[],
        cc: &[],
        reply_to: &[],
        subject: "Hello",
        text: Some("Hi\n"),
        html: None,
        alternatives: &[],
        headers: &[],
        attachments: &[],
        message_id: "0190b5a2@example.org",
        uid: UID,
        date_unix: 1_700_000_000,
    }
}

fn parse(bytes: &[u8]) -> Message<'_> {
    MessageParser::new().parse(bytes).unwrap()
}

/// The tree of a message, such as `mixed(plain, pdf)`.
fn shape(message: &Message<'_>, part: u32) -> String {
    let found = message.part(part).unwrap();
    let name = found.content_type().and_then(|kind| kind.subtype()).unwrap_or("none");
    match &found.body {
        PartType::Multipart(children) => {
            let children: Vec<_> = children.iter().map(|child| shape(message, *child)).collect();
            format!("{name}({})", children.join(", "))
        }
        _ => name.to_owned(),
    }
}

fn assert_fit_for_the_wire(composed: &ComposedMail) {
    let bytes = &composed.bytes;
    assert!(bytes.ends_with(b"\r\n"));
    assert!(!bytes.contains(&0), "NUL");
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        assert!(line.len() <= 998, "line of {}", line.len());
        assert!(!line.contains(&b'\r'), "bare CR");
    }
    let crlf = bytes.windows(2).filter(|pair| pair == b"\r\n").count();
    assert_eq!(crlf, bytes.iter().filter(|byte| **byte == b'\n').count(), "bare LF");
    assert_eq!(composed.eight_bit, !bytes.is_ascii());
}

fn header_block(bytes: &[u8]) -> String {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    String::from_utf8(bytes[..end + 2].to_vec()).unwrap()
}

#[test]
fn a_plain_mail_is_written_exactly() {
    let from = mailbox("Jane Doe <jane@example.org>");
    let to = [mailbox("a@b.test"), mailbox("\"Roe, R\" <r@b.test>")];
    let composed = compose(&MailDraft { to: &to, ..draft(&from) }).unwrap();
    let expected = "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n\
        From: \"Jane Doe\" <jane@example.org>\r\n\
        To: <a@b.test>, \"Roe, R\" <r@b.test>\r\n\
        Subject: Hello\r\n\
        Message-ID: <0190b5a2@example.org>\r\n\
        X-Postway-ID: 0190b5a2-7c1e-7d3a-9f00-0123456789ab\r\n\
        MIME-Version: 1.0\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\
        Content-Transfer-Encoding: 7bit\r\n\
        \r\n\
        Hi\r\n";
    assert_eq!(String::from_utf8(composed.bytes).unwrap(), expected);
    assert!(!composed.eight_bit && !composed.smtputf8);
}

#[test]
fn every_combination_of_parts_nests_as_it_should() {
    let from = mailbox("a@b");
    let pdf = file("a.pdf", "application/pdf", b"%PDF");
    let loose = MailAttachment { inline: true, ..file("b.gif", "image/gif", b"GIF") };
    for (text, html, attachments, expected) in [
        (true, false, vec![], "plain"),
        (false, true, vec![], "html"),
        (true, true, vec![], "alternative(plain, html)"),
        (true, false, vec![pdf.clone()], "mixed(plain, pdf)"),
        (false, true, vec![image("x")], "related(html, png)"),
        (true, true, vec![image("x")], "alternative(plain, related(html, png))"),
        (true, false, vec![image("x")], "mixed(plain, png)"),
        (true, true, vec![loose.clone()], "mixed(alternative(plain, html), gif)"),
        (
            true,
            true,
            vec![pdf, image("x"), loose, image("y")],
            "mixed(alternative(plain, related(html, png, png)), pdf, gif)",
        ),
    ] {
        let composed = compose(&MailDraft {
            text: text.then_some("text"),
            html: html.then_some("<img src=cid:x>"),
            attachments: &attachments,
            ..draft(&from)
        })
        .unwrap();
        assert_fit_for_the_wire(&composed);
        let message = parse(&composed.bytes);
        assert_eq!(shape(&message, 0), expected);
        for part in &message.parts {
            if let Some(id) = part.content_id() {
                assert!(["x", "y"].contains(&id));
                assert_eq!(part.contents(), [0, 1, 255]);
            }
        }
    }
}

#[test]
fn the_same_draft_gives_the_same_bytes() {
    let from = mailbox("a@b");
    let attachments = [file("ä.txt", "text/plain", b"x")];
    let draft = MailDraft { attachments: &attachments, ..draft(&from) };
    assert_eq!(compose(&draft), compose(&draft));
}

#[test]
fn a_boundary_in_the_content_does_not_cut_the_message() {
    let from = mailbox("a@b");
    let text = format!("--=_{UID}_1--\r\n\r\nstill the text");
    let mail = file("m.eml", "message/rfc822", format!("From: a@b\n\n--=_{UID}_1\n").as_bytes());
    let attachments = [mail];
    let composed =
        compose(&MailDraft { text: Some(&text), attachments: &attachments, ..draft(&from) }).unwrap();
    let message = parse(&composed.bytes);
    assert_eq!(message.parts.len(), 3);
    assert_eq!(message.body_text(0).unwrap(), text);
    assert_eq!(shape(&message, 0), "mixed(plain, octet-stream)");
}

#[test]
fn an_attached_mail_is_not_encoded() {
    let from = mailbox("a@b");
    let attachments = [file("m.eml", "message/rfc822", b"From: x@y\nSubject: inner\n\nbody\n")];
    let composed = compose(&MailDraft { attachments: &attachments, ..draft(&from) }).unwrap();
    assert_fit_for_the_wire(&composed);
    let message = parse(&composed.bytes);
    let inner = message.attachment(0).and_then(|part| part.message()).unwrap();
    assert_eq!(inner.subject(), Some("inner"));
}

#[test]
fn mail_to_hidden_recipients_has_a_to_field_and_no_bcc() {
    let from = mailbox("a@b");
    let composed = compose(&draft(&from)).unwrap();
    let header = header_block(&composed.bytes);
    assert!(header.contains("\r\nTo: undisclosed-recipients:;\r\n"));
    assert!(!header.to_lowercase().contains("bcc"));
}

#[test]
fn addresses_outside_ascii_go_raw_and_ask_for_smtputf8() {
    let from = mailbox("Zoë <zoë@example.org>");
    let composed = compose(&draft(&from)).unwrap();
    assert!(composed.smtputf8 && composed.eight_bit);
    assert!(header_block(&composed.bytes).contains("<zoë@example.org>"));
    let named = mailbox("Zoë <zoe@example.org>");
    assert!(!compose(&draft(&named)).unwrap().smtputf8);
}

#[test]
fn injection_is_refused_in_every_field_of_a_header() {
    let from = mailbox("a@b");
    let evil = "x\r\nBcc: victim@example.org";
    let refused = |draft: MailDraft<'_>| compose(&draft).unwrap_err();
    let headers = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];

    assert!(matches!(refused(MailDraft { subject: evil, ..draft(&from) }), ComposeError::Header(_)));
    assert!(matches!(refused(MailDraft { uid: evil, ..draft(&from) }), ComposeError::Id(_)));
    assert!(matches!(refused(MailDraft { message_id: "a\r\n@b", ..draft(&from) }), ComposeError::Id(_)));
    for (name, value) in [("X-A", evil), (evil, "v"), ("X-A", "a\0b"), ("X A", "v")] {
        let headers = headers(name, value);
        assert!(matches!(refused(MailDraft { headers: &headers, ..draft(&from) }), ComposeError::Header(_)));
    }
    for name in ["Bcc", "bcc", "Content-Type", "DKIM-Signature", "X-Postway-ID"] {
        let headers = headers(name, "v");
        let error = refused(MailDraft { headers: &headers, ..draft(&from) });
        assert!(matches!(error, ComposeError::Header(HeaderError::Reserved { .. })), "{name}");
    }
    let good = file("a", "a/b", b"");
    for bad in [
        MailAttachment { filename: evil.to_owned(), ..good.clone() },
        MailAttachment { filename: String::new(), ..good.clone() },
        MailAttachment { filename: "a".repeat(256), ..good.clone() },
        MailAttachment { content_type: format!("a/b; x={evil}"), ..good.clone() },
        MailAttachment { content_id: Some(evil.to_owned()), ..good.clone() },
        MailAttachment { content_id: Some("a>b".to_owned()), ..good },
    ] {
        assert!(
            compose(&MailDraft { attachments: std::slice::from_ref(&bad), ..draft(&from) }).is_err(),
            "{bad:?}"
        );
    }
    assert_eq!(refused(MailDraft { text: Some("a\0"), ..draft(&from) }), ComposeError::Nul { part: "text" });
    assert_eq!(refused(MailDraft { text: None, ..draft(&from) }), ComposeError::NoBody);
    let many = vec![("X-A".to_owned(), String::new()); 101];
    assert!(compose(&MailDraft { headers: &many, ..draft(&from) }).is_err());
}

#[test]
fn hostile_names_read_back_as_they_were() {
    let from = mailbox("a@b");
    let to: Vec<NamedAddress> = [
        "=?utf-8?q?admin=40bank.example?=",
        "a, b <c@d>; e:",
        "back\\slash \"quote\"",
        "(comment)",
        &"long name ".repeat(40),
        &"ü".repeat(200),
        &"x".repeat(300),
        "=?",
        "Ω = \"?=\"",
    ]
    .into_iter()
    .map(|name| NamedAddress::new(Some(name), "c@d".parse().unwrap()).unwrap())
    .collect();
    let composed = compose(&MailDraft { to: &to, ..draft(&from) }).unwrap();
    assert_fit_for_the_wire(&composed);
    assert_eq!(read_mailboxes(parse(&composed.bytes).to()), to);
}

#[test]
fn header_lines_stay_within_78_where_they_can() {
    let from = mailbox("a@b");
    let to: Vec<NamedAddress> =
        (0..50).map(|n| mailbox(&format!("Überlange Zeile Nummer {n} <user{n}@example.org>"))).collect();
    let headers = [("X-Words".to_owned(), "some words ".repeat(60).trim().to_owned())];
    let attachments = [file(&"Jahresabschluß ".repeat(10), "application/pdf", b"x")];
    let subject = "Grüße ".repeat(50);
    let composed = compose(&MailDraft {
        to: &to,
        headers: &headers,
        attachments: &attachments,
        subject: &subject,
        ..draft(&from)
    })
    .unwrap();
    for line in String::from_utf8(composed.bytes).unwrap().lines() {
        assert!(line.len() <= 78, "{line}");
    }
}

fn read_mailboxes(address: Option<&mail_parser::Address<'_>>) -> Vec<NamedAddress> {
    let Some(address) = address else { return Vec::new() };
    address
        .iter()
        .map(|found| NamedAddress::new(found.name(), found.address().unwrap().parse().unwrap()).unwrap())
        .collect()
}

fn lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn without_last_ending(text: &str) -> String {
    let text = lf(text);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,200}",
        "[a-z]{1,8}( {1,3}[a-z=?_]{1,12}){0,60}",
        "[äöü日本語 a-z]{0,120}",
        "[=?a-zQB8 -]{0,120}",
    ]
}

fn header_words() -> impl Strategy<Value = String> {
    words().prop_map(|text| text.replace(char::is_control, ""))
}

fn body() -> impl Strategy<Value = String> {
    prop_oneof![words(), "[a-z =.ä\t\r\n-]{0,400}", "[a-z ]{0,3000}", "(-{2}|=_|\\.|From |\r|\n){0,60}"]
        .prop_map(|text| text.replace('\0', ""))
}

fn mailboxes() -> impl Strategy<Value = Vec<NamedAddress>> {
    let one = (header_words(), "[a-z0-9]{1,20}(\\.[a-z+]{1,10})?", "[a-z]{1,20}\\.(test|рф)").prop_map(
        |(name, local, domain)| {
            let name: String =
                name.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect();
            NamedAddress::new(Some(&name), format!("{local}@{domain}").parse().unwrap()).unwrap()
        },
    );
    prop::collection::vec(one, 0..5)
}

fn attachment() -> impl Strategy<Value = MailAttachment> {
    (header_words(), prop::collection::vec(any::<u8>(), 0..300), any::<bool>(), any::<bool>()).prop_map(
        |(name, content, inline, named)| {
            let name: String = name.trim().chars().take(200).collect();
            MailAttachment {
                filename: if name.is_empty() { "a".to_owned() } else { name },
                content_type: "application/octet-stream".to_owned(),
                content,
                content_id: named.then(|| "part1@example.org".to_owned()),
                inline,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn what_is_composed_reads_back(
        subject in header_words(),
        text in body(),
        html in prop::option::of(body()),
        to in mailboxes(),
        cc in mailboxes(),
        value in header_words(),
        attachments in prop::collection::vec(attachment(), 0..4),
    ) {
        let from = mailbox("Jane <jane@example.org>");
        let headers = [("X-Extra".to_owned(), value.clone())];
        let composed = compose(&MailDraft {
            subject: &subject,
            text: Some(&text),
            html: html.as_deref(),
            to: &to,
            cc: &cc,
            headers: &headers,
            attachments: &attachments,
            ..draft(&from)
        })
        .unwrap();
        assert_fit_for_the_wire(&composed);

        let message = parse(&composed.bytes);
        prop_assert_eq!(message.subject().unwrap_or_default(), &subject);
        let extra = message.header_as("X-Extra", HeaderForm::Text);
        let extra = extra.first().and_then(|found| found.as_text()).unwrap_or_default();
        prop_assert!(extra.split_whitespace().eq(value.split_whitespace()), "{extra:?} for {value:?}");
        prop_assert_eq!(message.message_id(), Some("0190b5a2@example.org"));
        prop_assert_eq!(read_mailboxes(message.from()), [from]);
        prop_assert_eq!(read_mailboxes(message.to()), to);
        prop_assert_eq!(read_mailboxes(message.cc()), cc);
        prop_assert!(message.bcc().is_none());

        let texts: Vec<_> = message.parts.iter().filter_map(|part| match &part.body {
            PartType::Text(text) => Some(without_last_ending(text)),
            _ => None,
        }).collect();
        let htmls: Vec<_> = message.parts.iter().filter_map(|part| match &part.body {
            PartType::Html(html) => Some(without_last_ending(html)),
            _ => None,
        }).collect();
        prop_assert_eq!(texts, [without_last_ending(&text)]);
        prop_assert_eq!(htmls, html.as_deref().map(without_last_ending).into_iter().collect::<Vec<_>>());

        let mut found: Vec<_> = message.parts.iter()
            .filter(|part| part.content_disposition().is_some())
            .map(|part| (part.attachment_name().unwrap_or_default().to_owned(), part.contents().to_vec()))
            .collect();
        let mut given: Vec<_> =
            attachments.iter().map(|file| (file.filename.clone(), file.content.clone())).collect();
        // The files of the html come first.
        found.sort();
        given.sort();
        prop_assert_eq!(found, given);
    }

    #[test]
    fn composing_never_panics(
        subject in any::<String>(),
        name in any::<String>(),
        value in any::<String>(),
        text in any::<String>(),
        content_type in any::<String>(),
    ) {
        let from = mailbox("a@b");
        let headers = [(name, value)];
        let attachments = [file(&subject, &content_type, text.as_bytes())];
        let draft = MailDraft {
            subject: &subject,
            headers: &headers,
            attachments: &attachments,
            text: Some(&text),
            ..draft(&from)
        };
        if let Ok(composed) = compose(&draft) {
            assert_fit_for_the_wire(&composed);
        }
    }
}

const INVITATION: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Example//EN\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\n\
    UID:1@example.org\r\nDTSTAMP:20261118T090000Z\r\nDTSTART:20261120T090000Z\r\nSUMMARY:Meeting\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
const AMP: &str = "<!doctype html><html amp4email><head></head><body>Hi</body></html>";

fn alternatives(attach: bool) -> [BodyAlternative<'static>; 3] {
    [
        BodyAlternative::new("text/calendar", INVITATION, attach).unwrap(),
        BodyAlternative::new("text/x-amp-html", AMP, false).unwrap(),
        BodyAlternative::new("text/watch-html", "<b>Hi</b>", false).unwrap(),
    ]
}

#[test]
fn alternatives_stand_in_the_order_that_readers_want() {
    let from = mailbox("a@b");
    let (all, attached) = (alternatives(false), alternatives(true));
    let pdf = [file("a.pdf", "application/pdf", b"%PDF")];
    for (text, html, alternatives, attachments, expected) in [
        (true, true, &all[..], &[][..], "alternative(plain, watch-html, x-amp-html, html, calendar)"),
        (true, false, &all[..1], &[], "alternative(plain, calendar)"),
        (false, true, &all[..2], &[], "alternative(x-amp-html, html, calendar)"),
        (true, true, &attached[..1], &pdf, "mixed(alternative(plain, html, calendar), pdf, ics)"),
    ] {
        let composed = compose(&MailDraft {
            text: text.then_some("Hi\n"),
            html: html.then_some("<p>Hi</p>"),
            alternatives,
            attachments,
            ..draft(&from)
        });
        let composed = composed.unwrap();
        assert_fit_for_the_wire(&composed);
        assert_eq!(shape(&parse(&composed.bytes), 0), expected);
    }
    let alone = MailDraft { text: None, alternatives: &all, ..draft(&from) };
    assert_eq!(compose(&alone), Err(ComposeError::NoBody));
}

#[test]
fn an_invitation_is_written_exactly_and_outside_ascii_in_base64() {
    let from = mailbox("a@b");
    let all = alternatives(true);
    let composed = compose(&MailDraft { alternatives: &all[..1], ..draft(&from) }).unwrap();
    let text = String::from_utf8(composed.bytes).unwrap();
    let part = format!(
        "\r\nContent-Type: text/calendar; charset=utf-8; method=REQUEST\r\nContent-Transfer-Encoding: 7bit\r\n\r\n{INVITATION}\r\n--"
    );
    assert!(text.contains(&part), "{text}");
    assert!(text.contains("Content-Type: application/ics;\r\n name=\"invite.ics\"\r\n"), "{text}");
    let accented = INVITATION.replace("Meeting", "Besprechung über Größe");
    let accented = [BodyAlternative::new("text/calendar", &accented, false).unwrap()];
    let composed = compose(&MailDraft { alternatives: &accented, ..draft(&from) }).unwrap();
    let message = parse(&composed.bytes);
    let calendar = message.attachment(0).unwrap();
    assert_eq!(calendar.content_type().unwrap().attribute("method"), Some("REQUEST"));
    assert!(calendar.text_contents().unwrap().contains("über Größe"));
    assert!(
        String::from_utf8(composed.bytes.clone())
            .unwrap()
            .contains("method=REQUEST\r\nContent-Transfer-Encoding: base64")
    );
    let boundary = INVITATION.replace("Meeting", &format!("--=_{UID}_1--"));
    let boundary = [BodyAlternative::new("text/calendar", &boundary, false).unwrap()];
    let composed = compose(&MailDraft { alternatives: &boundary, ..draft(&from) }).unwrap();
    assert_eq!(shape(&parse(&composed.bytes), 0), "alternative(plain, calendar)", "no boundary in content");
}

#[test]
fn an_attached_mail_keeps_its_type_and_its_octets() {
    let from = mailbox("a@b");
    for (mail, eight_bit) in [
        (&b"From: x@y\r\nSubject: inner\r\n\r\nsignature\r\n-- \r\n"[..], false),
        ("From: x@y\r\nSubject: inner\r\n\r\nGrüße\r\n".as_bytes(), true),
        (b"From: x@y\r\nSubject: inner\r\n\r\n\x1b$B%F\x1b(B\r\n", false),
        (b"From: x@y\r\nSubject: inner\r\n\r\n\xe9t\xe9\r\n", true),
    ] {
        let attachments = [file("m.eml", "message/rfc822", mail)];
        let composed = compose(&MailDraft { attachments: &attachments, ..draft(&from) }).unwrap();
        assert_fit_for_the_wire(&composed);
        assert_eq!(composed.eight_bit, eight_bit);
        assert!(composed.bytes.windows(mail.len()).any(|window| window == mail), "not an octet is changed");
        let message = parse(&composed.bytes);
        assert_eq!(shape(&message, 0), "mixed(plain, rfc822)");
        let words = String::from_utf8_lossy(&composed.bytes).into_owned();
        assert_eq!(
            words.matches("Transfer-Encoding: 8bit").count(),
            if eight_bit { 2 } else { 0 },
            "{words}"
        );
    }
    for mail in [format!("From: x@y\n\n{}\n", "x".repeat(999)), "From: x@y\n\na\0b\n".to_owned()] {
        let attachments = [file("m.eml", "message/rfc822", mail.as_bytes())];
        let composed = compose(&MailDraft { attachments: &attachments, ..draft(&from) }).unwrap();
        assert_eq!(shape(&parse(&composed.bytes), 0), "mixed(plain, octet-stream)");
        assert!(!composed.eight_bit);
    }
}

#[test]
fn names_stand_where_old_and_new_readers_look() {
    let from = mailbox("a@b");
    let long = format!("{}.pdf", "Größe ".repeat(20));
    for (name, content_type, written) in [
        ("a \"b\".txt", "text/csv", "Content-Type: text/csv;\r\n name=\"a \\\"b\\\".txt\"\r\n"),
        (
            "Größe.pdf",
            "application/pdf",
            "Content-Type: application/pdf;\r\n name=\"=?utf-8?B?R3LDtsOfZS5wZGY=?=\"\r\n",
        ),
        ("b.txt", "text/plain; name=own", "Content-Type: text/plain; name=own\r\n"),
        (&long, "application/pdf", "?=\r\n =?utf-8?B?"),
    ] {
        let attachments = [file(name, content_type, b"x")];
        let composed = compose(&MailDraft { attachments: &attachments, ..draft(&from) }).unwrap();
        assert_fit_for_the_wire(&composed);
        let text = String::from_utf8(composed.bytes.clone()).unwrap();
        assert!(text.contains(written), "{text}");
        assert_eq!(parse(&composed.bytes).attachment(0).unwrap().attachment_name(), Some(name));
    }
}

#[test]
fn domains_outside_ascii_are_written_as_a_labels() {
    let from = mailbox("Zoë <zoe@müller.example>");
    let to = [mailbox("ada@exämple.net")];
    let composed = compose(&MailDraft { to: &to, ..draft(&from) }).unwrap();
    let header = header_block(&composed.bytes);
    assert!(
        header.contains("<zoe@xn--mller-kva.example>") && header.contains("<ada@xn--exmple-cua.net>"),
        "{header}"
    );
    assert!(!composed.smtputf8 && !composed.eight_bit);
}
