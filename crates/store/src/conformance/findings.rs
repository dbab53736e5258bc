//! What mail that came in says about mail that went out: written with the mail, once, and never less than all
//! of it.

use postway_domain::{EventKind, InboundState, MessageUid, Time, message::AttemptOutcome};

use super::{
    Shared,
    inbound::{mail, page, register, routed, settle, take, view},
    journal::{send, tell},
    mailboxes::watch,
    retention::{DAY_MS, fan_out, is_there},
    sample::{ACCOUNT, OTHER_TENANT, Sample, at, other_tenant, tenant, uid},
    stage::{accept_and_claim, all_at_once, apply, assert_gapless, claim, commit_wire, outcome, record},
    suppress::suppression,
};
use crate::record::{
    BlobRef, ExpungeRequest, HourlyCounts, InboundFilter, InboundMailResult, MailToProcess, MessageChange,
    MessageFinding, NewReceipt, StoredBody,
};

/// What a report says of a message's first recipient.
pub(crate) fn finding(message: MessageUid, kind: EventKind) -> MessageFinding {
    MessageFinding {
        message,
        position: Some(0),
        kind,
        data: Some(format!("{{\"kind\":\"{}\"}}", kind.as_str())),
        bounce: None,
        suppress: None,
        receipt: None,
    }
}

/// A receipt of certified mail.
pub(crate) fn receipt(n: u8, kind: &str) -> NewReceipt {
    NewReceipt {
        digest: [n; 32],
        kind: kind.to_owned(),
        address: Some("größe@pec.example.it".to_owned()),
        at: at(i64::from(n)),
        signature: "verified",
        detail: r#"{"errore":"nessuno"}"#.to_owned(),
        body: StoredBody::Inline(format!("receipt {n}").into()),
    }
}

/// Registers the n-th mail in a mailbox of its own, and leases it.
pub(super) async fn arrive(store: &Shared, n: u32, now: Time) -> MailToProcess {
    let key = watch(store, &format!("box-{n}")).await;
    register(store, page(&key, None, (5, n), vec![mail(n)])).await;
    take(store, i64::from(n), now, 1).await.remove(0)
}

/// Has the n-th mail say this.
pub(super) async fn say(store: &Shared, n: u32, findings: Vec<MessageFinding>, ms: i64) {
    let one = arrive(store, n, at(ms)).await;
    let said = InboundMailResult { findings, ..routed(&one, n.into(), InboundState::Routed, at(ms)) };
    assert!(settle(store, said).await);
}

pub(super) async fn outcomes(store: &Shared, uid: MessageUid) -> Vec<Option<EventKind>> {
    record(store, uid).await.recipients.iter().map(|one| one.outcome).collect()
}

pub(super) fn kinds_of(record: &crate::record::MessageRecord) -> Vec<EventKind> {
    record.events.iter().map(|event| event.kind).collect()
}

/// Event, outcome, suppression; in the feed, counted, and without disturbing concurrent work on the message.
pub async fn a_finding_is_written_whole(store: &Shared) {
    let uid = send(store, Sample::new(1).to("ann@example.org").to("bob@example.org"), 5).await;
    let before = record(store, uid).await;
    let suppress = suppression("acme", "bob@example.org");
    let bounce = Some(r#"{"type":"hard"}"#.to_owned());
    let bounced = MessageFinding {
        position: Some(1),
        bounce: bounce.clone(),
        suppress: Some(suppress.clone()),
        ..finding(uid, EventKind::Bounced)
    };
    say(store, 1, vec![bounced, finding(uid, EventKind::Delayed)], 50).await;
    let found = record(store, uid).await;
    assert_gapless(&found);
    let last = &found.events[found.events.len() - 2];
    assert_eq!((last.kind, last.at), (EventKind::Bounced, at(50)));
    let data = format!(r#"{{"kind":"bounced","inbound":"{}"}}"#, mail(1).uid);
    assert_eq!(last.data.as_deref(), Some(data.as_str()));
    let [ann, bob] = &found.recipients[..] else { panic!("two recipients") };
    assert_eq!((ann.outcome, &ann.bounce), (Some(EventKind::Delayed), &None));
    assert_eq!((bob.outcome, &bob.bounce), (Some(EventKind::Bounced), &bounce));
    assert_eq!((found.summary.state, found.summary.version), (before.summary.state, before.summary.version));
    assert_eq!((found.summary.sent_at, found.summary.updated_at), (Some(at(5)), at(50)));
    assert_eq!(store.suppression(&tenant(), "bob@example.org").await.unwrap(), Some(suppress));
    tell(store, at(60)).await;
    let feed = store.feed(&tenant(), Default::default(), 99).await.unwrap();
    let told: Vec<_> = feed.iter().map(|one| one.kind).collect();
    let suppressed = EventKind::SuppressionCreated;
    let expected = [EventKind::Accepted, EventKind::Sent, EventKind::Bounced, EventKind::Delayed, suppressed];
    assert_eq!(told, expected);
    assert_eq!(feed[2].event.as_ref(), Some(last));
    let hours = store.statistics(&tenant(), at(-DAY_MS), at(DAY_MS)).await.unwrap();
    let bounced: i64 = hours.iter().map(|row| row.counts.bounced).sum();
    let accepted = HourlyCounts { accepted: 1, ..HourlyCounts::default() };
    assert_eq!((bounced, hours.iter().map(|row| row.counts.accepted).sum()), (1, accepted.accepted));
}

/// Nothing of it, where the lease is lost.
pub async fn a_late_finding_is_not_written(store: &Shared) {
    let uid = send(store, Sample::new(1), 5).await;
    let one = arrive(store, 1, at(6)).await;
    let said = InboundMailResult {
        findings: vec![MessageFinding {
            suppress: Some(suppression("acme", "x@example.org")),
            receipt: Some(receipt(1, "accettazione")),
            ..finding(uid, EventKind::PecAccepted)
        }],
        ..routed(&one, 99, InboundState::Routed, at(7))
    };
    assert!(!settle(store, said.clone()).await);
    let twice = InboundMailResult { token: super::sample::lease(1, at(7)).token, ..said };
    assert_eq!(store.settle_inbound(vec![twice.clone(), twice.clone()]).await.unwrap(), [true, false]);
    assert!(!settle(store, twice).await);
    let found = record(store, uid).await;
    assert_eq!(kinds_of(&found).iter().filter(|kind| **kind == EventKind::PecAccepted).count(), 1);
    assert_eq!(store.receipts(&tenant(), uid).await.unwrap().len(), 1);
}

/// Of what is as bad the latest.
pub async fn the_worst_outcome_is_shown(store: &Shared) {
    let uid = send(store, Sample::new(1), 5).await;
    let bounced =
        |n| MessageFinding { bounce: Some(format!("{{\"n\":{n}}}")), ..finding(uid, EventKind::Bounced) };
    let steps = [
        (vec![finding(uid, EventKind::AutoReplied)], EventKind::AutoReplied, None),
        (
            vec![finding(uid, EventKind::Delivered), finding(uid, EventKind::Delayed)],
            EventKind::Delivered,
            None,
        ),
        (vec![finding(uid, EventKind::PecTimeout), bounced(1)], EventKind::Bounced, Some("{\"n\":1}")),
        (vec![bounced(2)], EventKind::Bounced, Some("{\"n\":2}")),
        (vec![finding(uid, EventKind::PecDelivered)], EventKind::Bounced, Some("{\"n\":2}")),
        (vec![finding(uid, EventKind::Complained)], EventKind::Complained, Some("{\"n\":2}")),
        (vec![bounced(3)], EventKind::Complained, Some("{\"n\":2}")),
    ];
    for (n, (findings, outcome, bounce)) in (1..).zip(steps) {
        say(store, n, findings, 10 + i64::from(n)).await;
        let shown = &record(store, uid).await.recipients[0];
        assert_eq!((shown.outcome, shown.bounce.as_deref()), (Some(outcome), bounce), "after {n}");
    }
    assert_gapless(&record(store, uid).await);
    // What is about none of its recipients, or about one that it has not, is history only.
    let whole = MessageFinding { position: None, ..finding(uid, EventKind::Complained) };
    let nobody = MessageFinding { position: Some(7), ..finding(uid, EventKind::Complained) };
    say(store, 20, vec![whole, nobody], 99).await;
    assert_eq!(outcomes(store, uid).await, [Some(EventKind::Complained)]);
}

/// Its suppression is written all the same; other findings of the mail are not touched.
pub async fn a_finding_about_a_message_that_is_gone_is_passed_over(store: &Shared) {
    let there = send(store, Sample::new(1), 5).await;
    let suppress = Some(suppression("acme", "late@example.org"));
    let gone = MessageFinding {
        suppress: suppress.clone(),
        receipt: Some(receipt(1, "accettazione")),
        ..finding(uid(at(0), 77), EventKind::PecAccepted)
    };
    say(store, 1, vec![gone, finding(there, EventKind::Bounced)], 9).await;
    assert_eq!(outcomes(store, there).await, [Some(EventKind::Bounced)]);
    assert_eq!(store.suppression(&tenant(), "late@example.org").await.unwrap(), suppress);
    assert!(store.receipts(&tenant(), uid(at(0), 77)).await.unwrap().is_empty());
}

/// Also where the messages are another tenant's, and many mails are settled at once.
pub async fn many_findings_are_written_together(store: &Shared) {
    let ours = send(store, Sample::new(1), 5).await;
    let mut theirs = Vec::new();
    for n in 2..40 {
        theirs.push(super::retention::sent(store, Sample::new(n).from(OTHER_TENANT, ACCOUNT)).await);
    }
    let key = watch(store, "reports").await;
    register(store, page(&key, None, (5, 99), (1..=40).map(mail).collect())).await;
    let claimed = take(store, 1, at(6), 99).await;
    assert_eq!(claimed.len(), 40);
    let about = |n: usize| theirs.get(n).copied().unwrap_or(ours);
    let settled: Vec<InboundMailResult> = claimed
        .iter()
        .enumerate()
        .map(|(n, one)| InboundMailResult {
            findings: vec![finding(about(n), EventKind::Bounced), finding(ours, EventKind::AutoReplied)],
            ..routed(one, 1, InboundState::Routed, at(7))
        })
        .collect();
    assert_eq!(store.settle_inbound(settled).await.unwrap(), [true; 40]);
    let found = record(store, ours).await;
    assert_gapless(&found);
    let replies = kinds_of(&found).iter().filter(|kind| **kind == EventKind::AutoReplied).count();
    assert_eq!((replies, found.recipients[0].outcome), (40, Some(EventKind::Bounced)));
    for uid in theirs {
        let key = crate::record::MessageKey::Uid(uid);
        let found = store.message(&other_tenant(), &key).await.unwrap().unwrap();
        assert_eq!(found.recipients[0].outcome, Some(EventKind::Bounced));
    }
}

/// Concurrent work on it continues, and no event is lost.
pub async fn findings_and_work_on_a_message_do_not_meet(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    let uid = claimed.uid;
    say(store, 1, vec![finding(uid, EventKind::Delayed)], 3).await;
    assert!(commit_wire(store, &mut claimed, at(4)).await);
    let key = watch(store, "reports").await;
    register(store, page(&key, None, (5, 99), (10..=18).map(mail).collect())).await;
    let late = take(store, 2, at(5), 99).await;
    let calls = late.into_iter().map(|one| {
        let findings = vec![finding(uid, EventKind::AutoReplied)];
        let said = InboundMailResult { findings, ..routed(&one, 2, InboundState::Routed, at(6)) };
        let store = store.clone();
        async move { settle(&store, said).await }
    });
    let calls: Vec<_> = calls.collect();
    let sent = outcome(&claimed, true, AttemptOutcome::Sent, at(6));
    let (held, applied) = tokio::join!(all_at_once(calls), apply(store, sent));
    assert!(applied && held.iter().all(|held| *held));
    let found = record(store, uid).await;
    assert_gapless(&found);
    assert_eq!(kinds_of(&found).iter().filter(|kind| **kind == EventKind::AutoReplied).count(), 9);
}

/// The same receipt again writes nothing; one that speaks of several recipients is kept once.
pub async fn a_receipt_is_kept_once(store: &Shared) {
    let uid = send(store, Sample::new(1).to("a@pec.example.it").to("b@pec.example.it"), 5).await;
    let said = |position, n, kind, event| MessageFinding {
        position: Some(position),
        receipt: Some(receipt(n, kind)),
        ..finding(uid, event)
    };
    let of_both =
        || [0, 1].map(|position| said(position, 1, "accettazione", EventKind::PecAccepted)).to_vec();
    say(store, 1, of_both(), 10).await;
    let events = record(store, uid).await.events.len();
    say(store, 2, of_both(), 11).await;
    assert_eq!(record(store, uid).await.events.len(), events);
    assert_eq!(view(store, mail(2).uid).await.state, InboundState::Routed);
    let blob = store.reserve_blob([9; 32], 900, at(0)).await.unwrap();
    let large = NewReceipt {
        body: StoredBody::Blob(BlobRef { name: blob.clone(), size: 900 }),
        ..receipt(2, "avvenuta-consegna")
    };
    let delivered = MessageFinding { receipt: Some(large.clone()), ..finding(uid, EventKind::PecDelivered) };
    say(store, 3, vec![delivered], 12).await;
    let kept = store.receipts(&tenant(), uid).await.unwrap();
    let brief: Vec<_> = kept.iter().map(|one| (one.inbound, one.kind.as_str(), one.size)).collect();
    let first = receipt(1, "accettazione");
    let expected = [(mail(1).uid, "accettazione", first.body.len()), (mail(3).uid, "avvenuta-consegna", 900)];
    assert_eq!(brief, expected);
    for known in [&first, &large] {
        assert_eq!(
            store.receipt_raw(&tenant(), uid, known.digest).await.unwrap().as_ref(),
            Some(&known.body)
        );
        assert_eq!(store.receipt_raw(&other_tenant(), uid, known.digest).await.unwrap(), None);
    }
    let page = async |after, limit| store.receipt_page(&tenant(), uid, after, limit).await.unwrap();
    assert_eq!(page(None, 1).await, kept[..1]);
    assert_eq!(page(Some(kept[0].place()), 9).await, kept[1..]);
    assert!(page(Some(kept[1].place()), 9).await.is_empty());
    let one = &kept[0];
    assert_eq!((one.digest, one.at, &one.address), (first.digest, first.at, &first.address));
    assert_eq!((one.signature.as_str(), &one.detail), ("verified", &first.detail));
    assert_eq!(outcomes(store, uid).await, [Some(EventKind::PecDelivered), Some(EventKind::PecAccepted)]);
    assert!(store.receipts(&other_tenant(), uid).await.unwrap().is_empty());
    // Its bytes are in use as long as it is there.
    assert!(store.condemn_blobs(at(DAY_MS), 9).await.unwrap().is_empty());
    tell(store, at(13)).await;
    assert_eq!(expunge(store, DAY_MS).await, 1);
    assert_eq!(store.condemn_blobs(at(DAY_MS), 9).await.unwrap(), [blob]);
}

async fn expunge(store: &Shared, before_ms: i64) -> u32 {
    let (before, recipient_key) = (at(before_ms), [7; 32]);
    let (reported_before, unreported_before, now) = (before, before, at(10 * DAY_MS));
    let tenant = tenant();
    let limit = 99;
    store
        .expunge(ExpungeRequest { tenant, reported_before, unreported_before, now, recipient_key, limit })
        .await
        .unwrap()
}

/// Sends certified mail whose receipt must come by this time.
pub(crate) async fn certified(store: &Shared, n: u32, until_ms: i64) -> MessageUid {
    let mut claimed = accept_and_claim(store, Sample::new(n), n.into()).await;
    assert!(commit_wire(store, &mut claimed, at(1)).await);
    let sent = MessageChange {
        awaits_receipt: Some(at(until_ms)),
        ..outcome(&claimed, true, AttemptOutcome::Sent, at(2))
    };
    assert!(apply(store, sent).await);
    claimed.uid
}

/// Once, where none came that ends the waiting.
pub async fn certified_mail_without_a_receipt_times_out(store: &Shared) {
    let [silent, accepted, failed, taken_over] = [
        certified(store, 1, 30).await,
        certified(store, 2, 30).await,
        certified(store, 3, 30).await,
        certified(store, 4, 31).await,
    ];
    let not_sent = claim(store, 9, at(3), 1).await;
    assert!(not_sent.is_empty());
    let said = [
        (accepted, EventKind::PecAccepted),
        (failed, EventKind::PecFailed),
        (taken_over, EventKind::PecTakenOver),
    ];
    say(store, 1, said.map(|(uid, kind)| finding(uid, kind)).to_vec(), 10).await;
    assert_eq!(store.time_out_receipts(at(29), 9).await.unwrap(), 0);
    assert_eq!(store.time_out_receipts(at(40), 1).await.unwrap(), 1);
    assert_eq!(store.time_out_receipts(at(40), 9).await.unwrap(), 1);
    assert_eq!(store.time_out_receipts(at(99), 9).await.unwrap(), 0);
    for (uid, outcome) in [
        (silent, EventKind::PecTimeout),
        (accepted, EventKind::PecAccepted),
        (failed, EventKind::PecFailed),
        (taken_over, EventKind::PecTimeout),
    ] {
        assert_eq!(outcomes(store, uid).await, [Some(outcome)]);
        let found = record(store, uid).await;
        assert_gapless(&found);
        let is_late = kinds_of(&found).contains(&EventKind::PecTimeout);
        assert_eq!(is_late, outcome == EventKind::PecTimeout);
    }
    tell(store, at(50)).await;
    let feed = store.feed(&tenant(), Default::default(), 99).await.unwrap();
    assert_eq!(feed.iter().filter(|one| one.kind == EventKind::PecTimeout).count(), 2);
}

/// A receipt that came before it was known that the message was sent, and a message that is gone.
pub async fn what_was_answered_early_does_not_time_out(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    say(store, 1, vec![finding(claimed.uid, EventKind::PecAccepted)], 1).await;
    assert!(commit_wire(store, &mut claimed, at(2)).await);
    let sent = MessageChange {
        awaits_receipt: Some(at(30)),
        ..outcome(&claimed, true, AttemptOutcome::Sent, at(3))
    };
    assert!(apply(store, sent).await);
    certified(store, 2, 30).await;
    tell(store, at(4)).await;
    assert_eq!(expunge(store, DAY_MS).await, 2);
    let early = certified(store, 3, 30).await;
    say(store, 3, vec![finding(early, EventKind::PecDelivered)], 5).await;
    assert_eq!(store.time_out_receipts(at(40), 9).await.unwrap(), 0);
}

/// Where it is, whose, and to whom; of what is gone a trace.
pub async fn messages_are_traced_by_their_ids(store: &Shared) {
    let gone = super::retention::sent(store, Sample::new(1)).await;
    fan_out(store, at(3)).await;
    assert_eq!(expunge(store, DAY_MS).await, 1);
    let ours = send(store, Sample::new(2).to("b@example.org").to("a@example.org"), 5).await;
    let theirs = super::retention::sent(store, Sample::new(3).from(OTHER_TENANT, ACCOUNT)).await;
    let asked = [theirs, ours, gone, uid(at(0), 99), ours];
    let found = store.traced(&asked).await.unwrap();
    let brief: Vec<_> = found.iter().map(|one| (one.uid, &one.tenant, one.gone, one.created_at)).collect();
    let (tenant, other) = (tenant(), other_tenant());
    let expected =
        [(gone, &tenant, true, at(0)), (ours, &tenant, false, at(0)), (theirs, &other, false, at(0))];
    assert_eq!(brief, expected);
    assert_eq!(found[1].recipients, ["b@example.org", "a@example.org"]);
    assert!(found[0].recipients.is_empty() && found[0].sender.is_empty());
    assert_eq!(found[1].sender, "news@example.com");
    assert!(store.traced(&[]).await.unwrap().is_empty());
}

/// A message that was reported waits for the report of what came late.
pub async fn a_late_finding_reopens_a_reported_message(store: &Shared) {
    let hook = super::subscribers::webhook("acme", "hook");
    let uid = send(store, Sample::new(1), 5).await;
    tell(store, at(6)).await;
    super::subscribers::subscribe(store, hook).await;
    say(store, 1, vec![finding(uid, EventKind::Bounced)], 50).await;
    // It is in the journal only.
    assert_eq!(expunge(store, DAY_MS).await, 0);
    tell(store, at(60)).await;
    assert_eq!(expunge(store, DAY_MS).await, 0, "somebody is to be told");
    assert!(is_there(store, &tenant(), uid).await);
    let due = crate::record::DueSubscriber { tenant: tenant(), subscriber: "hook".parse().unwrap() };
    let settled = Some(crate::record::NotificationState::Acknowledged);
    super::retention::notify_as(store, &due, |_| settled, None, at(70)).await;
    assert_eq!(expunge(store, 60).await, 0, "time counts from the last that was told");
    assert_eq!(expunge(store, DAY_MS).await, 1);
}

/// Settled mail, with its bytes; what it has had is remembered, and what is unfinished stays.
pub async fn old_mail_is_forgotten_and_not_taken_again(store: &Shared) {
    let blob = store.reserve_blob([8; 32], 900, at(0)).await.unwrap();
    let key = watch(store, "orders").await;
    let mut large = mail(1);
    large.body = Some(StoredBody::Blob(BlobRef { name: blob.clone(), size: 900 }));
    let mails = vec![large.clone(), mail(2), mail(3), mail(4), mail(5)];
    register(store, page(&key, None, (5, 5), mails)).await;
    super::subscribers::subscribe(store, super::subscribers::webhook("acme", "hook")).await;
    let claimed = take(store, 1, at(1), 9).await;
    let settled = |n: usize, to| routed(&claimed[n], 1, to, at(2));
    for one in [
        settled(0, InboundState::NoMatch),
        InboundMailResult { due_at: Some(at(900)), ..settled(1, InboundState::Routed) },
        settled(2, InboundState::Waiting),
        InboundMailResult { received: Some("{}".to_owned()), ..settled(3, InboundState::Routed) },
    ] {
        assert!(settle(store, one).await);
    }
    let expunge = |before: i64, unreported_before: i64| async move {
        store.expunge_inbound(&tenant(), at(before), at(unreported_before), 9).await.unwrap()
    };
    assert!(store.condemn_blobs(at(DAY_MS), 9).await.unwrap().is_empty());
    assert_eq!(expunge(0, 0).await, 0);
    let day = at(DAY_MS);
    assert_eq!(store.expunge_inbound(&other_tenant(), day, day, 9).await.unwrap(), 0);
    assert_eq!(
        expunge(DAY_MS, DAY_MS).await,
        1,
        "of the first nobody is told, and the fourth is in the journal"
    );
    assert_eq!(expunge(DAY_MS, DAY_MS).await, 0);
    tell(store, at(3)).await;
    assert_eq!(expunge(DAY_MS, DAY_MS).await, 0, "somebody is to be told of the fourth");
    assert_eq!(store.condemn_blobs(at(DAY_MS), 9).await.unwrap(), [blob]);
    let left = store.inbound(&tenant(), &InboundFilter::default(), None, 9).await.unwrap();
    assert_eq!(left.iter().map(|view| view.imap_uid).collect::<Vec<_>>(), [5, 4, 3, 2]);
    let rescan = page(&key, Some((5, 5)), (6, 5), vec![mail(1), mail(2)]);
    let known = crate::record::RegistrationResult::Done { new: 0, known: 2 };
    assert_eq!(store.register(rescan).await.unwrap(), known);
    let due = crate::record::DueSubscriber { tenant: tenant(), subscriber: "hook".parse().unwrap() };
    let dead = Some(crate::record::NotificationState::Dead);
    super::retention::notify_as(store, &due, |_| dead, None, at(70)).await;
    assert_eq!(expunge(DAY_MS, 70).await, 0, "it died then, and can be told again");
    assert_eq!(expunge(DAY_MS, 71).await, 1);
    assert!(store.notifications(&tenant(), mail(4).uid).await.unwrap().is_empty());
}

/// Mail that an address wrote, or that was to it; and what reports said of it.
pub async fn an_erased_address_is_taken_out_of_mail_that_came_in(store: &Shared) {
    let key = watch(store, "orders").await;
    let by = |n, sender: &str, recipients: &str| {
        let (sender, recipients) = (Some(sender.to_owned()), Some(recipients.to_owned()));
        crate::record::NewInbound { sender, recipients, ..mail(n) }
    };
    let mails = vec![
        by(1, "Ann <ANN@example.org>", "shop@example.net"),
        by(2, "joann@example.org", "shop@example.net"),
        by(3, "bob@example.org", "shop@example.net, ann@example.org"),
        by(4, "ann@example.org", "shop@example.net"),
    ];
    register(store, page(&key, None, (5, 4), mails)).await;
    for one in take(store, 1, at(1), 3).await {
        assert!(settle(store, routed(&one, 1, InboundState::NoMatch, at(2))).await);
    }
    let uid = send(store, Sample::new(1).to("ann@example.org").to("bob@example.org"), 5).await;
    let said = |position| MessageFinding {
        position: Some(position),
        bounce: Some(r#"{"reason":"no ann@example.org"}"#.to_owned()),
        receipt: Some(receipt(1, "avviso")),
        ..finding(uid, EventKind::Bounced)
    };
    let one = take(store, 2, at(5), 1).await.remove(0);
    assert_eq!(one.imap_uid, 4);
    let key = watch(store, "reports").await;
    register(store, page(&key, None, (5, 9), vec![mail(9)])).await;
    let report = take(store, 3, at(6), 1).await.remove(0);
    let bounced = InboundMailResult {
        findings: vec![said(0), said(1)],
        ..routed(&report, 3, InboundState::Routed, at(6))
    };
    assert!(settle(store, bounced).await);
    fan_out(store, at(7)).await;

    let erased = store.erase(&tenant(), "Ann@example.org", at(9), 9).await.unwrap();
    assert_eq!((erased.removed, erased.redacted, erased.waiting), (2, 1, 1));
    let left = store.inbound(&tenant(), &InboundFilter::default(), None, 9).await.unwrap();
    assert_eq!(left.iter().map(|view| view.imap_uid).collect::<Vec<_>>(), [9, 4, 2]);
    let found = record(store, uid).await;
    assert!(!format!("{found:?}").to_lowercase().contains("ann@"), "{found:#?}");
    assert!(store.receipts(&tenant(), uid).await.unwrap().is_empty());
}
