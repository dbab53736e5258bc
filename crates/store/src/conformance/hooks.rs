//! Hooks of accounts, and the events that providers report to them: stored once, leased in turns, and written
//! with what they say.

use postway_domain::{
    EventKind, HookProvider, KeyDigest, LeaseToken, MessageUid, ProviderEventState, ProviderHook,
    hook::HookSettings, message::AttemptOutcome, secret::SealedSecret,
};

use super::{
    Shared,
    findings::finding,
    journal::{send, tell},
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, key, lease, tenant},
    stage::{accept_and_claim, all_at_once, apply, attempt, commit_wire, direct, outcome, record},
    suppress::suppression,
};
use crate::record::{
    AccountKey, AttemptEnd, ChangeResult, DirectoryChange, MessageChange, MessageFinding, NewProviderEvent,
    ProviderEventBatch, ProviderEventClaim, ProviderEventFilter, ProviderEventResult, ProviderEventToProcess,
    SHOWN_EVENT_BYTES_MAX, SentThrough,
};

/// The hook of an account whose token has this digest.
pub fn hook(key: &AccountKey, token: u8) -> ProviderHook {
    ProviderHook {
        tenant: key.tenant.clone(),
        account: key.account.clone(),
        provider: HookProvider::Sendgrid,
        token: KeyDigest([token; 32]),
        settings: HookSettings { public_key: Some("MFkw".to_owned()), ..HookSettings::default() },
        secret: Some(SealedSecret(vec![0, 7, 0])),
        version: 1,
        created_at: at(1),
        updated_at: at(1),
    }
}

async fn put(store: &Shared, hook: &ProviderHook, expected: Option<i64>) -> ChangeResult {
    direct(store, DirectoryChange::PutProviderHook(hook.clone(), expected)).await
}

/// The n-th event.
pub fn event(n: u8) -> NewProviderEvent {
    NewProviderEvent {
        uid: MessageUid::new(at(i64::from(n)), &mut rand::rng()),
        digest: [n; 32],
        once: None,
        raw: format!("{{\"größe\":{n}}}").into(),
    }
}

async fn report(store: &Shared, key: &AccountKey, events: Vec<NewProviderEvent>) {
    let batch = ProviderEventBatch { key: key.clone(), provider: HookProvider::Sendgrid, at: at(5), events };
    store.add_provider_events(batch).await.unwrap();
}

async fn take(store: &Shared, token: i64, ms: i64, limit: u32) -> Vec<ProviderEventToProcess> {
    take_within(store, token, ms, limit, u32::MAX).await
}

async fn take_within(
    store: &Shared,
    token: i64,
    ms: i64,
    limit: u32,
    bytes_max: u32,
) -> Vec<ProviderEventToProcess> {
    let claim = ProviderEventClaim { lease: lease(token, at(ms)), now: at(ms), limit, bytes_max };
    store.claim_provider_events(claim).await.unwrap()
}

fn done(one: &ProviderEventToProcess, token: i64, to: ProviderEventState, ms: i64) -> ProviderEventResult {
    ProviderEventResult {
        uid: one.uid,
        token: LeaseToken::from_i64(token),
        at: at(ms),
        to,
        due_at: None,
        tries: one.tries,
        kind: None,
        message: None,
        error: None,
        findings: Vec::new(),
    }
}

async fn settle(store: &Shared, done: ProviderEventResult) -> bool {
    store.settle_provider_events(vec![done]).await.unwrap() == [true]
}

async fn states(store: &Shared, key: &AccountKey) -> Vec<ProviderEventState> {
    let filter = ProviderEventFilter { key: key.clone(), state: None };
    let found = store.provider_events(&filter, None, 99).await.unwrap();
    found.iter().map(|one| one.state).collect()
}

/// One hook for each account; its token finds it as long as it is this one.
pub async fn a_hook_is_found_by_its_token(store: &Shared) {
    let (ours, theirs) = (key(TENANT, ACCOUNT), key(OTHER_TENANT, ACCOUNT));
    let first = hook(&ours, 1);
    assert_eq!(put(store, &hook(&key(TENANT, "nowhere"), 9), None).await, ChangeResult::Missing);
    assert_eq!(put(store, &first, None).await, ChangeResult::Done);
    assert_eq!(put(store, &hook(&ours, 2), None).await, ChangeResult::Exists);
    assert_eq!(put(store, &hook(&theirs, 3), None).await, ChangeResult::Done);
    assert_eq!(store.hook_by_token(&KeyDigest([1; 32])).await.unwrap(), Some(first.clone()));
    let next = ProviderHook { version: 2, updated_at: at(2), ..hook(&ours, 4) };
    assert_eq!(put(store, &next, Some(7)).await, ChangeResult::Stale);
    assert_eq!(put(store, &next, Some(1)).await, ChangeResult::Done);
    assert_eq!(store.hook_by_token(&KeyDigest([1; 32])).await.unwrap(), None);
    assert_eq!(store.provider_hook(&ours).await.unwrap(), Some(next.clone()));
    assert_eq!(store.provider_hooks(Some(&tenant())).await.unwrap(), [next]);
    assert_eq!(store.provider_hooks(None).await.unwrap().len(), 2);
    direct(store, DirectoryChange::DeleteTenant(theirs.tenant.clone(), at(3))).await;
    assert_eq!(store.hook_by_token(&KeyDigest([3; 32])).await.unwrap(), None);
    let other = key(TENANT, OTHER_ACCOUNT);
    assert_eq!(put(store, &hook(&other, 5), None).await, ChangeResult::Done);
    assert_eq!(direct(store, DirectoryChange::DeleteAccount(other.clone())).await, ChangeResult::Done);
    assert_eq!(store.provider_hook(&other).await.unwrap(), None, "it goes with its account");
    let gone = direct(store, DirectoryChange::DeleteProviderHook(ours.clone())).await;
    assert_eq!((gone, store.provider_hook(&ours).await.unwrap()), (ChangeResult::Done, None));
}

/// By its digest, and by what a call may use once; in one call, in two, and in two at the same time.
pub async fn an_event_is_stored_once(store: &Shared) {
    let ours = sample::relay();
    put(store, &hook(&ours, 1), None).await;
    report(store, &ours, vec![event(1), event(1), event(2)]).await;
    report(store, &ours, vec![event(2), event(3)]).await;
    let once = |n, token: u8| NewProviderEvent { once: Some([token; 32]), ..event(n) };
    report(store, &ours, vec![once(4, 9)]).await;
    report(store, &ours, vec![once(5, 9)]).await;
    report(store, &ours, vec![once(6, 8)]).await;
    let calls = (0..8).map(|_| {
        let (store, ours) = (store.clone(), ours.clone());
        async move { report(&store, &ours, (10..40).map(event).collect()).await }
    });
    all_at_once(calls).await;
    let filter = ProviderEventFilter { key: ours.clone(), state: Some(ProviderEventState::Waiting) };
    let found = store.provider_events(&filter, None, 99).await.unwrap();
    assert_eq!(found.len(), 5 + 30);
    let first = found.last().unwrap();
    assert_eq!((first.raw.as_slice(), first.due_at), ("{\"größe\":1}".as_bytes(), Some(at(5))));
    assert_eq!((first.provider, first.created_at), (HookProvider::Sendgrid, at(5)));
    let older = store.provider_events(&filter, Some(found[30].uid), 2).await.unwrap();
    assert_eq!(older.iter().map(|one| one.uid).collect::<Vec<_>>(), [found[31].uid, found[32].uid]);
}

/// Tenants share equally, and no event is leased twice.
pub async fn events_are_leased_in_equal_parts_and_once(store: &Shared) {
    let (ours, theirs) = (sample::relay(), key(OTHER_TENANT, ACCOUNT));
    put(store, &hook(&ours, 1), None).await;
    put(store, &hook(&theirs, 2), None).await;
    report(store, &ours, (0..60).map(event).collect()).await;
    report(store, &theirs, (100..104).map(event).collect()).await;
    let state = store.provider_event_state(at(1)).await.unwrap();
    assert_eq!((state.due, state.next_due_at), (0, Some(at(5))));
    assert!(take(store, 1, 4, 9).await.is_empty(), "nothing is due yet");
    assert_eq!(store.provider_event_state(at(5)).await.unwrap().due, 1);
    let first = take(store, 1, 5, 20).await;
    assert_eq!(first.iter().filter(|one| one.key == theirs).count(), 4);
    assert_eq!(first.len(), 20, "what one leaves over the other gets");
    let more = all_at_once((2..6).map(|token| {
        let store = store.clone();
        async move { take(&store, token, 5, 12).await }
    }))
    .await;
    let mut uids: Vec<MessageUid> = first.iter().chain(more.iter().flatten()).map(|one| one.uid).collect();
    let leased = uids.len();
    uids.sort();
    uids.dedup();
    assert_eq!(uids.len(), leased);
}

/// A claim has no more bytes than it may, of which the tenants have equal parts; but an event that alone is
/// larger is leased all the same. A list leaves the longest out.
pub async fn events_are_leased_within_a_number_of_bytes(store: &Shared) {
    const LARGE: usize = SHOWN_EVENT_BYTES_MAX + 1;
    let (ours, theirs) = (sample::relay(), key(OTHER_TENANT, ACCOUNT));
    put(store, &hook(&ours, 1), None).await;
    put(store, &hook(&theirs, 2), None).await;
    let large = |n: u8| NewProviderEvent { raw: vec![b'x'; LARGE].into(), ..event(n) };
    report(store, &ours, (0..6).map(large).collect()).await;
    report(store, &theirs, (100..110).map(event).collect()).await;
    let bytes_max = u32::try_from(3 * LARGE).unwrap();
    let taken = take_within(store, 1, 5, 99, bytes_max).await;
    let of = |key: &AccountKey| taken.iter().filter(|one| one.key == *key).count();
    assert_eq!((of(&ours), of(&theirs)), (2, 10), "what is small goes beside what is large");
    assert!(taken.iter().map(|one| one.raw.len()).sum::<usize>() <= 3 * LARGE);
    assert!(taken.iter().all(|one| !one.raw.is_empty()), "each has its JSON");
    let alone = take_within(store, 2, 5, 99, 10).await;
    assert_eq!(alone.iter().map(|one| one.raw.len()).collect::<Vec<_>>(), [LARGE]);
    assert_eq!(take(store, 3, 5, 99).await.len(), 3);
    let filter = ProviderEventFilter { key: ours.clone(), state: None };
    let listed = store.provider_events(&filter, None, 99).await.unwrap();
    assert_eq!((listed.len(), listed.iter().all(|one| one.raw.is_empty())), (6, true));
    report(store, &ours, vec![NewProviderEvent { raw: vec![b'x'; LARGE - 1].into(), ..event(50) }]).await;
    let listed = store.provider_events(&filter, None, 99).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.raw.len()).max(), Some(SHOWN_EVENT_BYTES_MAX));
}

/// With event, outcome and suppression, in one write, under the fence of the lease.
pub async fn what_an_event_says_is_written_with_it(store: &Shared) {
    let uid = send(store, Sample::new(1).to("ann@example.org"), 4).await;
    let ours = sample::relay();
    put(store, &hook(&ours, 1), None).await;
    report(store, &ours, vec![event(1), event(2)]).await;
    let taken = take(store, 1, 6, 9).await;
    let [one, two] = &taken[..] else { panic!("two events") };
    let suppress = suppression(TENANT, "ann@example.org");
    let said = || MessageFinding { suppress: Some(suppress.clone()), ..finding(uid, EventKind::Bounced) };
    let applied = |token| ProviderEventResult {
        findings: vec![said()],
        kind: Some("bounced"),
        message: Some(uid),
        ..done(one, token, ProviderEventState::Applied, 7)
    };
    assert!(!settle(store, applied(2)).await, "another lease");
    assert!(settle(store, applied(1)).await);
    assert!(!settle(store, applied(1)).await, "it is settled");
    let later = ProviderEventResult {
        due_at: Some(at(99)),
        tries: 1,
        error: Some("no message".to_owned()),
        ..done(two, 1, ProviderEventState::Waiting, 7)
    };
    assert!(settle(store, later).await);
    let found = record(store, uid).await;
    let last = found.events.last().unwrap();
    let data = format!(r#"{{"kind":"bounced","provider_event":"{}"}}"#, one.uid);
    assert_eq!((last.kind, last.data.as_deref()), (EventKind::Bounced, Some(data.as_str())));
    let told = found.events.iter().filter(|event| event.kind == EventKind::Bounced).count();
    assert_eq!((told, found.recipients[0].outcome), (1, Some(EventKind::Bounced)));
    assert_eq!(store.suppression(&tenant(), "ann@example.org").await.unwrap(), Some(suppress));
    let filter = ProviderEventFilter { key: ours.clone(), state: None };
    let views = store.provider_events(&filter, None, 9).await.unwrap();
    let by_uid = |uid| views.iter().find(|view| view.uid == uid).unwrap();
    let shown = by_uid(one.uid);
    assert_eq!((shown.state, shown.message), (ProviderEventState::Applied, Some(uid)));
    assert_eq!((shown.kind.as_deref(), shown.settled_at), (Some("bounced"), Some(at(7))));
    let waits = by_uid(two.uid);
    assert_eq!((waits.state, waits.due_at), (ProviderEventState::Waiting, Some(at(99))));
    assert_eq!((waits.tries, waits.error.as_deref(), waits.settled_at), (1, Some("no message"), None));
    tell(store, at(60)).await;
    let feed = store.feed(&tenant(), Default::default(), 99).await.unwrap();
    assert_eq!(feed.iter().filter(|one| one.kind == EventKind::Bounced).count(), 1);
    let hours = store.statistics(&tenant(), at(-86_400_000), at(86_400_000)).await.unwrap();
    assert_eq!(hours.iter().map(|row| row.counts.bounced).sum::<i64>(), 1);
}

/// And then alone, so that a second death is certainly its own.
pub async fn an_event_whose_process_died_comes_back_alone(store: &Shared) {
    let ours = sample::relay();
    put(store, &hook(&ours, 1), None).await;
    report(store, &ours, vec![event(1), event(2), event(3)]).await;
    assert_eq!(take(store, 1, 6, 2).await.len(), 2);
    assert_eq!(store.reclaim_provider_events(&[sample::incarnation(1)], at(7), 9).await.unwrap(), 0);
    assert_eq!(store.reclaim_provider_events(&[], at(7), 9).await.unwrap(), 2);
    let clean = take(store, 2, 8, 9).await;
    assert_eq!(clean.iter().map(|one| one.lost_leases).collect::<Vec<_>>(), [0]);
    let suspect = take(store, 3, 60_000, 9).await;
    assert_eq!(suspect.iter().map(|one| one.lost_leases).collect::<Vec<_>>(), [1]);
    assert!(settle(store, done(&suspect[0], 3, ProviderEventState::Dead, 60_001)).await);
    let late = store.reclaim_provider_events(&[sample::incarnation(1)], at(9_000_000), 9).await.unwrap();
    assert_eq!(late, 1, "a lease past its end, of a process that lives");
}

/// Which account sent it, and under which id.
pub async fn what_sent_a_message_is_found_by_either_id(store: &Shared) {
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert!(commit_wire(store, &mut claimed, at(10)).await);
    let ended = AttemptEnd { provider_message_id: Some("p-1".to_owned()), ..attempt(&claimed, at(30)) };
    let change = outcome(&claimed, true, AttemptOutcome::Sent, at(30));
    assert!(apply(store, MessageChange { attempt: Some(ended), ..change }).await);
    let expected = SentThrough {
        uid: claimed.uid,
        account: ACCOUNT.parse().unwrap(),
        provider_message_id: Some("p-1".to_owned()),
    };
    let by_id = store.sent_through(&["p-1".to_owned(), "p-2".to_owned()], &[]).await.unwrap();
    assert_eq!(by_id, std::slice::from_ref(&expected));
    assert_eq!(store.sent_through(&[], &[claimed.uid]).await.unwrap(), [expected]);
    assert_eq!(store.sent_through(&["P-1".to_owned()], &[]).await.unwrap(), []);
}

/// Whatever their state; those of other tenants stay.
pub async fn old_events_are_removed(store: &Shared) {
    let (ours, theirs) = (sample::relay(), key(OTHER_TENANT, ACCOUNT));
    put(store, &hook(&ours, 1), None).await;
    put(store, &hook(&theirs, 2), None).await;
    report(store, &ours, (1..6).map(event).collect()).await;
    report(store, &theirs, vec![event(101)]).await;
    let taken = take(store, 1, 6, 1).await;
    assert_eq!(store.expunge_provider_events(&tenant(), at(4), 2).await.unwrap(), 2);
    assert_eq!(store.expunge_provider_events(&tenant(), at(4), 9).await.unwrap(), 1);
    assert_eq!((states(store, &ours).await.len(), states(store, &theirs).await.len()), (2, 1));
    // A worker whose event was removed writes nothing.
    let held = settle(store, done(&taken[0], 1, ProviderEventState::Applied, 7)).await;
    assert!(!held || taken[0].uid >= MessageUid::first_at(at(4)));
    direct(store, DirectoryChange::DeleteTenant(theirs.tenant.clone(), at(9))).await;
    while direct(store, DirectoryChange::PurgeTenant(theirs.tenant.clone(), 100)).await == ChangeResult::Done
    {
    }
    assert!(states(store, &theirs).await.is_empty());
}
