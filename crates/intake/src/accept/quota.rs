//! Daily quotas of tenants, held in leased parts.
//!
//! A tenant's quota is kept in the store and leased by each node in parts of a hundredth, so that most mail is
//! counted without asking the store, and all nodes together never accept more than the quota. What a node has
//! leased and not used when the day or the node ends is lost: at most a hundredth for each node. When less
//! than such a part is left, exactly what a call needs is leased.
//!
//! Mail is counted before it is stored, and given back if it was not. A crash in between counts mail that was
//! never accepted, never the other way round. A call that does not fit is refused as a whole. A tenant without
//! a quota costs nothing but a look at its settings, which are cached.
//!
//! At 80 and 100 per cent the audit log gets an entry and the log a warning: once a day and level.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::{
    TenantId, Time,
    id::AuditId,
    quota::{DailyQuota, MailAmount, QuotaDay},
};
use postway_store::{
    Store, StoreError,
    record::{AuditEntry, ChangeResult, DirectoryChange, QuotaLease},
};
use serde_json::json;

use crate::refusal::Refusal;

/// The actor of warnings in the audit log.
const ACTOR: &str = "quota";

/// The parts of quotas that this node holds.
pub(crate) struct QuotaLeases {
    store: Arc<dyn Store>,
    held: Mutex<HashMap<TenantId, HeldQuota>>,
}

struct HeldQuota {
    day: QuotaDay,
    left: MailAmount,
}

/// Mail that was counted and is not stored yet.
pub(crate) struct CountedMail {
    tenant: TenantId,
    day: QuotaDay,
    quota: DailyQuota,
}

impl QuotaLeases {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, held: Mutex::default() }
    }

    /// Counts mail of a tenant against its quota; `None` if it has none.
    pub(crate) async fn count(
        &self,
        tenant: &TenantId,
        quota: &DailyQuota,
        amount: MailAmount,
        now: Time,
    ) -> Result<Option<CountedMail>, Refusal> {
        if quota.is_unlimited() {
            return Ok(None);
        }
        let (day, amount) = (QuotaDay::of(now), quota.bounded(amount));
        let reserved = self.reserve(tenant, day, amount);
        let missing = amount.without(reserved);
        if missing != MailAmount::default() && !self.lease(tenant, quota, day, missing, now).await? {
            self.put(tenant, day, reserved);
            metrics::counter!("postway_quota_refused_total").increment(1);
            return Err(over_quota(quota, amount, day, now));
        }
        Ok(Some(CountedMail { tenant: tenant.clone(), day, quota: *quota }))
    }

    /// Gives back mail that was counted and not stored.
    pub(crate) fn give_back(&self, counted: &CountedMail, amount: MailAmount) {
        self.put(&counted.tenant, counted.day, counted.quota.bounded(amount));
    }

    /// Leases what a call needs with a part in advance, or else exactly that; false if there is too little.
    async fn lease(
        &self,
        tenant: &TenantId,
        quota: &DailyQuota,
        day: QuotaDay,
        missing: MailAmount,
        now: Time,
    ) -> Result<bool, StoreError> {
        for ahead in [quota.chunk(), MailAmount::default()] {
            let amount = missing.plus(ahead);
            let lease = QuotaLease { tenant: tenant.clone(), day, amount, quota: *quota };
            if self.store.change(DirectoryChange::LeaseQuota(lease), None).await? == ChangeResult::Done {
                self.put(tenant, day, ahead);
                self.warn(tenant, quota, day, now).await;
                return Ok(true);
            }
        }
        self.warn(tenant, quota, day, now).await;
        Ok(false)
    }

    /// Warns of a quota that is nearly or completely used up, if nobody has. The mail does not depend on it.
    async fn warn(&self, tenant: &TenantId, quota: &DailyQuota, day: QuotaDay, now: Time) {
        let warned = async {
            let found = self.store.quota_use(tenant, day).await?;
            let level = quota.warning(found.used);
            if level <= found.warned {
                return Ok(());
            }
            let entry = AuditEntry {
                id: AuditId::new(now, &mut rand::rng()),
                at: now,
                actor: ACTOR.to_owned(),
                tenant: Some(tenant.clone()),
                action: "tenant.quota_warning".to_owned(),
                target: tenant.to_string(),
                request_id: None,
                detail: Some(
                    json!({
                        "percent": level,
                        "used": { "messages": found.used.messages, "bytes": found.used.bytes,
                                  "recipients": found.used.recipients },
                        "daily_quota": quota,
                    })
                    .to_string(),
                ),
                salt: Some(rand::random()),
            };
            let change = DirectoryChange::WarnOfQuota(tenant.clone(), day, level);
            if self.store.change(change, Some(entry)).await? == ChangeResult::Done {
                metrics::counter!("postway_quota_warnings_total", "percent" => level.to_string())
                    .increment(1);
                tracing::warn!(%tenant, percent = level, "a tenant has used this part of its daily quota");
            }
            Ok::<_, StoreError>(())
        };
        if let Err(error) = warned.await {
            tracing::warn!(%tenant, %error, "the warning about a quota could not be recorded");
        }
    }

    /// Takes what there is of an amount.
    fn reserve(&self, tenant: &TenantId, day: QuotaDay, amount: MailAmount) -> MailAmount {
        let mut held = self.held();
        let Some(held) = held.get_mut(tenant).filter(|held| held.day == day) else {
            return MailAmount::default();
        };
        let taken = held.left.shared(amount);
        held.left = held.left.without(taken);
        taken
    }

    /// Adds to what this node holds. Of another day nothing is held any more.
    fn put(&self, tenant: &TenantId, day: QuotaDay, amount: MailAmount) {
        if amount == MailAmount::default() {
            return;
        }
        let mut held = self.held();
        let fresh = HeldQuota { day, left: MailAmount::default() };
        let held = held.entry(tenant.clone()).or_insert(fresh);
        if held.day < day {
            *held = HeldQuota { day, left: MailAmount::default() };
        }
        if held.day == day {
            held.left = held.left.plus(amount);
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TenantId, HeldQuota>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn over_quota(quota: &DailyQuota, amount: MailAmount, day: QuotaDay, now: Time) -> Refusal {
    let retry_after_s = u64::try_from((day.end().as_millis() - now.as_millis()) / 1_000).unwrap_or(0) + 1;
    let message = match quota.first_exceeded(amount) {
        Some((name, bound)) => {
            format!("this is more than the tenant's daily quota of {bound} {name}: hand over less, or raise daily_quota")
        }
        None => "the tenant's daily quota is used up: try again when the next day (UTC) begins, or raise daily_quota"
            .to_owned(),
    };
    Refusal::OverQuota { message, retry_after_s }
}

#[cfg(test)]
mod tests {
    use postway_store::memory::MemoryStore;

    use super::*;

    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

    fn amount(messages: u64) -> MailAmount {
        MailAmount { messages, bytes: messages * 1_000, recipients: messages }
    }

    fn tenant() -> TenantId {
        "acme".parse().unwrap()
    }

    fn at(day: i64) -> Time {
        Time::from_millis(day * DAY_MS + 1)
    }

    async fn taken(leases: &QuotaLeases, quota: &DailyQuota, day: i64, each: u64) -> u64 {
        let mut taken = 0;
        while leases.count(&tenant(), quota, amount(each), at(day)).await.is_ok() {
            taken += each;
        }
        taken
    }

    #[tokio::test]
    async fn two_nodes_accept_a_quota_together_and_no_more() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let quota = DailyQuota { messages: Some(1_000), ..DailyQuota::default() };
        let [one, two] = [(); 2].map(|()| QuotaLeases::new(store.clone()));
        let first = one.count(&tenant(), &quota, amount(1), at(1)).await.unwrap().unwrap();
        let by_two = taken(&two, &quota, 1, 1).await;
        let by_one = taken(&one, &quota, 1, 1).await;
        assert_eq!(1 + by_one + by_two, 1_000, "the last ones are leased exactly");
        assert_eq!(store.quota_use(&tenant(), QuotaDay(1)).await.unwrap().used.messages, 1_000);
        one.give_back(&first, amount(1));
        assert_eq!(taken(&one, &quota, 1, 1).await, 1, "what was not stored is free again");
        assert_eq!(taken(&two, &quota, 2, 7).await, 994, "the next day begins anew; a call fits as a whole");
        let audit = store.audit(Some(&tenant()), None, 99).await.unwrap();
        let warned: Vec<_> = audit.iter().filter_map(|entry| entry.detail.as_deref()).collect();
        assert!(audit.iter().all(|entry| entry.action == "tenant.quota_warning"));
        let of = |percent: &str| warned.iter().filter(|detail| detail.contains(percent)).count();
        assert_eq!((of("\"percent\":80"), of("\"percent\":100")), (2, 1), "{warned:?}");
    }

    #[tokio::test]
    async fn a_refusal_says_when_to_come_back_and_a_tenant_without_a_quota_is_not_counted() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let leases = QuotaLeases::new(store.clone());
        assert!(leases.count(&tenant(), &DailyQuota::default(), amount(9), at(1)).await.unwrap().is_none());
        assert!(leases.held().is_empty());
        let quota = DailyQuota { recipients: Some(5), ..DailyQuota::default() };
        let refused = leases.count(&tenant(), &quota, amount(6), at(1)).await.err().unwrap();
        let Refusal::OverQuota { message, retry_after_s } = refused else { panic!("{refused:?}") };
        assert!(message.contains("5 recipients") && retry_after_s == 86_400, "{message} {retry_after_s}");
        assert!(leases.count(&tenant(), &quota, amount(5), at(1)).await.is_ok());
    }
}
