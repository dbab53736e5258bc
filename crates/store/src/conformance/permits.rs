//! Permits: debited with the lease, however it is taken, and given back when nothing was sent.

use postway_domain::{AccountLimits, message::AttemptOutcome};

use super::{
    Shared,
    limits::{accept_many, claim, counts, limited, per_minute},
    sample::{self, ACCOUNT, OTHER_ACCOUNT, Sample, TENANT, at},
    stage::{accept, all_at_once, apply, delivered, offer, outcome, permission, suspend, uids, woken},
};
use crate::record::{
    Acceptance, AccountWant, ChangeResult, ClaimRequest, ClaimedMessage, DirectoryChange, MessageChange,
    SendingPermit, SuspensionScope, WriteFence,
};

const HANDED_OVER: Acceptance = Acceptance::Accepted { handed_over: true };
const QUEUED: Acceptance = Acceptance::Accepted { handed_over: false };

/// Leaves room of the samples' account standing, under limits.
async fn park(store: &Shared, limits: AccountLimits, now_ms: i64, room: u32) -> Vec<ClaimedMessage> {
    let mut request = limited(sample::relay(), limits, 1, at(now_ms), room);
    request.wants[0].park = true;
    store.claim(request).await.unwrap()
}

/// Gives a claim back, with its permit.
fn back(claimed: &ClaimedMessage, now_ms: i64) -> MessageChange {
    let held = outcome(claimed, false, AttemptOutcome::Returned, at(now_ms));
    MessageChange { due_at: Some(at(now_ms)), refund: claimed.permit.clone(), ..held }
}

/// Those of one call, and those of the next.
pub async fn what_is_handed_over_is_debited_too(store: &Shared) {
    let limits = per_minute(3);
    assert!(park(store, limits, 0, 9).await.is_empty());
    let call = [1, 2].map(|n| Sample::new(n).build());
    assert_eq!(store.accept(call.into()).await.unwrap(), [HANDED_OVER; 2]);
    let delivered = delivered(store, 2).await;
    assert!(
        delivered.iter().all(|one| one.permit.as_ref().is_some_and(|permit| permit.key == sample::relay()))
    );
    assert_eq!(counts(store, &sample::relay(), &limits, at(0)).await, [2]);
    let call = [3, 4].map(|n| Sample::new(n).build());
    assert_eq!(store.accept(call.into()).await.unwrap(), [HANDED_OVER, QUEUED]);
    assert_eq!(counts(store, &sample::relay(), &limits, at(0)).await, [3]);
    assert!(claim(store, limits, 2, at(1), 9).await.is_empty());
}

/// Accepting and claiming at once, they share what is left.
pub async fn callers_and_claimers_that_meet_share_the_limit(store: &Shared) {
    let limits = AccountLimits { per_hour: 20, ..per_minute(20) };
    park(store, limits, 0, 40).await;
    let accepting = (0..40).map(|n| {
        let store = store.clone();
        Box::pin(async move { usize::from(offer(&store, Sample::new(n)).await == HANDED_OVER) })
            as futures::future::BoxFuture<'static, usize>
    });
    let claiming = (0..8).map(|n| {
        let store = store.clone();
        Box::pin(async move { claim(&store, limits, n + 2, at(0), 3).await.len() })
            as futures::future::BoxFuture<'static, usize>
    });
    let calls: Vec<_> = accepting.chain(claiming).collect();
    let leased: usize = all_at_once(calls).await.into_iter().sum();
    assert!(leased <= 20, "{leased} of 20");
    assert_eq!(counts(store, &sample::relay(), &limits, at(0)).await, [leased as i64; 2]);
}

/// Older mail is waiting for the limit: newer mail takes its turn behind it.
pub async fn what_waits_for_a_limit_is_not_overtaken(store: &Shared) {
    let limits = per_minute(2);
    accept_many(store, TENANT, ACCOUNT, 0..3).await;
    assert_eq!(park(store, limits, 0, 9).await.len(), 2);
    assert_eq!(offer(store, Sample::new(5).created(70_000)).await, QUEUED, "though the limit is free again");
    let claimed = claim(store, limits, 2, at(70_000), 1).await;
    assert_eq!(uids(&claimed), [Sample::new(2).build().uid]);
}

/// Nothing was sent with it, so another may.
pub async fn a_refund_gives_the_permit_back_once(store: &Shared) {
    let limits = AccountLimits { per_hour: 9, ..per_minute(3) };
    accept_many(store, TENANT, ACCOUNT, 0..6).await;
    let claimed = claim(store, limits, 1, at(0), 9).await;
    assert_eq!(claimed.len(), 3);
    // By then, another bucket is current.
    assert!(apply(store, back(&claimed[0], 5_000)).await);
    assert_eq!(counts(store, &sample::relay(), &limits, at(5_000)).await, [2, 2]);
    assert!(!apply(store, back(&claimed[0], 5_000)).await);
    assert_eq!(counts(store, &sample::relay(), &limits, at(5_000)).await, [2, 2], "only once");
    assert_eq!(claim(store, limits, 2, at(5_000), 9).await.len(), 1);
    assert!(claim(store, limits, 3, at(5_000), 9).await.is_empty());
    woken(store, 1).await;
}

/// It was not used where it was debited, so it counts where it will be: as much is used as before, and for
/// longer.
pub async fn a_permit_that_ran_out_unused_is_moved_to_now(store: &Shared) {
    let limits = AccountLimits { per_hour: 9, ..per_minute(3) };
    accept_many(store, TENANT, ACCOUNT, 0..6).await;
    let mut claimed = claim(store, limits, 1, at(0), 9).await;
    let old = claimed[0].permit.clone().unwrap();
    let renew =
        |permit: &SendingPermit, ms| store.change(DirectoryChange::RenewPermit(permit.clone(), at(ms)), None);
    assert_eq!(renew(&old, 30_000).await.unwrap(), ChangeResult::Done);
    let renewed = old.renewed(at(30_000)).unwrap();
    assert!(renewed.use_by > at(30_000) && renewed.spans == old.spans, "{renewed:?}");
    assert_eq!(counts(store, &sample::relay(), &limits, at(30_000)).await, [3, 3]);
    assert!(claim(store, limits, 2, at(30_000), 9).await.is_empty(), "nothing is free because of it");
    assert_eq!(counts(store, &sample::relay(), &limits, at(70_000)).await, [1, 3], "it still counts");
    assert_eq!(renew(&old, 70_000).await.unwrap(), ChangeResult::Stale, "the first counts no more");
    claimed[0].permit = Some(renewed);
    assert!(apply(store, back(&claimed[0], 70_000)).await);
    assert_eq!(
        counts(store, &sample::relay(), &limits, at(70_000)).await,
        [0, 2],
        "and comes back from there"
    );
}

/// A worker that lost its lease may have lost it to one who sends.
pub async fn a_refused_change_refunds_nothing(store: &Shared) {
    let limits = per_minute(3);
    accept_many(store, TENANT, ACCOUNT, 0..3).await;
    let claimed = claim(store, limits, 1, at(0), 9).await;
    let stale = |one: &ClaimedMessage| {
        let change = back(one, 1);
        MessageChange { fence: WriteFence { version: Some(one.version - 1), ..change.fence }, ..change }
    };
    let changes = vec![stale(&claimed[0]), back(&claimed[1], 1), stale(&claimed[2])];
    assert_eq!(store.apply(changes).await.unwrap(), [false, true, false]);
    assert_eq!(counts(store, &sample::relay(), &limits, at(1)).await, [2]);
}

/// What was sent has used its permit.
pub async fn an_outcome_without_a_refund_keeps_the_debit(store: &Shared) {
    let limits = per_minute(1);
    accept_many(store, TENANT, ACCOUNT, 0..2).await;
    let claimed = claim(store, limits, 1, at(0), 9).await;
    assert!(apply(store, outcome(&claimed[0], false, AttemptOutcome::Failed, at(1))).await);
    assert!(claim(store, limits, 2, at(1), 9).await.is_empty());
}

/// Mail of `ACCOUNT`, sent by `OTHER_ACCOUNT`.
fn stand_in(limits: AccountLimits, token: i64, room: u32, park: bool) -> ClaimRequest {
    let mut request = limited(sample::relay(), limits, token, at(0), room);
    request.wants[0].via = Some(OTHER_ACCOUNT.parse().unwrap());
    request.wants[0].park = park;
    request
}

/// Its limits are one, for its own mail and for what it sends for others.
pub async fn a_stand_in_pays_from_its_own_limits(store: &Shared) {
    let backup = sample::key(TENANT, OTHER_ACCOUNT);
    let limits = per_minute(3);
    accept_many(store, TENANT, ACCOUNT, 0..4).await;
    accept_many(store, TENANT, OTHER_ACCOUNT, 10..14).await;
    let mut request = stand_in(limits, 1, 2, false);
    request.wants.push(AccountWant { limits, ..AccountWant::unlimited(backup.clone(), 9, false) });
    let claimed = store.claim(request).await.unwrap();
    assert_eq!(claimed.len(), 3);
    assert!(claimed.iter().all(|one| one.permit.as_ref().unwrap().key == backup));
    assert_eq!(claimed[0].via.as_ref(), Some(&backup.account));
    assert_eq!((claimed[0].lane.account.as_str(), claimed[2].via.as_ref()), (ACCOUNT, None));
    assert_eq!(counts(store, &backup, &limits, at(0)).await, [3]);
    assert_eq!(counts(store, &sample::relay(), &limits, at(0)).await, [0]);
    assert!(apply(store, back(&claimed[0], 0)).await);
    assert_eq!(counts(store, &backup, &limits, at(0)).await, [2]);
}

/// Whatever it stands ready for.
pub async fn a_stand_in_pays_for_what_is_handed_over(store: &Shared) {
    let (backup, limits) = (sample::key(TENANT, OTHER_ACCOUNT), per_minute(2));
    assert!(store.claim(stand_in(limits, 1, 9, true)).await.unwrap().is_empty());
    assert_eq!(offer(store, Sample::new(1)).await, HANDED_OVER);
    let handed_over = delivered(store, 1).await.remove(0);
    assert_eq!(handed_over.permit.as_ref().map(|permit| &permit.key), Some(&backup));
    assert_eq!(handed_over.via.as_ref(), Some(&backup.account));
    accept(store, Sample::new(2).from(TENANT, OTHER_ACCOUNT)).await;
    assert_eq!(store.claim(limited(backup.clone(), limits, 2, at(0), 9)).await.unwrap().len(), 1);
    assert_eq!(offer(store, Sample::new(3)).await, QUEUED, "that was the last of it");
    assert_eq!(counts(store, &backup, &limits, at(0)).await, [2]);
}

/// A suspended account sends nothing, not for another either: neither what waits, nor what is new, nor what
/// was claimed before.
pub async fn a_suspended_account_stands_in_for_nobody(store: &Shared) {
    let limits = AccountLimits::default();
    accept_many(store, TENANT, ACCOUNT, 0..2).await;
    let claimed = store.claim(stand_in(limits, 1, 1, true)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert!(
        store.claim(stand_in(limits, 2, 9, true)).await.unwrap().len() == 1,
        "the other, and room is left"
    );
    suspend(store, SuspensionScope::Account(OTHER_ACCOUNT.parse().unwrap())).await;
    let held = store.wire_commit(vec![permission(&claimed[0], at(1))]).await.unwrap();
    assert_eq!(held, [false], "it had not left yet");
    assert_eq!(offer(store, Sample::new(7)).await, QUEUED);
    assert!(store.claim(stand_in(limits, 3, 9, true)).await.unwrap().is_empty());
    let own = store.claim(limited(sample::relay(), limits, 4, at(1), 9)).await.unwrap();
    assert_eq!(own.len(), 1, "its own account may still send it");
}
