//! Claims of inbound mail: each tenant has its share, and a mail that kills its process is distinguished from
//! one that waits.

use postway_domain::InboundState;

use super::{
    Shared,
    inbound::{mail, page, register, routed, settle, take},
    mailboxes::{mailbox, watch},
    sample::{self, LEASE_LASTS, OTHER_TENANT, at, incarnation, other_tenant, tenant},
    stage::direct,
};
use crate::record::{ChangeResult, DirectoryChange, MailToProcess, MailboxKey, MailboxPage, ProcessRequest};

/// A mailbox of the other tenant.
async fn watch_other(store: &Shared, id: &str) -> MailboxKey {
    let made = direct(store, DirectoryChange::CreateMailbox(mailbox(OTHER_TENANT, id))).await;
    assert_eq!(made, ChangeResult::Done);
    MailboxKey { tenant: other_tenant(), mailbox: id.parse().unwrap() }
}

/// How many are of the samples' tenant, and how many of the other.
fn shares(claimed: &[MailToProcess]) -> (usize, usize) {
    let ours = claimed.iter().filter(|one| one.key.tenant == tenant()).count();
    (ours, claimed.len() - ours)
}

/// However much longer one tenant's mail has waited, and over however many mailboxes it is spread.
pub async fn tenants_take_turns_in_a_claim(store: &Shared) {
    for n in 0..4 {
        let key = watch(store, &format!("flooded-{n}")).await;
        register(store, page(&key, None, (5, 99), (1..=40).map(|i| mail(100 * n + i)).collect())).await;
    }
    let quiet = watch_other(store, "quiet").await;
    let late = MailboxPage { at: at(3), ..page(&quiet, None, (5, 9), (901..=910).map(mail).collect()) };
    register(store, late).await;
    let first = take(store, 1, at(4), 8).await;
    assert_eq!(shares(&first), (4, 4), "half of a claim is the other's");
    let mailboxes: std::collections::BTreeSet<_> = first.iter().map(|one| &one.key).collect();
    assert_eq!(mailboxes.len(), 5, "each mailbox has its turn");
    assert_eq!(shares(&take(store, 2, at(4), 40).await), (34, 6), "what one does not need is the other's");
    assert_eq!(shares(&take(store, 3, at(4), 500).await), (122, 0));
}

/// By tenant while others wait, and by mailbox.
pub async fn what_is_in_hand_counts_against_a_share(store: &Shared) {
    let (greedy, second) = (watch(store, "greedy").await, watch(store, "second").await);
    register(store, page(&greedy, None, (5, 99), (1..=50).map(mail).collect())).await;
    let request = |tenants: u32, mailboxes: u32| ProcessRequest {
        per_mailbox: 8,
        per_tenant: 10,
        per_tenant_alone: 15,
        tenants_in_hand: [(tenant(), tenants)].into(),
        mailboxes_in_hand: [(greedy.clone(), mailboxes)].into(),
        ..ProcessRequest::new(sample::lease(1, at(4)), at(4), 20)
    };
    let claim = |request| async move { shares(&store.claim_inbound(request).await.unwrap()) };
    assert_eq!(claim(request(8, 8)).await, (0, 0), "the mailbox has its share in hand");
    assert_eq!(claim(request(12, 2)).await, (3, 0), "alone, a tenant may have more");
    let quiet = watch_other(store, "quiet").await;
    register(store, page(&quiet, None, (5, 99), (901..=920).map(mail).collect())).await;
    register(store, page(&second, None, (5, 99), (501..=520).map(mail).collect())).await;
    assert_eq!(claim(request(12, 0)).await, (0, 8), "not while another waits");
    assert_eq!(claim(request(7, 8)).await, (3, 8), "the other mailbox of a tenant goes on");
}

/// A death is counted as one, a lease that ended under a living process as a try; settling says what is left
/// of both.
pub async fn a_lost_life_is_told_from_a_late_try(store: &Shared) {
    let key = watch(store, "orders").await;
    register(store, page(&key, None, (5, 1), vec![mail(1)])).await;
    let mut now = at(1);
    let mut stood = Vec::new();
    for (token, alive) in [(1, 2), (2, 1), (3, 2)] {
        let one = take(store, token, now, 1).await.remove(0);
        stood.push((one.tries, one.lost_leases));
        now = now.plus(LEASE_LASTS);
        assert_eq!(store.reclaim_inbound(&[incarnation(alive)], now, 9).await.unwrap(), 1);
        now = now.plus(LEASE_LASTS);
    }
    assert_eq!(stood, [(0, 0), (0, 1), (1, 1)]);
    let one = take(store, 4, now, 1).await.remove(0);
    assert_eq!((one.tries, one.lost_leases), (1, 2));
    let kept =
        crate::record::InboundMailResult { lost_leases: 1, ..routed(&one, 4, InboundState::Waiting, now) };
    assert!(settle(store, kept).await);
    let one = take(store, 5, now, 1).await.remove(0);
    assert_eq!(one.lost_leases, 1);
    assert!(settle(store, routed(&one, 5, InboundState::Dead, now)).await);
    assert_eq!(store.replay_inbound(&tenant(), one.uid, now).await.unwrap(), ChangeResult::Done);
    let one = take(store, 6, now, 1).await.remove(0);
    assert_eq!((one.tries, one.lost_leases), (0, 0), "a replay begins anew");
}
