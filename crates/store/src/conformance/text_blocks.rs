//! Searching for texts along blocks, which finds the same as without them.

use postway_domain::{MessageState, MessageUid};

use super::{
    Shared,
    journal::tell,
    retention::{DAY_MS, expunge},
    sample::{ACCOUNT, OTHER_TENANT, Sample, at, tenant},
    stage::accept,
};
use crate::record::{MessageFilter, MetadataField};

/// More than two blocks, and some that are in none.
const MESSAGES: u32 = 2_300;
const MINUTE_MS: i64 = 60_000;

/// A filter, and whether the n-th message matches it.
type Case = (MessageFilter, fn(u32) -> bool);

/// Messages a millisecond apart. Every hundredth has a field, every third an accented subject.
fn sample(n: u32) -> Sample {
    let subject = if n.is_multiple_of(3) { format!("ÄRGER mit {n}") } else { format!("Order {n}") };
    Sample::new(n).created(i64::from(n)).to(&format!("reader-{n}@d{}.example", n % 7)).content(|content| {
        content.subject = subject;
        content.sensitive = n % 50 == 7;
        content.metadata = n.is_multiple_of(100).then(|| format!(r#"{{"order":"A-{n}","kind":4}}"#));
    })
}

async fn fill(store: &Shared) -> Vec<MessageUid> {
    let mut uids = Vec::new();
    for some in (0..MESSAGES).collect::<Vec<_>>().chunks(100) {
        let messages: Vec<_> = some.iter().map(|n| sample(*n).build()).collect();
        uids.extend(messages.iter().map(|message| message.uid));
        let answers = store.accept(messages).await.unwrap();
        assert!(answers.iter().all(|answer| answer.is_accepted()));
    }
    accept(store, sample(9_005).from(OTHER_TENANT, ACCOUNT)).await;
    uids
}

/// Tends blocks until there is nothing left to do at this time.
async fn tend(store: &Shared, ms: i64) {
    for _ in 0..100 {
        if store.tend_text_blocks(at(ms)).await.unwrap().is_last {
            return;
        }
    }
    panic!("tending text blocks never ends");
}

async fn all(store: &Shared, filter: &MessageFilter, limit: u32) -> Vec<MessageUid> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = store.search(&tenant(), filter, before, limit).await.unwrap();
        assert!(page.messages.len() <= limit as usize);
        found.extend(page.messages.iter().map(|message| message.uid));
        assert!(page.next.is_none() || page.next < before || before.is_none(), "a search goes on");
        before = page.next;
        if before.is_none() {
            return found;
        }
    }
}

fn text(text: &str) -> MessageFilter {
    MessageFilter { text: Some(text.to_owned()), ..MessageFilter::default() }
}

fn field(key: &str, value: &str) -> MessageFilter {
    let field = MetadataField { key: key.to_owned(), value: value.to_owned() };
    MessageFilter { metadata: Some(field), ..MessageFilter::default() }
}

/// Without blocks, while they are planned, and when they are filled; page by page or at once.
pub async fn a_search_finds_the_same_with_and_without_text_blocks(store: &Shared) {
    let uids = fill(store).await;
    let is_seen = |n: u32| n % 50 != 7;
    let cases: [Case; 9] = [
        (text("ärger"), |n| n.is_multiple_of(3) && n % 50 != 7),
        (text("READER-77@"), |n| n == 77),
        (text("reader-22"), |n| n == 22 || (220..230).contains(&n) || (2_200..2_300).contains(&n)),
        (text("nothing of it"), |_| false),
        (MessageFilter { domain: Some("d3.example".to_owned()), ..MessageFilter::default() }, |n| n % 7 == 3),
        (MessageFilter { domain: Some("3.example".to_owned()), ..MessageFilter::default() }, |_| false),
        (field("order", "A-1200"), |n| n == 1_200),
        (field("kind", "4"), |n| n.is_multiple_of(100)),
        (MessageFilter { until: Some(at(1_500)), since: Some(at(300)), ..field("kind", "4") }, |n| {
            n.is_multiple_of(100) && (300..1_500).contains(&n)
        }),
    ];
    let check = async |when: &str| {
        for (filter, matches) in &cases {
            let mut wanted: Vec<MessageUid> =
                (0..MESSAGES).filter(|n| matches(*n)).map(|n| uids[n as usize]).collect();
            wanted.reverse();
            assert_eq!(all(store, filter, 500).await, wanted, "{when}: {filter:?}");
            if wanted.len() < 100 {
                assert_eq!(all(store, filter, 3).await, wanted, "{when}, page by page: {filter:?}");
            }
        }
        let orders = (0..MESSAGES).filter(|n| !n.is_multiple_of(3) && is_seen(*n)).count();
        let subject = MessageFilter { subject: Some("order".to_owned()), ..MessageFilter::default() };
        assert_eq!(store.count(&tenant(), &subject, 5_000).await.unwrap().messages, orders as u64, "{when}");
    };
    check("without blocks").await;
    tend(store, MINUTE_MS / 2).await;
    check("when nothing is old enough").await;
    tend(store, 2 * MINUTE_MS).await;
    check("while blocks are empty").await;
    tend(store, 4 * MINUTE_MS).await;
    check("with blocks").await;
    let late = accept(store, sample(9_000).created(1_300)).await;
    assert_eq!(all(store, &text("reader-1300@"), 9).await, [uids[1_300]], "late mail shifts nothing");
    assert!(store.message(&tenant(), &crate::record::MessageKey::Uid(late)).await.unwrap().is_some());
}

/// What is removed or erased is not found, what stays is, and blocks are filled again.
pub async fn what_is_removed_or_erased_leaves_its_text_block(store: &Shared) {
    let uids = fill(store).await;
    let old = Sample::new(8_000).created(50).to("gone@old.example").state(MessageState::Sent, None);
    let gone = accept(store, old).await;
    let both = Sample::new(8_001).created(1_200).to("ann@old.example").to("bob@old.example");
    let both = accept(store, both.state(MessageState::Sent, None)).await;
    tend(store, 2 * MINUTE_MS).await;
    tend(store, 4 * MINUTE_MS).await;
    assert_eq!(all(store, &text("@old.example"), 9).await, [both, gone]);
    tell(store, at(9_000)).await;
    let erased = store.erase(&tenant(), "ann@old.example", at(DAY_MS), 9).await.unwrap();
    assert_eq!((erased.removed, erased.redacted), (0, 1));
    assert_eq!(expunge(store, 9 * DAY_MS).await, 2);
    for minutes in [1, 2, 3] {
        assert!(all(store, &text("ann@"), 9).await.is_empty());
        assert!(all(store, &text("gone@"), 9).await.is_empty());
        for n in [51, 1_100, 2_100] {
            assert_eq!(all(store, &text(&format!("reader-{n}@")), 9).await, [uids[n]]);
        }
        tend(store, 9 * DAY_MS + minutes * 2 * MINUTE_MS).await;
    }
}
