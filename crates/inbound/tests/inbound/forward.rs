//! Rules at work: forwarding in every form, once; tags, webhooks, IMAP actions, reminders, loop guards.

use std::time::Duration;

use postway_domain::{
    Clock, Contact, EventKind, InboundState, MessageUid, TenantSettings,
    mailbox::{MailboxRole, WatchStart},
};
use postway_intake::{RawOptions, RequestContext, signing};
use postway_mime::reader::ReadMail;
use postway_store::{
    InboundStore,
    record::{ChangeResult, DirectoryChange},
};
use serde_json::{Value, json};

use super::{TestGateway, mail, states, tenant};

const ROLES: &[MailboxRole] = &[MailboxRole::Forward];

async fn gateway() -> TestGateway {
    TestGateway::new(WatchStart::Beginning, ROLES).await
}

async fn contact(gateway: &TestGateway, name: &str, addresses: &[&str]) {
    let at = gateway.clock.now();
    gateway
        .change(DirectoryChange::CreateContact(Contact {
            tenant: tenant(),
            id: format!("c-{name}").parse().unwrap(),
            name: name.to_owned(),
            addresses: addresses.iter().map(|one| (*one).to_owned()).collect(),
            version: 1,
            created_at: at,
            updated_at: at,
        }))
        .await;
}

fn forward(form: &str) -> Value {
    json!({"actions": [{"do": "forward", "to": ["Bob <bob@example.com>", "eve@example.com"], "as": form}]})
}

#[tokio::test]
async fn a_redirect_is_the_mail_with_resent_fields_and_our_envelope() {
    let settings = TenantSettings { bounce_domain: Some("b.example.net".to_owned()), ..Default::default() };
    let gateway = TestGateway::with(settings, WatchStart::Beginning, ROLES).await;
    gateway.rule("all", 1, forward("redirect")).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    let mails = gateway.settled(1).await;
    assert_eq!(mails[0].state, InboundState::Routed);
    let messages = gateway.messages().await;
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    let to: Vec<_> = message.recipients.iter().map(|one| one.address.as_str()).collect();
    assert_eq!(to, ["bob@example.com", "eve@example.com"]);
    let raw = gateway.raw(message.summary.uid).await;
    let uid = message.summary.uid.to_string();
    for part in [
        "Resent-From: <support@example.net>\r\n".to_owned(),
        format!("Resent-Message-ID: <{uid}@example.net>\r\n"),
        format!("X-Postway-ID: {uid}\r\n"),
        "From: Ada <ada@example.org>\r\n".to_owned(),
        "Message-ID: <q1@example.org>\r\n".to_owned(),
        "\r\n\r\nHello 1\r\n".to_owned(),
        "X-Postway-Forwarded: ".to_owned(),
    ] {
        assert!(raw.contains(&part), "{part} is missing in {raw}");
    }
    assert!(!raw.contains("Return-Path"));
    let record = gateway.store.inbound_one(&tenant(), mails[0].uid).await.unwrap().unwrap();
    assert_eq!((record.messages[0].0.as_str(), record.messages[0].1), ("all", message.summary.uid));
}

#[tokio::test]
async fn a_composed_forward_keeps_text_images_and_files() {
    let gateway = gateway().await;
    gateway.rule("all", 1, forward("compose")).await;
    let raw = "From: Ada <ada@example.org>\r\nTo: support@example.net\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=a\r\n\r\n--a\r\nContent-Type: multipart/related; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<html><body class=3Dx>Gr=FC=DFe <img src=3D\"cid:i1\"></body></html>\r\n\
        --b\r\nContent-Type: image/png\r\nContent-ID: <i1>\r\nContent-Disposition: inline\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw==\r\n--b--\r\n\
        --a\r\nContent-Type: application/pdf; name=\"a.pdf\"\r\nContent-Disposition: attachment; filename=\"a.pdf\"\r\n\r\nPDF\r\n--a--\r\n";
    gateway.mail_server.deliver(raw, gateway.clock.now());
    gateway.settled(1).await;
    let message = gateway.messages().await.remove(0);
    assert_eq!(message.summary.subject, "Fwd: Grüße");
    let sent = gateway.raw(message.summary.uid).await;
    let sent = mail_parser::MessageParser::new().parse(sent.as_bytes()).unwrap();
    let html = sent.body_html(0).unwrap();
    assert!(
        html.contains("<body class=x><p>---------- Forwarded message") && html.contains("Grüße <img"),
        "{html}"
    );
    assert!(html.contains("From: Ada &lt;ada@example.org&gt;"));
    assert_eq!(sent.reply_to().unwrap().first().unwrap().address(), Some("ada@example.org"));
    let names: Vec<_> = sent
        .attachments()
        .map(|part| mail_parser::MimeHeaders::attachment_name(part).map(str::to_owned))
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&Some("a.pdf".to_owned())));
    let image =
        sent.attachments().find(|part| mail_parser::MimeHeaders::content_id(*part) == Some("i1")).unwrap();
    assert_eq!(image.contents(), b"\x89PNG");
}

/// A signature over raw text, which cannot be encoded without breaking it.
const SIGNED: &str = "DKIM-Signature: v=1; h=from:subject; b=x\r\n";

#[tokio::test]
async fn header_text_that_nobody_signed_is_encoded_in_a_redirect() {
    let gateway = gateway().await;
    gateway.rule("all", 1, forward("redirect")).await;
    let raw = "From: é <a@example.org>\r\nSubject: grün\r\nMessage-ID: <1@example.org>\r\n\r\nbody\r\n";
    gateway.mail_server.deliver(raw, gateway.clock.now());
    gateway.settled(1).await;
    let sent = gateway.raw(gateway.messages().await[0].summary.uid).await;
    assert!(sent.is_ascii() && sent.contains("\r\nFrom: =?utf-8?B?w6k=?= <a@example.org>\r\n"), "{sent}");
    assert!(sent.contains("\r\nMessage-ID: <1@example.org>\r\n"), "{sent}");
}

#[tokio::test]
async fn an_attached_forward_holds_the_mail_whole_and_so_does_one_that_cannot_be_redirected() {
    for (form, raw) in [
        ("attachment", mail(1)),
        ("redirect", format!("{SIGNED}From: é <a@example.org>\r\nSubject: x\r\n\r\nbody\r\n").into_bytes()),
    ] {
        let gateway = gateway().await;
        gateway.rule("all", 1, forward(form)).await;
        gateway.mail_server.deliver(raw.clone(), gateway.clock.now());
        gateway.settled(1).await;
        let sent = gateway.raw(gateway.messages().await[0].summary.uid).await;
        let sent = mail_parser::MessageParser::new().parse(sent.as_bytes()).unwrap();
        let part = sent.attachment(0).unwrap();
        let inside = match &part.body {
            mail_parser::PartType::Message(inner) => inner.raw_message().to_vec(),
            _ => part.contents().to_vec(),
        };
        assert_eq!(inside.trim_ascii_end(), raw.trim_ascii_end(), "{form}");
    }
}

#[tokio::test]
async fn a_mail_that_is_made_to_be_costly_is_forwarded_and_one_beyond_a_limit_whole() {
    let head = "From: Ada <ada@example.org>\r\nSubject: x\r\n";
    let nested = format!("{head}{}", "Content-Type: message/rfc822\r\n\r\n".repeat(60_000));
    let parts = "--b\r\n\r\none\r\n".repeat(1_500);
    let many = format!("{head}Content-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--\r\n");
    // Three million bytes that are three times as many in UTF-8: more than is composed anew.
    let mut grows = format!("{head}Content-Type: text/plain; charset=windows-1252\r\n\r\n").into_bytes();
    grows.extend([&[0x80; 998][..], b"\r\n"].concat().repeat(3_000));
    for (raw, is_whole) in [(nested.into_bytes(), false), (many.into_bytes(), true), (grows, true)] {
        let gateway = gateway().await;
        let rule = json!({
            "match": [{"field": "has_attachment", "value": !is_whole}],
            "actions": forward("compose")["actions"],
        });
        gateway.rule("all", 1, rule).await;
        gateway.mail_server.deliver(raw.clone(), gateway.clock.now());
        assert_eq!(gateway.settled(1).await[0].state, InboundState::Routed);
        let sent = gateway.raw(gateway.messages().await[0].summary.uid).await;
        let sent = ReadMail::read(sent.as_bytes());
        let attached = sent.part(*sent.roles().attachments.last().unwrap()).unwrap();
        let inside = attached.decoded().bytes.into_owned();
        // The gateway returns what was sent as text.
        let raw = String::from_utf8_lossy(&raw);
        let expected = if is_whole { raw.as_bytes() } else { raw.as_bytes().split_at(head.len() + 32).1 };
        assert_eq!(inside.trim_ascii_end(), expected.trim_ascii_end());
    }
}

#[tokio::test]
async fn rules_are_asked_in_order_until_one_says_stop() {
    let gateway = gateway().await;
    let tag = |tag: &str, stop: bool| {
        let mut actions = vec![json!({"do": "tag", "tag": tag})];
        if stop {
            actions.push(json!({"do": "stop"}));
        }
        json!({"match": [{"field": "subject", "contains": "question"}], "actions": actions})
    };
    gateway.rule("c", 3, tag("never", false)).await;
    gateway.rule("b", 2, tag("second", true)).await;
    gateway.rule("a", 1, tag("first", false)).await;
    gateway
        .rule(
            "z",
            0,
            json!({"match": [{"field": "subject", "equals": "other"}], "actions": [{"do": "stop"}]}),
        )
        .await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    let mails = gateway.settled(1).await;
    assert_eq!(
        (mails[0].state, &*mails[0].tags),
        (InboundState::Routed, &["first".to_owned(), "second".to_owned()][..])
    );
    let result: Value = serde_json::from_str(mails[0].result.as_deref().unwrap()).unwrap();
    assert_eq!(result["rules"], json!(["a", "b"]));
}

/// A pattern or a large body makes each of them wait for one of few threads or for memory, and then for its
/// turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mail_is_sent_on_in_the_order_in_which_it_came_also_where_threads_and_room_are_few() {
    for (count, body_bytes) in [(64, 0), (12, 9_000_000)] {
        let gateway = gateway().await;
        gateway.tick();
        let rule = json!({
            "match": [{"field": "subject", "regex": "Question (?<n>[0-9]+)"}],
            "actions": [{"do": "forward", "to": ["bob@example.com"]}]
        });
        gateway.rule("all", 1, rule).await;
        for n in 0..count {
            let mut raw = mail(n);
            raw.extend(b"some more text\r\n".repeat(body_bytes / 16));
            gateway.mail_server.deliver(raw, gateway.clock.now());
        }
        gateway.settled(count).await;
        let sent = gateway.messages().await;
        let subjects: Vec<_> = sent.iter().map(|one| one.summary.subject.clone()).collect();
        let came: Vec<_> = (0..count).map(|n| format!("Fwd: Question {n}")).collect();
        assert_eq!(subjects, came);
    }
}

#[tokio::test]
async fn a_lookup_that_finds_nobody_is_no_match_with_the_reason_and_works_when_replayed() {
    let gateway = gateway().await;
    contact(&gateway, "empty", &[]).await;
    let rule = json!({
        "match": [{"field": "subject", "regex": "for (?<who>\\w+)"}],
        "actions": [{"do": "forward", "contact": "{who}"}, {"do": "tag", "tag": "of-{who}"}, {"do": "mark_seen"}]
    });
    gateway.rule("look", 1, rule).await;
    for who in ["acme", "empty"] {
        let raw = String::from_utf8(mail(1)).unwrap().replace("Question 1", &format!("order for {who}"));
        gateway.mail_server.deliver(raw, gateway.clock.now());
    }
    let mails = gateway.settled(2).await;
    assert_eq!(states(&mails), [InboundState::NoMatch; 2]);
    assert_eq!(mails[0].error.as_deref(), Some("rule look: there is no contact named \"acme\""));
    assert_eq!(mails[1].error.as_deref(), Some("rule look: the contact \"empty\" has no address"));
    assert!(
        mails[0].tags.is_empty() && gateway.mail_server.state().seen.is_empty(),
        "a rule applies as a whole or not at all"
    );
    contact(&gateway, "ACME", &["a@acme.example", "b@acme.example"]).await;
    assert_eq!(
        gateway.store.replay_inbound(&tenant(), mails[0].uid, gateway.clock.now()).await.unwrap(),
        ChangeResult::Done
    );
    let mails = gateway.settled(2).await;
    assert_eq!((mails[0].state, &*mails[0].tags), (InboundState::Routed, &["of-acme".to_owned()][..]));
    assert_eq!(gateway.messages().await[0].recipients.len(), 2);
    assert_eq!(gateway.mail_server.state().seen, [1]);
}

#[tokio::test]
async fn mail_that_would_loop_is_not_forwarded() {
    let gateway = gateway().await;
    gateway.rule("all", 1, forward("redirect")).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    gateway.settled(1).await;
    // The forwarded mail comes back to the same mailbox.
    let sent = gateway.raw(gateway.messages().await[0].summary.uid).await;
    gateway.mail_server.deliver(sent.replace("Hello 1", "Hello again"), gateway.clock.now());
    gateway.mail_server.deliver(
        "Return-Path: <>\r\nFrom: x@example.org\r\nSubject: returned\r\n\r\nx\r\n",
        gateway.clock.now(),
    );
    gateway.mail_server.deliver(
        "Auto-Submitted: auto-replied\r\nFrom: x@example.org\r\nSubject: away\r\n\r\nx\r\n",
        gateway.clock.now(),
    );
    let mails = gateway.settled(4).await;
    for mail in &mails[1..] {
        assert_eq!(mail.state, InboundState::NoMatch);
        assert!(mail.error.as_deref().unwrap().contains("loop guard: "), "{:?}", mail.error);
    }
    assert_eq!(gateway.messages().await.len(), 1);
}

/// A key of the tenant for the domain of the mailbox, from which its users write.
async fn signing_key(gateway: &TestGateway) {
    let algorithm = postway_domain::DkimAlgorithm::Ed25519;
    let at = gateway.clock.now();
    let key = signing::new_key(&tenant(), "example.net", "s1", algorithm, &super::secret_key(), at).unwrap();
    gateway.change(DirectoryChange::CreateDkimKey(key)).await;
}

#[tokio::test]
async fn only_mail_that_the_tenant_wrote_is_signed_with_its_key() {
    let spoof = "From: Boss <boss@example.net>\r\nTo: support@example.net\r\nSubject: pay this\r\n\
                 Message-ID: <s1@example.org>\r\nDate: Mon, 1 Jan 2024 00:00:00 +0000\r\n\r\nPay.\r\n";
    // The third cannot be redirected unchanged, and so is sent as an attachment.
    for (form, raw, is_signed) in [
        ("redirect", spoof.to_owned(), false),
        ("compose", spoof.to_owned(), true),
        ("redirect", format!("{SIGNED}{}", spoof.replace("pay this", "größe")), true),
        ("attachment", spoof.to_owned(), true),
    ] {
        let gateway = gateway().await;
        signing_key(&gateway).await;
        gateway.rule("all", 1, forward(form)).await;
        gateway.mail_server.deliver(raw, gateway.clock.now());
        gateway.settled(1).await;
        let sent = gateway.raw(gateway.messages().await[0].summary.uid).await;
        let (header, _) = sent.split_once("\r\n\r\n").unwrap();
        assert_eq!(header.contains("DKIM-Signature: "), is_signed, "{form}: {header}");
        assert_eq!(header.contains("\r\nFrom: Boss"), !is_signed, "{form}: {header}");
    }
    // Mail that an application of the tenant hands over belongs to the tenant.
    let gateway = gateway().await;
    signing_key(&gateway).await;
    let uid = hand_in(&gateway, spoof).await;
    assert!(gateway.raw(uid).await.starts_with("DKIM-Signature: "));
}

/// Hands a mail to a gateway's intake, as another gateway does that sends through it.
async fn hand_in(gateway: &TestGateway, raw: &str) -> MessageUid {
    let ctx = RequestContext {
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
    let options = RawOptions { to: vec!["next@example.org".to_owned()], ..RawOptions::default() };
    gateway.door().accept_raw(&ctx, options, raw.to_owned().into()).await.unwrap().uid
}

/// Two gateways forward to each other, each through the intake of the other, which makes the mail its own.
#[tokio::test]
async fn mail_between_two_gateways_that_forward_to_each_other_comes_to_an_end() {
    for form in ["compose", "redirect", "attachment"] {
        let [mut a, mut b] = [gateway().await, gateway().await];
        (a.secret, b.secret) = (1, 2);
        for gateway in [&a, &b] {
            gateway.rule("all", 1, forward(form)).await;
        }
        let mut raw = String::from_utf8(mail(1)).unwrap();
        let mut forwards = 0;
        for gateway in [&a, &b].into_iter().cycle().take(20) {
            let before = gateway.messages().await.len();
            gateway.mail_server.deliver(raw.clone(), gateway.clock.now());
            let count = gateway.mail_server.state().mails.len();
            let last = gateway.settled(count).await.pop().unwrap();
            let messages = gateway.messages().await;
            if messages.len() == before {
                assert!(last.error.unwrap().contains("it was forwarded from this mailbox before"));
                break;
            }
            forwards += 1;
            let sent = gateway.raw(messages.last().unwrap().summary.uid).await;
            let door = if std::ptr::eq(gateway, &a) { &b } else { &a };
            let uid = hand_in(door, &sent).await;
            raw = door.raw(uid).await;
        }
        assert_eq!(forwards, 2, "{form}");
    }
}

#[tokio::test]
async fn marks_of_gateways_that_nobody_here_knows_are_counted() {
    let gateway = gateway().await;
    gateway.rule("all", 1, forward("compose")).await;
    let mark = |n: usize| format!("X-Postway-Forwarded: {n:032x}\r\n");
    for marks in [9, 10] {
        let marks: String = (0..marks).map(mark).collect();
        let raw = format!("{marks}{}", String::from_utf8(mail(1)).unwrap());
        gateway.mail_server.deliver(raw, gateway.clock.now());
    }
    let mails = gateway.settled(2).await;
    assert_eq!(states(&mails), [InboundState::Routed, InboundState::NoMatch]);
    assert!(mails[1].error.as_deref().unwrap().contains("forwarded 10 times"), "{:?}", mails[1].error);
    let sent = gateway.raw(gateway.messages().await[0].summary.uid).await;
    assert_eq!(sent.matches("X-Postway-Forwarded: ").count(), 10);
}

#[tokio::test]
async fn replaying_and_a_changed_rule_forward_nothing_twice() {
    let gateway = gateway().await;
    gateway.rule("all", 1, forward("compose")).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    let uid = gateway.settled(1).await[0].uid;
    gateway.advance(Duration::from_secs(60));
    gateway.store.replay_inbound(&tenant(), uid, gateway.clock.now()).await.unwrap();
    gateway.settled(1).await;
    assert_eq!(gateway.messages().await.len(), 1);
    gateway.rule("second", 2, forward("attachment")).await;
    gateway.store.replay_inbound(&tenant(), uid, gateway.clock.now()).await.unwrap();
    gateway.settled(1).await;
    assert_eq!(gateway.messages().await.len(), 2, "another rule is another message");
}

#[tokio::test]
async fn a_failed_errand_is_tried_again_without_forwarding_again() {
    let gateway = gateway().await;
    let rule = json!({"actions": [
        {"do": "forward", "to": ["bob@example.com"]}, {"do": "mark_seen"}, {"do": "move", "folder": "Done"}
    ]});
    gateway.rule("all", 1, rule).await;
    gateway.mail_server.state().refuses = 1;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    gateway
        .until("it waits", || async {
            gateway.mails().await.iter().any(|mail| mail.state == InboundState::Waiting)
        })
        .await;
    let waiting = gateway.mails().await.remove(0);
    assert_eq!((waiting.tries, waiting.error.as_deref()), (1, Some("the folder is not there")));
    gateway.advance(Duration::from_secs(3_600));
    let mails = gateway.settled(1).await;
    assert_eq!((mails[0].state, mails[0].error.as_deref()), (InboundState::Routed, None));
    assert_eq!(gateway.messages().await.len(), 1);
    assert_eq!(gateway.mail_server.state().moved, [(1, "Done".to_owned())]);
}

#[tokio::test]
async fn a_mail_that_cannot_be_forwarded_is_dead_after_its_tries_and_can_be_replayed() {
    let gateway = gateway().await;
    let rule = json!({"actions": [{"do": "forward", "to": ["bob@example.com"], "account": "missing"}]});
    gateway.rule("all", 1, rule).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    for tries in 1..3 {
        gateway
            .until("it waits", || async {
                gateway.mails().await.first().is_some_and(|mail| mail.tries == tries)
            })
            .await;
        assert_eq!(gateway.mails().await[0].state, InboundState::Waiting);
        gateway.advance(Duration::from_secs(2 * 3_600));
    }
    let mails = gateway.settled(1).await;
    assert_eq!(mails[0].state, InboundState::Dead);
    assert!(mails[0].error.as_deref().unwrap().contains("unknown account missing"), "{:?}", mails[0].error);
}

#[tokio::test]
async fn a_webhook_action_tells_of_the_mail() {
    let gateway = gateway().await;
    gateway.rule("all", 1, json!({"actions": [{"do": "tag", "tag": "new"}, {"do": "webhook"}]})).await;
    gateway.mail_server.deliver(mail(7), gateway.clock.now());
    let uid = gateway.settled(1).await[0].uid;
    let record = gateway.store.inbound_one(&tenant(), uid).await.unwrap().unwrap();
    let [event] = record.events.as_slice() else { panic!("{record:?}") };
    assert_eq!(event.kind, EventKind::Received);
    let said: Value = serde_json::from_str(event.data.as_deref().unwrap()).unwrap();
    assert_eq!(said["id"], uid.to_string());
    assert_eq!(
        [&said["mailbox"], &said["from"], &said["to"], &said["subject"], &said["message_id"]],
        ["inbox", "Ada <ada@example.org>", "support@example.net", "Question 7", "q7@example.org"]
    );
    assert_eq!(said["tags"], json!(["new"]));
}

#[tokio::test]
async fn reminders_come_until_somebody_says_that_it_is_resolved() {
    let gateway = gateway().await;
    let rule = json!({
        "actions": [{"do": "forward", "to": ["bob@example.com"]}],
        "follow_up": {"every_hours": 24, "times_max": 3}
    });
    gateway.rule("all", 1, rule).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    let uid = gateway.settled(1).await[0].uid;
    for nth in 1..=2 {
        gateway.advance(Duration::from_secs(24 * 3_600 + 1));
        let mails = gateway.settled(1).await;
        assert_eq!((mails[0].state, mails[0].reminders), (InboundState::Routed, nth));
    }
    let subjects: Vec<_> = gateway.messages().await.into_iter().map(|one| one.summary.subject).collect();
    assert_eq!(subjects, ["Fwd: Question 1", "Reminder 1: Fwd: Question 1", "Reminder 2: Fwd: Question 1"]);
    gateway.store.resolve_inbound(&tenant(), uid, gateway.clock.now()).await.unwrap();
    gateway.advance(Duration::from_secs(48 * 3_600));
    gateway.mail_server.deliver(mail(2), gateway.clock.now());
    gateway.settled(2).await;
    assert_eq!(gateway.messages().await.len(), 4, "the second mail, and no third reminder of the first");
}

#[tokio::test]
async fn reminders_end_after_the_times_that_were_asked_for() {
    let gateway = gateway().await;
    let rule = json!({
        "actions": [{"do": "forward", "to": ["bob@example.com"], "as": "redirect"}],
        "follow_up": {"every_hours": 1, "times_max": 1}
    });
    gateway.rule("all", 1, rule).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    gateway.settled(1).await;
    gateway.advance(Duration::from_secs(3_601));
    let mails = gateway.settled(1).await;
    assert_eq!((mails[0].reminders, mails[0].due_at), (1, None));
    let messages = gateway.messages().await;
    assert_eq!(messages.len(), 2);
    let raw = gateway.raw(messages[1].summary.uid).await;
    assert!(raw.contains("Subject: Reminder 1:"), "{raw}");
}

#[tokio::test]
async fn a_mail_whose_forward_would_be_captured_waits_and_is_not_moved() {
    let gateway = gateway().await;
    gateway.set_test(false).await;
    let mut rule = forward("redirect");
    rule["actions"].as_array_mut().unwrap().push(json!({"do": "move", "folder": "Done"}));
    gateway.rule("all", 1, rule).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    gateway
        .until("the mail to wait", || async {
            let mails = gateway.mails().await;
            mails.first().is_some_and(|mail| mail.state == InboundState::Waiting)
        })
        .await;
    let waiting = gateway.mails().await.remove(0);
    assert!(waiting.error.unwrap_or_default().contains("no account of this tenant sends mail yet"));
    assert!(gateway.messages().await.is_empty(), "nothing was captured");
}
