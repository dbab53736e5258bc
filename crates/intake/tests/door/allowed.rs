//! Allowed senders and recipients of tenants and keys, for every way in.

use std::sync::Arc;

use bytes::Bytes;
use postway_domain::{TenantSettings, key::KeyRestrictions};
use postway_intake::{ComposedForward, ForwardRequest, RawOptions, RequestContext};
use postway_mime::ComposedMail;
use serde_json::{Value, json};

use crate::{GatewayPlan, TestGateway, ctx, faults, keyed, message};

async fn bound(settings: Value) -> TestGateway {
    let settings: TenantSettings = serde_json::from_value(settings).unwrap();
    GatewayPlan::with(settings).await
}

/// The context of a caller whose key is restricted.
fn with_key(senders: &[&str], recipients: &[&str]) -> RequestContext {
    let read = |list: &[&str]| list.iter().map(|pattern| pattern.parse().unwrap()).collect();
    let restrictions = KeyRestrictions { senders: read(senders), recipients: read(recipients) };
    RequestContext { restrictions: Some(Arc::new(restrictions)), ..ctx() }
}

fn sender_fault(field: &str) -> Vec<(String, &'static str)> {
    vec![(field.to_owned(), "SENDER_NOT_ALLOWED")]
}

#[tokio::test]
async fn a_bound_tenant_sends_from_its_own_addresses_alone() {
    let gateway = bound(json!({"allowed_senders": ["example.com", "*.example.com"]})).await;
    for good in [
        json!({}),
        json!({"from": "News <news@EU.example.com>", "return_path": "bounces@example.com"}),
        json!({"return_path": ""}),
        json!({"reply_to": "me@elsewhere.example"}),
    ] {
        gateway.send(&message(good.clone())).await.unwrap_or_else(|refusal| panic!("{good}: {refusal}"));
    }
    let before = gateway.count().await;
    for (bad, field) in [
        (json!({"from": "shop@example.com.evil.example"}), "from"),
        (json!({"from": "\"shop@example.com\" <ceo@bank.example>"}), "from"),
        (json!({"return_path": "bounces@bank.example"}), "return_path"),
    ] {
        let refused = gateway.send(&message(bad.clone())).await;
        assert!(refused.as_ref().is_err_and(|refusal| refusal.is_forbidden()), "{bad}");
        assert_eq!(faults(refused), sender_fault(field), "{bad}");
    }
    assert_eq!(gateway.count().await, before, "nothing is stored");
}

#[tokio::test]
async fn answers_go_anywhere_unless_the_tenant_binds_them_too() {
    let gateway = bound(json!({"allowed_senders": ["example.com"], "bind_reply_to": true})).await;
    let elsewhere = message(json!({"reply_to": ["shop@example.com", "me@elsewhere.example"]}));
    assert_eq!(faults(gateway.send(&elsewhere).await), sender_fault("reply_to"));
    let in_header = message(json!({"headers": {"Reply-To": "me@elsewhere.example"}}));
    assert_eq!(faults(gateway.send(&in_header).await), sender_fault("reply_to"));
    gateway.send(&message(json!({"reply_to": "desk@example.com"}))).await.unwrap();
}

#[tokio::test]
async fn ready_made_mail_is_bound_by_every_author_sender_and_envelope_that_it_names() {
    let gateway = bound(json!({"allowed_senders": ["example.com"]})).await;
    let accept = async |head: &str, options: RawOptions| {
        let mail = Bytes::from(format!("{head}To: b@example.net\r\nSubject: s\r\n\r\nHi\r\n"));
        gateway.door.accept_raw(&ctx(), options, mail).await
    };
    let from = |path: &str| RawOptions { from: Some(path.to_owned()), ..RawOptions::default() };
    accept("From: a@example.com\r\nSender: s@example.com\r\n", from("bounces@example.com")).await.unwrap();
    for (head, options, field) in [
        ("From: ceo@bank.example\r\n", RawOptions::default(), "from"),
        ("From: a@example.com, ceo@bank.example\r\n", RawOptions::default(), "from"),
        ("From: a@example.com\r\nSender: ceo@bank.example\r\n", RawOptions::default(), "sender"),
        ("From: a@example.com\r\n", from("ceo@bank.example"), "from"),
    ] {
        let faults = faults(accept(head, options).await);
        assert!(faults.contains(&sender_fault(field)[0]), "{head} {faults:?}");
    }
}

#[tokio::test]
async fn a_key_is_bound_besides_its_tenant() {
    let gateway = bound(json!({"allowed_senders": ["example.com"]})).await;
    let send = async |ctx: &RequestContext, changes: Value| {
        gateway.door.accept_json(ctx, message(changes).to_string().into()).await
    };
    let shop = with_key(&["shop@example.com", "shop@other.example"], &[]);
    send(&shop, json!({})).await.unwrap();
    assert_eq!(faults(send(&shop, json!({"from": "ceo@example.com"})).await), sender_fault("from"));
    let other = send(&shop, json!({"from": "shop@other.example"})).await;
    assert_eq!(faults(other), sender_fault("from"), "a key allows no more than its tenant");
}

#[tokio::test]
async fn a_key_for_tests_sends_to_its_recipients_alone() {
    let gateway = TestGateway::new().await;
    let test = with_key(&[], &["test.example", "qa-*@example.net"]);
    let send =
        async |changes: Value| gateway.door.accept_json(&test, message(changes).to_string().into()).await;
    send(json!({"to": "a@test.example", "bcc": "qa-7@example.net"})).await.unwrap();
    let refused =
        send(json!({"to": "a@test.example", "cc": "customer@example.net", "bcc": "x@y.example"})).await;
    let expected = ["cc", "bcc"].map(|field| (field.to_owned(), "RECIPIENT_NOT_ALLOWED"));
    assert_eq!(faults(refused), expected);
    let mail = Bytes::from_static(b"From: a@example.com\r\nTo: a@test.example\r\n\r\nHi\r\n");
    let options = RawOptions { to: vec!["customer@example.net".to_owned()], ..RawOptions::default() };
    let refused = gateway.door.accept_raw(&test, options, mail).await;
    assert_eq!(faults(refused), [("bcc".to_owned(), "RECIPIENT_NOT_ALLOWED")], "the envelope counts");
}

#[tokio::test]
async fn whoever_sends_mail_on_is_bound_and_whoever_wrote_it_is_not() {
    let gateway = bound(json!({"allowed_senders": ["example.com"]})).await;
    let request = |from: &str| ForwardRequest {
        from: from.parse().unwrap(),
        to: vec!["bob@example.net".parse().unwrap()],
        account: None,
        subject: "x".to_owned(),
        batch: None,
        tags: Vec::new(),
        external_id: None,
        size: 1,
        make: Box::new(|_| {
            let bytes = b"From: stranger@elsewhere.example\r\n\r\nx\r\n".to_vec();
            let composed = ComposedMail { bytes, eight_bit: false, smtputf8: false };
            Ok(ComposedForward { composed, is_our_own: false })
        }),
    };
    gateway.door.accept_forward(&keyed("a"), request("support@example.com")).await.unwrap();
    let refused = gateway.door.accept_forward(&keyed("b"), request("support@bank.example")).await;
    assert_eq!(faults(refused), sender_fault("from"));
}
