//! Against moto, a real service that speaks SES.

use super::*;
use postway_domain::failure::FailureSeverity;
use postway_testkit::moto::Moto;
use serde_json::Value;

/// The mail that moto stored under this id.
fn kept(moto: &Moto, id: &str) -> Value {
    let data: Value = serde_json::from_str(&moto.data()).expect("moto's data is JSON");
    let mails = data["ses"]["RawMessage"].as_array().expect("moto keeps mails");
    mails.iter().find(|mail| mail["id"] == id).expect("moto has the mail").clone()
}

#[tokio::test]
async fn a_mail_is_taken_whole_and_its_id_is_known() {
    let moto = Moto::shared();
    moto.verify_identity(REGION, "example.net");
    let (delivery, gate) =
        send_to(&client(settings(moto.url())), &["a@example.org", "bcc@example.org"]).await;
    let id = accepted(delivery.end).expect("moto names the mail");
    assert_eq!((gate.commits, gate.accepted), (1, 2));
    let mail = kept(moto, &id);
    assert_eq!(mail["raw_data"].as_str().unwrap().as_bytes(), BODY);
    assert_eq!(mail["source"], "shop@example.net");
    assert!(mail["destinations"].as_array().unwrap().contains(&"bcc@example.org".into()), "{mail}");
}

#[tokio::test]
async fn a_sender_that_moto_does_not_know_is_rejected() {
    let moto = Moto::shared();
    let body = b"From: a@unknown.example\r\nTo: b@example.org\r\nSubject: hi\r\n\r\nHello\r\n";
    let mut gate = Gate::default();
    let delivery = client(settings(moto.url())).deliver(&envelope(ONE, body), body, &mut gate).await;
    let failure = not_sent(delivery.end);
    assert_eq!(
        (failure.code.as_ref(), failure.severity),
        ("SES_MESSAGE_REJECTED", FailureSeverity::Permanent)
    );
    assert_eq!(failure.original_code.as_deref(), Some("MessageRejected"));
    assert!(failure.message.contains("authority"), "{}", failure.message);
}

#[tokio::test]
async fn an_address_that_moto_cannot_read_is_a_bad_request() {
    let moto = Moto::shared();
    moto.verify_identity(REGION, "example.net");
    let (delivery, _) = send_to(&client(settings(moto.url())), &["no-domain"]).await;
    let failure = not_sent(delivery.end);
    assert_eq!((failure.code.as_ref(), failure.severity), ("SES_BAD_REQUEST", FailureSeverity::Permanent));
}

#[tokio::test]
async fn fifty_recipients_are_taken_at_once() {
    let moto = Moto::shared();
    moto.verify_identity(REGION, "example.net");
    // moto adds the one of the header, and counts it.
    let names: Vec<String> = (0..49).map(|n| format!("r{n}@example.org")).collect();
    let recipients: Vec<&str> = names.iter().map(String::as_str).collect();
    let (delivery, _) = send_to(&client(settings(moto.url())), &recipients).await;
    let id = accepted(delivery.end).expect("moto names the mail");
    assert_eq!(kept(moto, &id)["destinations"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn a_large_mail_arrives_whole() {
    let moto = Moto::shared();
    moto.verify_identity(REGION, "example.net");
    let mut body = BODY.to_vec();
    body.extend(b"0123456789abcdef0123456789abcdef\r\n".repeat(60_000));
    let mut gate = Gate::default();
    let delivery = client(settings(moto.url())).deliver(&envelope(ONE, &body), &body, &mut gate).await;
    let id = accepted(delivery.end).expect("moto names the mail");
    assert_eq!(kept(moto, &id)["raw_data"].as_str().unwrap().len(), body.len());
}
