//! What readers see.

use postway_domain::{MessageState, MessageStatus, MessageUid, message::AttemptOutcome};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{accept, accept_and_claim, apply, attempt, claim, commit_wire, doubt, outcome, record},
};
use crate::record::{AttemptEnd, MessageBrief, MessageChange, MessageFilter, MessageKey, QueueStats};

async fn list(store: &Shared, filter: MessageFilter) -> Vec<MessageUid> {
    let found = store.messages(&tenant(), &filter, None, 100).await.unwrap();
    found.into_iter().map(|summary| summary.uid).collect()
}

/// Counts without the statuses that no message has.
fn counts(stats: &QueueStats) -> Vec<(MessageStatus, i64)> {
    stats.by_status.iter().map(|(status, count)| (*status, *count)).filter(|(_, count)| *count != 0).collect()
}

/// Ids, client ids, filters, cursors, bodies and counts of one tenant show nothing of another.
pub async fn no_read_crosses_tenants(store: &Shared) {
    let fill = |sample: Sample| {
        sample.batch("b").client_id("shared").to("a@example.org").content(|content| {
            content.tags = vec!["t".to_owned()];
            content.request_id = Some("r".to_owned());
        })
    };
    let mine = accept(store, fill(Sample::new(1))).await;
    let theirs = accept(store, fill(Sample::new(2).from(OTHER_TENANT, ACCOUNT))).await;

    assert!(store.message(&tenant(), &MessageKey::Uid(theirs)).await.unwrap().is_none());
    assert!(store.message(&other_tenant(), &MessageKey::Uid(mine)).await.unwrap().is_none());
    assert!(store.raw(&tenant(), theirs).await.unwrap().is_none());
    assert!(store.raw(&tenant(), mine).await.unwrap().is_some());
    let client = MessageKey::Client("shared".parse().unwrap());
    for (reader, uid) in [(tenant(), mine), (other_tenant(), theirs)] {
        let found = store.message(&reader, &client).await.unwrap().unwrap();
        assert_eq!((found.summary.uid, &found.summary.lane.tenant), (uid, &reader));
    }
    let filters = [
        MessageFilter::default(),
        MessageFilter { status: Some(MessageStatus::Ready), ..MessageFilter::default() },
        MessageFilter { account: Some(ACCOUNT.parse().unwrap()), ..MessageFilter::default() },
        MessageFilter { batch: Some("b".to_owned()), ..MessageFilter::default() },
        MessageFilter { recipient: Some("a@example.org".to_owned()), ..MessageFilter::default() },
        MessageFilter { tag: Some("t".to_owned()), ..MessageFilter::default() },
        MessageFilter { request_id: Some("r".to_owned()), ..MessageFilter::default() },
        MessageFilter { since: Some(at(0)), ..MessageFilter::default() },
        MessageFilter { until: Some(at(1)), ..MessageFilter::default() },
    ];
    for filter in filters {
        assert_eq!(list(store, filter.clone()).await, [mine], "{filter:?}");
        let before_theirs = store.messages(&other_tenant(), &filter, Some(theirs), 9).await.unwrap();
        assert!(before_theirs.is_empty(), "{filter:?}");
    }
    let stats = store.stats(Some(&tenant()), at(0)).await.unwrap();
    assert_eq!(counts(&stats), [(MessageStatus::Ready, 1)]);
    let nobody = "nobody".parse().unwrap();
    assert!(store.messages(&nobody, &MessageFilter::default(), None, 9).await.unwrap().is_empty());
    assert_eq!(counts(&store.stats(Some(&nobody), at(0)).await.unwrap()), []);
}

/// Each has its own recipients, as they stand. Who has too many, is another's or is gone is left out.
pub async fn briefs_tell_of_many_what_a_message_tells_of_itself(store: &Shared) {
    let crowd = |n, count: usize| {
        (0..count).fold(Sample::new(n), |sample, to| sample.to(&format!("r{to}@example.org")))
    };
    let mut uids = Vec::new();
    for n in 0..200 {
        uids.push(accept(store, crowd(n, 1 + n as usize % 3)).await);
    }
    for mut one in claim(store, 1, at(5), 2).await {
        assert!(commit_wire(store, &mut one, at(6)).await);
        assert!(apply(store, outcome(&one, true, AttemptOutcome::Sent, at(7))).await);
    }
    let full = accept(store, crowd(200, MessageBrief::RECIPIENTS_MAX)).await;
    let too_many = accept(store, crowd(201, MessageBrief::RECIPIENTS_MAX + 1)).await;
    let theirs = accept(store, Sample::new(202).from(OTHER_TENANT, ACCOUNT)).await;
    uids.push(full);
    let gone = sample::uid(at(0), 203);
    let asked: Vec<MessageUid> = uids.iter().copied().chain([too_many, theirs, gone]).collect();

    let mut briefs = store.briefs(&tenant(), &asked).await.unwrap();
    briefs.sort_by_key(|brief| brief.summary.uid);
    uids.sort();
    assert_eq!(briefs.iter().map(|brief| brief.summary.uid).collect::<Vec<_>>(), uids);
    for brief in briefs {
        let whole = record(store, brief.summary.uid).await;
        assert_eq!(brief, MessageBrief::from(whole));
    }
    assert!(store.briefs(&tenant(), &[]).await.unwrap().is_empty());
}

/// Newest first; the cursor is not shown again; messages that come meanwhile shift nothing.
pub async fn a_list_goes_back_from_the_newest_page_by_page(store: &Shared) {
    let mut uids = Vec::new();
    for n in 0..7u32 {
        uids.push(accept(store, Sample::new(n).created(i64::from(n / 2))).await);
    }
    uids.reverse();
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = store.messages(&tenant(), &MessageFilter::default(), before, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.uid);
        assert!(page.len() <= 3);
        assert!(seen.len() < uids.len(), "the list ends");
        seen.extend(page.iter().map(|summary| summary.uid));
        accept(store, Sample::new(1_000 + seen.len() as u32).created(9)).await;
    }
    assert_eq!(seen, uids);
    let summary = store.messages(&tenant(), &MessageFilter::default(), before, 0).await.unwrap();
    assert!(summary.is_empty());
    let first =
        store.messages(&tenant(), &MessageFilter::default(), Some(uids[0]), 1).await.unwrap().remove(0);
    assert_eq!(first, record(store, first.uid).await.summary, "a list shows what the message shows");
}

/// Each finds its message and leaves the other.
pub async fn each_filter_is_a_condition(store: &Shared) {
    let plain = accept(store, Sample::new(1).created(5)).await;
    let rich = accept(
        store,
        Sample::new(2)
            .from(TENANT, OTHER_ACCOUNT)
            .batch("spring")
            .to("first@example.org")
            .to("Grace.Hopper@Example.org")
            .created(10)
            .content(|content| {
                content.tags = vec!["invoice".to_owned(), "march".to_owned()];
                content.request_id = Some("req-2".to_owned());
            }),
    )
    .await;
    let mut request = super::stage::request(&sample::key(TENANT, OTHER_ACCOUNT), 1, at(20), 1, false);
    request.inline_bytes_max = 0;
    let claimed = store.claim(request).await.unwrap().remove(0);
    let ended = AttemptEnd { provider_message_id: Some("p-2".to_owned()), ..attempt(&claimed, at(30)) };
    let failed = outcome(&claimed, false, AttemptOutcome::Exhausted, at(30));
    assert!(apply(store, MessageChange { exhausted: true, attempt: Some(ended), ..failed }).await);

    let text = |text: &str| Some(text.to_owned());
    let of_rich = [
        MessageFilter { status: Some(MessageStatus::Failed), ..MessageFilter::default() },
        MessageFilter { account: Some(OTHER_ACCOUNT.parse().unwrap()), ..MessageFilter::default() },
        MessageFilter { batch: text("spring"), ..MessageFilter::default() },
        MessageFilter { recipient: text("grace.hopper@EXAMPLE.org"), ..MessageFilter::default() },
        MessageFilter { tag: text("march"), ..MessageFilter::default() },
        MessageFilter { request_id: text("req-2"), ..MessageFilter::default() },
        MessageFilter { provider_message_id: text("p-2"), ..MessageFilter::default() },
        MessageFilter { since: Some(at(10)), ..MessageFilter::default() },
        MessageFilter { exhausted: true, ..MessageFilter::default() },
    ];
    for filter in of_rich {
        assert_eq!(list(store, filter.clone()).await, [rich], "{filter:?}");
    }
    let of_plain = [
        MessageFilter { status: Some(MessageStatus::Ready), ..MessageFilter::default() },
        MessageFilter { account: Some(ACCOUNT.parse().unwrap()), ..MessageFilter::default() },
        MessageFilter { until: Some(at(10)), ..MessageFilter::default() },
    ];
    for filter in of_plain {
        assert_eq!(list(store, filter.clone()).await, [plain], "{filter:?}");
    }
    let of_neither = [
        MessageFilter { status: Some(MessageStatus::Sent), ..MessageFilter::default() },
        MessageFilter { batch: text("spr"), ..MessageFilter::default() },
        MessageFilter { recipient: text("hopper@example.org"), ..MessageFilter::default() },
        MessageFilter { recipient: text("%"), ..MessageFilter::default() },
        MessageFilter { tag: text("invoice "), ..MessageFilter::default() },
        MessageFilter { provider_message_id: text("p"), ..MessageFilter::default() },
    ];
    for filter in of_neither {
        assert_eq!(list(store, filter.clone()).await, [], "{filter:?}");
    }
}

/// All of them must hold.
pub async fn conditions_are_joined_by_and(store: &Shared) {
    let tagged = |n: u32, tag: &str| Sample::new(n).content(|content| content.tags = vec![tag.to_owned()]);
    let both = accept(store, tagged(1, "x").batch("b").to("a@example.org").created(5)).await;
    accept(store, tagged(2, "x").created(5).to("a@example.org")).await;
    accept(store, tagged(3, "y").batch("b").created(5).to("a@example.org")).await;
    accept(store, tagged(4, "x").batch("b").created(9).to("a@example.org")).await;
    accept(store, tagged(5, "x").batch("b").created(5).to("b@example.org")).await;
    let filter = MessageFilter {
        status: Some(MessageStatus::Ready),
        account: Some(ACCOUNT.parse().unwrap()),
        batch: Some("b".to_owned()),
        recipient: Some("a@example.org".to_owned()),
        tag: Some("x".to_owned()),
        since: Some(at(5)),
        until: Some(at(6)),
        ..MessageFilter::default()
    };
    assert_eq!(list(store, filter.clone()).await, [both]);
    assert_eq!(list(store, MessageFilter { exhausted: true, ..filter }).await, []);
}

/// The whole message, or nothing.
pub async fn a_client_id_names_its_message(store: &Shared) {
    let uid = accept(store, Sample::new(1).client_id("order:1@shop")).await;
    let by = |id: &str| MessageKey::Client(id.parse().unwrap());
    let found = store.message(&tenant(), &by("order:1@shop")).await.unwrap();
    assert_eq!(found, Some(record(store, uid).await));
    assert!(store.message(&tenant(), &by("order:2@shop")).await.unwrap().is_none());
}

/// Of the latest attempt that has one, so that an attempt that failed to connect hides nothing.
pub async fn the_latest_provider_id_is_shown(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    for (round, id) in [(1, Some("p-1")), (2, Some("p-2")), (3, None)] {
        let provider_message_id = id.map(str::to_owned);
        let ended = AttemptEnd { provider_message_id, ..attempt(&claimed, at(round)) };
        let retry = outcome(&claimed, false, AttemptOutcome::Retry, at(round));
        assert!(apply(store, MessageChange { due_at: Some(at(round)), attempt: Some(ended), ..retry }).await);
        claimed = claim(store, round + 1, at(round), 1).await.remove(0);
    }
    let found = record(store, claimed.uid).await;
    assert_eq!(found.summary.provider_message_id.as_deref(), Some("p-2"));
    let ids: Vec<_> = found.attempts.iter().map(|attempt| attempt.provider_message_id.as_deref()).collect();
    assert_eq!(ids, [Some("p-1"), Some("p-2"), None]);
    let listed = store.messages(&tenant(), &MessageFilter::default(), None, 1).await.unwrap().remove(0);
    assert_eq!(listed, found.summary);
}

/// A doubt that is not sent again automatically is on hold; one with a resend ahead is not.
pub async fn doubts_that_wait_for_a_word_are_told_apart(store: &Shared) {
    for (n, due_at) in [(1, None), (2, Some(at(900))), (3, None)] {
        let mut claimed = accept_and_claim(store, Sample::new(n), n.into()).await;
        doubt(store, &mut claimed, due_at, at(n.into())).await;
    }
    accept(store, Sample::new(4).from(OTHER_TENANT, ACCOUNT)).await;
    for whose in [Some(&tenant()), None] {
        let stats = store.stats(whose, at(9)).await.unwrap();
        assert_eq!((stats.by_status.get(&MessageStatus::InDoubt), stats.doubts_held), (Some(&3), 2));
    }
    assert_eq!(store.stats(Some(&other_tenant()), at(9)).await.unwrap().doubts_held, 0);
}

/// By status, for one tenant and for all, with the longest wait.
pub async fn stats_count_what_is_there(store: &Shared) {
    let empty = store.stats(None, at(0)).await.unwrap();
    assert_eq!((counts(&empty), empty.oldest_due_at), (vec![], None));
    accept(store, Sample::new(1).created(40)).await;
    accept(store, Sample::new(2).created(30)).await;
    accept(store, Sample::new(3).send_at(5_000)).await;
    accept(store, Sample::new(4).state(MessageState::Accepted, None)).await;
    accept(store, Sample::new(5).from(OTHER_TENANT, ACCOUNT).created(20)).await;
    let mine = store.stats(Some(&tenant()), at(100)).await.unwrap();
    let expected = [(MessageStatus::Accepted, 1), (MessageStatus::Ready, 2), (MessageStatus::Scheduled, 1)];
    assert_eq!((counts(&mine), mine.oldest_due_at), (expected.to_vec(), Some(at(30))));
    let all = store.stats(None, at(100)).await.unwrap();
    let expected = [(MessageStatus::Accepted, 1), (MessageStatus::Ready, 3), (MessageStatus::Scheduled, 1)];
    assert_eq!((counts(&all), all.oldest_due_at), (expected.to_vec(), Some(at(20))));
    assert_eq!(store.stats(Some(&tenant()), at(10)).await.unwrap().oldest_due_at, None);

    let mut claimed = claim(store, 1, at(100), 1).await.remove(0);
    assert!(commit_wire(store, &mut claimed, at(101)).await);
    assert!(apply(store, outcome(&claimed, true, AttemptOutcome::Sent, at(102))).await);
    let mine = store.stats(Some(&tenant()), at(100)).await.unwrap();
    let expected = [
        (MessageStatus::Accepted, 1),
        (MessageStatus::Ready, 1),
        (MessageStatus::Scheduled, 1),
        (MessageStatus::Sent, 1),
    ];
    assert_eq!((counts(&mine), mine.oldest_due_at), (expected.to_vec(), Some(at(40))));
}
