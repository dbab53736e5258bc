//! Messages for recipients of the tenant's directory.

use postway_domain::{KnownRecipient, RecipientId, TenantId, Time};
use postway_store::record::DirectoryChange;
use serde_json::json;

use crate::{NOW_MS, TestGateway, faults, message, tenant};

pub(crate) fn known(of: TenantId, external_id: &str) -> KnownRecipient {
    let now = Time::from_millis(NOW_MS);
    KnownRecipient {
        tenant: of,
        id: RecipientId::new(now, &mut rand::rng()),
        external_id: Some(external_id.to_owned()),
        name: Some("Ada".to_owned()),
        address: "A@example.net".to_owned(),
        locale: None,
        personal_number: None,
        personal_number_digest: None,
        personal_number_masked: None,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    }
}

async fn put(gateway: &TestGateway, recipient: &KnownRecipient) {
    gateway.change(DirectoryChange::CreateRecipient(recipient.clone())).await;
}

#[tokio::test]
async fn a_known_recipient_is_kept_with_the_message() {
    let gateway = TestGateway::new().await;
    let ada = known(tenant(), "C-1");
    put(&gateway, &ada).await;
    for recipient in [
        json!({"id": ada.id.to_string()}),
        json!({"external_id": "C-1"}),
        json!({"id": ada.id.to_string(), "external_id": "C-1", "email": "a@EXAMPLE.net", "name": "Ada"}),
    ] {
        let receipt = gateway.send(&message(json!({"recipient": recipient}))).await.unwrap();
        assert_eq!(gateway.stored(receipt.uid).await.recipient, Some(ada.id), "{recipient}");
        let (_, validated) = gateway.events(receipt.uid).await.remove(1);
        assert_eq!(validated["checks"][1]["known"], true);
    }
    let receipt = gateway.send(&message(json!({"recipient": {"external_id": "free"}}))).await.unwrap();
    assert_eq!(gateway.stored(receipt.uid).await.recipient, None, "the directory is optional");
}

#[tokio::test]
async fn a_recipient_must_be_there_undeleted_and_the_one_in_to() {
    let gateway = TestGateway::new().await;
    let (ada, gone, theirs) =
        (known(tenant(), "C-1"), known(tenant(), "C-2"), known("other".parse().unwrap(), "C-3"));
    for recipient in [&ada, &gone, &theirs] {
        put(&gateway, recipient).await;
    }
    gateway.change(DirectoryChange::DeleteRecipient(tenant(), gone.id, Time::from_millis(NOW_MS))).await;
    let (ada, gone, theirs) = (ada.id.to_string(), gone.id.to_string(), theirs.id.to_string());
    let unknown = RecipientId::new(Time::from_millis(NOW_MS), &mut rand::rng()).to_string();
    for (changes, field, code) in [
        (json!({"recipient": {"id": unknown}}), "recipient.id", "RECIPIENT_NOT_FOUND"),
        (json!({"recipient": {"id": theirs}}), "recipient.id", "RECIPIENT_NOT_FOUND"),
        (json!({"recipient": {"id": gone}}), "recipient", "RECIPIENT_NOT_FOUND"),
        (json!({"recipient": {"external_id": "C-2"}}), "recipient", "RECIPIENT_NOT_FOUND"),
        (json!({"recipient": {"id": ada}, "to": "b@example.net"}), "recipient", "INVALID_EMAIL"),
        (json!({"recipient": {"external_id": "C-1"}, "to": "b@example.net"}), "recipient", "INVALID_EMAIL"),
        (json!({"recipient": {"id": ada, "email": "b@example.net"}}), "recipient.email", "INVALID_PAYLOAD"),
        (
            json!({"recipient": {"id": ada, "external_id": "C-9"}}),
            "recipient.external_id",
            "RECIPIENT_NOT_FOUND",
        ),
        (json!({"recipient": {"email": "a@example.net"}}), "recipient", "INVALID_PAYLOAD"),
    ] {
        let refused = gateway.send(&message(changes.clone())).await;
        assert_eq!(faults(refused), [(field.to_owned(), code)], "{changes}");
    }
    assert_eq!(gateway.count().await, 0);
}
