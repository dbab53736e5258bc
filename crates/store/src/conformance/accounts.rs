//! Tenants and accounts.

use postway_domain::{Tenant, message::AttemptOutcome, secret::SealedSecret};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at, other_tenant, tenant},
    stage::{self, accept, accept_and_claim, all_at_once, apply, doubt, offer, outcome, woken},
};
use crate::record::{Acceptance, ChangeResult, MessageKey, WriteFence};

/// The second creator learns that there is one already, and changes nothing.
pub async fn a_tenant_is_created_once(store: &Shared) {
    let id: postway_domain::TenantId = "initech".parse().unwrap();
    assert_eq!(store.tenant(&id).await.unwrap(), None);
    let first = Tenant::new(id.clone(), "Initech", at(1));
    assert!(store.create_tenant(first.clone()).await.unwrap());
    let second = Tenant { name: "Other".to_owned(), created_at: at(2), ..first.clone() };
    assert!(!store.create_tenant(second).await.unwrap());
    assert_eq!(store.tenant(&id).await.unwrap(), Some(first));
}

/// Settings, secret, version and times.
pub async fn an_account_reads_back_whole(store: &Shared) {
    let mut account = sample::account(TENANT, "new");
    account.settings.ca_pem = Some("-----BEGIN CERTIFICATE-----\n…".to_owned());
    account.settings.max_connections = 3;
    account.secret = Some(SealedSecret(vec![0, 255, 1]));
    account.version = 4;
    account.updated_at = at(9);
    assert!(store.create_account(account.clone()).await.unwrap());
    assert_eq!(store.account(&tenant(), &account.id).await.unwrap(), Some(account.clone()));
    assert_eq!(store.account(&other_tenant(), &account.id).await.unwrap(), None);
    account.id = "open".parse().unwrap();
    account.secret = None;
    assert!(store.create_account(account.clone()).await.unwrap());
    assert_eq!(store.account(&tenant(), &account.id).await.unwrap(), Some(account));
}

/// A taken id stays with what has it.
pub async fn an_account_id_is_taken_once_per_tenant(store: &Shared) {
    let mut account = sample::account(TENANT, ACCOUNT);
    account.settings.port = Some(2525);
    assert!(!store.create_account(account).await.unwrap());
    let found = store.account(&tenant(), &ACCOUNT.parse().unwrap()).await.unwrap();
    assert_eq!(found, Some(sample::account(TENANT, ACCOUNT)));
}

/// Who read an older version looks again.
pub async fn an_update_needs_the_version_it_read(store: &Shared) {
    let mut account = sample::account(TENANT, ACCOUNT);
    account.settings.port = Some(2525);
    account.secret = None;
    account.version = 2;
    account.updated_at = at(5);
    assert!(store.update_account(account.clone(), 1).await.unwrap());
    let mut late = account.clone();
    late.settings.port = Some(465);
    assert!(!store.update_account(late, 1).await.unwrap());
    assert_eq!(store.account(&tenant(), &account.id).await.unwrap(), Some(account.clone()));
    let theirs = store.account(&other_tenant(), &account.id).await.unwrap();
    assert_eq!(theirs, Some(sample::account(OTHER_TENANT, ACCOUNT)));
    assert!(!store.update_account(sample::account(TENANT, "nobody"), 1).await.unwrap());
}

/// Those who read the same version do not overwrite each other.
pub async fn of_concurrent_updates_one_wins(store: &Shared) {
    let calls = (0..10u16).map(|n| {
        let store = store.clone();
        let mut account = sample::account(TENANT, ACCOUNT);
        account.version = 2;
        account.settings.port = Some(1_000 + n);
        async move { (account.settings.port, store.update_account(account, 1).await.unwrap()) }
    });
    let answers = all_at_once(calls).await;
    let winners: Vec<_> = answers.iter().filter(|(_, won)| *won).collect();
    assert_eq!(winners.len(), 1);
    let found = store.account(&tenant(), &ACCOUNT.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(found.settings.port, winners[0].0);
}

/// Mail on its way, waiting or in doubt needs its account; mail that ended does not.
pub async fn an_account_with_unfinished_mail_stays(store: &Shared) {
    let id = ACCOUNT.parse().unwrap();
    let mut claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::InUse);
    doubt(store, &mut claimed, None, at(1)).await;
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::InUse);
    let other = store.delete_account(&tenant(), &OTHER_ACCOUNT.parse().unwrap()).await.unwrap();
    assert_eq!(other, ChangeResult::Done, "its neighbour can go");
    assert_eq!(store.delete_account(&other_tenant(), &id).await.unwrap(), ChangeResult::Done);

    let claimed = {
        let fence = super::stage::late(claimed.token);
        let answer = postway_domain::message::TransitionInput::Settle(AttemptOutcome::Failed);
        let settled =
            super::stage::step(claimed.uid, fence, postway_domain::MessageState::InDoubt, answer, at(2));
        assert!(apply(store, settled).await);
        accept_and_claim(store, Sample::new(2), 2).await
    };
    assert!(apply(store, outcome(&claimed, false, AttemptOutcome::Failed, at(3))).await);
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::Done);
    assert_eq!(store.account(&tenant(), &id).await.unwrap(), None);
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::Missing);
}

/// Mail that no account would send must not be acknowledged. Mail stored while the account existed is still
/// known.
pub async fn mail_for_a_deleted_account_is_refused(store: &Shared) {
    let id = OTHER_ACCOUNT.parse().unwrap();
    let by_other = |n| Sample::new(n).from(TENANT, OTHER_ACCOUNT);
    let invalid = postway_domain::MessageState::Invalid;
    let first = accept(store, by_other(1).client_id("first").state(invalid, None)).await;
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::Done);
    let offers = [
        by_other(2).client_id("second"),
        Sample::new(3),
        // The same twice, in one call: neither is answered with the other.
        by_other(4).key("key"),
        by_other(5).key("key"),
        by_other(6).client_id("first"),
        by_other(7).state(invalid, None),
    ];
    let answers = store.accept(offers.map(Sample::build).into()).await.unwrap();
    let (gone, stored) = (Acceptance::AccountGone, Acceptance::Accepted { handed_over: false });
    let repeat = Acceptance::Repeat { uid: first };
    assert_eq!(answers, [gone.clone(), stored.clone(), gone.clone(), gone.clone(), repeat, stored.clone()]);
    for n in [2, 4, 5] {
        let uid = sample::uid(at(0), n);
        assert!(store.message(&tenant(), &MessageKey::Uid(uid)).await.unwrap().is_none(), "{n}");
    }
    let in_calls = store
        .accept(vec![by_other(8).batch_key("call", 1).build(), Sample::new(9).batch_key("call", 1).build()]);
    assert_eq!(in_calls.await.unwrap(), [gone, stored.clone()]);
    let other_call = offer(store, Sample::new(10).batch_key("call", 2)).await;
    assert!(
        matches!(other_call, Acceptance::Conflict { .. }),
        "the call's key is with what was stored of it"
    );
    assert!(store.create_account(sample::account(TENANT, OTHER_ACCOUNT)).await.unwrap());
    assert_eq!(offer(store, by_other(2).client_id("second")).await, stored, "its id was not used up");
    assert_eq!(offer(store, by_other(4).key("key")).await, stored);
}

/// In either order: either the mail is refused, or the account stays.
pub async fn an_account_is_not_deleted_while_mail_is_accepted_for_it(store: &Shared) {
    for round in 0..15u32 {
        let name = format!("brief-{round}");
        assert!(store.create_account(sample::account(TENANT, &name)).await.unwrap());
        let calls = (0..6u32).map(|n| {
            let (store, name) = (store.clone(), name.clone());
            async move {
                if n == 3 {
                    let deleted = store.delete_account(&tenant(), &name.parse().unwrap()).await.unwrap();
                    return (None, Some(deleted));
                }
                (Some(offer(&store, Sample::new(10 * round + n).from(TENANT, &name)).await), None)
            }
        });
        let answers = all_at_once(calls).await;
        let deleted = answers.iter().find_map(|(_, deleted)| *deleted).unwrap();
        let offered: Vec<&Acceptance> = answers.iter().filter_map(|(offered, _)| offered.as_ref()).collect();
        match deleted {
            ChangeResult::Done => {
                assert!(offered.iter().all(|one| **one == Acceptance::AccountGone), "{offered:?}")
            }
            ChangeResult::InUse => assert!(offered.iter().all(|one| one.is_accepted()), "{offered:?}"),
            other => panic!("{other:?}"),
        }
        let is_there = store.account(&tenant(), &name.parse().unwrap()).await.unwrap().is_some();
        assert_eq!(is_there, deleted == ChangeResult::InUse);
    }
}

/// Mail that was replayed after its account was deleted still counts: operators must see that it waits.
pub async fn mail_without_an_account_counts_as_held(store: &Shared) {
    let claimed = accept_and_claim(store, Sample::new(1), 1).await;
    assert!(apply(store, outcome(&claimed, false, AttemptOutcome::Failed, at(3))).await);
    assert_eq!(store.delete_account(&tenant(), &ACCOUNT.parse().unwrap()).await.unwrap(), ChangeResult::Done);
    let failed = stage::record(store, claimed.uid).await.summary;
    let fence = WriteFence { status: failed.state.status(), token: None, version: Some(failed.version) };
    let replay = postway_domain::message::TransitionInput::Replay;
    let mut again = stage::step(claimed.uid, fence, failed.state, replay, at(5));
    again.due_at = Some(at(5));
    assert!(apply(store, again).await);
    for whose in [None, Some(&tenant())] {
        let stats = store.stats(whose, at(9)).await.unwrap();
        assert_eq!((stats.oldest_due_at, stats.oldest_held_at), (None, Some(at(5))));
    }
}

/// What mail takes when it names none must be there.
pub async fn a_default_account_stays(store: &Shared) {
    let id = ACCOUNT.parse().unwrap();
    store.set_default_account(&tenant(), &id).await.unwrap();
    assert_eq!(store.tenant(&tenant()).await.unwrap().unwrap().default_account, Some(id.clone()));
    assert_eq!(store.tenant(&other_tenant()).await.unwrap().unwrap().default_account, None);
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::InUse);
    store.set_default_account(&tenant(), &OTHER_ACCOUNT.parse().unwrap()).await.unwrap();
    assert_eq!(store.delete_account(&tenant(), &id).await.unwrap(), ChangeResult::Done);
}

/// One tenant's, or everyone's.
pub async fn accounts_are_listed_by_tenant_and_id(store: &Shared) {
    assert!(store.create_account(sample::account(TENANT, "middle")).await.unwrap());
    let names = |accounts: Vec<postway_domain::Account>| -> Vec<String> {
        accounts.iter().map(|account| format!("{}/{}", account.tenant, account.id)).collect()
    };
    let mine = ["acme/backup", "acme/middle", "acme/relay"];
    assert_eq!(names(store.accounts(Some(&tenant())).await.unwrap()), mine);
    let all = [&mine[..], &["globex/backup", "globex/relay"]].concat();
    assert_eq!(names(store.accounts(None).await.unwrap()), all);
    assert!(store.accounts(Some(&"nobody".parse().unwrap())).await.unwrap().is_empty());
}

/// A dispatcher that holds a copy hears that it is old.
pub async fn a_changed_account_is_woken(store: &Shared) {
    assert!(store.create_account(sample::account(TENANT, "new")).await.unwrap());
    assert_eq!(woken(store, 1).await, [sample::key(TENANT, "new")]);
    let mut account = sample::account(TENANT, ACCOUNT);
    account.version = 2;
    let generation = store.generation();
    let (updated, risen) = tokio::join!(store.update_account(account, 1), async {
        assert_eq!(woken(store, 1).await, [sample::relay()]);
        store.generation() > generation
    });
    assert!(updated.unwrap());
    assert!(risen, "whoever read it a moment ago must read it again");
    let gone = store.delete_account(&tenant(), &OTHER_ACCOUNT.parse().unwrap()).await.unwrap();
    assert_eq!(gone, ChangeResult::Done);
    assert_eq!(woken(store, 1).await, [sample::key(TENANT, OTHER_ACCOUNT)]);
}
