//! Inbound mail in several states, and how the port shows it.

use postway_domain::{EventKind, InboundState, TenantId};

use crate::{
    conformance::{
        Shared, findings,
        inbound::{mail, page, register, routed, settle, take},
        mailboxes::{contact, mailbox, rule, watch},
        sample::{OTHER_TENANT, TENANT, at},
        stage::direct,
    },
    record::{
        DirectoryChange, InboundFilter, InboundMailResult, MailboxKey, MailboxNote, MessageFinding,
        NewInbound, NewReceipt, StoredBody,
    },
};

/// Mail of a page.
const MAILS: u32 = 40;
/// Three of these and a page is over its bytes.
const LARGE_BYTES: usize = 3 * 1024 * 1024;

/// Watches mailboxes, deals with some of their mail, and leaves some waiting.
pub async fn arrive(store: &Shared) {
    let orders = watch(store, "orders").await;
    direct(store, DirectoryChange::CreateMailbox(mailbox(OTHER_TENANT, "orders"))).await;
    direct(store, DirectoryChange::CreateRule(rule("first", "orders", 3))).await;
    direct(store, DirectoryChange::CreateContact(contact(TENANT, "c-1", "Größe"))).await;
    let sent = findings::certified(store, 700, 70_000).await;
    let waiting = findings::certified(store, 701, 70_000).await;
    let large =
        |n: u32| NewInbound { body: Some(StoredBody::Inline(vec![n as u8; LARGE_BYTES].into())), ..mail(n) };
    let mails = (1..=MAILS).map(|n| if n % 10 == 0 { large(n) } else { mail(n) });
    let unread = NewInbound {
        digest: None,
        body: None,
        state: InboundState::Gone,
        error: Some("expunged".to_owned()),
        ..mail(99)
    };
    register(store, page(&orders, None, (5, 99), mails.chain([unread]).collect())).await;
    let note = MailboxNote {
        key: orders.clone(),
        at: at(5),
        uid_next: Some(120),
        error: Some("no \0 Größe".to_owned()),
    };
    store.note_mailbox(note).await.unwrap();
    let claimed = take(store, 77, at(6), 4).await;
    assert_eq!(claimed.len(), 4, "the last of them is still being dealt with");
    let receipt = NewReceipt {
        body: StoredBody::Inline(vec![1; LARGE_BYTES].into()),
        ..findings::receipt(1, "avvenuta-consegna")
    };
    let bounced = MessageFinding {
        bounce: Some(r#"{"größe":1}"#.to_owned()),
        receipt: Some(receipt),
        ..findings::finding(sent, EventKind::PecFailed)
    };
    let done = |n: usize, to| routed(&claimed[n], 77, to, at(7));
    let follow_up = InboundMailResult {
        due_at: Some(at(9_000)),
        follow_up: Some("first".parse().unwrap()),
        reminders: 2,
        tags: vec!["größe ".to_owned()],
        messages: vec![("first".parse().unwrap(), waiting)],
        kind: Some("ordinary"),
        result: Some("{}".to_owned()),
        received: Some("{}".to_owned()),
        ..done(1, InboundState::Routed)
    };
    for one in [
        InboundMailResult { findings: vec![bounced], ..done(0, InboundState::Routed) },
        follow_up,
        InboundMailResult { error: Some("no".to_owned()), tries: 2, ..done(2, InboundState::Waiting) },
    ] {
        assert!(settle(store, one).await);
    }
}

/// What the port shows of it, except large bodies.
pub async fn picture(store: &Shared, tenant: &TenantId) -> Vec<String> {
    let mut lines = vec![
        format!("{:?}", store.mailboxes(Some(tenant)).await.unwrap()),
        format!("{:?}", store.mailbox_states(Some(tenant)).await.unwrap()),
        format!("{:?}", store.rules(tenant, None).await.unwrap()),
        format!("{:?}", store.contacts(tenant, None, 99).await.unwrap()),
        format!("{:?}", store.contact_named(tenant, "größe").await.unwrap()),
    ];
    for view in store.inbound(tenant, &InboundFilter::default(), None, 99).await.unwrap() {
        let raw = store.inbound_raw(tenant, view.uid).await.unwrap();
        let bytes = raw.as_ref().and_then(StoredBody::inline).map(|raw| (raw.len(), raw.first().copied()));
        lines.push(format!("{:?} {bytes:?}", store.inbound_one(tenant, view.uid).await.unwrap()));
    }
    let sent = crate::conformance::sample::uid(at(0), 700);
    for receipt in store.receipts(tenant, sent).await.unwrap() {
        let body = store.receipt_raw(tenant, sent, receipt.digest).await.unwrap();
        lines.push(format!("{} {} {} {body:?}", receipt.kind, receipt.size, receipt.detail));
    }
    lines.push(format!("{:?}", store.route_state(at(8)).await.unwrap()));
    let key = MailboxKey { tenant: tenant.clone(), mailbox: "orders".parse().unwrap() };
    lines.push(format!("{:?}", store.mailbox(&key).await.unwrap()));
    lines
}
