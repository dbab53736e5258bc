//! Limits: no claim takes more than what is left, whichever node claims.

use postway_domain::{AccountLimits, LimitSpan, Time, limit::LimitBehavior};

use super::{
    Shared,
    sample::{self, ACCOUNT, OTHER_ACCOUNT, OTHER_TENANT, Sample, TENANT, at},
    stage::{all_at_once, direct, uids},
};
use crate::record::{
    AccountKey, AccountWant, ChangeResult, ClaimRequest, ClaimedMessage, DirectoryChange, LimitUse,
    SendingPermit,
};

/// A limit of this many messages in any minute.
pub fn per_minute(limit: u32) -> AccountLimits {
    AccountLimits { per_minute: limit, ..AccountLimits::default() }
}

/// Asks for due work of one account under limits.
pub fn limited(key: AccountKey, limits: AccountLimits, token: i64, now: Time, room: u32) -> ClaimRequest {
    let want = AccountWant { limits, ..AccountWant::unlimited(key, room, false) };
    ClaimRequest { lease: sample::lease(token, now), now, wants: vec![want], inline_bytes_max: 1 << 20 }
}

/// Claims for the samples' account under limits.
pub(crate) async fn claim(
    store: &Shared,
    limits: AccountLimits,
    token: i64,
    now: Time,
    room: u32,
) -> Vec<ClaimedMessage> {
    store.claim(limited(sample::relay(), limits, token, now, room)).await.unwrap()
}

/// How much of each limited span counts now.
pub(super) async fn counts(store: &Shared, key: &AccountKey, limits: &AccountLimits, now: Time) -> Vec<i64> {
    store.used(key, limits, now).await.unwrap().into_iter().map(|(_, used)| used.count).collect()
}

/// Accepts many messages of one account.
pub(super) async fn accept_many(store: &Shared, tenant: &str, account: &str, numbers: std::ops::Range<u32>) {
    let messages = numbers.map(|n| Sample::new(n).from(tenant, account).build()).collect();
    store.accept(messages).await.unwrap();
}

/// Over as many claims as it takes; without limits there is no permit.
pub async fn a_claim_takes_what_is_left_of_the_limit(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..12).await;
    let limits = per_minute(5);
    let first = claim(store, limits, 1, at(0), 3).await;
    assert_eq!(first.len(), 3);
    let permit = SendingPermit {
        key: sample::relay(),
        debited_at: at(0),
        use_by: LimitSpan::Minute.use_by(at(0)),
        spans: vec![LimitSpan::Minute],
    };
    assert!(first.iter().all(|one| one.permit.as_ref() == Some(&permit) && !one.over_limit));
    assert_eq!(claim(store, limits, 2, at(1), 9).await.len(), 2);
    assert!(claim(store, limits, 3, at(2), 9).await.is_empty());
    let unlimited = claim(store, AccountLimits::default(), 4, at(3), 2).await;
    assert_eq!(unlimited.len(), 2);
    assert!(unlimited.iter().all(|one| one.permit.is_none() && !one.over_limit));
    assert_eq!(counts(store, &sample::relay(), &limits, at(3)).await, [5], "and nothing is debited");
}

/// A window later, to the millisecond, and not before.
pub async fn a_limit_is_free_again_after_its_window(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..12).await;
    let limits = per_minute(5);
    assert_eq!(claim(store, limits, 1, at(100), 3).await.len(), 3);
    assert_eq!(claim(store, limits, 2, at(30_000), 9).await.len(), 2);
    let free = |ms| LimitSpan::Minute.counts_until(LimitSpan::Minute.bucket(at(ms)));
    let just_before = Time::from_millis(free(100).as_millis() - 1);
    assert!(claim(store, limits, 3, just_before, 9).await.is_empty());
    assert_eq!(claim(store, limits, 4, free(100), 9).await.len(), 3);
    assert_eq!(claim(store, limits, 5, free(30_000), 9).await.len(), 2);
}

/// The scarcest decides, and all of them are debited.
pub async fn minute_hour_and_day_hold_together(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..20).await;
    let limits = AccountLimits { per_minute: 4, per_hour: 6, per_day: 7, ..AccountLimits::default() };
    let first = claim(store, limits, 1, at(0), 9).await;
    assert_eq!(first.len(), 4);
    assert_eq!(first[0].permit.as_ref().unwrap().spans, LimitSpan::ALL);
    assert_eq!(
        first[0].permit.as_ref().unwrap().use_by,
        LimitSpan::Minute.use_by(at(0)),
        "before the first ends"
    );
    let next_minute = LimitSpan::Minute.counts_until(LimitSpan::Minute.bucket(at(0)));
    assert_eq!(claim(store, limits, 2, next_minute, 9).await.len(), 2);
    assert_eq!(counts(store, &sample::relay(), &limits, next_minute).await, [2, 6, 6]);
    let next_hour = LimitSpan::Hour.counts_until(LimitSpan::Hour.bucket(next_minute));
    assert_eq!(claim(store, limits, 3, next_hour, 9).await.len(), 1);
    let much_later = LimitSpan::Hour.counts_until(LimitSpan::Hour.bucket(next_hour));
    assert!(claim(store, limits, 4, much_later, 9).await.is_empty());
    assert_eq!(counts(store, &sample::relay(), &limits, much_later).await, [0, 0, 7]);
}

/// Each has its own.
pub async fn limits_of_other_accounts_do_not_meet(store: &Shared) {
    let keys = [(TENANT, ACCOUNT), (TENANT, OTHER_ACCOUNT), (OTHER_TENANT, ACCOUNT)];
    for (n, (tenant, account)) in (0..).zip(keys) {
        accept_many(store, tenant, account, n * 10..n * 10 + 5).await;
    }
    let mut request = limited(sample::relay(), per_minute(2), 1, at(0), 9);
    for (tenant, account) in &keys[1..] {
        request.wants.extend(limited(sample::key(tenant, account), per_minute(2), 1, at(0), 9).wants);
    }
    let claimed = store.claim(request).await.unwrap();
    assert_eq!(claimed.len(), 6);
    for (tenant, account) in keys {
        let key = sample::key(tenant, account);
        assert_eq!(counts(store, &key, &per_minute(2), at(0)).await, [2]);
        assert_eq!(claimed.iter().filter(|one| one.permit.as_ref().unwrap().key == key).count(), 2);
    }
}

/// Beyond it everything due is given out, to be refused.
pub async fn beyond_a_limit_that_rejects_work_is_flagged(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..6).await;
    let limits = AccountLimits { behavior: LimitBehavior::Reject, ..per_minute(2) };
    let claimed = claim(store, limits, 1, at(0), 5).await;
    let flags: Vec<_> = claimed.iter().map(|one| (one.permit.is_some(), one.over_limit)).collect();
    assert_eq!(flags, [(true, false), (true, false), (false, true), (false, true), (false, true)]);
    let more = claim(store, limits, 2, at(0), 5).await;
    assert_eq!((more.len(), more[0].over_limit), (1, true));
    assert_eq!(counts(store, &sample::relay(), &limits, at(0)).await, [2]);
}

/// What counts, and when the oldest of it stops counting.
pub async fn the_use_of_a_limit_is_told(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..9).await;
    let limits = AccountLimits { per_minute: 5, per_day: 9, ..AccountLimits::default() };
    let unused = LimitUse::default();
    let nothing = store.used(&sample::relay(), &limits, at(0)).await.unwrap();
    assert_eq!(nothing, [(LimitSpan::Minute, unused), (LimitSpan::Day, unused)]);
    claim(store, limits, 1, at(0), 2).await;
    claim(store, limits, 2, at(40_000), 1).await;
    let used = |span: LimitSpan, count, oldest| {
        (span, LimitUse { count, frees_at: Some(span.counts_until(span.bucket(oldest))) })
    };
    let told = store.used(&sample::relay(), &limits, at(40_000)).await.unwrap();
    assert_eq!(told, [used(LimitSpan::Minute, 3, at(0)), used(LimitSpan::Day, 3, at(0))]);
    let later = store.used(&sample::relay(), &limits, at(70_000)).await.unwrap();
    assert_eq!(later, [used(LimitSpan::Minute, 1, at(40_000)), used(LimitSpan::Day, 3, at(0))]);
    let theirs = store.used(&sample::key(OTHER_TENANT, ACCOUNT), &limits, at(70_000)).await.unwrap();
    assert_eq!(theirs, [(LimitSpan::Minute, unused), (LimitSpan::Day, unused)]);
}

/// A limit that is lowered counts what was taken under the old one.
pub async fn a_changed_limit_holds_at_once(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..20).await;
    assert_eq!(claim(store, per_minute(5), 1, at(0), 4).await.len(), 4);
    assert!(claim(store, per_minute(3), 2, at(0), 9).await.is_empty());
    assert_eq!(claim(store, per_minute(6), 3, at(0), 9).await.len(), 2);
}

/// What counts no more may go; what counts must stay.
pub async fn only_use_that_counts_no_more_is_forgotten(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..9).await;
    let limits = AccountLimits { per_minute: 3, per_hour: 9, ..AccountLimits::default() };
    claim(store, limits, 1, at(0), 3).await;
    let ends = LimitSpan::Minute.counts_until(LimitSpan::Minute.bucket(at(0)));
    let before = Time::from_millis(ends.as_millis() - 1);
    assert_eq!(direct(store, DirectoryChange::ForgetUse(before, 9)).await, ChangeResult::Already);
    assert_eq!(counts(store, &sample::relay(), &limits, at(1)).await, [3, 3]);
    assert_eq!(direct(store, DirectoryChange::ForgetUse(ends, 9)).await, ChangeResult::Done);
    assert_eq!(counts(store, &sample::relay(), &limits, at(1)).await, [0, 3]);
}

/// However much there is, a step handles a bounded number.
pub async fn use_that_counts_no_more_is_forgotten_in_slices(store: &Shared) {
    accept_many(store, TENANT, ACCOUNT, 0..5).await;
    for n in 0..5 {
        claim(store, per_minute(9), n + 1, at(n * 10_000), 1).await;
    }
    let forget = || direct(store, DirectoryChange::ForgetUse(at(10_000_000), 2));
    let left = async || counts(store, &sample::relay(), &per_minute(9), at(0)).await;
    assert_eq!(left().await, [5]);
    for expected in [3, 1, 0] {
        assert_eq!(forget().await, ChangeResult::Done);
        assert_eq!(left().await, [expected]);
    }
    assert_eq!(forget().await, ChangeResult::Already);
}

/// Windows stay as full as they are.
pub async fn use_goes_with_a_clock_that_is_set_forward(store: &Shared) {
    const HOUR_MS: i64 = 3_600_000;
    let limits = AccountLimits { per_hour: 9, ..per_minute(3) };
    accept_many(store, TENANT, ACCOUNT, 0..6).await;
    assert_eq!(claim(store, limits, 1, at(0), 2).await.len(), 2);
    assert_eq!(claim(store, limits, 2, at(20_000), 9).await.len(), 1);
    store.change(DirectoryChange::ShiftUse(at(30_000), HOUR_MS), None).await.unwrap();
    assert_eq!(counts(store, &sample::relay(), &limits, at(30_000 + HOUR_MS)).await, [3, 3]);
    assert!(claim(store, limits, 3, at(30_000 + HOUR_MS), 9).await.is_empty(), "the clock frees nothing");
    assert_eq!(claim(store, limits, 4, at(70_000 + HOUR_MS), 9).await.len(), 2, "time does");
}

/// The clock was set back by an hour: what was used before it counts from now on as if it was used now.
pub async fn use_of_times_to_come_counts_for_one_window_only(store: &Shared) {
    const HOUR_MS: i64 = 3_600_000;
    let limits = per_minute(3);
    accept_many(store, TENANT, ACCOUNT, 0..6).await;
    assert_eq!(claim(store, limits, 1, at(HOUR_MS), 2).await.len(), 2);
    assert_eq!(claim(store, limits, 2, at(HOUR_MS + 9_000), 9).await.len(), 1);
    store.change(DirectoryChange::RedateUse(at(10_000)), None).await.unwrap();
    assert_eq!(counts(store, &sample::relay(), &limits, at(10_000)).await, [3]);
    assert!(claim(store, limits, 3, at(60_000), 9).await.is_empty());
    assert_eq!(claim(store, limits, 4, at(110_000), 9).await.len(), 3, "not an hour later");
}

/// Its time was read before others debited: what they used is neither of the future nor of the past.
pub async fn a_change_of_time_that_was_long_on_its_way_frees_nothing(store: &Shared) {
    const HOUR_MS: i64 = 3_600_000;
    let limits = per_minute(3);
    accept_many(store, TENANT, ACCOUNT, 0..6).await;
    assert_eq!(claim(store, limits, 1, at(20_000), 3).await.len(), 3);
    store.change(DirectoryChange::RedateUse(at(5_000)), None).await.unwrap();
    assert!(claim(store, limits, 2, at(75_000), 9).await.is_empty(), "it was used at 20 seconds");
    store.change(DirectoryChange::ShiftUse(at(5_000), HOUR_MS), None).await.unwrap();
    assert!(claim(store, limits, 3, at(75_000 + HOUR_MS), 9).await.is_empty());
}

/// One node is away while the others' clock is set forward by an hour, and comes back with the old time: what
/// it would debit, the others would not count. Nor may it touch what they count.
pub async fn a_clock_that_missed_a_step_forward_debits_nothing(store: &Shared) {
    const HOUR_MS: i64 = 3_600_000;
    let limits = per_minute(3);
    let rejecting = AccountLimits { behavior: LimitBehavior::Reject, ..limits };
    accept_many(store, TENANT, ACCOUNT, 0..6).await;
    store.change(DirectoryChange::ShiftUse(at(30_000), HOUR_MS), None).await.unwrap();
    assert!(claim(store, limits, 1, at(31_000), 9).await.is_empty());
    assert!(claim(store, rejecting, 2, at(31_000), 9).await.is_empty(), "nor is anything over the limit");
    assert_eq!(claim(store, limits, 3, at(31_000 + HOUR_MS), 1).await.len(), 1);
    assert_eq!(direct(store, DirectoryChange::RedateUse(at(31_000))).await, ChangeResult::Stale);
    assert_eq!(counts(store, &sample::relay(), &limits, at(31_000 + HOUR_MS)).await, [1]);
    // It has the word now: the others are gone, and with them their time.
    assert_eq!(direct(store, DirectoryChange::SetUseBack(at(32_000), 0)).await, ChangeResult::Done);
    assert_eq!(counts(store, &sample::relay(), &limits, at(32_000)).await, [1]);
    assert_eq!(claim(store, limits, 4, at(32_000), 9).await.len(), 2);
}

/// The others' clock is set back by an hour: one that has not heard of it looks at a window in which nobody
/// counts.
pub async fn a_clock_that_missed_a_step_back_debits_nothing(store: &Shared) {
    const HOUR_MS: i64 = 3_600_000;
    let limits = per_minute(3);
    accept_many(store, TENANT, ACCOUNT, 0..9).await;
    assert_eq!(claim(store, limits, 1, at(HOUR_MS), 3).await.len(), 3);
    store.change(DirectoryChange::SetUseBack(at(1_000), HOUR_MS), None).await.unwrap();
    assert!(claim(store, limits, 2, at(HOUR_MS + 2_000), 9).await.is_empty(), "it has not heard");
    assert_eq!(counts(store, &sample::relay(), &limits, at(2_000)).await, [3]);
    assert_eq!(claim(store, limits, 3, at(110_000), 2).await.len(), 2);
    // Everybody has heard by now, and that hour comes again.
    direct(store, DirectoryChange::ForgetUse(at(300_000), 9)).await;
    assert_eq!(claim(store, limits, 4, at(HOUR_MS + 1_000), 9).await.len(), 3);
}

/// Its debit went with the clock.
pub async fn a_permit_from_before_the_clock_was_set_is_not_renewed(store: &Shared) {
    let limits = per_minute(3);
    accept_many(store, TENANT, ACCOUNT, 0..3).await;
    let claimed = claim(store, limits, 1, at(0), 1).await;
    let permit = claimed[0].permit.clone().unwrap();
    store.change(DirectoryChange::ShiftUse(at(30_000), 3_600_000), None).await.unwrap();
    let renewed = direct(store, DirectoryChange::RenewPermit(permit, at(31_000))).await;
    assert_eq!(renewed, ChangeResult::Stale);
    assert_eq!(counts(store, &sample::relay(), &limits, at(3_631_000)).await, [1]);
}

/// Claimers that meet share one limit.
pub async fn eight_claimers_never_exceed_a_limit(store: &Shared) {
    eight_claimers(&[store.clone(), store.clone()]).await;
}

/// Eight claimers, on these stores in turn, with more work than the limit lets go.
pub(super) async fn eight_claimers(stores: &[Shared; 2]) {
    accept_many(&stores[0], TENANT, ACCOUNT, 0..120).await;
    let limits = AccountLimits { per_minute: 50, per_hour: 77, ..AccountLimits::default() };
    let mut all = Vec::new();
    for now in [at(0), at(64_000), at(200_000)] {
        let claimers = (0..8).map(|n| {
            let store = stores[n % 2].clone();
            async move {
                let mut mine = Vec::new();
                // A claim beside others may find nothing for the moment.
                for token in 0..12 {
                    mine.extend(uids(&claim(&store, limits, token + 1, now, 5).await));
                }
                mine
            }
        });
        all.extend(all_at_once(claimers).await.into_iter().flatten());
        let used = counts(&stores[1], &sample::relay(), &limits, now).await;
        assert_eq!(used[1], all.len() as i64, "each claimed message is debited once");
    }
    assert_eq!(all.len(), 77);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 77, "each once");
}
