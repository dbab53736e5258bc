//! Attachments that are too large to mail: refused, warned about, or linked.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::TryStreamExt;
use postway_domain::{EventKind, MessageState, TenantSettings, Time, message::ScheduleReason};
use postway_intake::FileLinkTarget;
use postway_store::record::FileLink;
use postway_testkit::{HttpSource, SourceReply};
use serde_json::{Value, json};

use crate::{
    GatewayPlan, NOW_MS, TestGateway, faults, message,
    prepare::{Room, attachment, reaches, with_url},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An installation in which files over 1,000 bytes are large.
async fn gateway(policy: &str, public_url: Option<&str>) -> TestGateway {
    let large = json!({"large_files": {"policy": policy, "above_bytes": 1_000, "link_days": 3}});
    let settings: TenantSettings = serde_json::from_value(large).unwrap();
    GatewayPlan { settings, public_url: public_url.map(str::to_owned), ..GatewayPlan::default() }
        .build()
        .await
}

async fn source() -> HttpSource {
    let source = HttpSource::start().await;
    source.serve("/small", SourceReply::ok("x".repeat(1_000)));
    source.serve("/large", SourceReply::ok("y".repeat(1_001)));
    source
}

fn given(bytes: usize, inline: bool) -> Value {
    let content = BASE64_STANDARD.encode(vec![b'z'; bytes]);
    message(json!({"html": "<p>x</p>", "attachments": [
        {"filename": "z.txt", "content": content, "inline": inline, "content_id": if inline { json!("z") } else { json!(null) }}
    ]}))
}

#[tokio::test]
async fn large_files_are_refused_where_the_tenant_says_nothing_else() {
    let (source, gateway) = (source().await, gateway("reject", None).await);
    let refused = gateway.send(&given(1_001, false)).await;
    assert_eq!(faults(refused), [("attachments[0]".to_owned(), "INVALID_PAYLOAD")]);
    gateway.send(&given(1_000, false)).await.unwrap();
    let _room = Room::open(&gateway);
    let small = gateway.send(&with_url(&source.url("/small"))).await.unwrap();
    reaches(&gateway, small.uid, MessageState::Ready).await;
    let large = gateway.send(&with_url(&source.url("/large"))).await.unwrap();
    let record = reaches(&gateway, large.uid, MessageState::Invalid).await;
    assert!(record.summary.error.unwrap().contains("attachments[0]: is larger than 1000 bytes"));
}

#[tokio::test]
async fn a_warning_is_noted_and_the_file_is_mailed() {
    let (source, gateway) = (source().await, gateway("warn", None).await);
    let _room = Room::open(&gateway);
    for body in [given(1_001, false), with_url(&source.url("/large"))] {
        let receipt = gateway.send(&body).await.unwrap();
        reaches(&gateway, receipt.uid, MessageState::Ready).await;
        let events = gateway.events(receipt.uid).await;
        let (_, data) = events.into_iter().find(|(kind, _)| *kind == EventKind::Validated).unwrap();
        assert_eq!(data["warnings"], json!(["attachments[0] is larger than 1000 bytes (large_files)"]));
        assert_eq!(attachment(&gateway.raw(receipt.uid).await).len(), 1_001);
    }
}

/// The link in a mail's html, and the words around it.
async fn link_of(gateway: &TestGateway, receipt: &postway_intake::AcceptReceipt) -> (String, FileLink) {
    let raw = gateway.raw(receipt.uid).await;
    let mail = mail_parser::MessageParser::new().parse(raw.as_bytes()).unwrap();
    assert_eq!(mail.attachment_count(), 0);
    let (text, html) = (mail.body_text(0).unwrap(), mail.body_html(0).unwrap());
    let (_, rest) = html.split_once("https://mail.example.com/files/").unwrap();
    let token = rest.split('"').next().unwrap().to_owned();
    assert!(text.contains(&format!("https://mail.example.com/files/{token}")), "{text}");
    for body in [&text, &html] {
        assert!(body.contains("1.0 KB") && body.contains(".txt"), "{body}");
    }
    match gateway.door.follow(&token).await.unwrap() {
        FileLinkTarget::File(link) => (token, link),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_large_file_is_linked_to_and_can_be_had_until_its_time_is_over() {
    let (source, gateway) = (source().await, gateway("rewrite", Some("https://mail.example.com/")).await);
    let _room = Room::open(&gateway);
    let mut body = with_url(&source.url("/large"));
    body["html"] = json!("<body><p>x</p></body>");
    let receipt = gateway.send(&body).await.unwrap();
    reaches(&gateway, receipt.uid, MessageState::Ready).await;
    let (token, link) = link_of(&gateway, &receipt).await;
    assert_eq!((link.uid, link.file.filename.as_str()), (receipt.uid, "a.txt"));
    assert_eq!(link.file.expires_at, Time::from_millis(NOW_MS).plus(3 * DAY));
    let pieces = gateway.door.read_file(&link).await.unwrap();
    let pieces: Vec<bytes::Bytes> = pieces.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), "y".repeat(1_001).as_bytes());
    gateway.advance(3 * DAY - Duration::from_millis(1));
    assert!(matches!(gateway.door.follow(&token).await.unwrap(), FileLinkTarget::File(_)));
    gateway.advance(Duration::from_millis(1));
    assert!(matches!(gateway.door.follow(&token).await.unwrap(), FileLinkTarget::Ended));
    let mut forged = token.into_bytes();
    forged[20] ^= 1;
    for unknown in [String::from_utf8_lossy(&forged).as_ref(), "", "x", "../../etc/passwd"] {
        assert!(matches!(gateway.door.follow(unknown).await.unwrap(), FileLinkTarget::Unknown));
    }
}

#[tokio::test]
async fn a_file_that_came_along_is_linked_to_as_well_and_kept_once_for_many() {
    let gateway = gateway("rewrite", Some("https://mail.example.com")).await;
    let _room = Room::open(&gateway);
    let mut blobs = Vec::new();
    for _ in 0..2 {
        let receipt = gateway.send(&given(1_001, false)).await.unwrap();
        reaches(&gateway, receipt.uid, MessageState::Ready).await;
        blobs.push(link_of(&gateway, &receipt).await.1.file.blob);
    }
    assert_eq!(blobs[0], blobs[1]);
    let receipt = gateway.send(&given(1_001, true)).await.unwrap();
    assert_eq!(
        gateway.stored(receipt.uid).await.summary.state,
        MessageState::Ready,
        "what html shows is not linked to"
    );
}

#[tokio::test]
async fn a_links_days_begin_when_the_mail_goes() {
    let gateway = gateway("rewrite", Some("https://mail.example.com")).await;
    let _room = Room::open(&gateway);
    let mut body = given(1_001, false);
    body["send_at"] = json!("2024-02-01T00:00:00Z");
    let receipt = gateway.send(&body).await.unwrap();
    reaches(&gateway, receipt.uid, MessageState::Scheduled(ScheduleReason::SendAt)).await;
    let (_, link) = link_of(&gateway, &receipt).await;
    assert_eq!(link.file.expires_at.to_string(), "2024-02-04T00:00:00.000Z");
}

#[tokio::test]
async fn without_an_address_there_is_no_link_and_a_dry_run_says_so() {
    let gateway = gateway("rewrite", None).await;
    let _room = Room::open(&gateway);
    let body = given(1_001, false);
    assert_eq!(faults(gateway.try_out(&body).await), [("attachments[0]".to_owned(), "INVALID_PAYLOAD")]);
    let receipt = gateway.send(&body).await.unwrap();
    let record = reaches(&gateway, receipt.uid, MessageState::Invalid).await;
    assert!(record.summary.error.unwrap().contains("public_url"));
}

#[tokio::test]
async fn a_dry_run_of_a_linked_file_keeps_nothing() {
    let (source, gateway) = (source().await, gateway("rewrite", Some("https://mail.example.com")).await);
    let receipt = gateway.try_out(&with_url(&source.url("/large"))).await.unwrap();
    assert_eq!((receipt.status, gateway.count().await), ("valid", 0));
    let blobs =
        postway_store::BlobNameStore::condemn_blobs(&*gateway.store, Time::from_millis(i64::MAX / 2), 10)
            .await
            .unwrap();
    assert_eq!(blobs, []);
}
