//! Mail from readers: requests to leave a stream, and replies.

use postway_domain::{
    Clock, EventKind, InboundState, MailStream, MessageUid, TenantSettings,
    mailbox::{MailboxRole, WatchStart},
};
use postway_intake::RequestContext;
use postway_store::{
    InboundStore, StreamStore,
    record::{DirectoryChange, SuppressionReason, SuppressionScope},
};
use serde_json::json;

use super::{TestGateway, reports::said, tenant};

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

async fn send(gateway: &TestGateway, to: &str) -> MessageUid {
    let body =
        json!({"from": "shop@example.com", "to": to, "subject": "News", "text": "t", "stream": "news"});
    let context = RequestContext {
        tenant: tenant(),
        request_id: "r".to_owned(),
        idempotency_key: None,
        dry_run: false,
        refuses_capture: false,
        any_subject: false,
        spoken_times: false,
        on_doubt: None,
        restrictions: None,
        trace: postway_intake::RequestTrace::default(),
    };
    gateway.door().accept_json(&context, body.to_string().into()).await.unwrap().uid
}

#[tokio::test]
async fn a_mail_to_the_address_of_the_header_takes_its_reader_out() {
    let gateway = TestGateway::with(TenantSettings::default(), WatchStart::Beginning, BOUNCES).await;
    gateway.change(DirectoryChange::CreateStream(stream())).await;
    let uid = send(&gateway, "Ada@example.org").await;
    let raw = gateway.raw(uid).await.replace("\r\n ", " ");
    let header = raw.lines().find(|line| line.starts_with("List-Unsubscribe: ")).unwrap().to_owned();
    let subject = header.split("?subject=").nth(1).unwrap().trim_end_matches('>').replace("%20", " ");
    assert!(header.contains("<mailto:leave@example.com?subject=unsubscribe%20"), "{header}");
    assert!(!raw.contains("List-Unsubscribe-Post"), "there is no link to click");
    let mail = |subject: &str| {
        format!("From: ada@example.org\r\nTo: leave@example.com\r\nSubject: {subject}\r\n\r\n\r\n")
    };
    let forged = format!("unsubscribe {}", "A".repeat(120));
    gateway.mail_server.deliver(mail(&forged), gateway.clock.now());
    assert_eq!(gateway.settled(1).await[0].state, InboundState::NoMatch);
    gateway.mail_server.deliver(mail(&subject), gateway.clock.now());
    let mails = gateway.settled(2).await;
    assert!(mails.iter().any(|mail| mail.state == InboundState::Routed), "{mails:?}");
    let events = said(&gateway, uid).await;
    let [(kind, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((*kind, data["via"].as_str()), (EventKind::Unsubscribed, Some("mail")));
    let scope = SuppressionScope {
        tenant: Some(tenant()),
        pattern: "ada@example.org".to_owned(),
        stream: Some("news".parse().unwrap()),
    };
    let kept = gateway.store.scoped_suppression(&scope).await.unwrap().unwrap();
    assert_eq!(kept.reason, SuppressionReason::Unsubscribe);
}

#[tokio::test]
async fn an_answer_is_told_of_its_message_without_what_it_quotes() {
    let gateway = TestGateway::with(TenantSettings::default(), WatchStart::Beginning, BOUNCES).await;
    let uid = gateway.send(&["ada@example.org"]).await;
    let other = gateway.send(&["bob@example.org"]).await;
    let answer = format!(
        "From: Ada <ADA@example.org>\r\nTo: shop@example.com\r\nSubject: Re: Your order\r\nMessage-ID: <1@example.org>\r\n\
         In-Reply-To: <unknown@example.org>\r\nReferences: <{other}@example.com> <{uid}@example.com>\r\n\r\n\
         Thank you!\r\n\r\nOn Mon, 3 Nov 2026 at 10:00, Shop <shop@example.com> wrote:\r\n> Your order\r\n"
    );
    gateway.mail_server.deliver(answer, gateway.clock.now());
    let mails = gateway.settled(1).await;
    assert_eq!((mails[0].state, mails[0].kind.as_deref()), (InboundState::Routed, Some("ordinary")));
    let events = said(&gateway, uid).await;
    let [(kind, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(*kind, EventKind::Replied);
    assert_eq!(
        [&data["text"], &data["recipient"], &data["subject"]],
        ["Thank you!", "ada@example.org", "Re: Your order"]
    );
    assert_eq!(data["inbound"], mails[0].uid.to_string());
    assert!(said(&gateway, other).await.is_empty(), "the nearest message is the one that is answered");
    gateway.store.replay_inbound(&tenant(), mails[0].uid, gateway.clock.now()).await.unwrap();
    gateway.settled(1).await;
    assert_eq!(said(&gateway, uid).await.len(), 1, "dealt with once more, it is said once");
}

#[tokio::test]
async fn an_answer_to_nothing_of_ours_is_ordinary_mail() {
    let gateway = TestGateway::with(TenantSettings::default(), WatchStart::Beginning, BOUNCES).await;
    let gone = "0190a4c2-7b3e-7def-8123-456789abcdef";
    let answer = format!("From: a@example.org\r\nIn-Reply-To: <{gone}@example.com>\r\n\r\nHi\r\n");
    gateway.mail_server.deliver(answer, gateway.clock.now());
    assert_eq!(gateway.settled(1).await[0].state, InboundState::NoMatch);
}
