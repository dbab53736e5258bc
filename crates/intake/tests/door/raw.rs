//! Finished mail.

use bytes::Bytes;
use postway_domain::{MessagePriority, RecipientKind};
use postway_intake::{AcceptReceipt, RawOptions, Refusal};

use crate::{TestGateway, claim, ctx, fields, keyed};

const MAIL: &str = "From: Shop <shop@example.com>\nTo: a@example.net\nCc: b@example.net\nBcc: c@example.net\n\
                    Subject: hello\nMessage-ID: <mine@example.com>\n\nHi.\n";

async fn send(gateway: &TestGateway, options: RawOptions, mail: &str) -> Result<AcceptReceipt, Refusal> {
    gateway.door.accept_raw(&ctx(), options, Bytes::copy_from_slice(mail.as_bytes())).await
}

async fn recipients(gateway: &TestGateway, receipt: &AcceptReceipt) -> Vec<(String, RecipientKind)> {
    gateway.stored(receipt.uid).await.recipients.into_iter().map(|to| (to.address, to.kind)).collect()
}

#[tokio::test]
async fn a_mail_says_itself_from_whom_and_to_whom() {
    let gateway = TestGateway::new().await;
    let receipt = send(&gateway, RawOptions::default(), MAIL).await.unwrap();
    assert_eq!(
        recipients(&gateway, &receipt).await,
        [
            ("a@example.net".to_owned(), RecipientKind::To),
            ("b@example.net".to_owned(), RecipientKind::Cc),
            ("c@example.net".to_owned(), RecipientKind::Bcc),
        ]
    );
    let raw = gateway.raw(receipt.uid).await;
    assert!(
        !raw.contains("c@example.net") && raw.contains("\r\nMessage-ID: <mine@example.com>\r\n"),
        "{raw}"
    );
    assert!(raw.starts_with(&format!("X-Postway-ID: {}\r\n", receipt.uid)));
    assert_eq!(gateway.stored(receipt.uid).await.summary.message_id, "mine@example.com");
    assert_eq!(gateway.stored(receipt.uid).await.summary.subject, "hello");
    assert_eq!(claim(&gateway, receipt.uid).await.sender, "shop@example.com");
}

#[tokio::test]
async fn options_replace_the_envelope_and_set_the_terms() {
    let gateway = TestGateway::new().await;
    let options = RawOptions {
        id: Some("raw-1".to_owned()),
        account: Some("second".to_owned()),
        priority: Some("0".to_owned()),
        from: Some("bounce@example.com".to_owned()),
        to: vec!["x@example.net".to_owned(), "b@example.net".to_owned()],
        tags: vec!["t".to_owned()],
        ..RawOptions::default()
    };
    let receipt = send(&gateway, options, MAIL).await.unwrap();
    assert_eq!(receipt.id, "raw-1");
    let named =
        [("b@example.net".to_owned(), RecipientKind::Cc), ("x@example.net".to_owned(), RecipientKind::Bcc)];
    assert_eq!(recipients(&gateway, &receipt).await, named);
    let lane = gateway.stored(receipt.uid).await.summary.lane;
    assert_eq!((lane.account.as_str(), lane.priority), ("second", MessagePriority::Immediate));
    assert_eq!(claim(&gateway, receipt.uid).await.sender, "bounce@example.com");
}

#[tokio::test]
async fn a_broken_mail_is_refused_by_field() {
    let gateway = TestGateway::new().await;
    for (mail, expected) in [
        ("", "body"),
        ("no header at all", "body"),
        ("From: a@example.com\nTo: b@example.net\n\na\0b", "body"),
        ("To: b@example.net\n\nHi", "from"),
        ("From: a@example.com\n\nHi", "to"),
        ("From: a@example.com\nTo: nobody\n\nHi", "to"),
        ("From: root\nTo: b@example.net\n\nHi", "from"),
        ("From: a@example.com\nTo: nobody, b@example.net\n\nHi", "to"),
    ] {
        assert_eq!(fields(send(&gateway, RawOptions::default(), mail).await), [expected], "{mail:?}");
    }
    let large = format!("{MAIL}{}", "x\n".repeat(40_000));
    assert!(matches!(send(&gateway, RawOptions::default(), &large).await, Err(Refusal::TooLarge { .. })));
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test]
async fn with_recipients_of_its_own_the_header_is_not_judged() {
    let gateway = TestGateway::new().await;
    let mail = "From: root\nTo: nobody\nTo: Doe, John <a@example.net>\n\nHi";
    let options = RawOptions {
        from: Some("shop@example.com".to_owned()),
        to: vec!["a@example.net".to_owned()],
        ..RawOptions::default()
    };
    let receipt = send(&gateway, options, mail).await.unwrap();
    assert_eq!(recipients(&gateway, &receipt).await, [("a@example.net".to_owned(), RecipientKind::To)]);
    let raw = gateway.raw(receipt.uid).await;
    assert!(
        raw.contains("\r\nFrom: \"root\" <shop@example.com>\r\nX-Original-From: root\r\nTo: nobody\r\n"),
        "{raw}"
    );
}

#[tokio::test]
async fn bad_options_are_collected() {
    let gateway = TestGateway::new().await;
    let bad = Some("a b".to_owned());
    let options = RawOptions {
        id: bad.clone(),
        account: bad.clone(),
        batch: bad.clone(),
        priority: bad.clone(),
        send_at: bad.clone(),
        expires_at: bad.clone(),
        on_doubt: bad.clone(),
        dsn_request: bad.clone(),
        from: bad,
        to: vec!["x@example.net".to_owned(), "y".to_owned()],
        tags: vec![String::new()],
        sensitive: false,
        metadata: Default::default(),
        dsn: None,
    };
    let mut found = fields(send(&gateway, options, MAIL).await);
    found.sort();
    assert_eq!(
        found,
        [
            "account",
            "batch",
            "dsn",
            "expires_at",
            "from",
            "id",
            "on_doubt",
            "priority",
            "send_at",
            "tags[0]",
            "to[1]"
        ]
    );
}

#[tokio::test]
async fn a_repeated_mail_is_one_message() {
    let gateway = TestGateway::new().await;
    let mail = Bytes::from_static(MAIL.as_bytes());
    let first = gateway.door.accept_raw(&keyed("k"), RawOptions::default(), mail.clone()).await.unwrap();
    let again = gateway.door.accept_raw(&keyed("k"), RawOptions::default(), mail.clone()).await.unwrap();
    assert_eq!((first.uid, again.is_repeat, gateway.count().await), (again.uid, true, 1));
    let other = RawOptions { to: vec!["x@example.net".to_owned()], ..RawOptions::default() };
    assert!(matches!(gateway.door.accept_raw(&keyed("k"), other, mail).await, Err(Refusal::Conflict { .. })));
}
