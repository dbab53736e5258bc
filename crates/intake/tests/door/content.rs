//! Rules for html and subject, and the codes of every kind of fault.

use bytes::Bytes;
use postway_domain::{EventKind, TenantSettings, tenant::ContentLimits};
use postway_intake::{IntakeLimits, RawOptions, RequestContext};
use serde_json::json;

use crate::{GatewayPlan, TestGateway, body_of, ctx, faults, fields, message};

fn bounded(content: ContentLimits) -> TenantSettings {
    TenantSettings { content, ..TenantSettings::default() }
}

#[tokio::test]
async fn html_that_could_run_is_refused_however_it_is_written() {
    let gateway = TestGateway::new().await;
    for html in [
        "<p>x</p><script>x</script>",
        "<ScRiPt src=//x>",
        "<svg><script>x</script></svg>",
        "<a href=\"javascript:x\">x</a>",
        "<a href=\"&#106;ava&#115;cript&colon;x\">x</a>",
        "<a href=\" java\nscript:x\">x</a>",
        "<img src=x onerror=x>",
        "<body ONLOAD='x'>",
        "<template><img src=x onerror=x></template>",
    ] {
        let refused = gateway.send(&message(json!({"html": html}))).await;
        assert_eq!(faults(refused), [("html".to_owned(), "INVALID_TEMPLATE")], "{html}");
    }
    for html in [
        "<p>javascript: the good parts</p>",
        "<p data-once=1>&lt;script&gt;</p>",
        "<a href='https://x'>x</a>",
        "<script type='application/ld+json'>{\"@type\":\"Order\"}</script><p online=yes>x</p>",
    ] {
        gateway.send(&message(json!({"html": html}))).await.unwrap();
    }
    let deep = format!("{}x", "<b>".repeat(10_000));
    assert_eq!(fields(gateway.send(&message(json!({"html": deep}))).await), ["html"]);
}

#[tokio::test]
async fn html_and_subject_have_their_default_bounds() {
    let gateway = TestGateway::with_limits(IntakeLimits::default()).await;
    let html = |bytes: usize| message(json!({"html": format!("<p>{}", "x".repeat(bytes - 3))}));
    gateway.send(&html(512 * 1024)).await.unwrap();
    assert_eq!(faults(gateway.send(&html(512 * 1024 + 1)).await), [("html".to_owned(), "INVALID_TEMPLATE")]);
    let subject = |chars: usize| message(json!({"subject": "é".repeat(chars)}));
    gateway.send(&subject(150)).await.unwrap();
    assert_eq!(faults(gateway.send(&subject(151)).await), [("subject".to_owned(), "INVALID_TEMPLATE")]);
    assert_eq!(fields(gateway.send(&message(json!({"html": " \n "}))).await), ["html"]);
}

#[tokio::test]
async fn a_tenants_bounds_take_the_place_of_the_defaults() {
    let content = ContentLimits {
        subject_chars: Some(200),
        html_bytes: Some(100),
        message_bytes: Some(4_000),
        html_required: true,
        ..ContentLimits::default()
    };
    let gateway = GatewayPlan::with(bounded(content)).await;
    let html = "<p>x</p>";
    gateway.send(&message(json!({"html": html, "subject": "x".repeat(200)}))).await.unwrap();
    assert_eq!(
        fields(gateway.send(&message(json!({"html": html, "subject": "x".repeat(201)}))).await),
        ["subject"]
    );
    assert_eq!(fields(gateway.send(&message(json!({"html": "x".repeat(101)}))).await), ["html"]);
    let refused = gateway.send(&message(json!({}))).await;
    assert_eq!(faults(refused), [("html".to_owned(), "INVALID_TEMPLATE")], "html is required");
    let large = gateway.send(&message(json!({"html": html, "text": "x ".repeat(1_900)}))).await;
    assert!(matches!(large, Err(postway_intake::Refusal::TooLarge { .. })));
}

fn has_text(raw: &str) -> bool {
    raw.contains("Content-Type: text/plain")
}

#[tokio::test]
async fn html_alone_gets_a_text_where_it_is_asked_for() {
    let gateway = TestGateway::new().await;
    let html =
        "<h1>Hello</h1><p style='display:none'>Preview</p><p><a href='https://a.example/x'>Open</a></p>";
    let sent = async |changes: serde_json::Value| {
        let receipt = gateway.send(&message(changes)).await.unwrap();
        gateway.raw(receipt.uid).await
    };
    assert!(!has_text(&sent(json!({"text": null, "html": html})).await), "only where it is asked for");
    for text in [json!(null), json!("")] {
        let raw = sent(json!({"text": text, "html": html, "auto_text": true})).await;
        assert!(raw.contains("multipart/alternative") && has_text(&raw), "{raw}");
        assert!(raw.contains("Hello\r\n\r\nOpen (https://a.example/x)\r\n"), "{raw}");
    }
    let own = sent(json!({"text": "Own", "html": html, "auto_text": true})).await;
    assert!(own.contains("\r\nOwn\r\n") && !own.contains("Open (https"), "{own}");
    let unseen = sent(json!({"text": null, "html": "<p hidden>x</p>", "auto_text": true})).await;
    assert!(!has_text(&unseen), "nothing to say is no text: {unseen}");
    assert_eq!(fields(gateway.send(&message(json!({"text": "", "auto_text": true}))).await), ["text"]);
    assert_eq!(fields(gateway.send(&message(json!({"auto_text": "yes"}))).await), ["auto_text"]);
}

#[tokio::test]
async fn html_that_cannot_be_laid_out_goes_without_a_text_and_says_so() {
    let gateway = TestGateway::new().await;
    let html = "<table><tr><td colspan=99999>a</td></tr></table>";
    let receipt =
        gateway.send(&message(json!({"text": null, "html": html, "auto_text": true}))).await.unwrap();
    assert!(!has_text(&gateway.raw(receipt.uid).await));
    let events = gateway.stored(receipt.uid).await.events;
    let validated = events.iter().find(|event| event.kind == EventKind::Validated).unwrap();
    assert!(validated.data.as_ref().unwrap().contains("no text was made of the html"), "{validated:?}");
}

#[tokio::test]
async fn a_tenant_can_have_texts_made_always_and_a_message_can_say_no() {
    let content = ContentLimits { auto_text: true, ..ContentLimits::default() };
    let gateway = GatewayPlan::with(bounded(content)).await;
    for (changes, made) in [(json!({}), true), (json!({"auto_text": false}), false)] {
        let mut body: serde_json::Value = changes;
        body["text"] = json!(null);
        body["html"] = json!("<p>Hi</p>");
        let receipt = gateway.send(&message(body)).await.unwrap();
        assert_eq!(has_text(&gateway.raw(receipt.uid).await), made);
    }
}

#[tokio::test]
async fn asking_for_a_text_is_part_of_what_a_repeat_is_known_by() {
    let gateway = TestGateway::new().await;
    let plain = json!({"id": "a", "text": null, "html": "<p>Hi</p>"});
    let asked = json!({"id": "a", "text": null, "html": "<p>Hi</p>", "auto_text": true});
    let first = gateway.send(&message(plain.clone())).await.unwrap();
    assert_eq!(gateway.send(&message(plain)).await.unwrap().uid, first.uid);
    assert!(gateway.send(&message(asked)).await.is_err(), "another mail under the same id");
}

const INVITATION: &str =
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

#[tokio::test]
async fn an_invitation_goes_as_one() {
    let gateway = TestGateway::new().await;
    let invitation = json!({"content_type": "text/calendar", "content": INVITATION, "attach": true});
    let body = message(json!({"html": "<p>Come</p>", "alternatives": [invitation]}));
    let raw = gateway.raw(gateway.send(&body).await.unwrap().uid).await;
    let places = [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "text/calendar; charset=utf-8; method=REQUEST",
        "application/ics",
    ]
    .map(|kind| raw.find(&format!("Content-Type: {kind}")).unwrap_or_else(|| panic!("{kind}: {raw}")));
    assert!(places.is_sorted(), "{raw}");
}

#[tokio::test]
async fn alternatives_are_bounded_and_checked() {
    let gateway = TestGateway::with_limits(IntakeLimits::default()).await;
    let amp = json!({"content_type": "text/x-amp-html", "content": "<html amp4email></html>"});
    let refused = async |alternatives: serde_json::Value| {
        faults(gateway.send(&message(json!({"alternatives": alternatives}))).await)
    };
    for (alternatives, field) in [
        (json!([amp, amp]), "alternatives[1].content_type"),
        (json!([amp, {"content_type": "text/html", "content": "x"}]), "alternatives[1].content_type"),
        (
            json!([{"content_type": "text/calendar; method=CANCEL", "content": INVITATION}]),
            "alternatives[0].content_type",
        ),
        (json!([{"content_type": "text/calendar"}]), "alternatives[0].content"),
        (json!([{}]), "alternatives[0].content_type"),
        (json!(vec![amp.clone(); 6]), "alternatives"),
        (json!([{"content_type": "text/x-amp-html", "content": "x", "colour": 1}]), "alternatives[0].colour"),
    ] {
        let found = refused(alternatives.clone()).await;
        assert_eq!(found.first().map(|(field, _)| field.as_str()), Some(field), "{alternatives}");
    }
    let only = message(json!({"text": null, "alternatives": [amp]}));
    assert_eq!(fields(gateway.send(&only).await), ["text"], "an alternative is one to something");
    let content = format!("<html amp4email>{}</html>", "x".repeat(11 * 1024 * 1024));
    let large = message(json!({"alternatives": [{"content_type": "text/x-amp-html", "content": content}]}));
    assert!(matches!(gateway.send(&large).await, Err(postway_intake::Refusal::TooLarge { .. })));
}

#[tokio::test]
async fn ready_made_mail_is_exempt_from_rules_of_content_but_not_of_size() {
    let content =
        ContentLimits { html_required: true, message_bytes: Some(2_000), ..ContentLimits::default() };
    let gateway = GatewayPlan::with(bounded(content)).await;
    let mail = |body: &str| {
        let subject = "x".repeat(300);
        Bytes::from(format!(
            "From: a@example.com\nTo: b@example.net\nSubject: {subject}\nContent-Type: text/html\n\n{body}\n"
        ))
    };
    gateway.door.accept_raw(&ctx(), RawOptions::default(), mail("<script>x</script>")).await.unwrap();
    let large = gateway.door.accept_raw(&ctx(), RawOptions::default(), mail(&"x\n".repeat(1_000))).await;
    assert!(matches!(large, Err(postway_intake::Refusal::TooLarge { .. })));
}

#[tokio::test]
async fn every_fault_has_the_code_of_its_check() {
    let gateway = TestGateway::new().await;
    for (changes, field, code) in [
        (json!({"from": "nobody"}), "from", "INVALID_EMAIL"),
        (json!({"to": ["a@example.net", "b@"]}), "to[1]", "INVALID_EMAIL"),
        (json!({"cc": format!("{}@example.net", "x".repeat(250))}), "cc", "INVALID_EMAIL"),
        (json!({"reply_to": "x"}), "reply_to", "INVALID_EMAIL"),
        (json!({"return_path": "x"}), "return_path", "INVALID_EMAIL"),
        (json!({"to": []}), "to", "INVALID_EMAIL"),
        (json!({"priority": 9}), "priority", "INVALID_PAYLOAD"),
        (json!({"account": "gone"}), "account", "INVALID_PAYLOAD"),
        (json!({"headers": {"X A": "1"}}), "headers.X A", "INVALID_PAYLOAD"),
        (json!({"unsubscribe": {"url": "http://x"}}), "unsubscribe.url", "INVALID_PAYLOAD"),
        (json!({"unsubscribe": {}}), "unsubscribe", "INVALID_PAYLOAD"),
        (json!({"colour": "red"}), "colour", "INVALID_PAYLOAD"),
        (json!({"subject": "a\r\nBcc: x@example.org"}), "subject", "INVALID_TEMPLATE"),
        (json!({"text": ""}), "text", "INVALID_TEMPLATE"),
        (json!({"template": {"name": "gone"}, "text": null}), "template.name", "INVALID_TEMPLATE"),
        (json!({"recipient": {}}), "recipient", "INVALID_PAYLOAD"),
        (json!({"recipient": {"id": "x"}}), "recipient.id", "RECIPIENT_NOT_FOUND"),
    ] {
        let refused = gateway.send(&message(changes.clone())).await;
        assert_eq!(faults(refused), [(field.to_owned(), code)], "{changes}");
    }
}

#[tokio::test]
async fn a_file_name_injects_no_header() {
    let gateway = TestGateway::new().await;
    for filename in ["a\r\nX-Evil: 1.txt", "a\nb.txt", "a\0.txt", ""] {
        let body = message(json!({"attachments": [{"filename": filename, "content": "aGk="}]}));
        assert_eq!(fields(gateway.send(&body).await), ["attachments[0].filename"], "{filename:?}");
    }
    let odd = "../../x \"; filename=evil.exe; é.txt";
    let body = message(json!({"attachments": [{"filename": odd, "content": "aGk="}]}));
    match gateway.send(&body).await {
        Ok(receipt) => {
            let raw = gateway.raw(receipt.uid).await;
            let mail = mail_parser::MessageParser::new().parse(raw.as_bytes()).unwrap();
            let name = mail_parser::MimeHeaders::attachment_name(mail.attachment(0).unwrap()).unwrap();
            assert!(!name.contains('/') || name == odd, "{name}");
            assert!(!raw.contains("filename=evil.exe"), "{raw}");
        }
        Err(refusal) => assert_eq!(fields::<()>(Err(refusal)), ["attachments[0].filename"]),
    }
}

#[tokio::test]
async fn what_was_checked_is_in_the_history() {
    let gateway = TestGateway::new().await;
    let body = message(json!({"html": "<p>é</p>", "subject": "é!", "cc": "b@example.net"}));
    let receipt = gateway.send(&body).await.unwrap();
    let (kind, data) = gateway.events(receipt.uid).await.remove(1);
    assert_eq!(kind, EventKind::Validated);
    assert_eq!(
        data,
        json!({"checks": [
            {"check": "INTEGRITY", "bytes": body.to_string().len()},
            {"check": "RECIPIENT", "recipients": 2, "known": false},
            {"check": "TEMPLATE", "subject_chars": 2, "html_bytes": 9},
        ]})
    );
}

#[tokio::test]
async fn a_sensitive_message_is_marked() {
    let gateway = TestGateway::new().await;
    for (sensitive, expected) in [(json!(true), true), (json!(false), false), (json!(null), false)] {
        let receipt = gateway.send(&message(json!({"sensitive": sensitive}))).await.unwrap();
        assert_eq!(gateway.stored(receipt.uid).await.summary.sensitive, expected);
    }
    let raw = RawOptions { sensitive: true, ..RawOptions::default() };
    let mail = Bytes::from_static(b"From: a@example.com\nTo: b@example.net\n\nHi\n");
    let receipt = gateway.door.accept_raw(&ctx(), raw, mail).await.unwrap();
    assert!(gateway.stored(receipt.uid).await.summary.sensitive);
}

#[tokio::test]
async fn a_dry_run_finds_the_same_faults_and_stores_nothing() {
    let gateway = TestGateway::new().await;
    let body = message(json!({"html": "<script>x</script>", "to": "x"}));
    assert_eq!(faults(gateway.try_out(&body).await), faults(gateway.send(&body).await));
    let batch = json!({"messages": [message(json!({})), body]}).to_string();
    let dry = RequestContext { dry_run: true, ..ctx() };
    let receipt = gateway.door.accept_batch(&dry, body_of(batch.as_bytes())).await.unwrap();
    assert_eq!((receipt.accepted, receipt.rejected, gateway.count().await), (1, 1, 0));
}
