//! A share for each tenant: whatever one tenant's servers do, the mail of the others is read and processed.

use std::{sync::Arc, time::Duration};

use postway_domain::{
    Clock, InboundState, Incarnation, Tenant, TenantId, WatchedMailbox,
    inbound::FolderCursor,
    mailbox::{MailboxRole, WatchStart},
};
use postway_inbound::FolderSource;
use postway_store::{
    DirectoryStore, InboundStore,
    record::{
        DirectoryChange, InboundFilter, InboundView, MailboxKey, MailboxPage, NewInbound, RegistrationResult,
        StoredBody,
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{TestGateway, mail, mailbox, script::MixedSource, tenant, wait_until};

const ROLES: &[MailboxRole] = &[MailboxRole::Forward];
/// The error of a mailbox without rules, whose mail waits for one.
const RULELESS: &[MailboxRole] = &[MailboxRole::Bounces];
/// As many sessions as a node has, and some more.
const MORE_THAN_ALL: usize = 230;

fn greedy() -> TenantId {
    "greedy".parse().unwrap()
}

/// Gives another tenant this many mailboxes of this kind.
async fn watch_greedy(gateway: &TestGateway, kind: &str, count: usize) {
    watch_of(gateway, &greedy(), kind, 0..count).await;
}

/// Gives a tenant mailboxes of this kind with these numbers.
async fn watch_of(gateway: &TestGateway, tenant: &TenantId, kind: &str, numbers: std::ops::Range<usize>) {
    if gateway.store.tenant(tenant).await.unwrap().is_none() {
        let new = Tenant::new(tenant.clone(), "Greedy", gateway.clock.now());
        assert!(gateway.store.create_tenant(new).await.unwrap());
    }
    for n in numbers {
        let mut one = WatchedMailbox {
            tenant: tenant.clone(),
            id: format!("{kind}-{n}").parse().unwrap(),
            ..mailbox(WatchStart::Beginning, ROLES)
        };
        one.settings.username = format!("{kind}-{n}@example.org");
        gateway.change(DirectoryChange::CreateMailbox(one)).await;
    }
}

/// A gateway in which the mailboxes of this many other tenants are all open before the first tenant's mailbox
/// is created.
async fn crowded(kind: &str, tenants: usize) -> (TestGateway, MixedSource) {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    gateway.change(DirectoryChange::DeleteMailbox(super::key())).await;
    for number in 0..tenants {
        let tenant = if number == 0 { greedy() } else { format!("greedy-{number}").parse().unwrap() };
        let each = MORE_THAN_ALL.div_ceil(tenants);
        watch_of(&gateway, &tenant, kind, number * each..(number + 1) * each).await;
    }
    let source = MixedSource::new(gateway.mail_server.clone());
    (gateway, source)
}

async fn is_read_beside(kind: &str) {
    is_read_beside_many(kind, 1).await;
}

async fn is_read_beside_many(kind: &str, tenants: usize) {
    let (gateway, source) = crowded(kind, tenants).await;
    let stop = CancellationToken::new();
    let monitor = tokio::spawn(gateway.monitor(Arc::new(source.clone())).run(stop.clone()));
    source.opened(200).await;
    gateway.mail_server.deliver(mail(1), gateway.clock.now());
    let ours = WatchedMailbox { id: "ours".parse().unwrap(), ..mailbox(WatchStart::Beginning, ROLES) };
    gateway.change(DirectoryChange::CreateMailbox(ours)).await;
    wait_until("the other tenant's mail is read", || async { gateway.mails().await.len() == 1 }).await;
    // It stays watched: later mail is reported and read at once.
    gateway.mail_server.deliver(mail(2), gateway.clock.now());
    wait_until("what comes later is read too", || async { gateway.mails().await.len() == 2 }).await;
    stop.cancel();
    monitor.await.unwrap();
}

#[tokio::test]
async fn mailboxes_without_an_end_do_not_keep_others_from_being_read() {
    is_read_beside("endless").await;
}

#[tokio::test(start_paused = true)]
async fn mailboxes_that_never_answer_do_not_keep_others_from_being_read() {
    is_read_beside("silent").await;
}

#[tokio::test(start_paused = true)]
async fn mailboxes_of_several_tenants_that_never_answer_do_not_keep_others_from_being_read() {
    is_read_beside_many("silent", 2).await;
    is_read_beside_many("silent", 3).await;
}

#[tokio::test]
async fn mailboxes_that_always_have_news_do_not_keep_others_from_being_read() {
    is_read_beside("chatty").await;
}

#[tokio::test]
async fn mailboxes_that_idle_do_not_keep_others_from_being_read() {
    is_read_beside("idle").await;
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_that_never_answers_gives_its_seat_back_and_says_so() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    watch_greedy(&gateway, "silent", 1).await;
    let source = MixedSource::new(gateway.mail_server.clone());
    let stop = CancellationToken::new();
    let monitor = tokio::spawn(gateway.monitor(Arc::new(source)).run(stop.clone()));
    let key = MailboxKey { tenant: greedy(), mailbox: "silent-0".parse().unwrap() };
    let waiting = async {
        loop {
            let (_, state) = gateway.store.mailbox(&key).await.unwrap().unwrap();
            if let Some(error) = state.error {
                return error;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(10 * 60), waiting).await.unwrap();
    assert!(error.contains("too slow"), "{error}");
    stop.cancel();
    monitor.await.unwrap();
}

#[tokio::test]
async fn a_large_backlog_is_read_round_by_round() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    // More than the pages of one round.
    for number in 0..12_000 {
        gateway.mail_server.deliver(mail(number), gateway.clock.now());
    }
    let stop = CancellationToken::new();
    let monitor = tokio::spawn(gateway.monitor(Arc::new(gateway.mail_server.clone())).run(stop.clone()));
    let caught_up = || async {
        let state = gateway.state().await;
        state.scanned_at.is_some() && state.lag() == Some(0)
    };
    wait_until("the mailbox is read to its end", caught_up).await;
    assert_eq!(gateway.state().await.cursor.map(|at| at.last_uid), Some(12_000));
    assert_eq!(gateway.mail_server.state().opened, 1, "nobody else needed the session");
    stop.cancel();
    monitor.await.unwrap();
}

/// Registers mail as if it had been read from a mailbox.
async fn register(gateway: &TestGateway, key: &MailboxKey, numbers: std::ops::Range<usize>) {
    let mails = numbers.clone().map(|number| {
        let raw = mail(number);
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&(number as u64).to_be_bytes());
        NewInbound {
            uid: postway_domain::MessageUid::new(gateway.clock.now(), &mut rand::rng()),
            folder: "INBOX".to_owned(),
            imap_uid: number as u32 + 1,
            digest: Some(digest),
            size: raw.len() as u64,
            arrived_at: None,
            dated_at: None,
            sender: None,
            recipients: None,
            subject: None,
            message_id: None,
            body: Some(StoredBody::Inline(raw.into())),
            state: InboundState::Received,
            error: None,
        }
    });
    let to = FolderCursor { uid_validity: 1, last_uid: 1, not_before: None, old_through: 0 };
    let page = MailboxPage {
        key: key.clone(),
        seen: None,
        to,
        uid_next: 2,
        at: gateway.clock.now(),
        mails: mails.collect(),
    };
    let count = numbers.len() as u32;
    assert_eq!(
        gateway.store.register(page).await.unwrap(),
        RegistrationResult::Done { new: count, known: 0 }
    );
}

async fn of_greedy(gateway: &TestGateway) -> Vec<InboundView> {
    gateway.store.inbound(&greedy(), &InboundFilter::default(), None, 10_000).await.unwrap()
}

#[tokio::test]
async fn errands_to_a_server_that_never_answers_delay_no_other_tenant() {
    let gateway = TestGateway::new(WatchStart::Beginning, RULELESS).await;
    watch_greedy(&gateway, "silent", 3).await;
    for n in 0..3 {
        let key = MailboxKey { tenant: greedy(), mailbox: format!("silent-{n}").parse().unwrap() };
        let content = json!({"actions": [{"do": "tag", "tag": "t"}, {"do": "mark_seen"}]});
        gateway.rule_of(&key, "all", content).await;
        register(&gateway, &key, n * 100..n * 100 + 60).await;
    }
    register(&gateway, &super::key(), 900..901).await;
    let source: Arc<dyn FolderSource> = Arc::new(MixedSource::new(gateway.mail_server.clone()));
    let stop = CancellationToken::new();
    let incarnation = Incarnation::new(gateway.clock.now(), &mut rand::rng());
    let router = tokio::spawn(gateway.router(source, incarnation).run(stop.clone()));
    let is_settled = || async { gateway.mails().await.iter().all(|mail| mail.state.is_settled()) };
    wait_until("the other tenant's mail is dealt with", is_settled).await;
    // More of their mail is in flight than there are slots, and each mailbox has its share.
    let in_hand =
        |mails: Vec<InboundView>| mails.iter().filter(|mail| mail.state == InboundState::Routing).count();
    wait_until("their errands wait", || async { in_hand(of_greedy(&gateway).await) == 3 * 32 }).await;
    register_more(&gateway).await;
    wait_until("the next mail is dealt with beside them", is_settled).await;
    assert_eq!(gateway.mails().await.len(), 2);
    assert_eq!(in_hand(of_greedy(&gateway).await), 3 * 32);
    // A stop gives all of it back without counting a try, and does not wait for the server.
    stop.cancel();
    router.await.unwrap();
    let left = of_greedy(&gateway).await;
    assert!(left.iter().all(|mail| mail.state == InboundState::Received && mail.tries == 0), "{:?}", left[0]);
    let claimed = gateway.claim(500).await;
    assert_eq!(claimed.len(), 180);
    assert!(claimed.iter().all(|mail| mail.lost_leases == 0));
}

async fn register_more(gateway: &TestGateway) {
    let key = MailboxKey { tenant: tenant(), mailbox: "late".parse().unwrap() };
    let mut late = WatchedMailbox { id: key.mailbox.clone(), ..mailbox(WatchStart::Beginning, RULELESS) };
    late.settings.folder = "Late".to_owned();
    gateway.change(DirectoryChange::CreateMailbox(late)).await;
    register(gateway, &key, 950..951).await;
}

#[tokio::test]
async fn a_mail_whose_process_died_is_dealt_with_alone_and_set_aside_the_second_time() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    let nobody = serde_json::json!({"match": [{"field": "subject", "equals": "nothing"}], "actions": [{"do": "stop"}]});
    gateway.rule("nobody", 1, nobody).await;
    register(&gateway, &super::key(), 0..20).await;
    let route = || async {
        let source: Arc<dyn FolderSource> = Arc::new(gateway.mail_server.clone());
        let (stop, incarnation) =
            (CancellationToken::new(), Incarnation::new(gateway.clock.now(), &mut rand::rng()));
        let router = tokio::spawn(gateway.router(source, incarnation).run(stop.clone()));
        let all = || async { gateway.mails().await.iter().all(|mail| mail.state.is_settled()) };
        wait_until("all mail is dealt with", all).await;
        stop.cancel();
        router.await.unwrap();
    };
    // All of them are in flight when the process dies, and one of them once more.
    assert_eq!(gateway.claim(50).await.len(), 20);
    gateway.die().await;
    let killer = gateway.claim(1).await.remove(0);
    assert_eq!(killer.lost_leases, 1);
    gateway.die().await;
    route().await;
    let mails = gateway.mails().await;
    let (dead, routed): (Vec<_>, Vec<_>) = mails.iter().partition(|mail| mail.state == InboundState::Dead);
    assert_eq!((dead.len(), routed.len()), (1, 19));
    assert_eq!(dead[0].uid, killer.uid);
    let error = dead[0].error.as_deref().unwrap();
    assert!(error.contains("died 2 times") && error.contains("replay"), "{error}");
    let replayed = gateway.store.replay_inbound(&tenant(), killer.uid, gateway.clock.now()).await.unwrap();
    assert_eq!(replayed, postway_store::record::ChangeResult::Done);
    route().await;
    assert!(gateway.mails().await.iter().all(|mail| mail.state == InboundState::NoMatch));
}

#[tokio::test]
async fn a_mail_that_outlives_its_lease_is_tried_as_often_as_it_may_be() {
    let gateway = TestGateway::new(WatchStart::Beginning, ROLES).await;
    register(&gateway, &super::key(), 0..1).await;
    for _ in 0..3 {
        let claimed = gateway.claim(1).await.remove(0);
        assert_eq!(claimed.lost_leases, 0);
        gateway.advance(Duration::from_secs(3_600));
        // Its process survives.
        gateway.reclaim(TestGateway::claimer()).await;
    }
    let mails = gateway.settled(1).await;
    assert_eq!(mails[0].state, InboundState::Dead);
    assert!(mails[0].error.as_deref().unwrap().contains("without an end"));
}
