//! Finding messages, whatever they are looked for by.

use postway_domain::{MessageUid, State, Status, message::Outcome};

use super::{
    Shared,
    journal::tell,
    retention::{DAY_MS, expunge},
    sample::{ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, tenant},
    stage::{accept, apply, claim, outcome, record},
};
use crate::record::{Change, Filter, external_label, message_id_label};

/// A filter, and whether the n-th message matches it.
type Case = (Filter, fn(u32) -> bool);

async fn list(store: &Shared, filter: &Filter) -> Vec<MessageUid> {
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
    let by = |id: &str| Filter { tag: Some(external_label(id)), ..Filter::default() };
    assert_eq!(list(store, &by("order-7")).await, [uids[1], uids[0]]);
    assert_eq!(list(store, &by(&long)).await, [uids[3]]);
    assert!(list(store, &by("order-9")).await.is_empty());
    let ended = accept(store, with(10, "order-10").state(State::Sent, None)).await;
    assert_eq!(list(store, &by("order-10")).await, [ended]);
    tell(store, at(9_000)).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 1);
    assert!(list(store, &by("order-10")).await.is_empty());
}

/// By a Message-ID that somebody else made, exactly as it is and of one tenant, until they are removed. One that is made of the
/// uid is not looked for so.
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
    let by = |id: &str| Filter { tag: Some(message_id_label(id)), ..Filter::default() };
    let own_id = by(&own.content.message_id);
    assert!(store.accept(vec![own]).await.unwrap()[0].is_accepted());
    assert_eq!(list(store, &by("ticket-7@desk")).await, [twice[1], twice[0]]);
    assert!(list(store, &own_id).await.is_empty());
    let ended = accept(store, with(10, "ticket-10@desk").state(State::Sent, None)).await;
    assert_eq!(list(store, &by("ticket-10@desk")).await, [ended]);
    tell(store, at(9_000)).await;
    assert_eq!(expunge(store, 9 * DAY_MS).await, 1);
    assert!(list(store, &by("ticket-10@desk")).await.is_empty());
}

/// Whatever leads the search: the pages of a filter hold what matches, once, the newest first, and the last has no next.
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
    let ready = Some(Status::Ready);
    let cases: [Case; 12] = [
        (Filter::default(), |_| true),
        (Filter { status: ready, ..Filter::default() }, |_| true),
        (Filter { tag: text("third"), ..Filter::default() }, |n| n % 3 == 0),
        (Filter { recipient: text("MANY@example.org"), ..Filter::default() }, |n| n % 5 == 0),
        (Filter { account: Some(OTHER_ACCOUNT.parse().unwrap()), ..Filter::default() }, |n| n % 50 == 0),
        (Filter { batch: text("b-4"), ..Filter::default() }, |n| n % 2 == 0 && n % 14 == 4),
        (Filter { batch: text("b-4"), tag: text("third"), ..Filter::default() }, |n| {
            n % 14 == 4 && n % 3 == 0
        }),
        (Filter { subject: text("ärger"), tag: text("third"), ..Filter::default() }, |n| n % 3 == 0),
        (Filter { subject: text("Número 7"), status: ready, ..Filter::default() }, |n| {
            n.to_string().starts_with('7')
        }),
        (
            Filter { since: Some(at(100)), until: Some(at(200)), tag: text("third"), ..Filter::default() },
            |n| (100..200).contains(&n) && n % 3 == 0,
        ),
        (
            Filter { account: Some(ACCOUNT.parse().unwrap()), until: Some(at(300)), ..Filter::default() },
            |n| n < 300 && n % 50 != 0,
        ),
        (Filter { error_code: text("smtp_550"), ..Filter::default() }, |_| false),
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

/// By the failure's code; a subject that nobody may read is not found, its message is.
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
        assert!(apply(store, Change { error, ..outcome(&claimed, false, Outcome::Failed, at(6)) }).await);
    }
    let of_code = |code: &str| Filter { error_code: Some(code.to_owned()), ..Filter::default() };
    assert_eq!(list(store, &of_code("smtp_550")).await, [plain]);
    assert_eq!(list(store, &of_code("timeout")).await, [hidden]);
    assert_eq!(list(store, &of_code("smtp")).await, []);
    let subject = Filter { subject: Some("MESSAGE".to_owned()), ..Filter::default() };
    assert_eq!(list(store, &subject).await, [plain]);
}

/// A list shows to whom a message goes first, and to how many.
pub async fn a_summary_names_the_first_recipient(store: &Shared) {
    let uid = accept(store, Sample::new(1).to("zoe@example.org").to("ada@example.org")).await;
    let listed = store.messages(&tenant(), &Filter::default(), None, 1).await.unwrap().remove(0);
    assert_eq!((listed.recipient.as_deref(), listed.recipient_count), (Some("zoe@example.org"), 2));
    assert_eq!(listed, record(store, uid).await.summary);
}
