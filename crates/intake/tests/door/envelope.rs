//! Envelope senders, and the headers that receivers ask for.

use postway_domain::{
    MessageUid, TenantSettings,
    verp::{VerpAddress, VerpKey, VerpScope},
};
use postway_intake::{AcceptReceipt, RawOptions};
use serde_json::{Value, json};

use crate::{GatewayPlan, TestGateway, account, claim, ctx, faults, message, secret_key};

async fn sender(gateway: &TestGateway, changes: Value) -> (AcceptReceipt, String) {
    let receipt = gateway.send(&message(changes)).await.unwrap();
    let sender = claim(gateway, receipt.uid).await.sender;
    (receipt, sender)
}

fn settings(settings: Value) -> TenantSettings {
    serde_json::from_value(settings).unwrap()
}

/// The message that an envelope sender names, and what its signature covers.
fn signed(sender: &str, recipients: &[&str]) -> Option<(MessageUid, VerpScope)> {
    let address = VerpAddress::read(sender)?;
    let recipients: Vec<String> = recipients.iter().map(|one| (*one).to_owned()).collect();
    Some((address.uid(), address.scope(&VerpKey::new(&secret_key()), &recipients)?))
}

#[tokio::test]
async fn the_envelope_sender_is_the_most_particular_there_is() {
    use postway_store::DirectoryStore;
    let plan = settings(json!({"bounce_domain": "bounce.example.com", "return_path": "tenant@example.com"}));
    let gateway = GatewayPlan::with(plan).await;
    assert!(gateway.store.create_account(account("fixed", Some("account@example.com"))).await.unwrap());
    let requested = json!({"account": "fixed", "return_path": "request@example.com"});
    assert_eq!(sender(&gateway, requested).await.1, "request@example.com");
    assert_eq!(sender(&gateway, json!({"account": "fixed"})).await.1, "account@example.com");
    let (receipt, own) = sender(&gateway, json!({"to": "ann@example.net"})).await;
    assert!(own.ends_with("@bounce.example.com"), "{own}");
    assert_eq!(signed(&own, &["ann@example.net"]), Some((receipt.uid, VerpScope::Recipient)));
    // A bcc recipient shares the envelope.
    let (receipt, own) = sender(&gateway, json!({"to": "ann@example.net", "bcc": "bob@example.net"})).await;
    let both = ["ann@example.net", "bob@example.net"];
    assert_eq!(signed(&own, &both), Some((receipt.uid, VerpScope::Message)));
    let mail = bytes::Bytes::from_static(b"From: a@example.com\nTo: b@example.net\n\nHi\n");
    let receipt = gateway.door.accept_raw(&ctx(), RawOptions::default(), mail).await.unwrap();
    let own = claim(&gateway, receipt.uid).await.sender;
    assert_eq!(signed(&own, &["b@example.net"]), Some((receipt.uid, VerpScope::Recipient)));
    let gateway = GatewayPlan::with(settings(json!({"return_path": "tenant@example.com"}))).await;
    assert_eq!(sender(&gateway, json!({})).await.1, "tenant@example.com");
    assert_eq!(sender(&gateway, json!({"return_path": ""})).await.1, "");
    assert_eq!(sender(&TestGateway::new().await, json!({})).await.1, "shop@example.com");
}

async fn header(gateway: &TestGateway, changes: Value, name: &str) -> Option<String> {
    let receipt = gateway.send(&message(changes)).await.unwrap();
    let raw = gateway.raw(receipt.uid).await;
    let (head, _) = raw.split_once("\r\n\r\n").unwrap();
    let head = head.replace("\r\n ", " ");
    let value = head.split("\r\n").find_map(|line| line.strip_prefix(&format!("{name}: "))?.into());
    value.map(str::to_owned)
}

#[tokio::test]
async fn readers_can_get_off_the_list() {
    let gateway = TestGateway::new().await;
    let both = json!({"unsubscribe": {"url": "https://example.com/u?x=1", "mailto": "off@example.com"}});
    assert_eq!(
        header(&gateway, both.clone(), "List-Unsubscribe").await.as_deref(),
        Some("<https://example.com/u?x=1>, <mailto:off@example.com>")
    );
    let one_click = header(&gateway, both, "List-Unsubscribe-Post").await;
    assert_eq!(one_click.as_deref(), Some("List-Unsubscribe=One-Click"));
    let mail_alone = json!({"unsubscribe": {"mailto": "off@example.com"}});
    assert_eq!(header(&gateway, mail_alone.clone(), "List-Unsubscribe-Post").await, None);
    assert!(header(&gateway, mail_alone, "List-Unsubscribe").await.is_some());
    let injected = json!({"unsubscribe": {"url": "https://x/\r\nBcc: y@example.org"}});
    assert_eq!(
        faults(gateway.send(&message(injected)).await),
        [("unsubscribe.url".to_owned(), "INVALID_PAYLOAD")]
    );
}

#[tokio::test]
async fn mail_made_by_programs_says_so_where_asked() {
    let quiet = TestGateway::new().await;
    assert_eq!(header(&quiet, json!({}), "Auto-Submitted").await, None);
    let asked = header(&quiet, json!({"auto_submitted": true}), "Auto-Submitted").await;
    assert_eq!(asked.as_deref(), Some("auto-generated"));
    let always = GatewayPlan::with(settings(json!({"auto_submitted": true}))).await;
    assert!(header(&always, json!({}), "Auto-Submitted").await.is_some());
    assert_eq!(header(&always, json!({"auto_submitted": false}), "Auto-Submitted").await, None);
}

#[tokio::test]
async fn the_clients_id_stands_in_the_field_that_its_tenant_names() {
    const NAME: &str = "X-Genro-Mail-ID";
    let gateway = GatewayPlan::with(settings(json!({"id_header": NAME}))).await;
    assert_eq!(header(&gateway, json!({"id": "msg-123"}), NAME).await.as_deref(), Some("msg-123"));
    assert_eq!(header(&gateway, json!({}), NAME).await, None);
    let given = json!({"id": "msg-124", "headers": {"x-genro-mail-id": "theirs"}});
    assert_eq!(header(&gateway, given.clone(), NAME).await, None, "the message's own field stays alone");
    assert_eq!(
        header(&gateway, json!({"id": "msg-125", "headers": {NAME: "theirs"}}), NAME).await.as_deref(),
        Some("theirs")
    );
    assert_eq!(header(&TestGateway::new().await, json!({"id": "msg-123"}), NAME).await, None);
}

#[tokio::test]
async fn complaints_are_counted_by_batch_account_and_tenant() {
    let gateway = GatewayPlan::with(settings(json!({"feedback_id": "shop-mail"}))).await;
    let id = header(&gateway, json!({"batch": "spring", "account": "second"}), "Feedback-ID").await;
    assert_eq!(id.as_deref(), Some("spring:second:default:shop-mail"));
    assert_eq!(header(&TestGateway::new().await, json!({}), "Feedback-ID").await, None);
}
