//! Rotation of the secret key: what the previous key encrypted is re-encrypted.

use postway_domain::{
    DkimKey, KnownRecipient, RecipientId, Subscriber, TenantId, WatchedMailbox, secret::SecretKey,
};
use postway_store::{CatalogueStore, DirectoryStore, InboundStore, ReportStore, record::DirectoryChange};
use serde_json::{Value, json};

use crate::support::Api;

fn key(byte: u8) -> SecretKey {
    SecretKey::from_bytes(&[byte; 32]).unwrap()
}

fn tenant() -> TenantId {
    "default".parse().unwrap()
}

/// Moves what has secrets beside accounts into a gateway with another key.
async fn hand_over(from: &Api, to: &Api) {
    for recipient in from.store.recipients(&tenant(), None, None, 99).await.unwrap() {
        to.store.change(DirectoryChange::CreateRecipient(recipient), None).await.unwrap();
    }
    for key in from.store.dkim_keys(None, None).await.unwrap() {
        to.store.change(DirectoryChange::CreateDkimKey(key), None).await.unwrap();
    }
    for mailbox in from.store.mailboxes(None).await.unwrap() {
        to.store.change(DirectoryChange::CreateMailbox(mailbox), None).await.unwrap();
    }
    for webhook in from.store.subscribers(None).await.unwrap() {
        to.store.change(DirectoryChange::CreateSubscriber(webhook), None).await.unwrap();
    }
}

/// A gateway that knew one key only, and has a recipient with a number, one without, and a suspended signing
/// key.
async fn furnished() -> Api {
    let api = Api::start().await;
    for recipient in [
        json!({"address": "ada@example.net", "personal_number": "19800101-1234"}),
        json!({"address": "bob@example.net"}),
    ] {
        api.post("/v1/recipients", recipient).await.ok(201);
    }
    let signing = json!({"domain": "example.com", "selector": "s1", "algorithm": "ed25519"});
    api.post("/v1/dkim", signing).await.ok(201);
    api.post("/v1/dkim/example.com/s1/suspend", json!({})).await.ok(200);
    api.post("/v1/webhooks", json!({"url": "https://app.example.com/"})).await.ok(201);
    api.mailbox("back", json!({})).await;
    api
}

/// The one webhook.
async fn webhook(api: &Api) -> Subscriber {
    api.store.subscribers(None).await.unwrap().remove(0)
}

/// The recipient with a number.
async fn ada(api: &Api) -> KnownRecipient {
    api.store.recipients(&tenant(), Some("ada@example.net"), None, 1).await.unwrap().remove(0)
}

async fn found(api: &Api) -> Value {
    api.get("/v1/recipients?personal_number=19800101-1234").await.ok(200)["data"].clone()
}

#[tokio::test]
async fn personal_numbers_and_signing_keys_are_sealed_anew() {
    let old = furnished().await;
    let new = Api::with_secret_key(key(8).with_previous(key(7))).await;
    hand_over(&old, &new).await;
    let before = found(&new).await;
    assert_eq!(before[0]["address"], "ada@example.net", "the key before still finds it");

    let done = new.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!((&done["recipients"], &done["dkim_keys"]), (&json!(1), &json!(1)), "{done}");
    assert_eq!((&done["unreadable"], &done["busy"]), (&json!([]), &json!([])));
    assert_eq!((&done["webhooks"], &done["mailboxes"]), (&json!(1), &json!(1)));
    let again = new.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!((&again["recipients"], &again["dkim_keys"]), (&json!(0), &json!(0)), "it is done once");

    let alone = Api::with_secret_key(key(8)).await;
    hand_over(&new, &alone).await;
    let after = found(&alone).await;
    assert_eq!(after[0]["personal_number"], before[0]["personal_number"]);
    assert_eq!((&after[0]["id"], &after[0]["version"]), (&before[0]["id"], &json!(2)));
    let signing = alone.store.dkim_keys(None, None).await.unwrap().remove(0);
    assert!(!signing.active, "what was switched off stays so");
    let place = DkimKey::sealing_context(&signing.tenant, &signing.domain, &signing.selector);
    let sealed_before = old.store.dkim_keys(None, None).await.unwrap().remove(0).private;
    assert_eq!(key(8).open(&place, &signing.private), key(7).open(&place, &sealed_before));

    let (hook, hook_before) = (webhook(&alone).await, webhook(&old).await);
    let hook_place = Subscriber::sealing_context(&hook.tenant, &hook.id);
    assert_eq!(
        key(8).open(&hook_place, &hook.secrets.unwrap()),
        key(7).open(&hook_place, &hook_before.secrets.unwrap())
    );

    let boxes = [&alone, &old].map(|api| async { api.store.mailboxes(None).await.unwrap().remove(0) });
    let [now, before] = futures::future::join_all(boxes).await.try_into().unwrap();
    let mailbox_place = WatchedMailbox::sealing_context(&now.tenant, &now.id);
    assert_eq!(
        key(8).open(&mailbox_place, &now.secret.unwrap()),
        key(7).open(&mailbox_place, &before.secret.unwrap())
    );

    let audit = new.get("/v1/audit?limit=9").await.ok(200);
    let targets: Vec<&str> =
        audit["data"].as_array().unwrap().iter().filter_map(|entry| entry["target"].as_str()).collect();
    assert!(targets.contains(&place.as_str()) && targets.contains(&"recipient/default"), "{targets:?}");
}

#[tokio::test]
async fn what_opens_with_no_key_is_named() {
    let old = furnished().await;
    let stranger = Api::with_secret_key(key(9)).await;
    hand_over(&old, &stranger).await;
    let done = stranger.post("/v1/secrets/rotate", json!({})).await.ok(200);
    let places = [
        DkimKey::sealing_context(&tenant(), "example.com", "s1"),
        Subscriber::sealing_context(&tenant(), &webhook(&old).await.id),
        WatchedMailbox::sealing_context(&tenant(), &"back".parse().unwrap()),
        KnownRecipient::sealing_context(&tenant(), &ada(&old).await.id),
    ];
    assert_eq!(done["unreadable"], json!(places));
    assert_eq!((&done["recipients"], &done["dkim_keys"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn a_directory_of_many_recipients_is_gone_through_whole() {
    let api = Api::with_secret_key(key(8).with_previous(key(7))).await;
    let sample = ada(&furnished().await).await;
    for number in 0..1_100_u128 {
        let id = RecipientId::from_bytes(number.to_be_bytes());
        let sealed = key(7).seal(&KnownRecipient::sealing_context(&tenant(), &id), "19800101-1234").unwrap();
        let recipient = KnownRecipient { id, personal_number: Some(sealed), ..sample.clone() };
        api.store.change(DirectoryChange::CreateRecipient(recipient), None).await.unwrap();
    }
    let done = api.post("/v1/secrets/rotate", json!({})).await.ok(200);
    assert_eq!((&done["recipients"], &done["busy"]), (&json!(1_100), &json!([])));
}
