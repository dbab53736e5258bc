//! Daily quotas, which nodes lease in parts.

use postway_domain::{
    Time,
    quota::{DailyQuota, MailAmount, QuotaDay},
};

use super::{Shared, sample, stage::direct};
use crate::record::{ChangeResult, DirectoryChange, QuotaLease, QuotaUse};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A lease of this number of messages, with ten bytes and two recipients each.
pub fn lease(tenant: &str, day: i64, messages: u64) -> QuotaLease {
    QuotaLease {
        tenant: tenant.parse().unwrap(),
        day: QuotaDay(day),
        amount: MailAmount { messages, bytes: messages * 10, recipients: messages * 2 },
        quota: DailyQuota { messages: Some(100), bytes: None, recipients: Some(160) },
    }
}

fn own(day: i64, messages: u64) -> DirectoryChange {
    DirectoryChange::LeaseQuota(lease(sample::tenant().as_str(), day, messages))
}

async fn used(store: &Shared, day: i64) -> QuotaUse {
    store.quota_use(&sample::tenant(), QuotaDay(day)).await.unwrap()
}

/// The narrowest bound decides, and a refused lease takes nothing.
pub async fn a_quota_is_leased_until_it_is_used_up(store: &Shared) {
    assert_eq!(used(store, 1).await, QuotaUse::default());
    assert_eq!(direct(store, own(1, 70)).await, ChangeResult::Done);
    assert_eq!(direct(store, own(1, 11)).await, ChangeResult::Stale, "162 of 160 recipients");
    assert_eq!(direct(store, own(1, 10)).await, ChangeResult::Done);
    let amount = MailAmount { messages: 80, bytes: 800, recipients: 160 };
    assert_eq!(used(store, 1).await, QuotaUse { used: amount, warned: 0 });
    assert_eq!(direct(store, own(1, 1)).await, ChangeResult::Stale);
    assert_eq!(direct(store, own(2, 101)).await, ChangeResult::Stale, "more than a whole quota");
    assert_eq!(direct(store, own(2, 80)).await, ChangeResult::Done, "another day is another quota");
}

/// As nodes do that accept mail at the same time.
pub async fn of_many_nodes_none_leases_more_than_there_is(store: &Shared) {
    let leases = (0..40).map(|_| direct(store, own(1, 3)));
    let done = futures::future::join_all(leases).await;
    assert_eq!(done.iter().filter(|one| **one == ChangeResult::Done).count(), 26);
    assert_eq!(used(store, 1).await.used.messages, 78);
}

/// Of the nodes that notice, one warns.
pub async fn a_warning_is_recorded_once_a_day_and_level(store: &Shared) {
    direct(store, own(1, 80)).await;
    let warn = |day, level| DirectoryChange::WarnOfQuota(sample::tenant(), QuotaDay(day), level);
    assert_eq!(direct(store, warn(1, 80)).await, ChangeResult::Done);
    assert_eq!(direct(store, warn(1, 80)).await, ChangeResult::Already);
    assert_eq!(direct(store, warn(1, 100)).await, ChangeResult::Done);
    assert_eq!(direct(store, warn(1, 80)).await, ChangeResult::Already, "a lower one says nothing new");
    assert_eq!(used(store, 1).await.warned, 100);
}

/// What is kept is bounded by days.
pub async fn days_long_past_are_forgotten(store: &Shared) {
    for day in [1, 10] {
        direct(store, own(day, 5)).await;
    }
    direct(store, DirectoryChange::Forget(Time::from_millis(10 * DAY_MS))).await;
    assert_eq!(used(store, 1).await, QuotaUse::default());
    assert_eq!(used(store, 10).await.used.messages, 5);
}
