//! Subscribers.

use postway_domain::{
    Subscriber, SubscriberKind,
    secret::SealedSecret,
    subscriber::EventFilter,
    tenant::{CallbackForm, RemoteAuth, RemoteService},
};

use super::{
    Shared,
    journal::{send, tell},
    sample::{OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{all_at_once, direct},
};
use crate::record::{ChangeResult, DirectoryChange};

/// A webhook that is notified of everything, from the start on.
pub(crate) fn webhook(of: &str, id: &str) -> Subscriber {
    Subscriber {
        tenant: of.parse().unwrap(),
        id: id.parse().unwrap(),
        kind: SubscriberKind::Webhook,
        url: "https://app.example.com/hook".to_owned(),
        events: EventFilter::default(),
        secrets: None,
        active: true,
        disabled_reason: None,
        description: None,
        quiet_until: None,
        version: 1,
        created_at: at(0),
        updated_at: at(0),
    }
}

/// Makes a subscriber.
pub(crate) async fn subscribe(store: &Shared, subscriber: Subscriber) {
    assert_eq!(direct(store, DirectoryChange::CreateSubscriber(subscriber)).await, ChangeResult::Done);
}

fn whole() -> Subscriber {
    Subscriber {
        kind: SubscriberKind::Callback,
        events: EventFilter(vec!["email.sent".to_owned(), "email.pec.failed".to_owned()]),
        secrets: Some(SealedSecret(vec![0, 1, 255])),
        active: false,
        disabled_reason: Some("410 Größe".to_owned()),
        description: Some("for orders".to_owned()),
        quiet_until: Some(at(77)),
        version: 3,
        updated_at: at(9),
        ..webhook(TENANT, "Hook-1.a")
    }
}

/// With all its parts.
pub async fn a_subscriber_reads_back_whole(store: &Shared) {
    let of_kind =
        |kind: SubscriberKind| Subscriber { kind, ..webhook(TENANT, &format!("kind-{}", kind.code())) };
    let kinds = SubscriberKind::ALL.into_iter().map(of_kind);
    for one in [whole(), webhook(TENANT, "bare")].into_iter().chain(kinds) {
        subscribe(store, one.clone()).await;
        assert_eq!(store.subscriber(&one.tenant, &one.id).await.unwrap(), Some(one.clone()));
        assert_eq!(store.subscriber(&other_tenant(), &one.id).await.unwrap(), None);
    }
}

/// Others may use the same.
pub async fn a_subscriber_id_is_taken_once_per_tenant(store: &Shared) {
    let calls = (0..8).map(|_| {
        let store = store.clone();
        async move { direct(&store, DirectoryChange::CreateSubscriber(webhook(TENANT, "one"))).await }
    });
    let made = all_at_once(calls).await;
    assert_eq!(made.iter().filter(|changed| **changed == ChangeResult::Done).count(), 1);
    assert_eq!(made.iter().filter(|changed| **changed == ChangeResult::Exists).count(), 7);
    subscribe(store, webhook(OTHER_TENANT, "one")).await;
}

/// A lost update is reported; the creation time stays.
pub async fn a_subscriber_update_needs_the_version_it_read(store: &Shared) {
    subscribe(store, webhook(TENANT, "one")).await;
    let changed = Subscriber { version: 2, created_at: at(5), id: "one".parse().unwrap(), ..whole() };
    let update = |expected| DirectoryChange::UpdateSubscriber(changed.clone(), expected);
    assert_eq!(direct(store, update(7)).await, ChangeResult::Stale);
    assert_eq!(direct(store, update(1)).await, ChangeResult::Done);
    assert_eq!(direct(store, update(1)).await, ChangeResult::Stale);
    let stored = store.subscriber(&tenant(), &changed.id).await.unwrap().unwrap();
    assert_eq!(stored, Subscriber { created_at: at(0), ..changed });
    let quiet = |id: &str| DirectoryChange::QuietSubscriber(tenant(), id.parse().unwrap(), at(500));
    assert_eq!(direct(store, quiet("one")).await, ChangeResult::Done);
    assert_eq!(direct(store, quiet("two")).await, ChangeResult::Missing);
    let quiet = store.subscriber(&tenant(), &stored.id).await.unwrap().unwrap();
    assert_eq!(quiet, Subscriber { quiet_until: Some(at(500)), ..stored });
}

/// It gets no more notifications, others do.
pub async fn a_deleted_subscriber_is_gone_with_what_it_was_to_be_told(store: &Shared) {
    for (of, id) in [(TENANT, "one"), (TENANT, "two"), (OTHER_TENANT, "one")] {
        subscribe(store, webhook(of, id)).await;
    }
    let uid = send(store, Sample::new(1), 5).await;
    tell(store, at(6)).await;
    let delete = || DirectoryChange::DeleteSubscriber(tenant(), "one".parse().unwrap());
    assert_eq!(direct(store, delete()).await, ChangeResult::Done);
    assert_eq!(direct(store, delete()).await, ChangeResult::Missing);
    let stale = DirectoryChange::UpdateSubscriber(webhook(TENANT, "one"), 1);
    assert_eq!(direct(store, stale).await, ChangeResult::Stale);
    assert_eq!(store.subscriber(&tenant(), &"one".parse().unwrap()).await.unwrap(), None);
    let told = store.notifications(&tenant(), uid).await.unwrap();
    assert!(!told.is_empty() && told.iter().all(|one| one.key.subscriber.as_str() == "two"));
    assert_eq!(store.report_state(at(6)).await.unwrap().due.len(), 1);
    assert!(store.subscriber(&other_tenant(), &"one".parse().unwrap()).await.unwrap().is_some());
    direct(store, DirectoryChange::Forget(at(7))).await;
    subscribe(store, webhook(TENANT, "one")).await;
    assert!(
        store.deliveries(&tenant(), &"one".parse().unwrap(), None, None, 9).await.unwrap().told.is_empty()
    );
}

/// Of one tenant, or of all.
pub async fn subscribers_are_listed_by_tenant_and_id(store: &Shared) {
    for (of, id) in [(OTHER_TENANT, "a"), (TENANT, "b"), (TENANT, "B"), (TENANT, "a")] {
        subscribe(store, webhook(of, id)).await;
    }
    let name = |one: &Subscriber| format!("{}/{}", one.tenant, one.id);
    let all: Vec<String> = store.subscribers(None).await.unwrap().iter().map(name).collect();
    assert_eq!(all, ["acme/B", "acme/a", "acme/b", "globex/a"]);
    let ours: Vec<String> = store.subscribers(Some(&tenant())).await.unwrap().iter().map(name).collect();
    assert_eq!(ours, all[..3]);
}

/// It exists while the tenant has a callback, and is notified in the form that the tenant chose.
pub async fn a_tenants_own_subscriber_follows_its_settings(store: &Shared) {
    let id = Subscriber::CLIENT.parse().unwrap();
    let own = || async { store.subscriber(&tenant(), &id).await.unwrap() };
    assert_eq!(own().await, None);
    let remote = RemoteService {
        url: "https://app.example.com".to_owned(),
        path: None,
        auth: RemoteAuth::None,
        username: None,
    };
    let mut version = 1;
    for (sync, form, kind) in [
        (Some(&remote), CallbackForm::Batch, Some(SubscriberKind::Sync)),
        (Some(&remote), CallbackForm::Outbox, Some(SubscriberKind::Callback)),
        (None, CallbackForm::Outbox, None),
        (Some(&remote), CallbackForm::Event, Some(SubscriberKind::Webhook)),
    ] {
        let mut changed = store.tenant(&tenant()).await.unwrap().unwrap();
        (changed.version, changed.updated_at) = (version + 1, at(version * 10));
        (changed.settings.client_sync, changed.settings.callback_form) = (sync.cloned(), form);
        let update = DirectoryChange::UpdateTenant(changed.clone(), version);
        assert_eq!(direct(store, update.clone()).await, ChangeResult::Done);
        assert_eq!(direct(store, update).await, ChangeResult::Stale);
        version += 1;
        let found = own().await;
        assert_eq!(found.as_ref().map(|one| (one.kind, one.active)), kind.map(|kind| (kind, true)));
        assert!(found.is_none_or(|one| one.url.is_empty() && one.updated_at == changed.updated_at));
    }
    assert_eq!(own().await.unwrap().created_at, at(40), "a new one");
    let disabled = Subscriber {
        active: false,
        disabled_reason: Some("gone".to_owned()),
        quiet_until: Some(at(900)),
        ..own().await.unwrap()
    };
    let current = disabled.version;
    assert_eq!(direct(store, DirectoryChange::UpdateSubscriber(disabled, current)).await, ChangeResult::Done);
    let mut changed = store.tenant(&tenant()).await.unwrap().unwrap();
    changed.version += 1;
    assert_eq!(direct(store, DirectoryChange::UpdateTenant(changed, version)).await, ChangeResult::Done);
    let found = own().await.unwrap();
    assert_eq!((found.active, found.disabled_reason), (true, None), "new settings are tried");
    assert_eq!(found.quiet_until, Some(at(900)), "but who asked to be left alone is");
    let mut born = store.tenant(&tenant()).await.unwrap().unwrap();
    born.id = "newcomer".parse().unwrap();
    assert_eq!(direct(store, DirectoryChange::CreateTenant(born, Vec::new())).await, ChangeResult::Done);
    assert!(store.subscriber(&"newcomer".parse().unwrap(), &id).await.unwrap().is_some());
}
