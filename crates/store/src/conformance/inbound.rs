//! Mail that comes in: none is missed, none is dealt with twice, and who comes late writes nothing.

use postway_domain::{EventKind, InboundState, MessageUid, Time, inbound::SUSPECT_WAIT};

use super::{
    Shared,
    journal::tell,
    mailboxes::{cursor, watch},
    sample::{self, Sample, TENANT, at, incarnation, other_tenant, tenant, uid},
    stage::{accept, all_at_once, within},
    subscribers::{subscribe, webhook},
};
use crate::record::{
    ChangeResult, FeedPosition, InboundFilter, InboundMailResult, InboundView, MailToProcess, MailboxKey,
    MailboxPage, NewInbound, ProcessRequest, ProcessingState, RegistrationResult, StoredBody,
};

/// The n-th mail; its bytes are its own.
pub fn mail(n: u32) -> NewInbound {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&n.to_be_bytes());
    NewInbound {
        uid: uid(at(0), 1_000_000 + n),
        folder: "INBOX".to_owned(),
        imap_uid: n,
        digest: Some(digest),
        size: 7,
        arrived_at: Some(at(-5)),
        dated_at: Some(at(-9)),
        sender: Some(format!("Größe <sender-{n}@example.org>")),
        recipients: Some("orders@example.net, other@example.net".to_owned()),
        subject: Some(format!("Order {n} 📬")),
        message_id: Some(format!("{n}@example.org")),
        body: Some(StoredBody::Inline(format!("mail {n:02}").into())),
        state: InboundState::Received,
        error: None,
    }
}

/// The same mail, found again under another id.
fn again(n: u32, other: u32) -> NewInbound {
    NewInbound { uid: mail(other).uid, imap_uid: other, ..mail(n) }
}

/// A page: the cursor as it was and as it becomes, each as UIDVALIDITY and UID.
pub fn page(
    key: &MailboxKey,
    seen: Option<(u32, u32)>,
    to: (u32, u32),
    mails: Vec<NewInbound>,
) -> MailboxPage {
    MailboxPage {
        key: key.clone(),
        seen: seen.map(|(uid_validity, last_uid)| cursor(uid_validity, last_uid)),
        to: cursor(to.0, to.1),
        uid_next: to.1 + 1,
        at: at(0),
        mails,
    }
}

/// Registers a page of which all is new.
pub(crate) async fn register(store: &Shared, page: MailboxPage) {
    let new = page.mails.len() as u32;
    assert_eq!(store.register(page).await.unwrap(), RegistrationResult::Done { new, known: 0 });
}

/// Leases what is due.
pub(crate) async fn take(store: &Shared, token: i64, now: Time, limit: u32) -> Vec<MailToProcess> {
    let lease = sample::lease(token, now);
    store.claim_inbound(ProcessRequest::new(lease, now, limit)).await.unwrap()
}

/// Nothing was to be done with it.
pub fn routed(one: &MailToProcess, token: i64, to: InboundState, now: Time) -> InboundMailResult {
    InboundMailResult {
        uid: one.uid,
        token: sample::lease(token, now).token,
        at: now,
        to,
        due_at: None,
        tries: one.tries,
        was_tried: true,
        lost_leases: 0,
        error: None,
        kind: None,
        result: None,
        tags: Vec::new(),
        messages: Vec::new(),
        follow_up: one.follow_up.clone(),
        reminders: one.reminders,
        findings: Vec::new(),
        received: None,
        domain_reports: Vec::new(),
    }
}

/// Writes what came of one.
pub(crate) async fn settle(store: &Shared, routed: InboundMailResult) -> bool {
    let held = store.settle_inbound(vec![routed]).await.unwrap();
    assert_eq!(held.len(), 1);
    held[0]
}

/// A mail of the samples' tenant.
pub(crate) async fn view(store: &Shared, uid: MessageUid) -> InboundView {
    store.inbound_one(&tenant(), uid).await.unwrap().expect("the mail is there").mail
}

fn numbers(claimed: &[MailToProcess]) -> Vec<u32> {
    claimed.iter().map(|one| one.imap_uid).collect()
}

async fn listed(store: &Shared, filter: InboundFilter) -> Vec<u32> {
    let found = store.inbound(&tenant(), &filter, None, 99).await.unwrap();
    found.iter().map(|view| view.imap_uid).collect()
}

/// With its bytes, and for its tenant only.
pub async fn a_registered_mail_reads_back_whole(store: &Shared) {
    let key = watch(store, "orders").await;
    let one = mail(1);
    register(store, page(&key, None, (5, 10), vec![one.clone()])).await;
    let record = store.inbound_one(&tenant(), one.uid).await.unwrap().unwrap();
    assert!(record.messages.is_empty() && record.events.is_empty());
    let expected = InboundView {
        uid: one.uid,
        key: key.clone(),
        folder: one.folder,
        uid_validity: 5,
        imap_uid: 1,
        digest: one.digest,
        size: 7,
        arrived_at: one.arrived_at,
        dated_at: one.dated_at,
        sender: one.sender,
        recipients: one.recipients,
        subject: one.subject,
        message_id: one.message_id,
        state: InboundState::Received,
        due_at: Some(at(0)),
        tries: 0,
        attempts: 0,
        error: None,
        kind: None,
        result: None,
        tags: Vec::new(),
        follow_up: None,
        reminders: 0,
        resolved_at: None,
        created_at: at(0),
        settled_at: None,
    };
    assert_eq!(record.mail, expected);
    assert_eq!(store.inbound_raw(&tenant(), one.uid).await.unwrap(), one.body);
    assert_eq!(store.inbound_raw(&other_tenant(), one.uid).await.unwrap(), None);
    assert!(store.inbound_one(&other_tenant(), one.uid).await.unwrap().is_none());
    assert!(store.inbound(&other_tenant(), &InboundFilter::default(), None, 9).await.unwrap().is_empty());
    for found in [
        store.replay_inbound(&other_tenant(), one.uid, at(1)).await.unwrap(),
        store.resolve_inbound(&other_tenant(), one.uid, at(1)).await.unwrap(),
    ] {
        assert_eq!(found, ChangeResult::Missing);
    }
}

/// What moved the cursor, moved it with its page: another reader of the same page writes nothing.
pub async fn a_page_is_registered_once(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 2), vec![mail(1), mail(2)])).await;
    for seen in [None, Some((5, 1)), Some((4, 2))] {
        let late = page(&key, seen, (5, 3), vec![mail(3)]);
        assert_eq!(store.register(late).await.unwrap(), RegistrationResult::Stale);
    }
    let mut other = page(&key, Some((5, 2)), (5, 3), vec![mail(3)]);
    other.seen =
        other.seen.map(|cursor| postway_domain::inbound::FolderCursor { not_before: Some(at(1)), ..cursor });
    assert_eq!(store.register(other).await.unwrap(), RegistrationResult::Stale);
    assert_eq!(listed(store, InboundFilter::default()).await, [2, 1]);
    let (_, state) = store.mailbox(&key).await.unwrap().unwrap();
    assert_eq!((state.cursor, state.uid_next, state.lag()), (Some(cursor(5, 2)), Some(3), Some(0)));
    register(store, page(&key, Some((5, 2)), (5, 3), vec![mail(3)])).await;
    let nobody = page(&MailboxKey { tenant: other_tenant(), ..key }, None, (5, 3), vec![mail(4)]);
    assert_eq!(store.register(nobody).await.unwrap(), RegistrationResult::Stale);
}

/// Eight readers of one page: one registers it.
pub async fn of_concurrent_readers_one_registers_a_page(store: &Shared) {
    let key = watch(store, "orders").await;
    let calls = (0..8).map(|n| {
        let mails = (1..=20).map(|i| NewInbound { uid: mail(100 * n + i).uid, ..mail(i) }).collect();
        let (store, page) = (store.clone(), page(&key, None, (5, 20), mails));
        async move { store.register(page).await.unwrap() }
    });
    let answers = all_at_once(calls).await;
    let done = answers.iter().filter(|answer| **answer == RegistrationResult::Done { new: 20, known: 0 });
    assert_eq!(done.count(), 1, "{answers:?}");
    assert_eq!(take(store, 1, at(1), 99).await.len(), 20);
}

/// Also in one page, and under new UIDs when the folder was rebuilt.
pub async fn mail_that_was_here_before_is_not_new(store: &Shared) {
    let key = watch(store, "orders").await;
    let twice = page(&key, None, (5, 3), vec![mail(1), again(1, 2), mail(3)]);
    assert_eq!(store.register(twice).await.unwrap(), RegistrationResult::Done { new: 2, known: 1 });
    let rebuilt = page(&key, Some((5, 3)), (6, 9), vec![again(3, 7), again(1, 8), mail(9)]);
    assert_eq!(store.register(rebuilt).await.unwrap(), RegistrationResult::Done { new: 1, known: 2 });
    assert_eq!(numbers(&take(store, 1, at(1), 99).await), [1, 3, 9]);
    let (_, state) = store.mailbox(&key).await.unwrap().unwrap();
    assert_eq!(state.cursor, Some(cursor(6, 9)));
    // Another mailbox has not had it; a UID with other bytes is another mail.
    let other = watch(store, "bills").await;
    let theirs = NewInbound { uid: mail(50).uid, ..mail(1) };
    let reused = NewInbound { imap_uid: 1, ..mail(51) };
    register(store, page(&other, None, (5, 9), vec![theirs, reused])).await;
}

/// It is settled, has no bytes, and is known by its place.
pub async fn mail_that_could_not_be_read_is_noted_once(store: &Shared) {
    let key = watch(store, "orders").await;
    let unread = |n, state, why: &str| NewInbound {
        digest: None,
        body: None,
        state,
        error: Some(why.to_owned()),
        ..mail(n)
    };
    let (gone, dead) =
        (unread(1, InboundState::Gone, "expunged"), unread(2, InboundState::Dead, "too large"));
    register(store, page(&key, None, (5, 2), vec![gone.clone(), dead.clone()])).await;
    let found = view(store, gone.uid).await;
    assert_eq!((found.state, found.error.as_deref()), (InboundState::Gone, Some("expunged")));
    assert_eq!((found.due_at, found.settled_at, found.digest), (None, Some(at(0)), None));
    let same = NewInbound { uid: mail(60).uid, ..dead.clone() };
    let elsewhere = NewInbound { uid: mail(61).uid, folder: "Archive".to_owned(), ..dead.clone() };
    let late = page(&key, Some((5, 2)), (5, 3), vec![same, elsewhere]);
    assert_eq!(store.register(late).await.unwrap(), RegistrationResult::Done { new: 1, known: 1 });
    assert_eq!(store.route_state(at(9)).await.unwrap(), ProcessingState::default());
    for uid in [gone.uid, dead.uid] {
        assert_eq!(store.inbound_raw(&tenant(), uid).await.unwrap(), None);
        assert_eq!(store.replay_inbound(&tenant(), uid, at(1)).await.unwrap(), ChangeResult::InUse);
    }
    let bodiless = NewInbound { body: None, ..mail(70) };
    assert!(store.register(page(&key, Some((5, 3)), (5, 9), vec![bodiless])).await.is_err());
    assert_eq!(store.mailbox(&key).await.unwrap().unwrap().1.cursor, Some(cursor(5, 3)));
}

/// The longest due first, and of a mailbox that is flooded no more than its share.
pub async fn a_claim_takes_some_of_each_mailbox(store: &Shared) {
    let (flooded, quiet) = (watch(store, "flooded").await, watch(store, "quiet").await);
    register(store, page(&flooded, None, (5, 50), (1..=50).map(mail).collect())).await;
    let late = MailboxPage { at: at(3), ..page(&quiet, None, (5, 52), vec![mail(51), mail(52)]) };
    register(store, late).await;
    assert_eq!(
        store.route_state(at(2)).await.unwrap(),
        ProcessingState { due: 50, next_due_at: Some(at(3)) }
    );
    let request = |limit, per_mailbox| ProcessRequest {
        per_mailbox,
        ..ProcessRequest::new(sample::lease(1, at(4)), at(4), limit)
    };
    let claimed = store.claim_inbound(request(9, 3)).await.unwrap();
    assert_eq!(numbers(&claimed), [1, 2, 3, 51, 52]);
    let first = &claimed[0];
    assert_eq!((first.uid, &first.key, first.uid_validity), (mail(1).uid, &flooded, 5));
    assert_eq!((Some(first.digest), Some(&first.body)), (mail(1).digest, mail(1).body.as_ref()));
    assert_eq!((first.before, first.tries, first.created_at), (InboundState::Received, 0, at(0)));
    assert_eq!((first.arrived_at, first.folder.as_str()), (Some(at(-5)), "INBOX"));
    assert!(first.messages.is_empty() && first.follow_up.is_none() && first.reminders == 0);
    assert_eq!(numbers(&store.claim_inbound(request(2, 3)).await.unwrap()), [4, 5]);
    let held = view(store, mail(1).uid).await;
    assert_eq!((held.state, held.due_at), (InboundState::Routing, None));
}

/// However many ask.
pub async fn no_mail_is_claimed_twice_by_eight_claimers(store: &Shared) {
    for (n, id) in [(0, "one"), (1, "two")] {
        let key = watch(store, id).await;
        register(store, page(&key, None, (5, 99), (1..=40).map(|i| mail(100 * n + i)).collect())).await;
    }
    let calls = (1..=8).map(|token| {
        let store = store.clone();
        async move { take(&store, token, at(1), 15).await }
    });
    let mut uids: Vec<_> = all_at_once(calls).await.iter().flatten().map(|one| one.uid).collect();
    while let Some(one) = take(store, 9, at(1), 1).await.pop() {
        uids.push(one.uid);
    }
    uids.sort();
    uids.dedup();
    assert_eq!(uids.len(), 80);
}

/// State, words, labels and what was sent; a try that failed keeps what is known.
pub async fn what_came_of_a_mail_reads_back_whole(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 1), vec![mail(1)])).await;
    let one = take(store, 1, at(1), 1).await.remove(0);
    let sent = accept(store, Sample::new(1)).await;
    let gone = uid(at(0), 77);
    let failed = InboundMailResult {
        due_at: Some(at(60)),
        tries: 1,
        error: Some("no door".to_owned()),
        kind: Some("ordinary"),
        tags: vec!["order".to_owned(), "order".to_owned()],
        messages: vec![("first".parse().unwrap(), sent)],
        ..routed(&one, 1, InboundState::Waiting, at(2))
    };
    assert!(settle(store, failed).await);
    let found = view(store, one.uid).await;
    assert_eq!((found.state, found.due_at, found.tries), (InboundState::Waiting, Some(at(60)), 1));
    assert_eq!((found.error.as_deref(), found.settled_at), (Some("no door"), None));
    assert_eq!(
        store.route_state(at(3)).await.unwrap(),
        ProcessingState { due: 0, next_due_at: Some(at(60)) }
    );
    assert!(take(store, 2, at(59), 1).await.is_empty());
    let one = take(store, 2, at(60), 1).await.remove(0);
    assert_eq!((one.before, one.tries), (InboundState::Waiting, 1));
    assert_eq!(one.messages, [("first".parse().unwrap(), sent)]);
    let done = InboundMailResult {
        result: Some(r#"{"größe":1}"#.to_owned()),
        tags: vec!["größe".to_owned(), "order".to_owned()],
        messages: vec![("first".parse().unwrap(), sent), ("second".parse().unwrap(), gone)],
        ..routed(&one, 2, InboundState::Routed, at(61))
    };
    assert!(settle(store, done).await);
    let record = store.inbound_one(&tenant(), one.uid).await.unwrap().unwrap();
    let found = &record.mail;
    assert_eq!((found.state, found.due_at, found.settled_at), (InboundState::Routed, None, Some(at(61))));
    assert_eq!((found.kind.as_deref(), found.error.as_deref()), (Some("ordinary"), None));
    assert_eq!(
        (found.tags.as_slice(), found.result.as_deref()),
        (["order".to_owned(), "größe".to_owned()].as_slice(), Some(r#"{"größe":1}"#))
    );
    let mut sent_for = record.messages;
    sent_for.sort_by_key(|(rule, ..)| rule.clone());
    let ready = Some(postway_domain::MessageStatus::Ready);
    assert_eq!(sent_for, [("first".parse().unwrap(), sent, ready), ("second".parse().unwrap(), gone, None)]);
}

/// Neither another's token, nor the same twice, nor what was never claimed.
pub async fn a_late_worker_settles_nothing(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 2), vec![mail(1), mail(2)])).await;
    let one = take(store, 1, at(1), 1).await.remove(0);
    let received = |token| InboundMailResult {
        received: Some("{}".to_owned()),
        tags: vec!["late".to_owned()],
        ..routed(&one, token, InboundState::Routed, at(2))
    };
    assert!(!settle(store, received(2)).await);
    assert!(!settle(store, InboundMailResult { uid: mail(2).uid, ..received(1) }).await);
    assert!(!settle(store, InboundMailResult { uid: mail(9).uid, ..received(1) }).await);
    let record = store.inbound_one(&tenant(), one.uid).await.unwrap().unwrap();
    assert!(record.events.is_empty() && record.mail.tags.is_empty());
    assert_eq!(store.settle_inbound(vec![received(1), received(1)]).await.unwrap(), [true, false]);
    let record = store.inbound_one(&tenant(), one.uid).await.unwrap().unwrap();
    assert_eq!(record.events.len(), 1);
}

/// After a while, and with one life counted; what waits for a reminder goes on doing so.
pub async fn lost_mail_is_given_back_once(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 2), vec![mail(1), mail(2)])).await;
    let claimed = take(store, 1, at(1), 9).await;
    let reminded = InboundMailResult {
        due_at: Some(at(5)),
        follow_up: Some("first".parse().unwrap()),
        ..routed(&claimed[1], 1, InboundState::Routed, at(2))
    };
    assert!(settle(store, reminded).await);
    let reminder = take(store, 2, at(5), 9).await.remove(0);
    assert_eq!((reminder.before, reminder.uid), (InboundState::Routed, mail(2).uid));
    assert_eq!(reminder.follow_up, Some("first".parse().unwrap()));
    assert_eq!(store.reclaim_inbound(&[incarnation(1)], at(6), 9).await.unwrap(), 0);
    assert_eq!(store.reclaim_inbound(&[incarnation(2)], at(6), 1).await.unwrap(), 1);
    assert_eq!(store.reclaim_inbound(&[incarnation(2)], at(6), 9).await.unwrap(), 1);
    assert_eq!(store.reclaim_inbound(&[incarnation(2)], at(6), 9).await.unwrap(), 0);
    assert!(!settle(store, routed(&claimed[0], 1, InboundState::Routed, at(7))).await);
    let due = at(6).plus(SUSPECT_WAIT);
    assert_eq!(store.route_state(at(7)).await.unwrap(), ProcessingState { due: 0, next_due_at: Some(due) });
    let again = take(store, 3, due, 9).await;
    let stood: Vec<_> =
        again.iter().map(|one| (one.imap_uid, one.before, one.tries, one.lost_leases)).collect();
    assert_eq!(stood, [(1, InboundState::Waiting, 0, 1), (2, InboundState::Routed, 0, 1)]);
}

/// A settled one is new again, with all its tries; what is under way is not.
pub async fn a_settled_mail_is_replayed(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 1), vec![mail(1)])).await;
    let replay = |now| async move { store.replay_inbound(&tenant(), mail(1).uid, at(now)).await.unwrap() };
    assert_eq!(replay(1).await, ChangeResult::InUse);
    let one = take(store, 1, at(1), 1).await.remove(0);
    assert_eq!(replay(2).await, ChangeResult::InUse);
    let dead = InboundMailResult {
        tries: 3,
        error: Some("no".to_owned()),
        ..routed(&one, 1, InboundState::Dead, at(3))
    };
    assert!(settle(store, dead).await);
    assert_eq!(replay(4).await, ChangeResult::Done);
    let found = view(store, one.uid).await;
    assert_eq!((found.state, found.due_at, found.tries), (InboundState::Received, Some(at(4)), 0));
    assert_eq!((found.error, found.settled_at), (None, None));
    assert_eq!(take(store, 2, at(4), 1).await[0].before, InboundState::Received);
    assert_eq!(store.replay_inbound(&tenant(), mail(9).uid, at(1)).await.unwrap(), ChangeResult::Missing);
}

/// No reminder comes any more, also where one is under way.
pub async fn a_resolved_mail_is_not_reminded_of(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 2), vec![mail(1), mail(2)])).await;
    let resolve = |n| async move { store.resolve_inbound(&tenant(), mail(n).uid, at(9)).await.unwrap() };
    let claimed = take(store, 1, at(1), 9).await;
    let follow_up = |one: &MailToProcess, token, due: i64| InboundMailResult {
        due_at: Some(at(due)),
        follow_up: Some("first".parse().unwrap()),
        reminders: one.reminders + 1,
        ..routed(one, token, InboundState::Routed, at(2))
    };
    assert!(settle(store, follow_up(&claimed[0], 1, 5)).await);
    assert_eq!(view(store, claimed[0].uid).await.follow_up, Some("first".parse().unwrap()));
    assert_eq!((resolve(1).await, resolve(1).await), (ChangeResult::Done, ChangeResult::Already));
    let found = view(store, claimed[0].uid).await;
    assert_eq!((found.state, found.due_at, found.follow_up), (InboundState::Routed, None, None));
    assert_eq!((found.resolved_at, found.reminders), (Some(at(9)), 1));
    // Its first try is still to come to an end.
    assert_eq!(resolve(2).await, ChangeResult::Done);
    assert!(settle(store, follow_up(&claimed[1], 1, 5)).await);
    assert_eq!(view(store, claimed[1].uid).await.due_at, None);
    assert!(take(store, 2, at(99), 9).await.is_empty());
}

/// Page by page, and each filter is a condition.
pub async fn mail_is_listed_newest_first(store: &Shared) {
    let (orders, bills) = (watch(store, "orders").await, watch(store, "bills").await);
    register(store, page(&orders, None, (5, 3), (1..=3).map(mail).collect())).await;
    register(store, page(&bills, None, (5, 5), (4..=5).map(mail).collect())).await;
    for one in take(store, 1, at(1), 9).await {
        let to = if one.imap_uid % 2 == 0 { InboundState::Dead } else { InboundState::NoMatch };
        let kind = Some(if one.imap_uid > 3 { "bounce" } else { "ordinary" });
        assert!(settle(store, InboundMailResult { kind, ..routed(&one, 1, to, at(2)) }).await);
    }
    assert_eq!(listed(store, InboundFilter::default()).await, [5, 4, 3, 2, 1]);
    let filter = |mailbox: Option<&str>, state, kind: Option<&str>| InboundFilter {
        mailbox: mailbox.map(|id| id.parse().unwrap()),
        state,
        kind: kind.map(str::to_owned),
    };
    assert_eq!(listed(store, filter(Some("bills"), None, None)).await, [5, 4]);
    assert_eq!(listed(store, filter(None, Some(InboundState::Dead), None)).await, [4, 2]);
    assert_eq!(listed(store, filter(Some("orders"), Some(InboundState::Dead), None)).await, [2]);
    assert_eq!(listed(store, filter(None, Some(InboundState::Dead), Some("bounce"))).await, [4]);
    assert!(listed(store, filter(None, None, Some("pec"))).await.is_empty());
    let second = store.inbound(&tenant(), &InboundFilter::default(), Some(mail(4).uid), 2).await.unwrap();
    assert_eq!(second.iter().map(|view| view.imap_uid).collect::<Vec<_>>(), [3, 2]);
}

/// Who deals with mail hears of a page, of what is due again, and of a replay.
pub async fn routers_are_woken(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 1), vec![mail(1)])).await;
    within(store.inbound_woken()).await;
    let one = take(store, 1, at(1), 1).await.remove(0);
    assert!(settle(store, routed(&one, 1, InboundState::Waiting, at(2))).await);
    within(store.inbound_woken()).await;
    assert_eq!(store.reclaim_inbound(&[], at(3), 9).await.unwrap(), 0);
    let one = take(store, 2, at(3), 1).await.remove(0);
    assert!(settle(store, routed(&one, 2, InboundState::NoMatch, at(4))).await);
    assert_eq!(store.replay_inbound(&tenant(), one.uid, at(5)).await.unwrap(), ChangeResult::Done);
    within(store.inbound_woken()).await;
}

/// Under its own id, to subscribers and in the feed; nothing is counted for it.
pub async fn subscribers_are_told_of_mail_that_came(store: &Shared) {
    let key = watch(store, "orders").await;
    subscribe(store, webhook(TENANT, "one")).await;
    register(store, page(&key, None, (5, 1), vec![mail(1)])).await;
    for (token, data) in [(1, r#"{"n":1}"#), (2, r#"{"n":2}"#)] {
        let one = take(store, token, at(5), 1).await.remove(0);
        let settled = routed(&one, token, InboundState::Routed, at(5));
        assert!(settle(store, InboundMailResult { received: Some(data.to_owned()), ..settled }).await);
        assert_eq!(store.replay_inbound(&tenant(), one.uid, at(5)).await.unwrap(), ChangeResult::Done);
    }
    assert_eq!(tell(store, at(6)).await, 2);
    let feed = store.feed(&tenant(), FeedPosition::default(), 9).await.unwrap();
    let said: Vec<_> =
        feed.iter().map(|one| (one.uid, one.kind, one.event.as_ref().unwrap().data.as_deref())).collect();
    let (uid, kind) = (mail(1).uid, EventKind::Received);
    assert_eq!(said, [(uid, kind, Some(r#"{"n":1}"#)), (uid, kind, Some(r#"{"n":2}"#))]);
    let notifications = store.notifications(&tenant(), uid).await.unwrap();
    assert_eq!(notifications.iter().map(|one| one.key.seq).collect::<Vec<_>>(), [1, 2]);
    let record = store.inbound_one(&tenant(), uid).await.unwrap().unwrap();
    assert_eq!(record.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2]);
    assert!(store.statistics(&tenant(), at(-9_999_999), at(9_999_999)).await.unwrap().is_empty());
}
