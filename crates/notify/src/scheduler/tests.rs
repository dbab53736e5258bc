//! Turns and places, without a network.

use std::collections::BTreeSet;

use postway_domain::{LeaseToken, MessageUid, Subscriber, SubscriberKind, subscriber::EventFilter};
use postway_store::record::{NotificationKey, ToNotify};

use super::*;

const NOW_MS: i64 = 1_700_000_000_000;

fn now() -> Time {
    Time::from_millis(NOW_MS)
}

fn key(id: &str) -> DueSubscriber {
    key_of("acme", id)
}

fn key_of(tenant: &str, id: &str) -> DueSubscriber {
    DueSubscriber { tenant: tenant.parse().unwrap(), subscriber: id.parse().unwrap() }
}

/// What one tenant may have of the places of the unproven.
const UNPROVEN_ALONE: usize = alone(UNPROVEN_CALLS_MAX);

/// What one tenant may have of so many.
const fn alone(most: usize) -> usize {
    (most - most / tenant_share::RESERVED_PART) / 2
}

fn target(key: &DueSubscriber, kind: SubscriberKind) -> Arc<Target> {
    let subscriber = Subscriber {
        tenant: key.tenant.clone(),
        id: key.subscriber.clone(),
        kind,
        url: String::new(),
        events: EventFilter::default(),
        secrets: None,
        active: true,
        disabled_reason: None,
        description: None,
        quiet_until: None,
        version: 1,
        created_at: now(),
        updated_at: now(),
    };
    Arc::new(Target { subscriber, reach: Err("not called here".to_owned()) })
}

fn leased(key: &DueSubscriber, count: u32, until: Time) -> Vec<Leased> {
    let one = |_| Leased {
        job: ToNotify {
            key: NotificationKey {
                tenant: key.tenant.clone(),
                subscriber: key.subscriber.clone(),
                uid: MessageUid::new(now(), &mut rand::rng()),
                seq: 1,
            },
            event: None,
            deferred: false,
            tries: 0,
            created_at: now(),
        },
        token: LeaseToken::from_i64(1),
        until,
        standing: None,
        takes_others: false,
    };
    (0..count).map(one).collect()
}

/// Claims for whoever is hungry, from subscribers that always have more.
fn claim(
    desk: &mut Desk,
    due: &[DueSubscriber],
    kind: SubscriberKind,
    at: Time,
) -> Vec<(DueSubscriber, u32)> {
    desk.learn(due.to_vec());
    let hungry = desk.hungry(at);
    hungry.iter().for_each(|key| desk.meet(key, target(key, kind)));
    let wants = desk.wants(hungry, at);
    for (key, count) in &wants {
        desk.take(key.clone(), leased(key, *count, at.plus(Duration::from_secs(120))), false);
    }
    desk.close_round();
    wants
}

/// Begins every call there is a place for.
fn start(desk: &mut Desk, at: Time) -> Vec<Batch> {
    let mut back = Vec::new();
    let batches = std::iter::from_fn(|| desk.next(at, &mut back)).collect();
    assert!(back.is_empty());
    batches
}

/// Ends calls in this way, all of it written.
fn end(desk: &mut Desk, batches: Vec<Batch>, conduct: Conduct, at: Time) -> usize {
    let mut back = Vec::new();
    for batch in batches {
        let (key, count) = (batch.key.clone(), batch.leased.len());
        desk.finish(batch.finished(conduct, None, false), at, &mut back);
        desk.settled(&key, count, at);
    }
    for one in &back {
        desk.settled(&key(one.job.key.subscriber.as_str()), 1, at);
    }
    back.len()
}

#[test]
fn a_subscriber_that_answers_gets_more_and_never_more_than_its_places() {
    let mut desk = Desk::default();
    let due = [key("a")];
    let mut most = 0;
    for _ in 0..12 {
        claim(&mut desk, &due, SubscriberKind::Webhook, now());
        let batches = start(&mut desk, now());
        most = most.max(batches.len());
        end(&mut desk, batches, Conduct::Answered, now());
    }
    assert_eq!(most, PLACES_PER_SUBSCRIBER);
    assert!(desk.shares.leased() > PLACES_PER_SUBSCRIBER && desk.shares.leased() <= 256);
}

#[test]
fn one_that_fails_is_probed_with_growing_pauses_until_it_answers() {
    let mut desk = Desk::default();
    let due = [key("a")];
    for _ in 0..10 {
        claim(&mut desk, &due, SubscriberKind::Webhook, now());
        let batches = start(&mut desk, now());
        end(&mut desk, batches, Conduct::Answered, now());
    }
    claim(&mut desk, &due, SubscriberKind::Webhook, now());
    let batches = start(&mut desk, now());
    assert_eq!(batches.len(), 8);
    assert!(end(&mut desk, batches, Conduct::Failed, now()) > 0, "what waits goes back");
    assert_eq!(desk.shares.leased(), 0);

    let mut at = now();
    for pause_s in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        at = at.plus(Duration::from_secs(pause_s)).minus(Duration::from_millis(1));
        assert!(claim(&mut desk, &due, SubscriberKind::Webhook, at).is_empty(), "{pause_s}");
        at = at.plus(Duration::from_millis(1));
        assert_eq!(claim(&mut desk, &due, SubscriberKind::Webhook, at), [(key("a"), 1)]);
        let batches = start(&mut desk, at);
        assert_eq!(batches.len(), 1);
        end(&mut desk, batches, Conduct::Failed, at);
    }
    at = at.plus(Duration::from_secs(300));
    claim(&mut desk, &due, SubscriberKind::Webhook, at);
    let batches = start(&mut desk, at);
    end(&mut desk, batches, Conduct::Answered, at);
    assert_eq!(claim(&mut desk, &due, SubscriberKind::Webhook, at), [(key("a"), 2)]);
}

#[test]
fn thousands_of_unproven_subscribers_take_turns_within_their_places() {
    let mut desk = Desk::default();
    let due: Vec<_> = (0..1_000).map(|number| key(&format!("s{number:04}"))).collect();
    let mut called = BTreeSet::new();
    let mut rounds = 0;
    while called.len() < due.len() {
        rounds += 1;
        let mut batches = Vec::new();
        for _ in 0..3 {
            claim(&mut desk, &due, SubscriberKind::Webhook, now());
            batches.extend(start(&mut desk, now()));
        }
        assert!(batches.len() <= UNPROVEN_ALONE);
        called.extend(batches.iter().map(|batch| batch.key.clone()));
        end(&mut desk, batches, Conduct::Failed, now());
    }
    assert!(rounds <= 12, "each is called once before any is called often: {rounds}");
}

#[test]
fn one_look_at_who_is_due_feeds_many_claims() {
    let mut desk = Desk::default();
    let due: Vec<_> = (0..100).map(|number| key(&format!("s{number:04}"))).collect();
    desk.learn(due.clone());
    let mut claimed = BTreeSet::new();
    while desk.is_hungry() {
        let hungry = desk.hungry(now());
        assert!(!hungry.is_empty() && hungry.len() <= CLAIM_SUBSCRIBERS_MAX);
        for key in hungry {
            assert!(claimed.insert(key.clone()), "it has nothing more");
            desk.meet(&key, target(&key, SubscriberKind::Webhook));
            desk.take(key.clone(), leased(&key, 1, now().plus(Duration::from_secs(120))), true);
        }
    }
    assert_eq!(claimed.len(), due.len());
    assert!(desk.hungry(now()).is_empty());
}

#[test]
fn who_was_left_out_for_want_of_room_is_claimed_for_when_there_is_some() {
    let mut desk = Desk::default();
    let due: Vec<_> = (0..UNPROVEN_ALONE + 1).map(|number| key(&format!("s{number:04}"))).collect();
    let mut batches = Vec::new();
    while batches.len() < UNPROVEN_ALONE {
        claim(&mut desk, &due, SubscriberKind::Webhook, now());
        batches.extend(start(&mut desk, now()));
    }
    assert!(desk.hungry(now()).is_empty() && !desk.is_hungry(), "every place is taken");
    end(&mut desk, batches.split_off(1), Conduct::Failed, now());
    assert!(desk.is_hungry());
    assert!(desk.hungry(now()).contains(&due[UNPROVEN_ALONE]), "nobody was called before it was");
}

#[test]
fn one_that_answers_is_claimed_for_whoever_else_is_due() {
    let mut desk = Desk::default();
    let lively = [key("z")];
    claim(&mut desk, &lively, SubscriberKind::Webhook, now());
    let batches = start(&mut desk, now());
    end(&mut desk, batches, Conduct::Answered, now());
    let mut due: Vec<_> = (0..500).map(|number| key(&format!("s{number:04}"))).collect();
    due.push(key("z"));
    for _ in 0..3 {
        claim(&mut desk, &due, SubscriberKind::Webhook, now());
        let batches = start(&mut desk, now());
        let (mine, others): (Vec<_>, Vec<_>) = batches.into_iter().partition(|batch| batch.key == key("z"));
        assert!(!mine.is_empty(), "{} others", others.len());
        end(&mut desk, mine, Conduct::Answered, now());
        // The others never end.
    }
}

#[test]
fn a_batch_form_takes_many_in_one_call_and_one_call_at_a_time() {
    let mut desk = Desk::default();
    let due = [key("client_sync")];
    assert_eq!(claim(&mut desk, &due, SubscriberKind::Sync, now()), [(key("client_sync"), 200)]);
    let batches = start(&mut desk, now());
    assert_eq!(batches.iter().map(|batch| batch.leased.len()).collect::<Vec<_>>(), [200]);
    end(&mut desk, batches, Conduct::Answered, now());
    claim(&mut desk, &due, SubscriberKind::Sync, now());
    assert_eq!(desk.shares.leased(), 400);
    assert_eq!(start(&mut desk, now()).len(), 1);
}

#[test]
fn what_waited_too_long_for_its_lease_goes_back() {
    let mut desk = Desk::default();
    desk.meet(&key("a"), target(&key("a"), SubscriberKind::Webhook));
    desk.take(key("a"), leased(&key("a"), 3, now().plus(Duration::from_secs(20))), true);
    let mut back = Vec::new();
    assert!(desk.next(now(), &mut back).is_none());
    assert_eq!(back.len(), 3);
}

/// Has these answer until they have as many calls under way as they may have.
fn prove(desk: &mut Desk, due: &[DueSubscriber], took: Duration) {
    for _ in 0..8 {
        claim(desk, due, SubscriberKind::Webhook, now());
        let batches = start(desk, now());
        end(desk, batches, Conduct::Answered, now().plus(took));
    }
}

/// Claims and begins all that can be begun; nothing ends.
fn fill(desk: &mut Desk, due: &[DueSubscriber], at: Time) -> Vec<Batch> {
    let mut held = Vec::new();
    for _ in 0..20 {
        claim(desk, due, SubscriberKind::Webhook, at);
        held.extend(start(desk, at));
    }
    held
}

#[test]
fn one_tenant_has_less_than_half_of_the_places_and_another_begins_at_once() {
    let mut desk = Desk::default();
    let greedy: Vec<_> = (0..40).map(|number| key(&format!("s{number:04}"))).collect();
    prove(&mut desk, &greedy, Duration::ZERO);
    let held = fill(&mut desk, &greedy, now());
    assert_eq!(held.len(), alone(CALLS_MAX));
    assert!(desk.shares.leased() <= alone(LEASED_MAX) + 1, "{}", desk.shares.leased());

    // Ten tenants more, each as greedy: there is a place for the first call of every one of them.
    let mut due = greedy;
    for number in 0..10 {
        let tenant = format!("t{number}");
        due.extend((0..40).map(|number| key_of(&tenant, &format!("s{number:04}"))));
        let begun = fill(&mut desk, &due, now());
        assert!(begun.iter().any(|batch| batch.key.tenant.as_str() == tenant), "{tenant}");
    }
}

#[test]
fn slow_answers_leave_room_for_quick_ones_of_the_same_tenant() {
    let mut desk = Desk::default();
    let slow: Vec<_> = (0..40).map(|number| key(&format!("s{number:04}"))).collect();
    prove(&mut desk, &slow, Duration::from_secs(14));
    let quick = [key("z")];
    prove(&mut desk, &quick, Duration::ZERO);
    let at = now().plus(Duration::from_secs(20));
    let mut held = fill(&mut desk, &slow, at);
    held.extend(fill(&mut desk, &quick, at));
    let (of_quick, of_slow): (Vec<_>, Vec<_>) = held.iter().partition(|batch| batch.key == quick[0]);
    assert_eq!(of_slow.len(), UNPROVEN_ALONE, "they answer, but they take their time");
    assert_eq!(of_quick.len(), PLACES_PER_SUBSCRIBER);
}

#[test]
fn a_claim_takes_turns_by_tenant() {
    let mut desk = Desk::default();
    let mut due: Vec<_> = (0..90).map(|number| key(&format!("s{number:04}"))).collect();
    due.push(key_of("globex", "one"));
    due.push(key_of("initech", "one"));
    let first = claim(&mut desk, &due, SubscriberKind::Webhook, now());
    for tenant in ["globex", "initech"] {
        assert!(first.iter().any(|(key, _)| key.tenant.as_str() == tenant), "{tenant}");
    }
    let second = claim(&mut desk, &due, SubscriberKind::Webhook, now());
    let again = second.iter().filter(|(key, _)| first.iter().any(|(one, _)| one == key)).count();
    assert_eq!(again, 0, "those that were left out come first");
}

#[test]
fn one_that_is_back_after_a_time_away_is_named_once() {
    let mut desk = Desk::default();
    let due = [key("a")];
    let mut at = now();
    let mut call = |desk: &mut Desk, conduct: Conduct, after_s: u64| {
        at = at.plus(Duration::from_secs(after_s));
        claim(desk, &due, SubscriberKind::Webhook, at);
        let batches = start(desk, at);
        assert!(!batches.is_empty());
        let takes_others = batches[0].leased[0].takes_others;
        end(desk, batches, conduct, at);
        (takes_others, desk.next_returned())
    };
    let returned = Some(key("a"));
    assert_eq!(call(&mut desk, Conduct::Answered, 0), (false, returned.clone()), "for the first time");
    assert_eq!(call(&mut desk, Conduct::Answered, 1), (true, None));
    assert_eq!(call(&mut desk, Conduct::Failed, 1), (true, None), "this one fails alone");
    assert_eq!(call(&mut desk, Conduct::Answered, 59), (false, None), "it was hardly away");
    for after_s in [1, 1, 400] {
        call(&mut desk, Conduct::Failed, after_s);
    }
    assert_eq!(call(&mut desk, Conduct::Answered, 400), (false, returned.clone()));
    assert_eq!(call(&mut desk, Conduct::Answered, 1), (true, None));
    desk.still_owes(&key("a"));
    assert_eq!(call(&mut desk, Conduct::Answered, 1), (true, returned));
}
