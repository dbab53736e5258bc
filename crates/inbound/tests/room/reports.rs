//! Reports and receipts: what mail says about messages that went out.

use postway_domain::{
    Clock, EventKind, InboundState, MessageUid, TenantSettings,
    mailbox::{MailboxRole, Start},
    verp::{self, VerpKey},
};
use postway_store::{
    Directory, Inbound, Read,
    record::{MessageKey, SuppressionReason},
};
use serde_json::Value;

use super::{House, secret_key, tenant};

const BOUNCES: &[MailboxRole] = &[MailboxRole::Bounces];

/// A delivery report about a recipient, sent to an address, with a returned header.
fn bounce(to: &str, recipient: &str, status: &str, words: &str, returned: &str) -> String {
    format!(
        "Return-Path: <>\r\nDelivered-To: {to}\r\nFrom: MAILER-DAEMON@mx.example.org\r\nTo: {to}\r\nSubject: Undelivered Mail Returned to Sender\r\n\
         Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
         --b\r\nContent-Type: text/plain\r\n\r\nThis is the mail system. {words}\r\n\
         --b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\n\
         Final-Recipient: rfc822; {recipient}\r\nAction: failed\r\nStatus: {status}\r\nDiagnostic-Code: smtp; {words}\r\n\r\n\
         --b\r\nContent-Type: text/rfc822-headers\r\n\r\nFrom: shop@example.com\r\nSubject: Your order\r\n{returned}\r\n--b--\r\n"
    )
}

const UNKNOWN: &str = "550 5.1.1 <ada@example.org>: Recipient address rejected: User unknown";

async fn told(house: &House, uid: MessageUid) -> Vec<(EventKind, Value)> {
    let record = house.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap();
    let after = record.events.into_iter().filter(|event| event.kind.code() >= EventKind::Delivered.code());
    after
        .map(|event| {
            (event.kind, event.data.map_or(Value::Null, |data| serde_json::from_str(&data).unwrap()))
        })
        .collect()
}

async fn is_suppressed(house: &House, address: &str) -> bool {
    let found = house.store.suppression(&tenant(), address).await.unwrap();
    found.is_some_and(|found| found.reason != SuppressionReason::Manual)
}

#[tokio::test]
async fn a_bounce_finds_its_message_by_each_proof_and_suppresses() {
    let settings = TenantSettings { bounce_domain: Some("b.example.net".to_owned()), ..Default::default() };
    for proof in ["verp", "postway_id", "message_id"] {
        let house = House::with(settings.clone(), Start::Beginning, BOUNCES).await;
        let uid = house.send(&["Ada@Example.org", "bob@example.org"]).await;
        let (to, returned) = match proof {
            "verp" => (verp::encode(uid, &VerpKey::new(&secret_key()), "b.example.net"), String::new()),
            "postway_id" => ("bounces@example.net".to_owned(), format!("X-Postway-ID: {uid}\r\n")),
            _ => ("bounces@example.net".to_owned(), format!("Message-ID: <{uid}@example.com>\r\n")),
        };
        house.shelf.deliver(bounce(&to, "ada@example.org", "5.1.1", UNKNOWN, &returned), house.clock.now());
        let mails = house.settled(1).await;
        assert_eq!((mails[0].state, mails[0].kind.as_deref()), (InboundState::Routed, Some("bounce")));
        let events = told(&house, uid).await;
        let [(kind, data)] = events.as_slice() else { panic!("{proof}: {events:?}") };
        assert_eq!(*kind, EventKind::Bounced);
        assert_eq!([&data["proof"], &data["status"], &data["type"]], [proof, "5.1.1", "hard"]);
        assert!(is_suppressed(&house, "ada@example.org").await, "{proof}");
        assert!(!is_suppressed(&house, "bob@example.org").await);
        let record = house.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap();
        assert_eq!(record.recipients[0].outcome, Some(EventKind::Bounced));
        assert_eq!(record.recipients[1].outcome, None);
        let shown: Value = serde_json::from_str(record.recipients[0].bounce.as_deref().unwrap()).unwrap();
        assert_eq!([&shown["type"], &shown["code"], &shown["reason"]], ["hard", "5.1.1", "user_unknown"]);
    }
}

#[tokio::test]
async fn a_forged_report_suppresses_nobody() {
    let house = House::new(Start::Beginning, BOUNCES).await;
    let uid = house.send(&["ada@example.org"]).await;
    let forged = MessageUid::new(house.clock.now(), &mut rand::rng());
    let path = verp::encode(
        uid,
        &VerpKey::new(&postway_domain::secret::SecretKey::from_bytes(&[8; 32]).unwrap()),
        "x",
    );
    for (to, returned) in [
        (path, String::new()),
        (
            "bounces@example.net".to_owned(),
            format!("X-Postway-ID: {forged}\r\nMessage-ID: <{forged}@example.com>\r\n"),
        ),
        ("bounces@example.net".to_owned(), String::new()),
    ] {
        house.shelf.deliver(bounce(&to, "ada@example.org", "5.1.1", UNKNOWN, &returned), house.clock.now());
    }
    let mails = house.settled(3).await;
    assert!(mails.iter().all(|mail| mail.state == InboundState::NoMatch), "{mails:#?}");
    assert!(mails[0].error.as_deref().unwrap().contains("no message of ours was found"));
    assert!(!is_suppressed(&house, "ada@example.org").await);
    assert_eq!(told(&house, uid).await, []);
}

#[tokio::test]
async fn another_tenants_mailbox_tells_nothing_about_a_message() {
    let house = House::new(Start::Beginning, BOUNCES).await;
    let other = postway_domain::Tenant::new("other".parse().unwrap(), "Other", house.clock.now());
    assert!(house.store.create_tenant(other).await.unwrap());
    let mut mailbox = super::mailbox(Start::Beginning, BOUNCES);
    mailbox.tenant = "other".parse().unwrap();
    house.change(postway_store::record::DirectoryChange::CreateMailbox(mailbox)).await;
    house.change(postway_store::record::DirectoryChange::DeleteMailbox(super::key())).await;
    let uid = house.send(&["ada@example.org"]).await;
    house.shelf.deliver(
        bounce("b@x.example", "ada@example.org", "5.1.1", UNKNOWN, &format!("X-Postway-ID: {uid}\r\n")),
        house.clock.now(),
    );
    house
        .until("it is settled", || async {
            let mails =
                house.store.inbound(&"other".parse().unwrap(), &Default::default(), None, 10).await.unwrap();
            mails.iter().any(|mail| mail.state == InboundState::NoMatch)
        })
        .await;
    assert_eq!(told(&house, uid).await, []);
    assert!(!is_suppressed(&house, "ada@example.org").await);
}

#[tokio::test]
async fn a_policy_block_bounces_and_suppresses_nobody() {
    let house = House::new(Start::Beginning, BOUNCES).await;
    let uid = house.send(&["ada@example.org"]).await;
    let words = "550 5.7.1 Message rejected due to local policy";
    house.shelf.deliver(
        bounce("b@x.example", "ada@example.org", "5.7.1", words, &format!("X-Postway-ID: {uid}\r\n")),
        house.clock.now(),
    );
    house.settled(1).await;
    let events = told(&house, uid).await;
    assert_eq!((events[0].0, &events[0].1["type"]), (EventKind::Bounced, &Value::from("soft")));
    assert!(!is_suppressed(&house, "ada@example.org").await);
}

#[tokio::test]
async fn a_bounce_that_is_replayed_says_nothing_twice() {
    let house = House::new(Start::Beginning, BOUNCES).await;
    let uid = house.send(&["ada@example.org"]).await;
    let report =
        |to: &str| bounce(to, "ada@example.org", "5.1.1", UNKNOWN, &format!("X-Postway-ID: {uid}\r\n"));
    house.shelf.deliver(report("b@x.example"), house.clock.now());
    let mails = house.settled(1).await;
    let first = told(&house, uid).await;
    assert_eq!((first.len(), &first[0].1["inbound"]), (1, &Value::from(mails[0].uid.to_string())));
    for _ in 0..2 {
        house.store.replay_inbound(&tenant(), mails[0].uid, house.clock.now()).await.unwrap();
        house.settled(1).await;
        assert_eq!(told(&house, uid).await, first);
    }
    // Another report is another.
    house.shelf.deliver(report("c@x.example"), house.clock.now());
    house.settled(2).await;
    assert_eq!(told(&house, uid).await.len(), 2);
}

#[tokio::test]
async fn ordinary_mail_in_a_bounce_mailbox_is_no_match() {
    let house = House::new(Start::Beginning, BOUNCES).await;
    house.shelf.deliver(super::mail(1), house.clock.now());
    let mails = house.settled(1).await;
    assert_eq!((mails[0].state, mails[0].kind.as_deref()), (InboundState::NoMatch, Some("ordinary")));
}

fn receipt(kind: &str, uid: MessageUid, own_id: &str) -> String {
    format!(
        "X-Ricevuta: {kind}\r\nX-Riferimento-Message-ID: <{uid}@example.com>\r\nMessage-ID: <{own_id}@pec.example>\r\nFrom: posta-certificata@pec.example\r\n\
         Subject: {kind}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nRicevuta {own_id}\r\n\
         --b\r\nContent-Type: application/xml; name=daticert.xml\r\nContent-Disposition: attachment; filename=daticert.xml\r\n\r\n\
         <?xml version=\"1.0\" encoding=\"UTF-8\"?><postacert tipo=\"{kind}\" errore=\"nessuno\"><intestazione><mittente>shop@example.com</mittente>\
         <destinatari tipo=\"certificato\">ada@pec.example</destinatari></intestazione><dati><gestore-emittente>G</gestore-emittente>\
         <msgid>&lt;{uid}@example.com&gt;</msgid><consegna>ada@pec.example</consegna></dati></postacert>\r\n--b--\r\n"
    )
}

#[tokio::test]
async fn receipts_become_part_of_their_message_each_once() {
    let house = House::new(Start::Beginning, &[MailboxRole::Pec, MailboxRole::Forward]).await;
    let uid = house.send(&["ada@pec.example"]).await;
    for (kind, own_id) in [
        ("accettazione", "r1"),
        ("preavviso-errore-consegna", "r2"),
        ("preavviso-errore-consegna", "r3"),
        ("avvenuta-consegna", "r4"),
    ] {
        house.shelf.deliver(receipt(kind, uid, own_id), house.clock.now());
        let count = house.shelf.state().mails.len();
        house.settled(count).await;
    }
    let kinds: Vec<_> = told(&house, uid).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        kinds,
        [EventKind::PecAccepted, EventKind::Delayed, EventKind::PecFailed, EventKind::PecDelivered]
    );
    let kept = house.store.receipts(&tenant(), uid).await.unwrap();
    assert_eq!(kept.len(), 4);
    assert!(kept.iter().all(|receipt| receipt.signature == "absent"));
    assert_eq!(kept[3].address.as_deref(), Some("ada@pec.example"));
    let mails = house.mails().await;
    assert!(
        mails.iter().all(|mail| mail.kind.as_deref() == Some("pec") && mail.state == InboundState::Routed)
    );
    // Looked at once more, nothing is written twice.
    house.store.replay_inbound(&tenant(), mails[3].uid, house.clock.now()).await.unwrap();
    house.settled(4).await;
    assert_eq!(told(&house, uid).await.len(), 4);
}
