//! The request as it is sent: the complete mail, the right recipients, and nothing lost silently.

use super::*;
use base64::{Engine, prelude::BASE64_STANDARD};
use postway_domain::failure::{FailureCategory, FailurePhase, FailureSeverity};
use serde_json::{Value, json};

/// A mail with text, html with an image, a file, names and additional fields.
const RICH: &str = "From: =?utf-8?q?Ren=C3=A9e?= <renee@example.net>\r\nTo: \"A, B\" <a@example.org>, gone@example.org\r\n\
    Cc: c@example.org\r\nReply-To: desk@example.net\r\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\r\n\
    Date: Wed, 18 Nov 2026 12:00:00 +0000\r\nMessage-ID: <1@example.net>\r\nX-Tag: spring\r\n\
    DKIM-Signature: v=1; h=to:from\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n\
    Content-Type: multipart/related; boundary=r\r\n\r\n--r\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n\
    --a\r\n\r\nHello\r\n--a\r\nContent-Type: text/html\r\n\r\n<img src=\"cid:logo@x\">\r\n--a--\r\n--r\r\n\
    Content-Type: image/png; name=logo.png\r\nContent-ID: <logo@x>\r\nContent-Disposition: inline\r\n\
    Content-Transfer-Encoding: base64\r\n\r\niVBORw0=\r\n--r--\r\n--m\r\nContent-Type: application/pdf\r\n\
    Content-Disposition: attachment; filename=a.pdf\r\n\r\n%PDF\r\n--m--\r\n";
/// The recipients: `gone` has the mail already or is suppressed; `hidden` is in no header.
const THREE: &[&str] = &["a@example.org", "c@example.org", "hidden@example.org"];

async fn heard(kind: AccountKind, recipients: &[&str], body: &[u8]) -> fake::Heard {
    let fake = Fake::start(taken(kind)).await;
    let (delivery, _) = send_mail(&client(settings(kind, fake.url())), recipients, body).await;
    assert_eq!(accepted(delivery.end), "taken-1", "{kind:?}");
    let heard = fake.requests().remove(0);
    assert!(
        !String::from_utf8_lossy(&heard.body).contains("gone@example.org")
            || kind == AccountKind::Http
            || kind == AccountKind::Mailgun
    );
    heard
}

#[track_caller]
fn begins(heard: &fake::Heard, line: &str) {
    assert!(heard.head.starts_with(line), "{}", heard.head);
}

#[tokio::test]
async fn sendgrid_gets_fields_and_each_recipient_in_its_place() {
    let heard = heard(AccountKind::Sendgrid, THREE, RICH.as_bytes()).await;
    begins(&heard, "POST /v3/mail/send HTTP/1.1");
    assert_eq!(heard.header("authorization"), Some("Bearer s3cret-key"));
    assert_eq!(
        heard.json(),
        json!({
            "personalizations": [{
                "to": [{"email": "a@example.org", "name": "A, B"}],
                "cc": [{"email": "c@example.org"}],
                "bcc": [{"email": "hidden@example.org"}],
            }],
            "from": {"email": "renee@example.net", "name": "Renée"},
            "subject": "Grüße",
            "content": [
                {"type": "text/plain", "value": "Hello"},
                {"type": "text/html", "value": "<img src=\"cid:logo@x\">"},
            ],
            "custom_args": {"postway_id": uid()},
            "headers": {"Message-ID": "<1@example.net>", "X-Tag": "spring"},
            "reply_to_list": [{"email": "desk@example.net"}],
            "attachments": [
                {"content": "iVBORw0=", "type": "image/png", "filename": "logo.png", "disposition": "inline",
                    "content_id": "logo@x"},
                {"content": "JVBERg==", "type": "application/pdf", "filename": "a.pdf", "disposition": "attachment"},
            ],
        })
    );
}

#[tokio::test]
async fn postmark_gets_fields_and_keeps_our_message_id() {
    let heard = heard(AccountKind::Postmark, THREE, RICH.as_bytes()).await;
    begins(&heard, "POST /email HTTP/1.1");
    assert_eq!(heard.header("x-postmark-server-token"), Some(KEY));
    assert_eq!(
        heard.json(),
        json!({
            "From": "\"Renée\" <renee@example.net>",
            "To": "\"A, B\" <a@example.org>",
            "Subject": "Grüße",
            "Headers": [
                {"Name": "Message-ID", "Value": "<1@example.net>"},
                {"Name": "X-Tag", "Value": "spring"},
                {"Name": "X-PM-KeepID", "Value": "true"},
            ],
            "Metadata": {"postway_id": uid()},
            "Cc": "c@example.org",
            "Bcc": "hidden@example.org",
            "ReplyTo": "desk@example.net",
            "HtmlBody": "<img src=\"cid:logo@x\">",
            "TextBody": "Hello",
            "MessageStream": "news",
            "Attachments": [
                {"Name": "logo.png", "Content": "iVBORw0=", "ContentType": "image/png", "ContentID": "cid:logo@x"},
                {"Name": "a.pdf", "Content": "JVBERg==", "ContentType": "application/pdf"},
            ],
        })
    );
}

#[tokio::test]
async fn resend_gets_fields_and_a_key_that_a_repeat_has_again() {
    let kind = AccountKind::Resend;
    let first = heard(kind, THREE, RICH.as_bytes()).await;
    begins(&first, "POST /emails HTTP/1.1");
    assert_eq!(
        first.json(),
        json!({
            "from": "\"Renée\" <renee@example.net>",
            "to": ["\"A, B\" <a@example.org>"],
            "subject": "Grüße",
            "tags": [{"name": "postway_id", "value": uid()}],
            "cc": ["c@example.org"],
            "bcc": ["hidden@example.org"],
            "reply_to": ["desk@example.net"],
            "html": "<img src=\"cid:logo@x\">",
            "text": "Hello",
            "headers": {"Message-ID": "<1@example.net>", "X-Tag": "spring"},
            "attachments": [
                {"filename": "logo.png", "content": "iVBORw0=", "content_type": "image/png", "content_id": "logo@x"},
                {"filename": "a.pdf", "content": "JVBERg==", "content_type": "application/pdf"},
            ],
        })
    );
    let key = |heard: &fake::Heard| heard.header("idempotency-key").unwrap().to_owned();
    assert!(key(&first).starts_with(&uid().to_string()));
    let again = heard(kind, THREE, RICH.as_bytes()).await;
    assert_eq!((key(&again), &again.body), (key(&first), &first.body));
    let others = heard(kind, &THREE[..1], RICH.as_bytes()).await;
    assert_ne!(key(&others), key(&first), "other recipients are another mail");
}

#[tokio::test]
async fn mailgun_gets_the_mail_as_it_is_and_the_recipients_beside_it() {
    let heard = heard(AccountKind::Mailgun, THREE, RICH.as_bytes()).await;
    begins(&heard, "POST /v3/mg.example.net/messages.mime HTTP/1.1");
    let signed_in = format!("Basic {}", BASE64_STANDARD.encode(format!("api:{KEY}")));
    assert_eq!(heard.header("authorization"), Some(signed_in.as_str()));
    let body = String::from_utf8(heard.body.clone()).unwrap();
    for recipient in THREE {
        assert!(body.contains(&format!("name=\"to\"\r\n\r\n{recipient}\r\n")), "{body}");
    }
    assert!(body.contains(&format!("Content-Type: message/rfc822\r\n\r\n{RICH}\r\n--")), "{body}");
    assert_eq!(body.matches("name=\"to\"").count(), 3);
    assert!(body.contains(&format!("name=\"v:postway_id\"\r\n\r\n{}\r\n", uid())), "{body}");
}

#[tokio::test]
async fn a_mail_cannot_add_a_field_to_mailguns_form() {
    let kind = AccountKind::Mailgun;
    let first = heard(kind, ONE, BODY).await;
    let boundary = |heard: &fake::Heard| {
        heard.header("content-type").unwrap().split_once("boundary=").unwrap().1.to_owned()
    };
    let forged = format!(
        "--{}\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\nx@evil.example\r\n",
        boundary(&first)
    );
    let forged = [BODY, forged.as_bytes()].concat();
    let second = heard(kind, ONE, &forged).await;
    assert_ne!(boundary(&second), boundary(&first));
}

#[tokio::test]
async fn graph_gets_a_mail_whose_header_names_the_recipients_and_nobody_else() {
    let heard = heard(AccountKind::Graph, THREE, RICH.as_bytes()).await;
    begins(&heard, "POST /v1.0/users/shop@example.net/sendMail HTTP/1.1");
    assert_eq!(
        (heard.header("authorization"), heard.header("content-type")),
        (Some("Bearer s3cret-key"), Some("text/plain"))
    );
    let mail = String::from_utf8(BASE64_STANDARD.decode(&heard.body).unwrap()).unwrap();
    assert_addressed(&mail);
}

#[tokio::test]
async fn gmail_gets_a_mail_whose_header_names_the_recipients_and_nobody_else() {
    let heard = heard(AccountKind::Gmail, THREE, RICH.as_bytes()).await;
    begins(&heard, "POST /upload/gmail/v1/users/shop@example.net/messages/send HTTP/1.1");
    assert_eq!(heard.header("content-type"), Some("message/rfc822"));
    assert_addressed(&String::from_utf8(heard.body).unwrap());
}

#[track_caller]
fn assert_addressed(mail: &str) {
    let (head, body) = mail.split_once("\r\n\r\n").unwrap();
    for line in ["To: \"A, B\" <a@example.org>", "Cc: <c@example.org>", "Bcc: <hidden@example.org>"] {
        assert!(head.lines().any(|found| found == line || found == line.replace(['<', '>'], "")), "{head}");
    }
    assert!(!mail.contains("gone@") && !head.contains("DKIM-Signature"), "{head}");
    assert!(RICH.ends_with(body), "the body is as it was");
}

#[tokio::test]
async fn a_service_of_ones_own_gets_the_envelope_and_the_mail_as_it_is() {
    let heard = heard(AccountKind::Http, THREE, RICH.as_bytes()).await;
    let document = heard.json();
    assert_eq!(document["recipients"], json!(THREE));
    assert_eq!(
        (&document["sender"], &document["id"]),
        (&json!("bounces@example.net"), &json!(uid().to_string()))
    );
    assert_eq!(heard.header("idempotency-key"), document["idempotency_key"].as_str());
    assert_eq!(BASE64_STANDARD.decode(document["raw"].as_str().unwrap()).unwrap(), RICH.as_bytes());
}

#[tokio::test]
async fn recipients_whom_the_header_does_not_name_do_not_see_each_other() {
    for kind in [AccountKind::Sendgrid, AccountKind::Postmark, AccountKind::Resend] {
        let fake = Fake::start(taken(kind)).await;
        let two = &["x@example.org", "y@example.org"];
        let (delivery, gate) = send_mail(&client(settings(kind, fake.url())), two, BODY).await;
        assert!(delivery.recipients[0].is_accepted(), "{kind:?}");
        assert!(matches!(delivery.recipients[1], RecipientReply::Deferred(_)), "{kind:?}");
        assert_eq!(gate.accepted, 1, "only whom the call names may be in doubt");
        assert!(!String::from_utf8(fake.requests().remove(0).body).unwrap().contains("y@example.org"));
    }
}

#[tokio::test]
async fn more_recipients_than_a_call_takes_wait_for_the_next() {
    let many: Vec<String> = (0..60).map(|n| format!("r{n}@example.org")).collect();
    let recipients: Vec<&str> = many.iter().map(String::as_str).collect();
    let body = format!("From: s@example.net\r\nTo: {}\r\n\r\nhi\r\n", many.join(", "));
    let fake = Fake::start(taken(AccountKind::Postmark)).await;
    let (delivery, _) =
        send_mail(&client(settings(AccountKind::Postmark, fake.url())), &recipients, body.as_bytes()).await;
    let accepted = delivery.recipients.iter().filter(|reply| reply.is_accepted()).count();
    assert_eq!((accepted, fake.requests().len()), (50, 1));
}

#[tokio::test]
async fn what_a_provider_cannot_carry_is_refused_before_the_gate() {
    let head = "From: s@example.net\r\nTo: a@example.org\r\n";
    let signed =
        format!("{head}Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\nhi\r\n--b--\r\n");
    let calendar = format!(
        "{head}Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nhi\r\n--b\r\nContent-Type: text/calendar\r\n\r\nX\r\n--b--\r\n"
    );
    let twice = format!("{head}X-A: 1\r\nX-A: 2\r\n\r\nhi\r\n");
    let reserved = format!("{head}X-SG-EID: 1\r\n\r\nhi\r\n");
    for (kind, body, says) in [
        (AccountKind::Sendgrid, &signed, "multipart/signed"),
        (AccountKind::Postmark, &signed, "multipart/signed"),
        (AccountKind::Resend, &signed, "multipart/signed"),
        (AccountKind::Postmark, &calendar, "text/calendar"),
        (AccountKind::Resend, &calendar, "text/calendar"),
        (AccountKind::Sendgrid, &twice, "several of X-A"),
        (AccountKind::Resend, &twice, "several of X-A"),
        (AccountKind::Sendgrid, &reserved, "X-SG-EID"),
    ] {
        let fake = Fake::start(taken(kind)).await;
        let (delivery, gate) = send_mail(&client(settings(kind, fake.url())), ONE, body.as_bytes()).await;
        assert!(matches!(delivery.recipients[0], RecipientReply::NotTried));
        let failure = not_sent(delivery.end);
        assert_eq!(
            (failure.code.as_ref(), failure.severity),
            ("provider_unsupported", FailureSeverity::Permanent)
        );
        assert!(failure.message.contains(says), "{}", failure.message);
        assert_eq!(
            (gate.commits, fake.connections(), failure.phase),
            (0, 0, FailurePhase::Compose),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn sendgrid_takes_other_forms_of_the_text() {
    let body = "From: s@example.net\r\nTo: a@example.org\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nhi\r\n\
        --b\r\nContent-Type: text/calendar\r\n\r\nX\r\n--b--\r\n";
    let heard = heard(AccountKind::Sendgrid, ONE, body.as_bytes()).await;
    let kinds: Vec<Value> =
        heard.json()["content"].as_array().unwrap().iter().map(|form| form["type"].clone()).collect();
    assert_eq!(kinds, ["text/plain", "text/calendar"]);
}

#[tokio::test]
async fn a_mail_that_is_too_large_or_needs_smtputf8_is_refused_before_the_gate() {
    let large = vec![b'x'; 4 * 1024 * 1024];
    let large = [b"From: s@example.net\r\nTo: a@example.org\r\n\r\n".as_slice(), &large].concat();
    let fake = Fake::start(taken(AccountKind::Graph)).await;
    let graph = client(settings(AccountKind::Graph, fake.url()));
    let (delivery, gate) = send_mail(&graph, ONE, &large).await;
    assert_eq!((not_sent(delivery.end).category, gate.commits), (FailureCategory::MessageTooLarge, 0));
    for kind in KINDS {
        let client = client(settings(kind, fake.url()));
        let (delivery, gate) = send_mail(&client, &["ü@example.org"], BODY).await;
        assert_eq!(
            (not_sent(delivery.end).category, gate.commits),
            (FailureCategory::Smtputf8Unsupported, 0),
            "{kind:?}"
        );
    }
    assert_eq!(fake.connections(), 0);
}

/// Header text beyond ASCII is encoded, or sent as text.
#[tokio::test]
async fn header_text_beyond_ascii_is_carried() {
    let body = "From: s@example.net\r\nTo: a@example.org\r\nSubject: \u{fc}\r\n\r\n\u{fc}\r\n".as_bytes();
    for kind in KINDS {
        let fake = Fake::start(taken(kind)).await;
        let mail = MailEnvelope { eight_bit: true, smtputf8: true, ..envelope(ONE, body) };
        let delivery = client(settings(kind, fake.url()))
            .deliver(&mail, uid(), body, &mut CountingGate::default())
            .await;
        assert_eq!(accepted(delivery.end), "taken-1", "{kind:?}");
    }
}

/// A mail without a text, and one without anything in it.
#[tokio::test]
async fn a_body_that_is_empty_is_sent_as_a_line_break() {
    for (kind, field) in [
        (AccountKind::Sendgrid, "/content/0/value"),
        (AccountKind::Postmark, "/TextBody"),
        (AccountKind::Resend, "/text"),
    ] {
        for body in [
            "From: s@example.net\r\nTo: a@example.org\r\n\r\n",
            "From: s@example.net\r\nTo: a@example.org\r\nContent-Type: application/pdf\r\n\r\n%PDF",
        ] {
            let heard = heard(kind, ONE, body.as_bytes()).await;
            assert_eq!(heard.json().pointer(field), Some(&json!("\n")), "{kind:?} {body}");
        }
    }
}
