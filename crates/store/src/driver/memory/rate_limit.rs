//! What accounts have used of their limits.

use std::collections::BTreeMap;

use postway_domain::{AccountLimits, LimitSpan, Time};

use super::admin::MemoryDirectory;
use crate::{
    queue::rate_limit::{self, Allowances, ON_ITS_WAY_MAX},
    record::{AccountKey, ChangeResult, LimitUse, MessageChange, SendingPermit},
};

impl MemoryDirectory {
    /// Makes room for an account's limits in a transaction.
    pub fn open(&self, allowances: &mut Allowances, key: &AccountKey, limits: AccountLimits, now: Time) {
        if allowances.needs(key, &limits) {
            allowances.add(key.clone(), limits, now, |span| self.used(key, span, now).count);
            allowances.check_time(key, self.clock_bounds);
        }
    }

    pub fn debit(&mut self, allowances: &Allowances) {
        for (bucket, taken) in allowances.debits() {
            *self.spent.entry(bucket.clone()).or_default() += i64::from(taken);
        }
    }

    pub fn refund<'c>(&mut self, written: impl Iterator<Item = &'c MessageChange>) {
        for (bucket, count) in rate_limit::refunds(written) {
            if let Some(used) = self.spent.get_mut(&bucket) {
                *used = (*used - count).max(0);
            }
        }
    }

    /// See [`DirectoryChange::ForgetUse`].
    pub(super) fn forget_use(&mut self, now: Time, limit: usize) -> ChangeResult {
        if !self.clock_bounds.allows(now) {
            return ChangeResult::Already;
        }
        self.clock_bounds = self.clock_bounds.at(now);
        let counts_no_more =
            |(_, span, bucket): &&(AccountKey, LimitSpan, i64)| *bucket < span.oldest_counted(now);
        let old: Vec<_> = self.spent.keys().filter(counts_no_more).take(limit).cloned().collect();
        for bucket in &old {
            self.spent.remove(bucket);
        }
        if old.is_empty() { ChangeResult::Already } else { ChangeResult::Done }
    }

    /// See [`DirectoryChange::ShiftUse`].
    pub(super) fn shift_use(&mut self, now: Time, by_ms: i64) -> ChangeResult {
        self.clock_bounds = self.clock_bounds.set_forward(now, by_ms);
        let moved = |((key, span, bucket), used): ((AccountKey, LimitSpan, i64), i64)| {
            let counts =
                bucket >= span.oldest_counted(now) && bucket <= span.latest(now.plus(ON_ITS_WAY_MAX));
            ((key, span, if counts { bucket + span.buckets(by_ms) } else { bucket }), used)
        };
        let mut spent = BTreeMap::new();
        for (bucket, used) in std::mem::take(&mut self.spent).into_iter().map(moved) {
            *spent.entry(bucket).or_default() += used;
        }
        self.spent = spent;
        ChangeResult::Done
    }

    /// See [`DirectoryChange::SetUseBack`].
    pub(super) fn set_use_back(&mut self, now: Time, by_ms: i64) -> ChangeResult {
        self.clock_bounds = self.clock_bounds.set_back(now, by_ms);
        self.redate_use(now)
    }

    /// See [`DirectoryChange::RedateUse`].
    pub(super) fn redate_use(&mut self, now: Time) -> ChangeResult {
        if !self.clock_bounds.allows(now) {
            return ChangeResult::Stale;
        }
        let (by_now, mut spent) = (now.plus(ON_ITS_WAY_MAX), BTreeMap::new());
        for ((key, span, bucket), used) in std::mem::take(&mut self.spent) {
            let bucket = if bucket > span.latest(by_now) { span.bucket(by_now) } else { bucket };
            *spent.entry((key, span, bucket)).or_default() += used;
        }
        self.spent = spent;
        ChangeResult::Done
    }

    /// See [`DirectoryChange::RenewPermit`].
    pub(super) fn renew(&mut self, permit: &SendingPermit, now: Time) -> ChangeResult {
        if permit.renewed(now).is_none() || !self.clock_bounds.allows(now) {
            return ChangeResult::Stale;
        }
        let place = |span: LimitSpan, at: Time| (permit.key.clone(), span, span.bucket(at));
        let counts =
            |span: &LimitSpan| self.spent.get(&place(*span, permit.debited_at)).is_some_and(|used| *used > 0);
        // Its debit was moved, because the clock was set.
        if !permit.spans.iter().all(counts) {
            return ChangeResult::Stale;
        }
        for &span in &permit.spans {
            *self.spent.entry(place(span, permit.debited_at)).or_default() -= 1;
            *self.spent.entry(place(span, now)).or_default() += 1;
        }
        ChangeResult::Done
    }

    pub fn used(&self, key: &AccountKey, span: LimitSpan, now: Time) -> LimitUse {
        let counted = |bucket: &i64| *bucket >= span.oldest_counted(now);
        let buckets = self
            .spent
            .iter()
            .filter(|((of, over, bucket), used)| of == key && *over == span && counted(bucket) && **used > 0);
        let (mut count, mut oldest) = (0, None);
        for ((.., bucket), used) in buckets {
            count += used;
            oldest = Some(oldest.map_or(*bucket, |oldest: i64| oldest.min(*bucket)));
        }
        LimitUse { count, frees_at: oldest.map(|bucket| span.counts_until(bucket)) }
    }

    pub fn used_of(&self, key: &AccountKey, limits: &AccountLimits, now: Time) -> Vec<(LimitSpan, LimitUse)> {
        limits.spans().map(|span| (span, self.used(key, span, now))).collect()
    }
}
