//! DKIM: who signs, what is covered, and that an independent verifier agrees.

use bytes::Bytes;
use postway_domain::{
    Account, AccountKind, AccountSettings, DkimAlgorithm, DkimKey, Time, secret::SecretKey,
};
use postway_intake::{RawOptions, Refusal, signing};
use postway_store::{DirectoryStore, record::DirectoryChange};
use postway_testkit::Dkimpy;
use serde_json::json;

use crate::{NOW_MS, TestGateway, account, ctx, message, secret_key, tenant};

fn key(domain: &str, selector: &str, algorithm: DkimAlgorithm) -> DkimKey {
    let now = Time::from_millis(NOW_MS);
    signing::new_key(&tenant(), domain, selector, algorithm, &secret_key(), now).unwrap()
}

async fn put(gateway: &TestGateway, key: &DkimKey) {
    gateway.change(DirectoryChange::CreateDkimKey(key.clone())).await;
}

/// The names in `h=` of each signature.
fn signed_fields(raw: &str) -> Vec<Vec<String>> {
    let (head, _) = raw.split_once("\r\n\r\n").unwrap();
    let head = head.replace("\r\n ", "");
    let signatures = head.split("\r\n").filter(|line| line.starts_with("DKIM-Signature:"));
    let names = |line: &str| {
        let (_, rest) = line.split_once("h=").unwrap();
        rest.split(';').next().unwrap().split(':').map(str::to_owned).collect()
    };
    signatures.map(names).collect()
}

#[tokio::test]
async fn every_active_key_of_the_authors_domain_signs_and_verifies() {
    let gateway = TestGateway::new().await;
    let keys =
        [key("Example.com", "r1", DkimAlgorithm::Rsa), key("example.com", "e1", DkimAlgorithm::Ed25519)];
    for key in &keys {
        put(&gateway, key).await;
    }
    let off = DkimKey { active: false, ..key("example.com", "old", DkimAlgorithm::Ed25519) };
    put(&gateway, &off).await;
    put(&gateway, &key("example.org", "other", DkimAlgorithm::Ed25519)).await;
    let body = json!({"html": "<p>Ünï</p>", "headers": {"X-Order": "1"}, "unsubscribe": {"url": "https://x/u"},
                      "attachments": [{"filename": "a.txt", "content": "aGVsbG8="}]});
    let receipt = gateway.send(&message(body)).await.unwrap();
    let raw = gateway.raw(receipt.uid).await;
    let signed = signed_fields(&raw);
    assert_eq!(signed.len(), 2, "{raw}");
    for names in &signed {
        for name in
            ["from", "to", "subject", "date", "message-id", "list-unsubscribe", "list-unsubscribe-post"]
        {
            assert!(names.iter().any(|signed| signed == name), "{name} in {names:?}");
        }
    }
    assert!(!raw.contains("s=old;") && !raw.contains("d=example.org"), "{raw}");
    let records: Vec<(String, String)> =
        keys.iter().map(|key| (signing::dns_name(key), signing::dns_record(key))).collect();
    let records: Vec<(&str, &str)> = records.iter().map(|(name, text)| (&**name, &**text)).collect();
    let mut judge = Dkimpy::start();
    judge.verify(raw.as_bytes(), &records).unwrap();
    let changed = raw.replace("Subject: s\r\n", "Subject: x\r\n");
    assert_ne!(changed, raw);
    assert!(judge.verify(changed.as_bytes(), &records).is_err(), "the subject is covered");
    let mail = Bytes::from_static(b"From: a@example.com\nTo: b@example.net\nSubject: s\n\nHi\n");
    let receipt = gateway.door.accept_raw(&ctx(), RawOptions::default(), mail).await.unwrap();
    judge.verify(gateway.raw(receipt.uid).await.as_bytes(), &records).unwrap();
}

#[tokio::test]
async fn mail_of_another_domain_is_not_signed() {
    let gateway = TestGateway::new().await;
    put(&gateway, &key("example.org", "e1", DkimAlgorithm::Ed25519)).await;
    let receipt = gateway.send(&message(json!({}))).await.unwrap();
    assert!(!gateway.raw(receipt.uid).await.contains("DKIM-Signature"));
}

#[tokio::test]
async fn a_domain_outside_ascii_is_signed_under_its_ascii_name() {
    let gateway = TestGateway::new().await;
    put(&gateway, &key("xn--mnchen-3ya.example", "e1", DkimAlgorithm::Ed25519)).await;
    let receipt = gateway.send(&message(json!({"from": "shop@München.example"}))).await.unwrap();
    assert!(gateway.raw(receipt.uid).await.contains("d=xn--mnchen-3ya.example;"));
}

#[tokio::test]
async fn what_ses_writes_anew_is_not_signed() {
    let gateway = TestGateway::new().await;
    put(&gateway, &key("example.com", "e1", DkimAlgorithm::Ed25519)).await;
    let ses = AccountSettings { kind: AccountKind::Ses, ..AccountSettings::sandbox() };
    let falling = AccountSettings { fallback: Some("ses".parse().unwrap()), ..AccountSettings::sandbox() };
    for (id, settings) in [("ses", ses), ("falling", falling)] {
        assert!(gateway.store.create_account(Account { settings, ..account(id, None) }).await.unwrap());
        let receipt = gateway.send(&message(json!({"account": id}))).await.unwrap();
        let [names] = &signed_fields(&gateway.raw(receipt.uid).await)[..] else { panic!("one signature") };
        assert!(names.iter().all(|name| name != "date" && name != "message-id"), "{id}: {names:?}");
        assert!(names.iter().any(|name| name == "subject"));
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_opened_holds_mail_back_instead_of_leaving_it_unsigned() {
    let gateway = TestGateway::new().await;
    let other = SecretKey::from_bytes(&[8; 32]).unwrap();
    let now = Time::from_millis(NOW_MS);
    let sealed =
        signing::new_key(&tenant(), "example.com", "e1", DkimAlgorithm::Ed25519, &other, now).unwrap();
    put(&gateway, &sealed).await;
    assert!(matches!(gateway.send(&message(json!({}))).await, Err(Refusal::Unavailable(_))));
    assert_eq!(gateway.count().await, 0);
}

#[tokio::test]
async fn a_key_has_a_domain_and_a_selector_that_dns_can_hold() {
    let now = Time::from_millis(NOW_MS);
    let made = |domain: &str, selector: &str| {
        signing::new_key(&tenant(), domain, selector, DkimAlgorithm::Ed25519, &secret_key(), now)
    };
    for (domain, selector) in [
        ("", "s"),
        ("a b", "s"),
        ("xn--ü.example", "s"),
        ("example.com", ""),
        ("example.com", "-s"),
        ("example.com", "a_b"),
    ] {
        assert!(made(domain, selector).is_err(), "{domain} {selector}");
    }
    assert_eq!(made("MÜNCHEN.example", "s").unwrap().domain, "xn--mnchen-3ya.example");
    let key = made("EXAMPLE.com", "2024.A").unwrap();
    assert_eq!(signing::dns_name(&key), "2024.a._domainkey.example.com");
    assert!(signing::dns_record(&key).starts_with("v=DKIM1;"));
}
