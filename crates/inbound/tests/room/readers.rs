//! What readers write back: that they leave a stream.

use postway_domain::{
    Clock, EventKind, InboundState, MailStream, MessageUid, TenantSettings,
    mailbox::{MailboxRole, Start},
};
use postway_intake::RequestContext;
use postway_store::{
    Streams,
    record::{DirectoryChange, SuppressionReason, SuppressionScope},
};
use serde_json::json;

use super::{House, reports::told, tenant};

const BOUNCES: &[MailboxRole] = &[MailboxRole::Bounces];

fn stream() -> MailStream {
    MailStream {
        tenant: tenant(),
        id: "news".parse().unwrap(),
        name: String::new(),
        description: None,
        unsubscribe: true,
        unsubscribe_mailto: Some("leave@example.com".to_owned()),
        version: 1,
        created_at: postway_domain::Time::from_millis(0),
        updated_at: postway_domain::Time::from_millis(0),
    }
}

async fn send(house: &House, to: &str) -> MessageUid {
    let body =
        json!({"from": "shop@example.com", "to": to, "subject": "News", "text": "t", "stream": "news"});
    let context = RequestContext {
        tenant: tenant(),
        request_id: "r".to_owned(),
        idempotency_key: None,
        dry_run: false,
        must_leave: false,
        any_subject: false,
        spoken_times: false,
        on_doubt: None,
    };
    house.door().accept_json(&context, body.to_string().into()).await.unwrap().uid
}

#[tokio::test]
async fn a_mail_to_the_address_of_the_header_takes_its_reader_out() {
    let house = House::with(TenantSettings::default(), Start::Beginning, BOUNCES).await;
    house.change(DirectoryChange::CreateStream(stream())).await;
    let uid = send(&house, "Ada@example.org").await;
    let raw = house.raw(uid).await.replace("\r\n ", " ");
    let header = raw.lines().find(|line| line.starts_with("List-Unsubscribe: ")).unwrap().to_owned();
    let subject = header.split("?subject=").nth(1).unwrap().trim_end_matches('>').replace("%20", " ");
    assert!(header.contains("<mailto:leave@example.com?subject=unsubscribe%20"), "{header}");
    assert!(!raw.contains("List-Unsubscribe-Post"), "there is no link to click");
    let mail = |subject: &str| {
        format!("From: ada@example.org\r\nTo: leave@example.com\r\nSubject: {subject}\r\n\r\n\r\n")
    };
    let forged = format!("unsubscribe {}", "A".repeat(120));
    house.shelf.deliver(mail(&forged), house.clock.now());
    assert_eq!(house.settled(1).await[0].state, InboundState::NoMatch);
    house.shelf.deliver(mail(&subject), house.clock.now());
    let mails = house.settled(2).await;
    assert!(mails.iter().any(|mail| mail.state == InboundState::Routed), "{mails:?}");
    let events = told(&house, uid).await;
    let [(kind, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((*kind, data["via"].as_str()), (EventKind::Unsubscribed, Some("mail")));
    let scope = SuppressionScope {
        tenant: Some(tenant()),
        pattern: "ada@example.org".to_owned(),
        stream: Some("news".parse().unwrap()),
    };
    let kept = house.store.scoped_suppression(&scope).await.unwrap().unwrap();
    assert_eq!(kept.reason, SuppressionReason::Unsubscribe);
}
