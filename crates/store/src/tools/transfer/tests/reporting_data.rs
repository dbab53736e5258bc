//! Notifications of every kind, and how the port shows them.

use postway_domain::{
    Subscriber, SubscriberKind, TenantId, message::AttemptOutcome, secret::SealedSecret,
    subscriber::EventFilter,
};

use crate::{
    conformance::{
        Shared, journal,
        sample::{self, ACCOUNT, OTHER_TENANT, Sample, TENANT, at},
        stage,
        subscribers::{subscribe, webhook},
    },
    record::{
        ChangeResult, DirectoryChange, DueSubscriber, ExpungeRequest, FeedPosition, MessageChange,
        NotificationCall, NotificationResult, NotificationState, ReportRequest,
    },
};

const STATES: [NotificationState; 4] = [
    NotificationState::Waiting,
    NotificationState::Acknowledged,
    NotificationState::Dead,
    NotificationState::Pending,
];

/// Notifies subscribers of some messages, with every outcome, and leaves some notifications open.
pub async fn tell(store: &Shared) {
    let some = Subscriber {
        kind: SubscriberKind::Callback,
        events: EventFilter(vec!["email.sent".to_owned()]),
        secrets: Some(SealedSecret(vec![0, 255])),
        description: Some("Größe".to_owned()),
        quiet_until: Some(at(99)),
        ..webhook(OTHER_TENANT, "some")
    };
    subscribe(store, some).await;
    subscribe(store, webhook(TENANT, "all")).await;
    for number in 60..70 {
        let sample = Sample::new(number).state(postway_domain::MessageState::Cancelled, None);
        stage::accept(store, sample).await;
    }
    journal::tell(store, at(60)).await;
    let all = DueSubscriber { tenant: sample::tenant(), subscriber: "all".parse().unwrap() };
    let request = ReportRequest { lease: sample::lease(61, at(61)), now: at(61), wants: vec![(all, 5)] };
    let claimed = store.claim_notifications(request.clone()).await.unwrap();
    assert_eq!(claimed.len(), 5, "the last of them is still being called");
    let call = NotificationCall {
        at: at(62),
        latency_ms: 5,
        status: Some(503),
        request: "{\"größe\":1}".to_owned(),
        answer: "no\0".to_owned(),
    };
    let notified = claimed.into_iter().zip(STATES).map(|(one, state)| NotificationResult {
        key: one.key,
        token: request.lease.token,
        at: at(63),
        state,
        due_at: Some(at(90)),
        call: Some(call.clone()).filter(|_| state != NotificationState::Pending),
        tells_history: false,
    });
    assert_eq!(store.settle_notifications(notified.collect()).await.unwrap(), [true; 4]);
    vanish(store).await;
    stage::accept(store, Sample::new(80).send_at(9_000_000)).await;
}

/// Leaves the trace of a message that is gone.
async fn vanish(store: &Shared) {
    stage::accept(store, Sample::new(81).from(OTHER_TENANT, ACCOUNT)).await;
    let key = sample::key(OTHER_TENANT, ACCOUNT);
    let claimed = store.claim(stage::request(&key, 62, at(64), 1, false)).await.unwrap().remove(0);
    let failed = MessageChange {
        exhausted: true,
        ..stage::outcome(&claimed, false, AttemptOutcome::Exhausted, at(65))
    };
    assert!(stage::apply(store, failed).await);
    journal::tell(store, at(66)).await;
    let expunge = ExpungeRequest {
        tenant: sample::other_tenant(),
        reported_before: at(9_000_000_000),
        unreported_before: at(9_000_000_000),
        now: at(9_000_000_000),
        recipient_key: [7; 32],
        limit: 9,
    };
    assert_eq!(store.expunge(expunge).await.unwrap(), 1);
    assert!(store.tombstone(claimed.uid).await.unwrap().is_some());
    let gone = DirectoryChange::DeleteSubscriber(sample::other_tenant(), "nobody".parse().unwrap());
    assert_eq!(stage::direct(store, gone).await, ChangeResult::Missing);
}

/// What the port shows of one tenant's notifications.
pub async fn picture(store: &Shared, tenant: &TenantId) -> Vec<String> {
    let mut lines = vec![
        format!("{:?}", store.subscribers(Some(tenant)).await.unwrap()),
        format!("{:?}", store.feed_end(tenant).await.unwrap()),
        format!("{:?}", store.report_state(at(70)).await.unwrap()),
        format!("{:?}", store.statistics(tenant, at(-9_000_000), at(9_000_000)).await.unwrap()),
    ];
    let feed = store.feed(tenant, FeedPosition::default(), 9_999).await.unwrap();
    lines.extend(feed.iter().map(|one| format!("{one:?}")));
    for one in store.subscribers(Some(tenant)).await.unwrap() {
        let told = store.deliveries(tenant, &one.id, None, None, 9_999).await.unwrap().told;
        lines.extend(told.iter().map(|view| format!("{view:?}")));
    }
    for number in [1, 2, 81] {
        lines.push(format!("{:?}", store.tombstone(sample::uid(at(0), number)).await.unwrap()));
    }
    lines
}
