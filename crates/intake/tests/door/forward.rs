//! Forwarded mail: one message for each key, whatever its bytes are.

use postway_domain::TenantSettings;
use postway_intake::{ComposedForward, ForwardNames, ForwardRequest, Refusal};
use postway_mime::ComposedMail;

use super::{GatewayPlan, TestGateway, ctx, keyed};

fn made(bytes: Vec<u8>) -> ComposedForward {
    ComposedForward { composed: ComposedMail { bytes, eight_bit: false, smtputf8: false }, is_our_own: true }
}

fn request(body: &'static str) -> ForwardRequest<'static> {
    ForwardRequest {
        from: "Support <support@example.com>".parse().unwrap(),
        to: vec!["bob@example.net".parse().unwrap(), "eve@example.net".parse().unwrap()],
        account: None,
        subject: "Fwd: x".to_owned(),
        batch: None,
        tags: Vec::new(),
        external_id: None,
        size: body.len(),
        make: Box::new(move |given: &ForwardNames<'_>| {
            let bytes = format!(
                "Message-ID: <{}>\r\nX-Postway-ID: {}\r\n\r\n{body}\r\n",
                given.message_id, given.uid
            );
            Ok(made(bytes.into_bytes()))
        }),
    }
}

#[tokio::test]
async fn one_key_is_one_message_also_where_its_bytes_would_be_others() {
    let gateway = TestGateway::new().await;
    let first = gateway.door.accept_forward(&keyed("forward:a:b:c"), request("one")).await.unwrap();
    let again = gateway.door.accept_forward(&keyed("forward:a:b:c"), request("two")).await.unwrap();
    assert_eq!(again.uid, first.uid);
    let other = gateway.door.accept_forward(&keyed("forward:a:b:d"), request("one")).await.unwrap();
    assert_ne!(other.uid, first.uid);
    assert_eq!(gateway.count().await, 2);
    let raw = gateway.raw(first.uid).await;
    assert!(
        raw.contains(&format!("Message-ID: <{}@example.com>", first.uid)) && raw.ends_with("one\r\n"),
        "{raw}"
    );
    let stored = gateway.stored(first.uid).await;
    assert_eq!((stored.recipients.len(), stored.summary.subject.as_str()), (2, "Fwd: x"));
}

#[tokio::test]
async fn failures_of_forwarded_mail_come_back_to_the_tenants_bounce_domain() {
    let settings = TenantSettings { bounce_domain: Some("b.example.com".to_owned()), ..Default::default() };
    let gateway = GatewayPlan::with(settings).await;
    let receipt = gateway.door.accept_forward(&keyed("k"), request("x")).await.unwrap();
    let claimed = super::claim(&gateway, receipt.uid).await;
    assert!(
        claimed.sender.starts_with("b+") && claimed.sender.ends_with("@b.example.com"),
        "{}",
        claimed.sender
    );
}

#[tokio::test]
async fn what_cannot_be_sent_on_is_refused_and_leaves_nothing() {
    let gateway = TestGateway::new().await;
    let unmade = ForwardRequest {
        make: Box::new(|_: &ForwardNames<'_>| Err("it cannot be made".to_owned())),
        ..request("x")
    };
    let nowhere = ForwardRequest { to: Vec::new(), ..request("x") };
    let unknown = ForwardRequest { account: Some("missing".parse().unwrap()), ..request("x") };
    for request in [unmade, nowhere, unknown] {
        assert!(matches!(gateway.door.accept_forward(&ctx(), request).await, Err(Refusal::Invalid { .. })));
    }
    let large = ForwardRequest {
        make: Box::new(|_: &ForwardNames<'_>| Ok(made(vec![b'x'; 100_000]))),
        ..request("x")
    };
    assert!(matches!(gateway.door.accept_forward(&ctx(), large).await, Err(Refusal::TooLarge { .. })));
    assert_eq!(gateway.count().await, 0);
}
