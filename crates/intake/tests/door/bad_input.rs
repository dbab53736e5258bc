//! Refused requests, with the field that each refusal names. Nothing of them is stored.

use postway_intake::{IntakeLimits, Refusal};
use serde_json::{Value, json};

use crate::{TestGateway, body_of, ctx, fields, keyed, message};

async fn names(changes: Value, expected: &[&str]) {
    let gateway = TestGateway::new().await;
    let body = message(changes);
    assert_eq!(fields(gateway.send(&body).await), expected, "{body}");
    assert_eq!(gateway.count().await, 0, "a refused message is not stored");
}

async fn refused(body: &[u8]) -> Refusal {
    let gateway = TestGateway::new().await;
    let refusal = gateway.door.accept_json(&ctx(), body_of(body)).await.expect_err("this is no message");
    assert_eq!(gateway.count().await, 0);
    refusal
}

#[tokio::test]
async fn what_is_no_json_is_malformed_and_says_where() {
    for body in [
        &b""[..],
        b"{",
        b"hello",
        b"{\"to\":[}",
        b"{} {}",
        b"{\"subject\":\"\xff\"}",
        b"{\"a\" 1}",
        b"{\"to\":5",
    ] {
        match refused(body).await {
            Refusal::Malformed { message } => assert!(message.contains("line 1 column"), "{message}"),
            other => panic!("{body:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_body_that_is_no_object_is_invalid() {
    for body in
        ["[]", "5", "null", "\"x\"", "[\"order-1\",\"relay\",\"shop@example.com\",[\"a@example.net\"]]"]
    {
        assert_eq!(fields::<()>(Err(refused(body.as_bytes()).await)), [""], "{body}");
    }
}

#[tokio::test]
async fn wrong_types_are_named_by_their_path() {
    names(json!({"to": 5}), &["to"]).await;
    names(json!({"to": [1]}), &["to[0]"]).await;
    names(json!({"to": ["a@example.net", {"email": "b@example.net"}]}), &["to[1]"]).await;
    names(json!({"subject": {}}), &["subject"]).await;
    names(json!({"headers": []}), &["headers"]).await;
    names(json!({"headers": {"X-Order": 1}}), &["headers.X-Order"]).await;
    names(json!({"attachments": {}}), &["attachments"]).await;
    names(json!({"attachments": [["a.txt", "text/plain", "aGk="]]}), &["attachments[0]"]).await;
    names(
        json!({"attachments": [{"filename": "a", "content": "aGk="}, {"content": 7}]}),
        &["attachments[1].content"],
    )
    .await;
    names(json!({"tags": "receipt"}), &["tags"]).await;
    names(json!({"sensitive": "yes"}), &["sensitive"]).await;
    names(json!({"priority": []}), &["priority"]).await;
}

#[tokio::test]
async fn unknown_fields_are_named_themselves() {
    names(json!({"recipients": ["a@example.net"]}), &["recipients"]).await;
    names(json!({"attachments": [{"name": "a.txt"}]}), &["attachments[0].name"]).await;
    match refused(br#"{"subjekt":"x"}"#).await {
        Refusal::Invalid { details } => {
            assert_eq!(details[0].message, "unknown field `subjekt`: remove it or correct its name");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_field_given_twice_is_invalid() {
    let refusal = refused(br#"{"from":"a@example.com","from":"b@example.com"}"#).await;
    assert_eq!(fields::<()>(Err(refusal)), ["from"]);
    let refusal = refused(br#"{"attachments":[{},{"path":null,"path":null}]}"#).await;
    assert_eq!(fields::<()>(Err(refusal)), ["attachments[1].path"]);
}

#[tokio::test]
async fn all_faults_are_collected() {
    let refusal = refused(
        br#"{"id":"a b","to":["a@example.net","b","c@d@e"],"cc":"x","reply_to":["y"],"subject":"a\nb","priority":9,
            "tags":["",""],"send_at":"soon","headers":{"Bcc":"z@example.net","X-A":"1\r\nX-B: 2"},"account":"gone",
            "attachments":[{"filename":"a\u0000","content_type":"pdf","content":"*","content_id":"<x>"},{}]}"#,
    )
    .await;
    let mut found = fields::<()>(Err(refusal));
    found.sort();
    let mut expected = vec![
        "account",
        "attachments[0].content",
        "attachments[0].content_id",
        "attachments[0].content_type",
        "attachments[0].filename",
        "attachments[1].content",
        "attachments[1].filename",
        "cc",
        "from",
        "headers.Bcc",
        "headers.X-A",
        "id",
        "priority",
        "reply_to[0]",
        "send_at",
        "subject",
        "tags[0]",
        "tags[1]",
        "text",
        "to[1]",
        "to[2]",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_message_needs_recipients_but_not_too_many() {
    names(json!({"to": []}), &["to"]).await;
    names(json!({"to": null}), &["to"]).await;
    names(json!({"to": ""}), &["to"]).await;
    let many = |count: usize| (0..count).map(|n| format!("u{n}@example.net")).collect::<Vec<_>>();
    for count in [1_001, 10_000, 100_000] {
        names(json!({"to": many(count)}), &["to"]).await;
    }
    names(json!({"to": many(500), "cc": many(500), "bcc": ["x@example.net"]}), &["to"]).await;
    names(json!({"reply_to": many(26)}), &["reply_to"]).await;
}

#[tokio::test]
async fn bad_addresses_are_named_one_by_one() {
    names(json!({"from": null}), &["from"]).await;
    names(json!({"from": "nobody"}), &["from"]).await;
    names(json!({"to": "a\r\n@example.net"}), &["to"]).await;
    names(
        json!({"to": ["a@example.net", "b\u{0}@example.net"], "bcc": ["c d@example.net"]}),
        &["to[1]", "bcc[0]"],
    )
    .await;
    names(json!({"from": "Shop\r\nBcc: x@example.net <shop@example.com>"}), &["from"]).await;
    names(json!({"return_path": "nobody"}), &["return_path"]).await;
}

#[tokio::test]
async fn a_message_says_something() {
    for body in [json!({"text": null}), json!({"text": ""}), json!({"text": "", "html": ""})] {
        names(body, &["text"]).await;
    }
    names(json!({"text": "a\u{0}b"}), &["text"]).await;
    names(json!({"html": "a\u{0}b"}), &["html"]).await;
}

#[tokio::test]
async fn a_subject_is_one_line() {
    for subject in ["a\rb", "a\nb", "a\u{0}b", "a\u{7f}", "a\u{1b}[31m", &"x".repeat(8 * 1024 + 1)] {
        names(json!({"subject": subject}), &["subject"]).await;
    }
}

#[tokio::test]
async fn reserved_and_broken_headers_are_refused() {
    for name in [
        "From",
        "to",
        "CC",
        "Bcc",
        "Sender",
        "Date",
        "Message-Id",
        "MIME-Version",
        "Content-Type",
        "DKIM-Signature",
        "X-Postway-ID",
        "A B",
        "A\r\nBcc",
    ] {
        names(json!({"headers": {name: "x"}}), &[&format!("headers.{name}")]).await;
    }
    names(json!({"headers": {"X-A": "1\n2"}}), &["headers.X-A"]).await;
    names(json!({"headers": {"Reply-To": "help@example.com, x"}}), &["headers.Reply-To"]).await;
    let twice = json!({"headers": {"Reply-To": "help@example.com"}, "reply_to": "me@example.com"});
    names(twice, &["headers.Reply-To"]).await;
    let cases = json!({"headers": {"Reply-To": "help@example.com", "reply-to": "me@example.com"}});
    names(cases, &["headers.reply-to"]).await;
    names(json!({"headers": {"X-A": "1", "x-a": "2"}}), &["headers.x-a"]).await;
    let many: serde_json::Map<_, _> = (0..101).map(|n| (format!("X-{n}"), json!("v"))).collect();
    names(json!({"headers": many}), &["headers"]).await;
}

#[tokio::test]
async fn an_attachment_has_one_source_that_can_be_used() {
    for (source, bad) in [
        ("url", "ftp://example.com/b.pdf"),
        ("url", "https://user:password@example.com/b.pdf"),
        ("path", "../b.pdf"),
        ("endpoint", "doc=7"),
        ("storage_path", "doc=7"),
    ] {
        let file = json!({"filename": "b.pdf", source: bad});
        names(json!({"attachments": [file]}), &[&format!("attachments[0].{source}")]).await;
    }
    let digest = json!({"filename": "b.pdf", "url": "https://example.com/b.pdf", "sha256": "x"});
    names(json!({"attachments": [digest]}), &["attachments[0].sha256"]).await;
    let both = json!({"filename": "b.pdf", "content": "aGk=", "url": "https://example.com/b.pdf"});
    names(json!({"attachments": [both]}), &["attachments[0].url"]).await;
    names(json!({"attachments": [{"filename": "b.pdf"}]}), &["attachments[0].content"]).await;
    names(json!({"attachments": vec![json!({"filename": "a", "content": ""}); 101]}), &["attachments"]).await;
    names(json!({"attachments": vec![json!({}); 5_000]}), &["attachments"]).await;
}

#[tokio::test]
async fn templates_and_recipients_must_be_there_unless_null() {
    names(json!({"template": {"name": "welcome"}}), &["text", "template.name"]).await;
    names(json!({"template": {"name": "a b"}, "text": null}), &["template.name"]).await;
    names(json!({"template": {}, "text": null}), &["template.name"]).await;
    names(json!({"recipient": {"id": null}}), &["recipient"]).await;
    names(json!({"recipient": {"id": "0199c0de-0000-7000-8000-000000000000"}}), &["recipient.id"]).await;
    names(json!({"recipient": {"external_id": "x", "email": "b@example.net"}}), &["recipient.email"]).await;
    let gateway = TestGateway::new().await;
    let nulls = json!({"template": null, "recipient": null, "collapse_key": null, "sensitive": false});
    gateway.send(&message(nulls)).await.unwrap();
}

#[tokio::test]
async fn terms_are_checked() {
    for priority in [json!(4), json!(-1), json!(1.5), json!("urgent"), json!("")] {
        names(json!({"priority": priority}), &["priority"]).await;
    }
    for id in ["", "a b", "a/b", &"x".repeat(129)] {
        names(json!({"id": id}), &["id"]).await;
        names(json!({"batch": id}), &["batch"]).await;
    }
    names(json!({"on_doubt": "panic"}), &["on_doubt"]).await;
    names(json!({"dsn": "always"}), &["dsn"]).await;
    names(json!({"tags": vec!["t"; 21]}), &["tags"]).await;
    names(
        json!({"tags": ["a", "x".repeat(1_001), "é".repeat(513), "a\nb"]}),
        &["tags[1]", "tags[2]", "tags[3]"],
    )
    .await;
    names(json!({"external_id": "x".repeat(257)}), &["external_id"]).await;
    for key in ["", "a\nb", &"ä".repeat(129)] {
        names(json!({"collapse_key": key}), &["collapse_key"]).await;
    }
    names(json!({"metadata": []}), &["metadata"]).await;
    names(json!({"metadata": {"a": "x".repeat(16 * 1024)}}), &["metadata"]).await;
}

#[tokio::test]
async fn times_must_make_sense() {
    for at in [json!("tomorrow"), json!(99_999_999_999_999_i64), json!(1e300)] {
        names(json!({"send_at": at}), &["send_at"]).await;
    }
    names(json!({"send_at": "2025-01-02T00:00:00Z"}), &["send_at"]).await;
    names(json!({"expires_at": "2023-12-31T23:59:59Z"}), &["expires_at"]).await;
    names(json!({"expires_at": "2024-01-01T00:00:00Z"}), &["expires_at"]).await;
    names(json!({"send_at": "2024-01-02T00:00:00Z", "expires_at": "2024-01-01T12:00:00Z"}), &["expires_at"])
        .await;
}

#[tokio::test]
async fn an_unknown_account_is_named_with_what_to_do() {
    let gateway = TestGateway::new().await;
    match gateway.send(&message(json!({"account": "gone"}))).await {
        Err(Refusal::Invalid { details }) => {
            assert_eq!(details[0].field, "account");
            assert_eq!(details[0].message, "unknown account gone; create it with POST /v1/accounts");
        }
        other => panic!("{other:?}"),
    }
    names(json!({"account": "a b"}), &["account"]).await;
}

#[tokio::test]
async fn a_message_or_request_over_its_limit_is_too_large() {
    let gateway = TestGateway::new().await;
    let text = "x".repeat(64 * 1024 - 20);
    let content = "QUFB".repeat(20 * 1024);
    for large in [
        json!({"text": text}),
        json!({"text": "x".repeat(100_000)}),
        json!({"attachments": [{"filename": "a", "content": content}]}),
        json!({"attachments": [{"filename": "a", "content": "QUFB".repeat(16_000)}]}),
    ] {
        match gateway.send(&message(large)).await {
            Err(Refusal::TooLarge { message }) => assert!(message.contains("65536 bytes"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
    let gateway =
        TestGateway::with_limits(IntakeLimits { request_bytes_max: 10, ..IntakeLimits::default() }).await;
    let refusal = gateway.send(&message(json!({}))).await;
    assert!(matches!(refusal, Err(Refusal::TooLarge { message }) if message.contains("10 bytes")));
}

#[tokio::test]
async fn an_idempotency_key_is_printable_and_short() {
    let gateway = TestGateway::new().await;
    for key in ["", "a\nb", "é", &"k".repeat(257)] {
        let body = message(json!({})).to_string();
        assert_eq!(
            fields(gateway.door.accept_json(&keyed(key), body_of(body.as_bytes())).await),
            ["Idempotency-Key"],
            "{key:?}"
        );
    }
}

#[tokio::test]
async fn an_explanation_does_not_quote_the_whole_request() {
    let body = json!({"attachments": "x".repeat(10_000)}).to_string();
    match refused(body.as_bytes()).await {
        Refusal::Invalid { details } => assert!(details[0].message.chars().count() <= 201),
        other => panic!("{other:?}"),
    }
}
