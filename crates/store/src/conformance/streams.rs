//! Streams, suppressions of a part of the mail, and what readers decide.

use postway_domain::{EventKind, MailStream, MessageState, MessageUid, RecipientStatus};

use super::{
    Shared,
    findings::kinds_of,
    journal::{send, tell},
    sample::{ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{accept, all_at_once, assert_gapless, claim, direct, offer, record},
};
use crate::record::{
    Acceptance, ChangeResult, DirectoryChange, ReaderDecision, ScopeFilter, ScopedSuppression,
    SuppressionReason, SuppressionScope,
};

fn scope(of: Option<&str>, pattern: &str, stream: Option<&str>) -> SuppressionScope {
    SuppressionScope {
        tenant: of.map(|of| of.parse().unwrap()),
        pattern: pattern.to_owned(),
        stream: stream.map(|stream| stream.parse().unwrap()),
    }
}

/// A suppression of a part of the mail, for ever.
pub fn scoped(of: Option<&str>, pattern: &str, stream: Option<&str>) -> ScopedSuppression {
    ScopedSuppression {
        scope: scope(of, pattern, stream),
        reason: SuppressionReason::Manual,
        note: None,
        created_at: at(0),
        expires_at: None,
    }
}

/// A stream with all that it can have.
pub fn stream(id: &str) -> MailStream {
    MailStream {
        tenant: tenant(),
        id: id.parse().unwrap(),
        name: "Nachrichten für alle".to_owned(),
        description: Some("once a week — 📬".to_owned()),
        unsubscribe: true,
        unsubscribe_mailto: Some("leave@example.org".to_owned()),
        version: 1,
        created_at: at(1),
        updated_at: at(1),
    }
}

fn decision(message: MessageUid, leaves: bool, ms: i64) -> ReaderDecision {
    ReaderDecision {
        tenant: tenant(),
        message,
        stream: "news".parse().unwrap(),
        address: "ada@example.org".to_owned(),
        leaves,
        via: "page",
        at: at(ms),
    }
}

async fn suppress(store: &Shared, list: Vec<ScopedSuppression>) {
    assert_eq!(direct(store, DirectoryChange::SuppressScoped(list)).await, ChangeResult::Done);
}

/// Whole, by id, and by the version that was read.
pub async fn streams_are_made_changed_listed_and_deleted(store: &Shared) {
    let (news, offers) = (stream("news"), stream("Offers"));
    for one in [&news, &offers] {
        assert_eq!(direct(store, DirectoryChange::CreateStream(one.clone())).await, ChangeResult::Done);
    }
    assert_eq!(direct(store, DirectoryChange::CreateStream(news.clone())).await, ChangeResult::Exists);
    let theirs = MailStream { tenant: other_tenant(), ..news.clone() };
    assert_eq!(direct(store, DirectoryChange::CreateStream(theirs.clone())).await, ChangeResult::Done);
    assert_eq!(store.streams(&tenant(), None, 9).await.unwrap(), [offers.clone(), news.clone()]);
    assert_eq!(store.streams(&tenant(), Some(&offers.id), 9).await.unwrap(), std::slice::from_ref(&news));
    assert_eq!(store.streams(&tenant(), None, 1).await.unwrap(), std::slice::from_ref(&offers));
    let changed = MailStream {
        name: String::new(),
        description: None,
        unsubscribe: false,
        unsubscribe_mailto: None,
        version: 2,
        updated_at: at(2),
        ..news.clone()
    };
    assert_eq!(direct(store, DirectoryChange::UpdateStream(changed.clone(), 1)).await, ChangeResult::Done);
    assert_eq!(direct(store, DirectoryChange::UpdateStream(changed.clone(), 1)).await, ChangeResult::Stale);
    assert_eq!(store.stream(&tenant(), &news.id).await.unwrap(), Some(changed));
    let delete = DirectoryChange::DeleteStream(tenant(), news.id.clone());
    assert_eq!(direct(store, delete.clone()).await, ChangeResult::Done);
    assert_eq!(direct(store, delete).await, ChangeResult::Missing);
    assert_eq!(store.stream(&tenant(), &news.id).await.unwrap(), None);
    assert_eq!(store.stream(&other_tenant(), &news.id).await.unwrap(), Some(theirs));
}

/// At the door and at the claim; what is of another stream, or of none, is sent.
pub async fn a_suppression_of_a_stream_holds_for_its_mail_alone(store: &Shared) {
    let early = accept(store, Sample::new(1).to("ada@example.org").batch("news:1")).await;
    suppress(store, vec![scoped(Some(TENANT), "ada@example.org", Some("news"))]).await;
    for (number, batch) in [(2, "news"), (3, "news:2026-11")] {
        let answer = offer(store, Sample::new(number).to("Ada@Example.org").batch(batch)).await;
        assert_eq!(answer, Acceptance::Suppressed, "{batch}");
    }
    let others = [
        Sample::new(4).to("ada@example.org"),
        Sample::new(5).to("ada@example.org").batch("newsletter"),
        Sample::new(6).to("bob@example.org").batch("news"),
    ];
    for other in others {
        let uid = accept(store, other).await;
        assert_eq!(record(store, uid).await.summary.state, MessageState::Ready);
    }
    let theirs = Sample::new(7).to("ada@example.org").batch("news").from(OTHER_TENANT, ACCOUNT);
    assert_ne!(offer(store, theirs).await, Acceptance::Suppressed);
    let claimed = claim(store, 1, at(0), 9).await;
    let first = claimed.iter().find(|one| one.uid == early).unwrap();
    assert_eq!((first.recipients.len(), &first.suppressed), (0, &vec![0]));
    assert_eq!(claimed.iter().filter(|one| one.recipients.len() == 1).count(), 3);
}

/// By star, for one tenant or for all.
pub async fn a_suppression_of_a_pattern_or_of_all_tenants_holds(store: &Shared) {
    let ended = ScopedSuppression { expires_at: Some(at(0)), ..scoped(Some(TENANT), "*@open.example", None) };
    let list = vec![
        scoped(Some(TENANT), "*@example.org", None),
        scoped(Some(TENANT), "*@*.example.net", None),
        scoped(None, "postmaster@*", None),
        ended,
    ];
    suppress(store, list).await;
    let to =
        ["a@example.org", "a@b.example.net", "PostMaster@x.example", "a@open.example", "a@sub.example.org"];
    let mine = to.iter().fold(Sample::new(1), |sample, to| sample.to(to));
    let theirs =
        to.iter().fold(Sample::new(2), |sample, to| sample.to(to)).from(OTHER_TENANT, ACCOUNT).build();
    let mine = accept(store, mine).await;
    let (out, in_) = (RecipientStatus::Suppressed, RecipientStatus::Pending);
    let statuses: Vec<_> = record(store, mine).await.recipients.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [out, out, out, in_, in_]);
    let uid = theirs.uid;
    store.accept(vec![theirs]).await.unwrap();
    let theirs = store.message(&other_tenant(), &crate::record::MessageKey::Uid(uid)).await.unwrap().unwrap();
    let statuses: Vec<_> = theirs.recipients.iter().map(|one| one.status).collect();
    assert_eq!(
        statuses,
        [in_, in_, out, in_, in_],
        "a list is its tenant's, and the installation's is everybody's"
    );
}

/// Page by page, by tenant and by stream; renewed, removed, and forgotten when they are over.
pub async fn scoped_suppressions_are_listed_renewed_and_removed(store: &Shared) {
    let whole = ScopedSuppression {
        reason: SuppressionReason::Complaint,
        note: Some("said so — 📬".to_owned()),
        expires_at: Some(at(9_000)),
        ..scoped(Some(TENANT), "b@example.org", Some("news"))
    };
    let list = vec![
        scoped(Some(TENANT), "*@example.org", None),
        scoped(Some(TENANT), "b@example.org", None),
        whole.clone(),
    ];
    suppress(store, list.iter().rev().cloned().collect()).await;
    let everywhere = scoped(None, "c@example.org", None);
    suppress(store, vec![everywhere.clone(), scoped(Some(OTHER_TENANT), "d@example.org", None)]).await;
    let all = ScopeFilter { tenant: Some(tenant()), stream: None };
    assert_eq!(store.scoped_suppressions(&all, None, 9).await.unwrap(), list);
    assert_eq!(store.scoped_suppressions(&all, None, 1).await.unwrap(), list[..1]);
    assert_eq!(store.scoped_suppressions(&all, Some(&list[1].scope), 9).await.unwrap(), list[2..]);
    let news = ScopeFilter { stream: Some("news".parse().unwrap()), ..all.clone() };
    assert_eq!(store.scoped_suppressions(&news, None, 9).await.unwrap(), std::slice::from_ref(&whole));
    assert_eq!(store.scoped_suppressions(&news, Some(&whole.scope), 9).await.unwrap(), []);
    let installation = ScopeFilter { tenant: None, stream: None };
    assert_eq!(store.scoped_suppressions(&installation, None, 9).await.unwrap(), [everywhere]);
    assert_eq!(store.scoped_suppression(&whole.scope).await.unwrap(), Some(whole.clone()));
    let renewed = ScopedSuppression { note: None, expires_at: Some(at(1_000)), ..whole };
    suppress(store, vec![renewed.clone()]).await;
    assert_eq!(store.scoped_suppression(&renewed.scope).await.unwrap(), Some(renewed.clone()));
    let remove = |scope: &SuppressionScope| DirectoryChange::UnsuppressScoped(vec![scope.clone()], at(0));
    assert_eq!(direct(store, remove(&list[0].scope)).await, ChangeResult::Done);
    assert_eq!(direct(store, remove(&list[0].scope)).await, ChangeResult::Missing);
    assert_eq!(direct(store, DirectoryChange::Forget(at(1_000))).await, ChangeResult::Done);
    assert_eq!(store.scoped_suppressions(&all, None, 9).await.unwrap(), list[1..2]);
}

/// With its event, once; back again, and what others did stays.
pub async fn a_reader_leaves_a_stream_and_comes_back(store: &Shared) {
    let uid = send(store, Sample::new(1).to("ada@example.org").batch("news:1"), 5).await;
    let leaving = (0..4).map(|_| {
        let store = store.clone();
        async move { store.decide(decision(uid, true, 50)).await.unwrap() }
    });
    let answers = all_at_once(leaving).await;
    assert_eq!(answers.iter().filter(|answer| **answer == ChangeResult::Done).count(), 1, "{answers:?}");
    let left = scope(Some(TENANT), "ada@example.org", Some("news"));
    let kept = store.scoped_suppression(&left).await.unwrap().unwrap();
    assert_eq!((kept.reason, kept.created_at), (SuppressionReason::Unsubscribe, at(50)));
    let answer = offer(store, Sample::new(2).to("ada@example.org").batch("news:2")).await;
    assert_eq!(answer, Acceptance::Suppressed);
    assert_eq!(store.decide(decision(uid, false, 60)).await.unwrap(), ChangeResult::Done);
    assert_eq!(store.decide(decision(uid, false, 61)).await.unwrap(), ChangeResult::Already);
    assert_eq!(store.scoped_suppression(&left).await.unwrap(), None);
    let found = record(store, uid).await;
    assert_gapless(&found);
    let kinds = kinds_of(&found);
    assert_eq!(kinds[kinds.len() - 2..], [EventKind::Unsubscribed, EventKind::Resubscribed]);
    let told: serde_json::Value =
        serde_json::from_str(found.events[kinds.len() - 2].data.as_deref().unwrap()).unwrap();
    let expected = serde_json::json!({"recipient": "ada@example.org", "stream": "news", "via": "page"});
    assert_eq!(told, expected);
    assert_eq!(found.summary.updated_at, at(60));
    tell(store, at(70)).await;
    let feed = store.feed(&tenant(), Default::default(), 99).await.unwrap();
    let told = feed.iter().filter(|one| one.kind == EventKind::Unsubscribed).count();
    assert_eq!(told, 1);
    suppress(store, vec![scoped(Some(TENANT), "ada@example.org", Some("news"))]).await;
    assert_eq!(store.decide(decision(uid, false, 80)).await.unwrap(), ChangeResult::Already, "an operator's");
    assert!(store.scoped_suppression(&left).await.unwrap().is_some());
}

/// A link outlives its message, and belongs to its tenant only.
pub async fn a_decision_holds_without_its_message_and_tells_no_other_tenants(store: &Shared) {
    let theirs = Sample::new(1).to("ada@example.org").from(OTHER_TENANT, ACCOUNT).build();
    let uid = theirs.uid;
    store.accept(vec![theirs]).await.unwrap();
    assert_eq!(store.decide(decision(uid, true, 50)).await.unwrap(), ChangeResult::Done);
    let record = store.message(&other_tenant(), &crate::record::MessageKey::Uid(uid)).await.unwrap().unwrap();
    assert!(!kinds_of(&record).contains(&EventKind::Unsubscribed));
    let gone = super::sample::uid(at(0), 99);
    assert_eq!(store.decide(decision(gone, true, 51)).await.unwrap(), ChangeResult::Already);
    assert_eq!(store.decide(decision(gone, false, 52)).await.unwrap(), ChangeResult::Done);
    let passing = ScopedSuppression {
        expires_at: Some(at(99)),
        ..scoped(Some(TENANT), "ada@example.org", Some("news"))
    };
    suppress(store, vec![passing]).await;
    assert_eq!(store.decide(decision(gone, true, 53)).await.unwrap(), ChangeResult::Done);
    let kept = store.scoped_suppression(&decision(gone, true, 0).scope()).await.unwrap().unwrap();
    assert_eq!((kept.reason, kept.expires_at), (SuppressionReason::Unsubscribe, None));
}
