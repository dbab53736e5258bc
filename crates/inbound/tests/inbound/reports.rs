//! Reports and receipts: what inbound mail says about sent messages.

use std::time::Duration;

use postway_domain::{
    Clock, EventKind, InboundState, MessageUid, TenantSettings, Time,
    mailbox::{MailboxRole, WatchStart},
    verp::{self, VerpKey},
};
use postway_intake::{RawOptions, RequestContext};
use postway_store::{
    DirectoryStore, InboundStore, Read,
    record::{MessageKey, SuppressionReason},
};
use serde_json::{Value, json};

use super::{TestGateway, secret_key, tenant};

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

pub(super) async fn said(gateway: &TestGateway, uid: MessageUid) -> Vec<(EventKind, Value)> {
    let record = gateway.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap();
    let after = record.events.into_iter().filter(|event| event.kind.code() >= EventKind::Delivered.code());
    after
        .map(|event| {
            (event.kind, event.data.map_or(Value::Null, |data| serde_json::from_str(&data).unwrap()))
        })
        .collect()
}

async fn is_suppressed(gateway: &TestGateway, address: &str) -> bool {
    let found = gateway.store.suppression(&tenant(), address).await.unwrap();
    found.is_some_and(|found| found.reason != SuppressionReason::Manual)
}

const MAILBOX: &str = "bounces@example.net";

fn signed_paths() -> TenantSettings {
    TenantSettings { bounce_domain: Some("b.example.net".to_owned()), ..Default::default() }
}

fn path(uid: MessageUid, only_recipient: Option<&str>) -> String {
    verp::encode(uid, only_recipient, &VerpKey::new(&secret_key()), "b.example.net")
}

fn postway_id(uid: MessageUid) -> String {
    format!("X-Postway-ID: {uid}\r\n")
}

fn message_id(uid: MessageUid) -> String {
    format!("Message-ID: <{uid}@example.com>\r\n")
}

/// When the suppression of Ada ends, if she is suppressed.
async fn ends(gateway: &TestGateway) -> Option<Option<Time>> {
    let found = gateway.store.suppression(&tenant(), "ada@example.org").await.unwrap();
    found.map(|found| {
        assert_eq!(found.reason, SuppressionReason::HardBounce);
        let says_so = found.note.unwrap().contains("it ends after 30 days");
        assert_eq!(says_so, found.expires_at.is_some());
        found.expires_at
    })
}

#[tokio::test]
async fn a_bounce_finds_its_message_by_each_proof_and_suppresses_by_what_it_is_worth() {
    let days_30 = Duration::from_secs(30 * 86_400);
    let both = &["Ada@Example.org", "bob@example.org"][..];
    let ada = &both[..1];
    let plain = TenantSettings::default;
    let for_a_time = || Some(true);
    for (settings, to, proof, suppresses_for_a_time) in [
        (signed_paths(), ada, "verp", Some(false)),
        // Each of several recipients has seen the path; and a path that does not name its recipient is an
        // older one.
        (signed_paths(), both, "verp_shared", for_a_time()),
        (signed_paths(), ada, "verp_shared", for_a_time()),
        // If paths are signed, a genuine bounce has one, and any other is not believed.
        (signed_paths(), ada, "postway_id", None),
        (signed_paths(), both, "message_id", None),
        (plain(), both, "postway_id", for_a_time()),
        (plain(), ada, "message_id", for_a_time()),
    ] {
        let gateway = TestGateway::with(settings, WatchStart::Beginning, BOUNCES).await;
        let uid = gateway.send(to).await;
        let (to_address, returned) = match proof {
            "verp" => (path(uid, Some(to[0])), String::new()),
            "verp_shared" => (path(uid, None), String::new()),
            "postway_id" => (MAILBOX.to_owned(), postway_id(uid)),
            _ => (MAILBOX.to_owned(), message_id(uid)),
        };
        let report = bounce(&to_address, "ada@example.org", "5.1.1", UNKNOWN, &returned);
        gateway.mail_server.deliver(report, gateway.clock.now());
        let mails = gateway.settled(1).await;
        assert_eq!((mails[0].state, mails[0].kind.as_deref()), (InboundState::Routed, Some("bounce")));
        let events = said(&gateway, uid).await;
        let [(kind, data)] = events.as_slice() else { panic!("{proof}: {events:?}") };
        let is_believed = suppresses_for_a_time.is_some();
        assert_eq!(*kind, if is_believed { EventKind::Bounced } else { EventKind::UnprovenReport });
        assert_eq!([&data["proof"], &data["status"], &data["type"]], [proof, "5.1.1", "hard"]);
        let expected = suppresses_for_a_time.map(|it| it.then(|| gateway.clock.now().plus(days_30)));
        assert_eq!(ends(&gateway).await, expected, "{proof} {to:?}");
        assert!(!is_suppressed(&gateway, "bob@example.org").await);
        let record = gateway.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap();
        assert_eq!(record.recipients[0].outcome, is_believed.then_some(EventKind::Bounced));
        assert!(record.recipients[1..].iter().all(|one| one.outcome.is_none()));
        if !is_believed {
            assert_eq!((&data["says"], &record.recipients[0].bounce), (&json!("bounced"), &None));
            continue;
        }
        let shown: Value = serde_json::from_str(record.recipients[0].bounce.as_deref().unwrap()).unwrap();
        assert_eq!([&shown["type"], &shown["code"], &shown["reason"]], ["hard", "5.1.1", "user_unknown"]);
    }
}

#[tokio::test]
async fn a_message_gets_the_path_that_suppresses_for_good_where_it_has_one_recipient() {
    let gateway = TestGateway::with(signed_paths(), WatchStart::Beginning, BOUNCES).await;
    for to in [&["Ada@Example.org"][..], &["ada@example.org", "bob@example.org"]] {
        let uid = gateway.send(to).await;
        let traced = gateway.store.traced(&[uid]).await.unwrap().remove(0);
        assert_eq!(traced.sender, path(uid, (to.len() == 1).then_some("ada@example.org")));
    }
}

#[tokio::test]
async fn a_better_proof_makes_a_suppression_permanent_and_a_lesser_one_leaves_it() {
    let gateway = TestGateway::with(signed_paths(), WatchStart::Beginning, BOUNCES).await;
    let (shared, own) = (
        gateway.send(&["ada@example.org", "bob@example.org"]).await,
        gateway.send(&["ada@example.org"]).await,
    );
    let deliver = |to: &str| {
        gateway.mail_server.deliver(bounce(to, "ada@example.org", "5.1.1", UNKNOWN, ""), gateway.clock.now());
    };
    deliver(&path(shared, None));
    gateway.settled(1).await;
    assert!(ends(&gateway).await.unwrap().is_some());
    deliver(&path(own, Some("ada@example.org")));
    gateway.settled(2).await;
    assert_eq!(ends(&gateway).await, Some(None));
    gateway.advance(Duration::from_secs(60));
    deliver(&path(shared, None).to_uppercase());
    gateway.settled(3).await;
    assert_eq!(ends(&gateway).await, Some(None));
}

/// A recipient of a message knows its ids and, if it had several recipients, its path.
#[tokio::test]
async fn a_recipient_cannot_have_another_suppressed_for_good() {
    let gateway = TestGateway::with(signed_paths(), WatchStart::Beginning, BOUNCES).await;
    let uid = gateway.send(&["mallory@example.org"]).await;
    let other = gateway.send(&["ada@example.org"]).await;
    for (to, returned) in [
        (path(uid, Some("mallory@example.org")), String::new()),
        (path(uid, Some("mallory@example.org")), postway_id(other) + &message_id(other)),
        (path(other, Some("mallory@example.org")), String::new()),
        (MAILBOX.to_owned(), postway_id(other) + &message_id(other)),
    ] {
        gateway
            .mail_server
            .deliver(bounce(&to, "ada@example.org", "5.1.1", UNKNOWN, &returned), gateway.clock.now());
    }
    gateway.settled(4).await;
    assert!(!is_suppressed(&gateway, "ada@example.org").await);
}

#[tokio::test]
async fn a_report_by_the_recipient_alone_is_told_as_unproven_and_changes_nothing() {
    for settings in [TenantSettings::default(), signed_paths()] {
        let gateway = TestGateway::with(settings, WatchStart::Beginning, BOUNCES).await;
        let uid = gateway.sent(&["ada@example.org"], None).await;
        gateway
            .mail_server
            .deliver(bounce(MAILBOX, "ada@example.org", "5.1.1", UNKNOWN, ""), gateway.clock.now());
        let mails = gateway.settled(1).await;
        assert_eq!(mails[0].state, InboundState::Routed);
        let result: Value = serde_json::from_str(mails[0].result.as_deref().unwrap()).unwrap();
        assert_eq!([&result["events"][0], &result["proof"]], ["unproven_report", "recipient_only"]);
        let events = said(&gateway, uid).await;
        let [(kind, data)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(*kind, EventKind::UnprovenReport);
        assert_eq!([&data["says"], &data["proof"], &data["status"]], ["bounced", "recipient_only", "5.1.1"]);
        assert!(!is_suppressed(&gateway, "ada@example.org").await);
        let record = gateway.store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().unwrap();
        assert_eq!((record.recipients[0].outcome, &record.recipients[0].bounce), (None, &None));
    }
}

#[tokio::test]
async fn a_forged_report_suppresses_nobody() {
    let gateway = TestGateway::new(WatchStart::Beginning, BOUNCES).await;
    let uid = gateway.send(&["ada@example.org"]).await;
    let forged = MessageUid::new(gateway.clock.now(), &mut rand::rng());
    let path = verp::encode(
        uid,
        Some("ada@example.org"),
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
        gateway
            .mail_server
            .deliver(bounce(&to, "ada@example.org", "5.1.1", UNKNOWN, &returned), gateway.clock.now());
    }
    let mails = gateway.settled(3).await;
    assert!(mails.iter().all(|mail| mail.state == InboundState::NoMatch), "{mails:#?}");
    assert!(mails[0].error.as_deref().unwrap().contains("no message of ours was found"));
    assert!(!is_suppressed(&gateway, "ada@example.org").await);
    assert_eq!(said(&gateway, uid).await, []);
}

#[tokio::test]
async fn another_tenants_mailbox_tells_nothing_about_a_message() {
    let gateway = TestGateway::new(WatchStart::Beginning, BOUNCES).await;
    let other = postway_domain::Tenant::new("other".parse().unwrap(), "Other", gateway.clock.now());
    assert!(gateway.store.create_tenant(other).await.unwrap());
    let mut mailbox = super::mailbox(WatchStart::Beginning, BOUNCES);
    mailbox.tenant = "other".parse().unwrap();
    gateway.change(postway_store::record::DirectoryChange::CreateMailbox(mailbox)).await;
    gateway.change(postway_store::record::DirectoryChange::DeleteMailbox(super::key())).await;
    let uid = gateway.send(&["ada@example.org"]).await;
    gateway.mail_server.deliver(
        bounce("b@x.example", "ada@example.org", "5.1.1", UNKNOWN, &format!("X-Postway-ID: {uid}\r\n")),
        gateway.clock.now(),
    );
    gateway
        .until("it is settled", || async {
            let mails = gateway
                .store
                .inbound(&"other".parse().unwrap(), &Default::default(), None, 10)
                .await
                .unwrap();
            mails.iter().any(|mail| mail.state == InboundState::NoMatch)
        })
        .await;
    assert_eq!(said(&gateway, uid).await, []);
    assert!(!is_suppressed(&gateway, "ada@example.org").await);
}

#[tokio::test]
async fn a_policy_block_bounces_and_suppresses_nobody() {
    let gateway = TestGateway::new(WatchStart::Beginning, BOUNCES).await;
    let uid = gateway.send(&["ada@example.org"]).await;
    let words = "550 5.7.1 Message rejected due to local policy";
    gateway.mail_server.deliver(
        bounce("b@x.example", "ada@example.org", "5.7.1", words, &format!("X-Postway-ID: {uid}\r\n")),
        gateway.clock.now(),
    );
    gateway.settled(1).await;
    let events = said(&gateway, uid).await;
    assert_eq!((events[0].0, &events[0].1["type"]), (EventKind::Bounced, &Value::from("soft")));
    assert!(!is_suppressed(&gateway, "ada@example.org").await);
}

#[tokio::test]
async fn a_bounce_that_is_replayed_says_nothing_twice() {
    let gateway = TestGateway::new(WatchStart::Beginning, BOUNCES).await;
    let uid = gateway.send(&["ada@example.org"]).await;
    let report =
        |to: &str| bounce(to, "ada@example.org", "5.1.1", UNKNOWN, &format!("X-Postway-ID: {uid}\r\n"));
    gateway.mail_server.deliver(report("b@x.example"), gateway.clock.now());
    let mails = gateway.settled(1).await;
    let first = said(&gateway, uid).await;
    assert_eq!((first.len(), &first[0].1["inbound"]), (1, &Value::from(mails[0].uid.to_string())));
    for _ in 0..2 {
        gateway.store.replay_inbound(&tenant(), mails[0].uid, gateway.clock.now()).await.unwrap();
        gateway.settled(1).await;
        assert_eq!(said(&gateway, uid).await, first);
    }
    // Another mail is another report.
    gateway.mail_server.deliver(report("c@x.example"), gateway.clock.now());
    gateway.settled(2).await;
    assert_eq!(said(&gateway, uid).await.len(), 2);
}

#[tokio::test]
async fn ordinary_mail_in_a_bounce_mailbox_is_no_match() {
    let gateway = TestGateway::new(WatchStart::Beginning, BOUNCES).await;
    gateway.mail_server.deliver(super::mail(1), gateway.clock.now());
    let mails = gateway.settled(1).await;
    assert_eq!((mails[0].state, mails[0].kind.as_deref()), (InboundState::NoMatch, Some("ordinary")));
}

/// A ready-made mail, with a Message-ID that its own program made.
pub(super) async fn hand_in(gateway: &TestGateway, message_id: &str) -> MessageUid {
    let mail =
        format!("From: shop@example.com\r\nTo: ada@example.org\r\nMessage-ID: <{message_id}>\r\n\r\nHi\r\n");
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
    gateway.door().accept_raw(&context, RawOptions::default(), mail.into()).await.unwrap().uid
}

/// Anybody who can guess it could have written the report: it finds the message and proves nothing.
#[tokio::test]
async fn a_message_id_of_others_finds_its_message_without_proof() {
    let gateway = TestGateway::with(TenantSettings::default(), WatchStart::Beginning, BOUNCES).await;
    let uid = hand_in(&gateway, "ticket-77.1@desk").await;
    let twice = [hand_in(&gateway, "ticket-78@desk").await, hand_in(&gateway, "ticket-78@desk").await];
    for (count, id) in (1..).zip(["ticket-77.1@desk", "ticket-78@desk", "TICKET-77.1@desk"]) {
        let returned = format!("Message-ID: <{id}>\r\n");
        let report = bounce(MAILBOX, "ada@example.org", "5.1.1", UNKNOWN, &returned);
        gateway.mail_server.deliver(report, gateway.clock.now());
        let mails = gateway.settled(count).await;
        let expected = if count == 1 { InboundState::Routed } else { InboundState::NoMatch };
        let state = mails.iter().filter(|mail| mail.state == expected).count();
        assert!(state >= 1, "{id}: {mails:?}");
    }
    let events = said(&gateway, uid).await;
    let [(kind, data)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((*kind, data["proof"].as_str()), (EventKind::UnprovenReport, Some("foreign_message_id")));
    assert_eq!(data["says"], "bounced");
    assert!(!is_suppressed(&gateway, "ada@example.org").await);
    for uid in twice {
        assert!(said(&gateway, uid).await.is_empty(), "two with one id cannot be said apart by it");
    }
    // Postway's own id in the same header still proves it.
    let returned = format!("Message-ID: <ticket-78@desk>\r\n{}", postway_id(twice[1]));
    gateway
        .mail_server
        .deliver(bounce(MAILBOX, "ada@example.org", "5.1.1", UNKNOWN, &returned), gateway.clock.now());
    gateway.settled(4).await;
    assert_eq!(said(&gateway, twice[1]).await[0].0, EventKind::Bounced);
}
