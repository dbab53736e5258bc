//! Turns and slots, without a network.

use std::collections::BTreeSet;

use postway_domain::{LeaseToken, MessageUid, Subscriber, SubscriberKind, subscriber::EventFilter};
use postway_store::record::{NotificationKey, ToNotify};

use super::*;
use crate::notification::outcome::SubscriberConduct;

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

/// The share of one tenant in the slots of unproven subscribers.
const UNPROVEN_ALONE: usize = alone(UNPROVEN_CALLS_MAX);

/// The share of one tenant in `most` slots.
const fn alone(most: usize) -> usize {
    (most - most / tenant_share::RESERVED_SHARE) / 2
}

fn target(key: &DueSubscriber, kind: SubscriberKind) -> Arc<SubscriberTarget> {
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
    Arc::new(SubscriberTarget { subscriber, access: Err("not called here".to_owned()) })
}

fn leased(key: &DueSubscriber, count: u32, until: Time) -> Vec<LeasedNotification> {
    let one = |_| LeasedNotification {
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
        snapshot: None,
        takes_others: false,
    };
    (0..count).map(one).collect()
}

/// Claims for the chosen subscribers, which always have more.
fn claim(
    scheduler: &mut CallScheduler,
    due: &[DueSubscriber],
    kind: SubscriberKind,
    at: Time,
) -> Vec<(DueSubscriber, u32)> {
    scheduler.set_due(due.to_vec());
    let choose_claims = scheduler.choose_claims(at);
    choose_claims.iter().for_each(|key| scheduler.set_target(key, target(key, kind)));
    let wants = scheduler.claim_sizes(choose_claims, at);
    for (key, count) in &wants {
        scheduler.take(key.clone(), leased(key, *count, at.plus(Duration::from_secs(120))), false);
    }
    scheduler.close_round();
    wants
}

/// Begins every call that there is a slot for.
fn start(scheduler: &mut CallScheduler, at: Time) -> Vec<NotificationBatch> {
    let mut back = Vec::new();
    let batches = std::iter::from_fn(|| scheduler.next(at, &mut back)).collect();
    assert!(back.is_empty());
    batches
}

/// Ends calls with this conduct, with all outcomes written.
fn end(
    scheduler: &mut CallScheduler,
    batches: Vec<NotificationBatch>,
    conduct: SubscriberConduct,
    at: Time,
) -> usize {
    let mut back = Vec::new();
    for batch in batches {
        let (key, count) = (batch.key.clone(), batch.leased.len());
        scheduler.finish(batch.finished(conduct, None, false), at, &mut back);
        scheduler.settled(&key, count, at);
    }
    for one in &back {
        scheduler.settled(&key(one.job.key.subscriber.as_str()), 1, at);
    }
    back.len()
}

#[test]
fn a_subscriber_that_answers_gets_more_and_never_more_than_its_places() {
    let mut scheduler = CallScheduler::default();
    let due = [key("a")];
    let mut most = 0;
    for _ in 0..12 {
        claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
        let batches = start(&mut scheduler, now());
        most = most.max(batches.len());
        end(&mut scheduler, batches, SubscriberConduct::Answered, now());
    }
    assert_eq!(most, CALLS_PER_SUBSCRIBER);
    assert!(scheduler.shares.leased() > CALLS_PER_SUBSCRIBER && scheduler.shares.leased() <= 256);
}

#[test]
fn one_that_fails_is_probed_with_growing_pauses_until_it_answers() {
    let mut scheduler = CallScheduler::default();
    let due = [key("a")];
    for _ in 0..10 {
        claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
        let batches = start(&mut scheduler, now());
        end(&mut scheduler, batches, SubscriberConduct::Answered, now());
    }
    claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
    let batches = start(&mut scheduler, now());
    assert_eq!(batches.len(), 8);
    assert!(end(&mut scheduler, batches, SubscriberConduct::Failed, now()) > 0, "what waits goes back");
    assert_eq!(scheduler.shares.leased(), 0);

    let mut at = now();
    for pause_s in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        at = at.plus(Duration::from_secs(pause_s)).minus(Duration::from_millis(1));
        assert!(claim(&mut scheduler, &due, SubscriberKind::Webhook, at).is_empty(), "{pause_s}");
        at = at.plus(Duration::from_millis(1));
        assert_eq!(claim(&mut scheduler, &due, SubscriberKind::Webhook, at), [(key("a"), 1)]);
        let batches = start(&mut scheduler, at);
        assert_eq!(batches.len(), 1);
        end(&mut scheduler, batches, SubscriberConduct::Failed, at);
    }
    at = at.plus(Duration::from_secs(300));
    claim(&mut scheduler, &due, SubscriberKind::Webhook, at);
    let batches = start(&mut scheduler, at);
    end(&mut scheduler, batches, SubscriberConduct::Answered, at);
    assert_eq!(claim(&mut scheduler, &due, SubscriberKind::Webhook, at), [(key("a"), 2)]);
}

#[test]
fn thousands_of_unproven_subscribers_take_turns_within_their_places() {
    let mut scheduler = CallScheduler::default();
    let due: Vec<_> = (0..1_000).map(|number| key(&format!("s{number:04}"))).collect();
    let mut called = BTreeSet::new();
    let mut rounds = 0;
    while called.len() < due.len() {
        rounds += 1;
        let mut batches = Vec::new();
        for _ in 0..3 {
            claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
            batches.extend(start(&mut scheduler, now()));
        }
        assert!(batches.len() <= UNPROVEN_ALONE);
        called.extend(batches.iter().map(|batch| batch.key.clone()));
        end(&mut scheduler, batches, SubscriberConduct::Failed, now());
    }
    assert!(rounds <= 12, "each is called once before any is called often: {rounds}");
}

#[test]
fn one_look_at_who_is_due_feeds_many_claims() {
    let mut scheduler = CallScheduler::default();
    let due: Vec<_> = (0..100).map(|number| key(&format!("s{number:04}"))).collect();
    scheduler.set_due(due.clone());
    let mut claimed = BTreeSet::new();
    while scheduler.wants_claim() {
        let choose_claims = scheduler.choose_claims(now());
        assert!(!choose_claims.is_empty() && choose_claims.len() <= CLAIM_SUBSCRIBERS_MAX);
        for key in choose_claims {
            assert!(claimed.insert(key.clone()), "it has nothing more");
            scheduler.set_target(&key, target(&key, SubscriberKind::Webhook));
            scheduler.take(key.clone(), leased(&key, 1, now().plus(Duration::from_secs(120))), true);
        }
    }
    assert_eq!(claimed.len(), due.len());
    assert!(scheduler.choose_claims(now()).is_empty());
}

#[test]
fn who_was_left_out_for_want_of_room_is_claimed_for_when_there_is_some() {
    let mut scheduler = CallScheduler::default();
    let due: Vec<_> = (0..UNPROVEN_ALONE + 1).map(|number| key(&format!("s{number:04}"))).collect();
    let mut batches = Vec::new();
    while batches.len() < UNPROVEN_ALONE {
        claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
        batches.extend(start(&mut scheduler, now()));
    }
    assert!(scheduler.choose_claims(now()).is_empty() && !scheduler.wants_claim(), "every place is taken");
    end(&mut scheduler, batches.split_off(1), SubscriberConduct::Failed, now());
    assert!(scheduler.wants_claim());
    assert!(scheduler.choose_claims(now()).contains(&due[UNPROVEN_ALONE]), "nobody was called before it was");
}

#[test]
fn one_that_answers_is_claimed_for_whoever_else_is_due() {
    let mut scheduler = CallScheduler::default();
    let lively = [key("z")];
    claim(&mut scheduler, &lively, SubscriberKind::Webhook, now());
    let batches = start(&mut scheduler, now());
    end(&mut scheduler, batches, SubscriberConduct::Answered, now());
    let mut due: Vec<_> = (0..500).map(|number| key(&format!("s{number:04}"))).collect();
    due.push(key("z"));
    for _ in 0..3 {
        claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
        let batches = start(&mut scheduler, now());
        let (mine, others): (Vec<_>, Vec<_>) = batches.into_iter().partition(|batch| batch.key == key("z"));
        assert!(!mine.is_empty(), "{} others", others.len());
        end(&mut scheduler, mine, SubscriberConduct::Answered, now());
        // The others never end.
    }
}

#[test]
fn a_batch_form_takes_many_in_one_call_and_one_call_at_a_time() {
    let mut scheduler = CallScheduler::default();
    let due = [key("client_sync")];
    assert_eq!(claim(&mut scheduler, &due, SubscriberKind::Sync, now()), [(key("client_sync"), 200)]);
    let batches = start(&mut scheduler, now());
    assert_eq!(batches.iter().map(|batch| batch.leased.len()).collect::<Vec<_>>(), [200]);
    end(&mut scheduler, batches, SubscriberConduct::Answered, now());
    claim(&mut scheduler, &due, SubscriberKind::Sync, now());
    assert_eq!(scheduler.shares.leased(), 400);
    assert_eq!(start(&mut scheduler, now()).len(), 1);
}

#[test]
fn what_waited_too_long_for_its_lease_goes_back() {
    let mut scheduler = CallScheduler::default();
    scheduler.set_target(&key("a"), target(&key("a"), SubscriberKind::Webhook));
    scheduler.take(key("a"), leased(&key("a"), 3, now().plus(Duration::from_secs(20))), true);
    let mut back = Vec::new();
    assert!(scheduler.next(now(), &mut back).is_none());
    assert_eq!(back.len(), 3);
}

/// Lets these subscribers answer until they have all the calls they may have.
fn prove(scheduler: &mut CallScheduler, due: &[DueSubscriber], took: Duration) {
    for _ in 0..8 {
        claim(scheduler, due, SubscriberKind::Webhook, now());
        let batches = start(scheduler, now());
        end(scheduler, batches, SubscriberConduct::Answered, now().plus(took));
    }
}

/// Claims and begins all that can begin; nothing ends.
fn fill(scheduler: &mut CallScheduler, due: &[DueSubscriber], at: Time) -> Vec<NotificationBatch> {
    let mut begun = Vec::new();
    for _ in 0..20 {
        claim(scheduler, due, SubscriberKind::Webhook, at);
        begun.extend(start(scheduler, at));
    }
    begun
}

#[test]
fn one_tenant_has_less_than_half_of_the_places_and_another_begins_at_once() {
    let mut scheduler = CallScheduler::default();
    let greedy: Vec<_> = (0..40).map(|number| key(&format!("s{number:04}"))).collect();
    prove(&mut scheduler, &greedy, Duration::ZERO);
    let begun = fill(&mut scheduler, &greedy, now());
    assert_eq!(begun.len(), alone(CALLS_MAX));
    assert!(scheduler.shares.leased() <= alone(LEASED_MAX) + 1, "{}", scheduler.shares.leased());

    // Ten more tenants, each as greedy: there is a slot for the first call of every one of them.
    let mut due = greedy;
    for number in 0..10 {
        let tenant = format!("t{number}");
        due.extend((0..40).map(|number| key_of(&tenant, &format!("s{number:04}"))));
        let begun = fill(&mut scheduler, &due, now());
        assert!(begun.iter().any(|batch| batch.key.tenant.as_str() == tenant), "{tenant}");
    }
}

#[test]
fn slow_answers_leave_room_for_quick_ones_of_the_same_tenant() {
    let mut scheduler = CallScheduler::default();
    let slow: Vec<_> = (0..40).map(|number| key(&format!("s{number:04}"))).collect();
    prove(&mut scheduler, &slow, Duration::from_secs(14));
    let quick = [key("z")];
    prove(&mut scheduler, &quick, Duration::ZERO);
    let at = now().plus(Duration::from_secs(20));
    let mut begun = fill(&mut scheduler, &slow, at);
    begun.extend(fill(&mut scheduler, &quick, at));
    let (of_quick, of_slow): (Vec<_>, Vec<_>) = begun.iter().partition(|batch| batch.key == quick[0]);
    assert_eq!(of_slow.len(), UNPROVEN_ALONE, "they answer, but they take their time");
    assert_eq!(of_quick.len(), CALLS_PER_SUBSCRIBER);
}

#[test]
fn a_claim_takes_turns_by_tenant() {
    let mut scheduler = CallScheduler::default();
    let mut due: Vec<_> = (0..90).map(|number| key(&format!("s{number:04}"))).collect();
    due.push(key_of("globex", "one"));
    due.push(key_of("initech", "one"));
    let first = claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
    for tenant in ["globex", "initech"] {
        assert!(first.iter().any(|(key, _)| key.tenant.as_str() == tenant), "{tenant}");
    }
    let second = claim(&mut scheduler, &due, SubscriberKind::Webhook, now());
    let again = second.iter().filter(|(key, _)| first.iter().any(|(one, _)| one == key)).count();
    assert_eq!(again, 0, "those that were left out come first");
}

#[test]
fn one_that_is_back_after_a_time_away_is_named_once() {
    let mut scheduler = CallScheduler::default();
    let due = [key("a")];
    let mut at = now();
    let mut call = |scheduler: &mut CallScheduler, conduct: SubscriberConduct, after_s: u64| {
        at = at.plus(Duration::from_secs(after_s));
        claim(scheduler, &due, SubscriberKind::Webhook, at);
        let batches = start(scheduler, at);
        assert!(!batches.is_empty());
        let takes_others = batches[0].leased[0].takes_others;
        end(scheduler, batches, conduct, at);
        (takes_others, scheduler.next_returned())
    };
    let returned = Some(key("a"));
    assert_eq!(
        call(&mut scheduler, SubscriberConduct::Answered, 0),
        (false, returned.clone()),
        "for the first time"
    );
    assert_eq!(call(&mut scheduler, SubscriberConduct::Answered, 1), (true, None));
    assert_eq!(call(&mut scheduler, SubscriberConduct::Failed, 1), (true, None), "this one fails alone");
    assert_eq!(call(&mut scheduler, SubscriberConduct::Answered, 59), (false, None), "it was hardly away");
    for after_s in [1, 1, 400] {
        call(&mut scheduler, SubscriberConduct::Failed, after_s);
    }
    assert_eq!(call(&mut scheduler, SubscriberConduct::Answered, 400), (false, returned.clone()));
    assert_eq!(call(&mut scheduler, SubscriberConduct::Answered, 1), (true, None));
    scheduler.return_not_served(&key("a"));
    assert_eq!(call(&mut scheduler, SubscriberConduct::Answered, 1), (true, returned));
}
