//! What lists show of many messages at once: outcomes, and the progress of notifications.

use postway_domain::{EventKind, MessageUid};

use super::{
    Shared,
    findings::{finding, say},
    journal::{send, tell},
    retention::notify_as,
    sample::{Sample, TENANT, at, other_tenant, tenant, uid},
    stage::{accept, record},
    subscribers::{subscribe, webhook},
};
use crate::record::{
    DueSubscriber, MessageFinding, MessageOutcomes, NotificationProgress, NotificationState, OutcomeView,
    SubscriberProgress,
};

async fn fate(store: &Shared, uid: MessageUid) -> Option<MessageOutcomes> {
    let mut found = store.fates(&tenant(), &[uid]).await.unwrap();
    assert!(found.len() <= 1);
    found.pop()
}

fn bounced(message: MessageUid, position: u32, bounce: &str) -> MessageFinding {
    let bounce = Some(bounce.to_owned());
    MessageFinding { position: Some(position), bounce, ..finding(message, EventKind::Bounced) }
}

async fn settle(store: &Shared, hook: &str, state: NotificationState, ms: i64) {
    let due = DueSubscriber { tenant: tenant(), subscriber: hook.parse().unwrap() };
    notify_as(store, &due, |_| Some(state), None, at(ms)).await;
}

/// Each outcome once, with the last bounce of those that have it.
pub async fn outcomes_of_many_messages_are_told_together(store: &Shared) {
    let three = Sample::new(1).to("a@example.org").to("b@example.org").to("c@example.org");
    let (mixed, plain) = (send(store, three, 5).await, send(store, Sample::new(2), 5).await);
    let waiting = accept(store, Sample::new(3)).await;
    say(store, 1, vec![bounced(mixed, 0, r#"{"n":1}"#), bounced(mixed, 1, r#"{"n":"größe"}"#)], 50).await;
    say(store, 2, vec![MessageFinding { position: Some(2), ..finding(mixed, EventKind::Delivered) }], 51)
        .await;
    say(store, 3, vec![finding(plain, EventKind::Delayed)], 52).await;

    let gone = uid(at(0), 99);
    let mut found = store.fates(&tenant(), &[mixed, waiting, gone, plain]).await.unwrap();
    found.iter_mut().for_each(|fate| fate.outcomes.sort_by_key(|one| one.outcome.code()));
    found.sort_by_key(|fate| fate.uid);
    let outcome = |outcome, bounce: Option<&str>| OutcomeView { outcome, bounce: bounce.map(str::to_owned) };
    let of_mixed =
        vec![outcome(EventKind::Delivered, None), outcome(EventKind::Bounced, Some(r#"{"n":"größe"}"#))];
    let of_plain = vec![outcome(EventKind::Delayed, None)];
    let expected = [(mixed, of_mixed), (plain, of_plain)];
    assert_eq!(found, expected.map(|(uid, outcomes)| MessageOutcomes { uid, outcomes, told: Vec::new() }));
    assert!(store.fates(&other_tenant(), &[mixed, plain]).await.unwrap().is_empty());
    assert!(store.fates(&tenant(), &[]).await.unwrap().is_empty());
}

/// For each subscriber by itself, of all and of bounces.
pub async fn it_is_told_how_far_telling_has_come(store: &Shared) {
    for hook in ["one", "two"] {
        subscribe(store, webhook(TENANT, hook)).await;
    }
    let sent = send(store, Sample::new(1), 5).await;
    assert_eq!(fate(store, sent).await, None, "it is in the journal only");
    tell(store, at(10)).await;
    let told = |hook: &str, seq, all, bounces| SubscriberProgress {
        subscriber: hook.parse().unwrap(),
        seq,
        all,
        bounces,
    };
    let of = async || {
        let mut told = fate(store, sent).await.unwrap().told;
        told.sort_by(|a, b| a.subscriber.cmp(&b.subscriber));
        told
    };
    let (open, nothing) = (NotificationProgress::Open, NotificationProgress::Nothing);
    assert_eq!(of().await, [told("one", 4, open, nothing), told("two", 4, open, nothing)]);
    settle(store, "one", NotificationState::Acknowledged, 20).await;
    assert_eq!(of().await[0], told("one", 4, open, nothing), "one of two");
    settle(store, "one", NotificationState::Dead, 30).await;
    assert_eq!(of().await[0], told("one", 4, NotificationProgress::Settled(at(30)), nothing));

    say(store, 1, vec![bounced(sent, 0, "{}")], 50).await;
    tell(store, at(60)).await;
    let last = record(store, sent).await.events.last().unwrap().seq;
    assert_eq!(of().await[0], told("one", last, open, open));
    settle(store, "one", NotificationState::Waiting, 70).await;
    assert_eq!(of().await[0], told("one", last, open, open));
    settle(store, "one", NotificationState::Acknowledged, 80).await;
    let settled = NotificationProgress::Settled(at(80));
    assert_eq!(of().await, [told("one", last, settled, settled), told("two", last, open, open)]);
    let views = store.notifications(&tenant(), sent).await.unwrap();
    assert_eq!(of().await, SubscriberProgress::gather(&views), "as one by one");
    assert!(store.fates(&other_tenant(), &[sent]).await.unwrap().is_empty());
}

/// The latest event that has a name, not what happens inside.
pub async fn the_latest_news_of_many_messages_come_together(store: &Shared) {
    subscribe(store, webhook(TENANT, "one")).await;
    let (sent, waiting) = (send(store, Sample::new(1), 5).await, accept(store, Sample::new(2)).await);
    tell(store, at(10)).await;
    let news = async |uids: &[MessageUid]| {
        let mut news = store.news(&tenant(), uids).await.unwrap();
        news.sort_by_key(|(uid, _)| *uid);
        news.into_iter().map(|(uid, event)| (uid, event.seq, event.at, event.kind)).collect::<Vec<_>>()
    };
    let both = [(sent, 4, at(5), EventKind::Sent), (waiting, 1, at(0), EventKind::Accepted)];
    assert_eq!(news(&[waiting, sent, uid(at(0), 99)]).await, both);
    say(store, 1, vec![finding(sent, EventKind::Bounced)], 50).await;
    assert_eq!(news(&[sent]).await, [(sent, 5, at(50), EventKind::Bounced)]);
    assert!(store.news(&other_tenant(), &[sent]).await.unwrap().is_empty());
    assert_eq!(news(&[]).await, []);
}

/// More than one statement holds.
pub async fn a_long_page_is_told_whole(store: &Shared) {
    let accepted: Vec<_> = (0..300).map(|n| Sample::new(n).build()).collect();
    let uids: Vec<MessageUid> = accepted.iter().map(|message| message.uid).collect();
    store.accept(accepted).await.unwrap();
    say(store, 1, uids.iter().map(|uid| bounced(*uid, 0, "{}")).collect(), 50).await;
    let found = store.fates(&tenant(), &uids).await.unwrap();
    let whole = |fate: &&MessageOutcomes| fate.outcomes.len() == 1 && fate.outcomes[0].bounce.is_some();
    assert_eq!(found.iter().filter(whole).count(), 300);
    assert_eq!(store.news(&tenant(), &uids).await.unwrap().len(), 300);
}
