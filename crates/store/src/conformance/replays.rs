//! What a mail that came in says about mail that went out, when it is dealt with once more.

use postway_domain::{EventKind, InboundState};

use super::{
    Shared,
    findings::{arrive, finding, kinds_of, outcomes, say},
    inbound::{routed, settle, take},
    journal::send,
    sample::{Sample, at, tenant},
    stage::{assert_gapless, record},
    suppress::suppression,
};
use crate::record::{Changed, DirectoryChange, Finding, Routed};

/// However often the mail is dealt with; another that says the same is heard, and so is what it says only now.
pub async fn what_a_mail_has_said_it_does_not_say_again(store: &Shared) {
    let uid = send(store, Sample::new(1).to("ann@example.org").to("bob@example.org"), 5).await;
    let suppress = suppression("acme", "ann@example.org");
    let bounced = |position: u32, address: &str| Finding {
        position: Some(position),
        data: Some(format!(r#"{{"recipient":"{address}"}}"#)),
        bounce: Some(r#"{"type":"hard"}"#.to_owned()),
        suppress: Some(suppress.clone()).filter(|_| position == 0),
        ..finding(uid, EventKind::Bounced)
    };
    // One report may name a recipient twice.
    let ann = || vec![bounced(0, "ann@example.org"), bounced(0, "ann@example.org")];
    let one = arrive(store, 1, at(6)).await;
    let said = |findings, token: i64, ms: i64| Routed {
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
    let lift = DirectoryChange::Unsuppress(tenant(), vec!["ann@example.org".to_owned()]);
    store.change(lift, None).await.unwrap();
    for token in 2..4 {
        let now = 10 * token;
        assert_eq!(store.replay_inbound(&tenant(), one.uid, at(now)).await.unwrap(), Changed::Done);
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
