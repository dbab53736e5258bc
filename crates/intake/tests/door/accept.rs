//! Accepted messages, and what the store has of them.

use postway_domain::{
    EventKind, MessagePriority, MessageState, RecipientKind, Tenant, Time, message::OnDoubt,
};
use postway_intake::{IntakeLimits, RequestContext};
use postway_store::DirectoryStore;
use serde_json::json;

use crate::{NOW_MS, TestGateway, account, body_of, claim, ctx, fields, message};

#[tokio::test]
async fn a_plain_message_is_ready_at_once() {
    let gateway = TestGateway::new().await;
    let receipt = gateway.send(&message(json!({}))).await.unwrap();
    assert_eq!((receipt.id, receipt.status), (receipt.uid.to_string(), "accepted"));
    let record = gateway.stored(receipt.uid).await;
    let summary = &record.summary;
    assert_eq!(summary.state, MessageState::Ready);
    assert_eq!(summary.due_at, Some(Time::from_millis(NOW_MS)));
    assert_eq!(summary.lane.account.as_str(), "relay");
    assert_eq!(summary.lane.priority, MessagePriority::Normal);
    assert_eq!(summary.message_id, format!("{}@example.com", receipt.uid));
    assert_eq!(summary.request_id.as_deref(), Some("req-1"));
    let kinds: Vec<_> = record.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Accepted, EventKind::Validated, EventKind::Ready]);
    assert_eq!(record.events[0].data.as_deref(), Some(r#"{"request_id":"req-1"}"#));
    let raw = gateway.raw(receipt.uid).await;
    assert!(raw.contains(&format!(
        "Message-ID: <{}@example.com>\r\nX-Postway-ID: {}\r\n",
        receipt.uid, receipt.uid
    )));
    assert!(raw.contains("Date: Mon, 1 Jan 2024 00:00:00 +0000"), "{raw}");
}

#[tokio::test]
async fn a_reply_to_among_the_headers_is_the_messages_own() {
    let gateway = TestGateway::new().await;
    let body = json!({"from": "shop@example.com", "to": "a@example.net", "text": "hello",
        "headers": {"reply-to": "\"Help, Desk\" <help@example.com>, me@example.com", "X-Order": "1"}});
    let receipt = gateway.send(&body).await.unwrap();
    let raw = gateway.raw(receipt.uid).await;
    let mail = mail_parser::MessageParser::new().parse(raw.as_bytes()).unwrap();
    let answers: Vec<_> = mail.reply_to().unwrap().iter().map(|one| (one.name(), one.address())).collect();
    assert_eq!(answers, [(Some("Help, Desk"), Some("help@example.com")), (None, Some("me@example.com"))]);
    assert_eq!(raw.to_lowercase().matches("reply-to:").count(), 1, "{raw}");
}

#[tokio::test]
async fn every_field_arrives() {
    let gateway = TestGateway::new().await;
    let body = json!({
        "id": "order-1", "account": "second", "from": "Shop <shop@example.com>", "to": "a@example.net",
        "cc": ["b@example.net"], "bcc": ["c@example.net"], "reply_to": "help@example.com", "return_path": null,
        "subject": "Ünï", "text": "hello", "html": "<p>hello</p>", "headers": {"X-Order": "1"},
        "attachments": [{"filename": "a.txt", "content_type": "text/plain", "content": "aGVsbG8", "content_id": null,
                         "inline": false, "url": null}],
        "template": null, "recipient": null, "priority": "high", "batch": "campaign", "send_at": null,
        "expires_at": "2024-01-02T00:00:00Z", "tags": ["receipt"], "metadata": {"b": [1, 2]}, "on_doubt": "hold",
        "collapse_key": null, "sensitive": false, "external_id": "C-1",
    });
    let receipt = gateway.send(&body).await.unwrap();
    assert_eq!(receipt.id, "order-1");
    let record = gateway.stored(receipt.uid).await;
    let summary = &record.summary;
    assert_eq!(summary.client_id.as_ref().map(|id| id.as_str()), Some("order-1"));
    assert_eq!((summary.lane.account.as_str(), summary.lane.priority), ("second", MessagePriority::High));
    assert_eq!(summary.lane.batch.as_ref().map(|code| code.as_str()), Some("campaign"));
    assert_eq!(summary.expires_at, Some(Time::from_millis(NOW_MS + 24 * 3600 * 1000)));
    assert_eq!((summary.on_doubt, summary.subject.as_str()), (OnDoubt::Hold, "Ünï"));
    assert_eq!(
        (&summary.tags[..], summary.metadata.as_deref()),
        (&["receipt".to_owned()][..], Some(r#"{"b":[1,2]}"#))
    );
    assert_eq!(summary.external_id.as_deref(), Some("C-1"));
    let recipients: Vec<_> = record.recipients.iter().map(|to| (to.address.as_str(), to.kind)).collect();
    assert_eq!(
        recipients,
        [
            ("a@example.net", RecipientKind::To),
            ("b@example.net", RecipientKind::Cc),
            ("c@example.net", RecipientKind::Bcc),
        ]
    );
    let raw = gateway.raw(receipt.uid).await;
    let mail = mail_parser::MessageParser::new().parse(raw.as_bytes()).unwrap();
    assert_eq!(mail.subject(), Some("Ünï"));
    assert_eq!(mail.attachment(0).unwrap().contents(), b"hello");
    assert_eq!(mail.header("X-Order").and_then(|value| value.as_text()), Some("1"));
    assert!(!raw.contains("c@example.net"), "a bcc recipient is never in the mail");
}

#[tokio::test]
async fn an_address_named_twice_is_sent_to_once() {
    let gateway = TestGateway::new().await;
    let body = message(json!({
        "to": ["a@example.net", "A <a@EXAMPLE.net>"], "cc": "a@example.net", "bcc": ["b@example.net", "b@example.net"],
    }));
    let record = gateway.stored(gateway.send(&body).await.unwrap().uid).await;
    let recipients: Vec<_> = record.recipients.iter().map(|to| (to.address.as_str(), to.kind)).collect();
    assert_eq!(recipients, [("a@example.net", RecipientKind::To), ("b@example.net", RecipientKind::Bcc)]);
}

#[tokio::test]
async fn a_later_time_schedules_and_a_past_one_is_now() {
    let gateway = TestGateway::new().await;
    let later = gateway.send(&message(json!({"send_at": 1_704_067_260}))).await.unwrap();
    let record = gateway.stored(later.uid).await;
    assert_eq!(
        record.summary.state,
        MessageState::Scheduled(postway_domain::message::ScheduleReason::SendAt)
    );
    assert_eq!(record.summary.due_at, Some(Time::from_millis(NOW_MS + 60_000)));
    assert_eq!(record.events[2].kind, EventKind::Scheduled);
    let data = r#"{"why":"send_at","due_at":"2024-01-01T00:01:00.000Z"}"#;
    assert_eq!(record.events[2].data.as_deref(), Some(data));
    for past in [json!("2023-06-01T00:00:00Z"), json!(0), json!(1_704_067_200.25)] {
        let record =
            gateway.stored(gateway.send(&message(json!({"send_at": past}))).await.unwrap().uid).await;
        assert_eq!(
            (record.summary.state, record.summary.due_at),
            (MessageState::Ready, Some(Time::from_millis(NOW_MS)))
        );
    }
}

#[tokio::test]
async fn the_envelope_sender_is_the_requests_then_the_accounts_then_the_author() {
    let gateway = TestGateway::new().await;
    assert!(gateway.store.create_account(account("bouncing", Some("bounce@example.org"))).await.unwrap());
    for (changes, expected) in [
        (json!({}), "shop@example.com"),
        (json!({"account": "bouncing"}), "bounce@example.org"),
        (json!({"account": "bouncing", "return_path": null}), "bounce@example.org"),
        (json!({"account": "bouncing", "return_path": "own@example.com"}), "own@example.com"),
        (json!({"account": "bouncing", "return_path": ""}), ""),
    ] {
        let receipt = gateway.send(&message(changes.clone())).await.unwrap();
        assert_eq!(claim(&gateway, receipt.uid).await.sender, expected, "{changes}");
    }
}

#[tokio::test]
async fn a_domain_outside_ascii_needs_no_smtputf8_and_a_local_part_does() {
    let gateway = TestGateway::new().await;
    let domains =
        json!({"from": "shop@münchen.example", "to": "Ada <ada@exämple.net>", "cc": "b@xn--exmple-cua.net"});
    let receipt = gateway.send(&message(domains)).await.unwrap();
    assert_eq!(
        gateway.stored(receipt.uid).await.summary.message_id,
        format!("{}@xn--mnchen-3ya.example", receipt.uid)
    );
    let claimed = claim(&gateway, receipt.uid).await;
    assert_eq!((claimed.smtputf8, claimed.sender.as_str()), (false, "shop@xn--mnchen-3ya.example"));
    let addresses: Vec<&str> = claimed.recipients.iter().map(|one| one.address.as_str()).collect();
    assert_eq!(addresses, ["ada@xn--exmple-cua.net", "b@xn--exmple-cua.net"]);
    assert!(gateway.raw(receipt.uid).await.is_ascii());
    let receipt = gateway.send(&message(json!({"bcc": "ü@example.net"}))).await.unwrap();
    assert!(claim(&gateway, receipt.uid).await.smtputf8, "the envelope alone needs it too");
    let receipt = gateway.send(&message(json!({"subject": "ü"}))).await.unwrap();
    assert!(!claim(&gateway, receipt.uid).await.smtputf8, "a subject is encoded");
}

#[tokio::test]
async fn a_dry_run_checks_all_and_stores_nothing() {
    let gateway = TestGateway::new().await;
    let dry = RequestContext { dry_run: true, ..ctx() };
    let body = message(json!({"id": "order-1"})).to_string();
    let receipt = gateway.door.accept_json(&dry, body_of(body.as_bytes())).await.unwrap();
    assert_eq!((receipt.id.as_str(), receipt.status), ("order-1", "valid"));
    let bad = message(json!({"to": "x"})).to_string();
    assert_eq!(fields(gateway.door.accept_json(&dry, body_of(bad.as_bytes())).await), ["to"]);
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test]
async fn a_new_account_is_found_at_once_and_so_is_a_changed_one() {
    let gateway = TestGateway::new().await;
    let body = message(json!({"account": "new"}));
    assert_eq!(fields(gateway.send(&body).await), ["account"]);
    assert!(gateway.store.create_account(account("new", Some("one@example.org"))).await.unwrap());
    let receipt = gateway.send(&body).await.unwrap();
    assert_eq!(claim(&gateway, receipt.uid).await.sender, "one@example.org");
    assert!(gateway.store.update_account(account("new", Some("two@example.org")), 1).await.unwrap());
    let receipt = gateway.send(&body).await.unwrap();
    assert_eq!(
        claim(&gateway, receipt.uid).await.sender,
        "two@example.org",
        "a change made here holds at once"
    );
}

#[tokio::test]
async fn a_tenant_without_a_default_must_name_the_account() {
    let gateway = TestGateway::new().await;
    let other = Tenant::new("other".parse().unwrap(), "Other", Time::from_millis(NOW_MS));
    assert!(gateway.store.create_tenant(other).await.unwrap());
    let ctx = RequestContext { tenant: "other".parse().unwrap(), ..ctx() };
    for body in [message(json!({})), message(json!({"account": "relay"}))] {
        let refused = gateway.door.accept_json(&ctx, body_of(body.to_string().as_bytes())).await;
        assert_eq!(fields(refused), ["account"], "another tenant's accounts are unknown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heavy_message_is_composed_beside_the_runtime() {
    let gateway = TestGateway::with_limits(IntakeLimits::default()).await;
    let content = "QUFB".repeat(200 * 1024);
    let body = message(json!({"attachments": [{"filename": "a.bin", "content": content}]}));
    let receipt = gateway.send(&body).await.unwrap();
    assert!(gateway.raw(receipt.uid).await.len() > 800 * 1024);
}
