//! What a mail that came in says about mail that went out, when it is dealt with once more.

use postway_domain::{EventKind, InboundState};

use super::{
    Shared,
    findings::{arrive, finding, kinds_of, outcomes, say},
    inbound::{mail, page, register, routed, settle, take, view},
    journal::send,
    mailboxes::{rule, watch},
    sample::{Sample, at, tenant},
    stage::{assert_gapless, record},
    suppress::suppression,
};
use crate::record::{
    ChangeResult, DirectoryChange, InboundFilter, InboundMailResult, InboundReplay, MailboxKey,
    MessageFinding, NewInbound,
};

/// However often the mail is dealt with; another that says the same is heard, and so is what it says only
/// now.
pub async fn what_a_mail_has_said_it_does_not_say_again(store: &Shared) {
    let uid = send(store, Sample::new(1).to("ann@example.org").to("bob@example.org"), 5).await;
    let suppress = suppression("acme", "ann@example.org");
    let bounced = |position: u32, address: &str| MessageFinding {
        position: Some(position),
        data: Some(format!(r#"{{"recipient":"{address}"}}"#)),
        bounce: Some(r#"{"type":"hard"}"#.to_owned()),
        suppress: Some(suppress.clone()).filter(|_| position == 0),
        ..finding(uid, EventKind::Bounced)
    };
    // One report may name a recipient twice.
    let ann = || vec![bounced(0, "ann@example.org"), bounced(0, "ann@example.org")];
    let one = arrive(store, 1, at(6)).await;
    let said = |findings, token: i64, ms: i64| InboundMailResult {
        findings,
        kind: Some("bounce"),
        ..routed(&one, token, InboundState::Routed, at(ms))
    };
    let heard = async || {
        let found = record(store, uid).await;
        assert_gapless(&found);
        kinds_of(&found).iter().filter(|kind| **kind == EventKind::Bounced).count()
    };
    assert!(settle(store, said(ann(), 1, 7)).await);
    assert_eq!(heard().await, 2);
    let lift = DirectoryChange::Unsuppress(tenant(), vec!["ann@example.org".to_owned()], at(0));
    store.change(lift, None).await.unwrap();
    for token in 2..4 {
        let now = 10 * token;
        assert_eq!(store.replay_inbound(&tenant(), one.uid, at(now)).await.unwrap(), ChangeResult::Done);
        assert_eq!(take(store, token, at(now), 1).await.len(), 1);
        assert!(settle(store, said(ann(), token, now + 1)).await);
        assert_eq!(heard().await, 2);
    }
    assert_eq!(store.suppression(&tenant(), "ann@example.org").await.unwrap(), None);
    assert_eq!(record(store, uid).await.summary.updated_at, at(7));
    // Now it is understood better.
    store.replay_inbound(&tenant(), one.uid, at(50)).await.unwrap();
    take(store, 5, at(50), 1).await;
    assert!(settle(store, said([ann(), vec![bounced(1, "bob@example.org")]].concat(), 5, 51)).await);
    assert_eq!(heard().await, 3);
    assert_eq!(outcomes(store, uid).await, [Some(EventKind::Bounced); 2]);
    say(store, 2, ann(), 60).await;
    assert_eq!(heard().await, 5);
}

/// Only what fits the filter, each mail once for a time before which it was settled; and how often it was
/// tried stays.
pub async fn settled_mail_is_replayed_by_a_filter(store: &Shared) {
    let key = watch(store, "orders").await;
    let unread = NewInbound { digest: None, body: None, state: InboundState::Dead, ..mail(5) };
    let mails = (1..=4).map(mail).chain([unread]).collect();
    register(store, page(&key, None, (5, 5), mails)).await;
    let ends = [InboundState::NoMatch, InboundState::NoMatch, InboundState::NoMatch, InboundState::Routed];
    for (one, to) in take(store, 1, at(1), 9).await.iter().zip(ends) {
        assert!(settle(store, routed(one, 1, to, at(2))).await);
    }
    let filter = |state| InboundFilter { mailbox: Some(key.mailbox.clone()), state: Some(state), kind: None };
    let replay = |state, now: i64, limit| InboundReplay {
        tenant: tenant(),
        filter: filter(state),
        since: None,
        until: None,
        settled_before: Some(at(3)),
        at: at(now),
        limit,
    };
    let count = |replay| async move { store.replay_inbound_all(replay).await.unwrap() };
    let elsewhere = MailboxKey { mailbox: "elsewhere".parse().unwrap(), ..key.clone() };
    let other = InboundFilter { mailbox: Some(elsewhere.mailbox), ..filter(InboundState::NoMatch) };
    assert_eq!(count(InboundReplay { filter: other, ..replay(InboundState::NoMatch, 3, 9) }).await, 0);
    let later = InboundReplay { since: Some(at(60_000)), ..replay(InboundState::NoMatch, 3, 9) };
    assert_eq!(count(later).await, 0);
    assert_eq!(count(replay(InboundState::Dead, 3, 9)).await, 0, "it has no bytes");
    assert_eq!(count(replay(InboundState::NoMatch, 3, 2)).await, 2);
    let again = take(store, 2, at(3), 9).await;
    assert_eq!(again.iter().map(|one| one.imap_uid).collect::<Vec<_>>(), [2, 3], "the newest");
    for one in &again {
        assert!(settle(store, routed(one, 2, InboundState::NoMatch, at(4))).await);
    }
    assert_eq!(
        count(replay(InboundState::NoMatch, 5, 9)).await,
        1,
        "those that are settled anew are not found again"
    );
    assert_eq!(count(replay(InboundState::NoMatch, 5, 9)).await, 0);
    assert_eq!((view(store, mail(1).uid).await.attempts, view(store, mail(2).uid).await.attempts), (1, 2));
}

/// And leaves alone what waits for another try.
pub async fn a_rule_wakes_mail_that_waits_for_one(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 2), vec![mail(1), mail(2)])).await;
    for (tries, one) in (0..).zip(take(store, 1, at(1), 9).await) {
        let due_at = Some(at(900_000));
        assert!(
            settle(
                store,
                InboundMailResult { tries, due_at, ..routed(&one, 1, InboundState::Waiting, at(2)) }
            )
            .await
        );
    }
    let idle = postway_domain::InboundRule { active: false, ..rule("idle", "orders", 1) };
    assert_eq!(
        store.change(DirectoryChange::CreateRule(idle.clone()), None).await.unwrap(),
        ChangeResult::Done
    );
    assert!(take(store, 2, at(10), 9).await.is_empty());
    let awake = postway_domain::InboundRule { active: true, version: 2, updated_at: at(10), ..idle };
    assert_eq!(store.change(DirectoryChange::UpdateRule(awake, 1), None).await.unwrap(), ChangeResult::Done);
    let woken = take(store, 3, at(10), 9).await;
    assert_eq!(woken.iter().map(|one| one.imap_uid).collect::<Vec<_>>(), [1]);
}
