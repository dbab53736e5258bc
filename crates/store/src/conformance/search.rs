//! Finding messages, whatever they are looked for by.

use postway_domain::{EventKind, MessageState, MessageStatus, MessageUid, message::AttemptOutcome};

use super::{
    Shared,
    findings::{finding, say},
    journal::tell,
    retention::{DAY_MS, expunge},
    sample::{ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{accept, apply, claim, outcome, record},
};
use crate::record::{BlockedLanes, MessageChange, MessageFilter, external_label, message_id_label};

/// A filter, and whether the n-th message matches it.
type Case = (MessageFilter, fn(u32) -> bool);

async fn list(store: &Shared, filter: &MessageFilter) -> Vec<MessageUid> {
    let found = store.messages(&tenant(), filter, None, 10_000).await.unwrap();
    found.into_iter().map(|summary| summary.uid).collect()
}

/// By a label of its own, which no tag is, until they are removed.
pub async fn messages_are_found_by_their_external_id(store: &Shared) {
    let long = "é".repeat(600);
    let with = |n, id: &str| {
        let id = id.to_owned();
        Sample::new(n).content(|content| content.external_id = Some(id))
    };
    let ids = ["order-7", "order-7", "order-8", &long];
    let mut uids = Vec::new();
    for (n, id) in (1..).zip(ids) {
        uids.push(accept(store, with(n, id)).await);
    }
    accept(store, Sample::new(9).content(|content| content.tags = vec!["order-7".to_owned()])).await;
    let by = |id: &str| MessageFilter { tag: Some(external_label(id)), ..MessageFilter::default() };
    assert_eq!(list(store, &by("order-7")).await, [uids[1], uids[0]]);
    assert_eq!(list(store, &by(&long)).await, [uids[3]]);
    assert!(list(store, &by("order-9")).await.is_empty());
    let ended = accept(store, with(10, "order-10").state(MessageState::Sent, None)).await;
    assert_eq!(list(store, &by("order-10")).await, [ended]);
    tell(store, at(9_000)).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 1);
    assert!(list(store, &by("order-10")).await.is_empty());
}

/// By a foreign Message-ID, exactly and within one tenant, until the message is removed. One that is made of
/// the uid is not searched this way.
pub async fn messages_are_found_by_a_foreign_message_id(store: &Shared) {
    let with = |n, id: &str| {
        let id = id.to_owned();
        Sample::new(n).content(|content| content.message_id = id)
    };
    let twice =
        [accept(store, with(1, "ticket-7@desk")).await, accept(store, with(2, "ticket-7@desk")).await];
    accept(store, with(3, "Ticket-7@desk")).await;
    accept(store, with(4, "ticket-7@desk").from(OTHER_TENANT, ACCOUNT)).await;
    let mut own = Sample::new(5).build();
    own.content.message_id = format!("{}@example.com", own.uid);
    let by = |id: &str| MessageFilter { tag: Some(message_id_label(id)), ..MessageFilter::default() };
    let own_id = by(&own.content.message_id);
    assert!(store.accept(vec![own]).await.unwrap()[0].is_accepted());
    assert_eq!(list(store, &by("ticket-7@desk")).await, [twice[1], twice[0]]);
    assert!(list(store, &own_id).await.is_empty());
    let ended = accept(store, with(10, "ticket-10@desk").state(MessageState::Sent, None)).await;
    assert_eq!(list(store, &by("ticket-10@desk")).await, [ended]);
    tell(store, at(9_000)).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 1);
    assert!(list(store, &by("ticket-10@desk")).await.is_empty());
}

/// Whatever leads the search: the pages of a filter hold what matches, once, the newest first, and the last
/// has no next.
pub async fn a_search_finds_all_page_by_page(store: &Shared) {
    const MESSAGES: u32 = 600;
    let mut expected: Vec<(MessageUid, u32)> = Vec::new();
    for n in 0..MESSAGES {
        let tags = if n % 3 == 0 { vec!["third".to_owned()] } else { Vec::new() };
        let account = if n % 50 == 0 { OTHER_ACCOUNT } else { ACCOUNT };
        let mut sample = Sample::new(n).from(TENANT, account).created(i64::from(n)).content(|content| {
            content.tags = tags;
            content.subject = format!("Número {n} ÄRGER");
        });
        if n % 2 == 0 {
            sample = sample.batch(&format!("b-{}", n % 14));
        }
        if n % 5 == 0 {
            sample = sample.to("many@example.org").to("Many@example.org");
        }
        expected.push((accept(store, sample).await, n));
        accept(
            store,
            Sample::new(10_000 + n).from(OTHER_TENANT, ACCOUNT).to("many@example.org").created(i64::from(n)),
        )
        .await;
    }
    expected.reverse();
    let text = |text: &str| Some(text.to_owned());
    let ready = Some(MessageStatus::Ready);
    let cases: [Case; 12] = [
        (MessageFilter::default(), |_| true),
        (MessageFilter { status: ready, ..MessageFilter::default() }, |_| true),
        (MessageFilter { tag: text("third"), ..MessageFilter::default() }, |n| n % 3 == 0),
        (MessageFilter { recipient: text("MANY@example.org"), ..MessageFilter::default() }, |n| n % 5 == 0),
        (MessageFilter { account: Some(OTHER_ACCOUNT.parse().unwrap()), ..MessageFilter::default() }, |n| {
            n % 50 == 0
        }),
        (MessageFilter { batch: text("b-4"), ..MessageFilter::default() }, |n| n % 2 == 0 && n % 14 == 4),
        (MessageFilter { batch: text("b-4"), tag: text("third"), ..MessageFilter::default() }, |n| {
            n % 14 == 4 && n % 3 == 0
        }),
        (MessageFilter { subject: text("ärger"), tag: text("third"), ..MessageFilter::default() }, |n| {
            n % 3 == 0
        }),
        (MessageFilter { subject: text("Número 7"), status: ready, ..MessageFilter::default() }, |n| {
            n.to_string().starts_with('7')
        }),
        (
            MessageFilter {
                since: Some(at(100)),
                until: Some(at(200)),
                tag: text("third"),
                ..MessageFilter::default()
            },
            |n| (100..200).contains(&n) && n % 3 == 0,
        ),
        (
            MessageFilter {
                account: Some(ACCOUNT.parse().unwrap()),
                until: Some(at(300)),
                ..MessageFilter::default()
            },
            |n| n < 300 && n % 50 != 0,
        ),
        (MessageFilter { error_code: text("smtp_550"), ..MessageFilter::default() }, |_| false),
    ];
    for (filter, matches) in cases {
        let wanted: Vec<MessageUid> =
            expected.iter().filter(|(_, n)| matches(*n)).map(|(uid, _)| *uid).collect();
        let (mut found, mut before) = (Vec::new(), None);
        for _ in 0..MESSAGES {
            let page = store.search(&tenant(), &filter, before, 7).await.unwrap();
            assert!(page.messages.len() <= 7);
            found.extend(page.messages.iter().map(|message| message.uid));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found, wanted, "{filter:?}");
        assert_eq!(list(store, &filter).await, wanted, "{filter:?}");
    }
}

/// By the failure's code; the subject of a sensitive message is not found, its message is.
pub async fn failures_are_found_by_code_and_hidden_subjects_not(store: &Shared) {
    let plain = accept(store, Sample::new(1)).await;
    let hidden = accept(
        store,
        Sample::new(2).content(|content| {
            content.subject = "Message for nobody".to_owned();
            content.sensitive = true;
        }),
    )
    .await;
    for claimed in claim(store, 1, at(5), 2).await {
        let code = if claimed.uid == plain { "smtp_550" } else { "timeout" };
        let error = Some(format!(r#"{{"code":"{code}","message":"smtp_550 was not it"}}"#));
        assert!(
            apply(store, MessageChange { error, ..outcome(&claimed, false, AttemptOutcome::Failed, at(6)) })
                .await
        );
    }
    let of_code =
        |code: &str| MessageFilter { error_code: Some(code.to_owned()), ..MessageFilter::default() };
    assert_eq!(list(store, &of_code("smtp_550")).await, [plain]);
    assert_eq!(list(store, &of_code("timeout")).await, [hidden]);
    assert_eq!(list(store, &of_code("smtp")).await, []);
    let subject = MessageFilter { subject: Some("MESSAGE".to_owned()), ..MessageFilter::default() };
    assert_eq!(list(store, &subject).await, [plain]);
}

/// A list shows to whom a message goes first, and to how many.
pub async fn a_summary_names_the_first_recipient(store: &Shared) {
    let uid = accept(store, Sample::new(1).to("zoe@example.org").to("ada@example.org")).await;
    let listed = store.messages(&tenant(), &MessageFilter::default(), None, 1).await.unwrap().remove(0);
    assert_eq!((listed.recipient.as_deref(), listed.recipient_count), (Some("zoe@example.org"), 2));
    assert_eq!(listed, record(store, uid).await.summary);
}

/// By the outcome of a recipient, within one tenant, and with the number of refused recipients.
pub async fn messages_are_found_by_what_became_of_them(store: &Shared) {
    let mut sent = Vec::new();
    for n in 1..=4 {
        sent.push(accept(store, Sample::new(n).created(i64::from(n)).state(MessageState::Sent, None)).await);
    }
    let waiting = accept(store, Sample::new(9)).await;
    say(store, 1, vec![finding(sent[0], EventKind::Bounced), finding(sent[2], EventKind::Bounced)], 60).await;
    say(store, 2, vec![finding(sent[1], EventKind::Complained)], 61).await;
    let by = |kind| MessageFilter { outcome: Some(kind), ..MessageFilter::default() };
    assert_eq!(list(store, &by(EventKind::Bounced)).await, [sent[2], sent[0]]);
    assert_eq!(list(store, &by(EventKind::Complained)).await, [sent[1]]);
    assert!(list(store, &by(EventKind::Delivered)).await.is_empty());
    let since = MessageFilter { since: Some(at(2)), ..by(EventKind::Bounced) };
    assert_eq!(list(store, &since).await, [sent[2]]);
    let of_state = MessageFilter { status: Some(MessageStatus::Ready), ..by(EventKind::Bounced) };
    assert!(list(store, &of_state).await.is_empty());
    let elsewhere = store.messages(&other_tenant(), &by(EventKind::Bounced), None, 10).await.unwrap();
    assert!(elsewhere.is_empty(), "another tenant's bounces are not found");
    // What is counted is what is listed.
    for filter in [
        by(EventKind::Bounced),
        MessageFilter::default(),
        MessageFilter { waits: true, ..MessageFilter::default() },
    ] {
        let count = store.count(&tenant(), &filter, 100).await.unwrap();
        assert_eq!((count.messages, count.is_more), (list(store, &filter).await.len() as u64, false));
    }
    let some = store.count(&tenant(), &MessageFilter::default(), 3).await.unwrap();
    assert_eq!((some.messages, some.is_more), (3, true));
    assert_eq!(list(store, &MessageFilter { waits: true, ..MessageFilter::default() }).await, [waiting]);
}

/// By the accounts and batches that hold them, of what waits alone.
pub async fn messages_are_found_by_what_holds_them(store: &Shared) {
    let plain = accept(store, Sample::new(1).created(1)).await;
    let in_batch = accept(store, Sample::new(2).created(2).batch("spring")).await;
    let later = accept(store, Sample::new(3).created(3).send_at(90_000)).await;
    let other = accept(store, Sample::new(4).created(4).from(TENANT, OTHER_ACCOUNT)).await;
    accept(store, Sample::new(5).created(5).state(MessageState::Sent, None)).await;
    let behind = |accounts: &[&str], batches: &[&str]| {
        let holders = BlockedLanes {
            accounts: accounts.iter().map(|id| id.parse().unwrap()).collect(),
            batches: batches.iter().map(|code| (*code).to_owned()).collect(),
        };
        MessageFilter { waits: true, behind: Some(holders), ..MessageFilter::default() }
    };
    assert_eq!(list(store, &behind(&[OTHER_ACCOUNT], &[])).await, [other]);
    assert_eq!(list(store, &behind(&[ACCOUNT], &[])).await, [later, in_batch, plain]);
    assert_eq!(list(store, &behind(&[OTHER_ACCOUNT], &["spring"])).await, [other, in_batch]);
    assert!(list(store, &behind(&[], &[])).await.is_empty(), "what nothing holds is not held");
    let ready = MessageFilter { status: Some(MessageStatus::Ready), ..behind(&[ACCOUNT], &[]) };
    assert_eq!(list(store, &ready).await, [in_batch, plain]);
    assert_eq!(store.count(&tenant(), &behind(&[ACCOUNT], &[]), 9).await.unwrap().messages, 3);
}

/// By a part of the subject or of an address, in any case and as it is written, and by a domain.
pub async fn messages_are_found_by_parts_of_addresses(store: &Shared) {
    let with = |n: u32, to: &str, subject: &str| {
        let subject = subject.to_owned();
        Sample::new(n).created(i64::from(n)).to(to).content(|content| content.subject = subject)
    };
    let ada = accept(store, with(1, "Ada.Lovelace@Mail.example", "Your order")).await;
    let bob = accept(store, with(2, "bob_1@example.com", "For ADA")).await;
    let percent = accept(store, with(3, "x%y@sub.mail.example", "Other")).await;
    let text = |text: &str| MessageFilter { text: Some(text.to_owned()), ..MessageFilter::default() };
    let domain = |domain: &str| MessageFilter { domain: Some(domain.to_owned()), ..MessageFilter::default() };
    assert_eq!(list(store, &text("ada")).await, [bob, ada]);
    assert_eq!(list(store, &text("LOVELACE@")).await, [ada]);
    assert_eq!(list(store, &text("b_1")).await, [bob], "an underscore is itself");
    assert_eq!(list(store, &text("x%y")).await, [percent]);
    assert!(list(store, &text("o%b")).await.is_empty(), "a percent sign is itself");
    assert_eq!(list(store, &domain("mail.example")).await, [ada], "and not what is below it");
    assert_eq!(
        list(store, &MessageFilter { text: text("order").text, ..domain("mail.example") }).await,
        [ada]
    );
    assert!(list(store, &text("!")).await.is_empty());
}
