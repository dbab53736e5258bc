//! Mail as data: the event `email.received` of a mailbox with the role `events`.

use postway_domain::{
    Clock, InboundState, WatchedMailbox,
    mailbox::{MailboxRole, MailboxSettings, WatchStart},
};
use postway_store::{InboundStore, record::DirectoryChange};
use serde_json::{Value, json};

use super::{TestGateway, key, mail, tenant};

const EVENTS: &[MailboxRole] = &[MailboxRole::Events];

async fn events(gateway: &TestGateway) -> Vec<Value> {
    let mails = gateway.mails().await;
    let mut found = Vec::new();
    for one in mails {
        let record = gateway.store.inbound_one(&tenant(), one.uid).await.unwrap().unwrap();
        found.extend(
            record.events.into_iter().map(|event| serde_json::from_str(&event.data.unwrap()).unwrap()),
        );
    }
    found
}

async fn trust(gateway: &TestGateway, authserv_id: &str) {
    let (mailbox, _) = gateway.store.mailbox(&key()).await.unwrap().unwrap();
    let settings = MailboxSettings { authserv_id: Some(authserv_id.to_owned()), ..mailbox.settings.clone() };
    let version = mailbox.version;
    let changed = WatchedMailbox { settings, version: version + 1, ..mailbox };
    gateway.change(DirectoryChange::UpdateMailbox(changed, version)).await;
}

#[tokio::test]
async fn every_ordinary_mail_is_an_event_and_again_when_it_is_replayed() {
    let gateway = TestGateway::new(WatchStart::Beginning, EVENTS).await;
    trust(&gateway, "mx.example.net").await;
    let raw = String::from_utf8(mail(1)).unwrap();
    let raw = format!(
        "Delivered-To: support@example.net\r\nAuthentication-Results: mx.example.net; dmarc=pass header.from=example.org\r\n\
         X-Spam-Score: 1.5\r\n{raw}"
    );
    gateway.mail_server.deliver(raw, gateway.clock.now());
    let mails = gateway.settled(1).await;
    assert_eq!((mails[0].state, mails[0].kind.as_deref()), (InboundState::Routed, Some("ordinary")));
    let found = events(&gateway).await;
    let [event] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!([&event["subject"], &event["message_id"]], ["Question 1", "q1@example.org"]);
    assert_eq!(event["envelope"], json!({"from": "ada@example.org", "to": ["support@example.net"]}));
    assert_eq!(event["authentication"]["dmarc"], json!({"result": "pass", "domain": "example.org"}));
    assert_eq!(event["spam"], json!({"score": "1.5"}));
    gateway.store.replay_inbound(&tenant(), mails[0].uid, gateway.clock.now()).await.unwrap();
    gateway.settled(1).await;
    assert_eq!(events(&gateway).await.len(), 2, "a replay tells it anew");
}

#[tokio::test]
async fn reports_are_no_such_event_and_rules_add_to_it() {
    let roles = [MailboxRole::Events, MailboxRole::Forward];
    let gateway = TestGateway::new(WatchStart::Beginning, &roles).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    let bounce = "From: MAILER-DAEMON@mx.example.org\r\nSubject: Undelivered\r\nContent-Type: multipart/report; \
        report-type=delivery-status; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n\
        Reporting-MTA: dns; x\r\n\r\nFinal-Recipient: rfc822; a@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n--b--\r\n";
    gateway.rule("all", 1, json!({"actions": [{"do": "tag", "tag": "seen"}]})).await;
    gateway.mail_server.deliver(bounce.to_owned(), gateway.clock.now());
    gateway.settled(2).await;
    let found = events(&gateway).await;
    let [event] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((&event["subject"], &event["tags"]), (&json!("Question 1"), &json!(["seen"])));
    assert_eq!(event["authentication"], Value::Null, "nobody is trusted unless a name is given");
}

#[tokio::test]
async fn mail_is_told_without_waiting_for_a_rule() {
    let roles = [MailboxRole::Events, MailboxRole::Forward];
    let gateway = TestGateway::new(WatchStart::Beginning, &roles).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    assert_eq!(gateway.settled(1).await[0].state, InboundState::Routed);
    assert_eq!(events(&gateway).await.len(), 1);
}
