//! Limits, debited in the transaction that leases: the same for every SQL database.
//!
//! A transaction that debits an account locks its lock row first, so that no two transactions, on whichever
//! node, grant the same permit. Buckets and windows are the domain's ([`postway_domain::limit`]); which clocks
//! may debit, [`clock_bounds`] says.

mod clock_bounds;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use postway_domain::{AccountLimits, LimitSpan, Time};

pub(crate) use self::clock_bounds::ClockBounds;
use crate::{
    error::StoreError,
    record::{AccountKey, AccountWant, ChangeResult, LimitUse, MessageChange, SendingPermit},
    sql::{SqlSession, SqlText, decode, values},
};

const LOCK: SqlText = SqlText::or_mysql(
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, 0, 0, 1) \
     ON CONFLICT (tenant, account, span, bucket) DO UPDATE SET used = spent.used + 1",
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, 0, 0, 1) \
     ON DUPLICATE KEY UPDATE used = used + 1",
);
/// The use of one account, and the bounds of clocks.
const USED: SqlText = SqlText::or_mysql(
    "SELECT span, CAST(SUM(used) AS BIGINT), MIN(bucket) FROM spent WHERE tenant = ? AND account = ? AND used > 0 \
     AND ((span = 1 AND bucket >= ?) OR (span = 2 AND bucket >= ?) OR (span = 3 AND bucket >= ?)) GROUP BY span \
     UNION ALL SELECT span, used, bucket FROM spent WHERE tenant = '' AND account = '' AND span > 3",
    "SELECT span, CAST(SUM(used) AS SIGNED), MIN(bucket) FROM spent WHERE tenant = ? AND account = ? AND used > 0 \
     AND ((span = 1 AND bucket >= ?) OR (span = 2 AND bucket >= ?) OR (span = 3 AND bucket >= ?)) GROUP BY span \
     UNION ALL SELECT span, used, bucket FROM spent WHERE tenant = '' AND account = '' AND span > 3",
);
const DEBIT: SqlText = SqlText::or_mysql(
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, ?, ?, ?) \
     ON CONFLICT (tenant, account, span, bucket) DO UPDATE SET used = spent.used + excluded.used",
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, ?, ?, ?) \
     ON DUPLICATE KEY UPDATE used = used + VALUES(used)",
);
const REFUND: SqlText = SqlText::same(
    "UPDATE spent SET used = used - ? WHERE tenant = ? AND account = ? AND span = ? AND bucket = ? AND used >= ?",
);
const FORGET: SqlText = SqlText::or_mysql(
    "DELETE FROM spent WHERE (tenant, account, span, bucket) IN (SELECT tenant, account, span, bucket FROM spent \
     WHERE span = ? AND bucket < ? ORDER BY span, bucket LIMIT ?)",
    "DELETE FROM spent WHERE span = ? AND bucket < ? ORDER BY span, bucket LIMIT ?",
);
/// In two steps, through numbers that no bucket has: a key must not collide with another that is still to be
/// moved.
const LIFT: SqlText =
    SqlText::same("UPDATE spent SET bucket = -(bucket + ?) WHERE span = ? AND bucket >= ? AND bucket <= ?");
const SET_DOWN: SqlText = SqlText::same("UPDATE spent SET bucket = -bucket WHERE span = ? AND bucket < 0");
const AHEAD: SqlText = SqlText::or_mysql(
    "SELECT tenant, account, CAST(SUM(used) AS BIGINT) FROM spent WHERE span = ? AND bucket > ? GROUP BY tenant, account",
    "SELECT tenant, account, CAST(SUM(used) AS SIGNED) FROM spent WHERE span = ? AND bucket > ? GROUP BY tenant, account",
);
const DROP_AHEAD: SqlText = SqlText::same("DELETE FROM spent WHERE span = ? AND bucket > ?");
#[cfg(test)]
pub(crate) const STATEMENTS: [&[SqlText]; 2] =
    [&[LOCK, USED, DEBIT, REFUND, FORGET, LIFT, SET_DOWN, AHEAD, DROP_AHEAD], clock_bounds::STATEMENTS];

/// How long ago the time of a change may have been read when its transaction runs: others debit meanwhile,
/// and what they debit is neither left behind by a clock that is set nor taken for use of the future.
pub(crate) const ON_ITS_WAY_MAX: Duration = Duration::from_secs(30);

/// What one account may still lease in this transaction.
struct AccountUse {
    limits: AccountLimits,
    now: Time,
    left: u32,
    /// Whether the clock that asks may debit.
    is_on_time: bool,
}

/// An account's use of a span, in a bucket of time.
type Bucket = (AccountKey, LimitSpan, i64);

/// What the accounts of one transaction may still lease, and what they have leased. Accounts that are not
/// here have no limit.
#[derive(Default)]
pub(crate) struct Allowances {
    accounts: BTreeMap<AccountKey, AccountUse>,
    taken: BTreeMap<Bucket, u32>,
}

impl Allowances {
    /// Reads what is left of the limits of an account whose lock is taken, once per transaction.
    pub async fn open(
        &mut self,
        session: &mut dyn SqlSession,
        key: &AccountKey,
        limits: AccountLimits,
        now: Time,
    ) -> Result<(), StoreError> {
        if self.needs(key, &limits) {
            let (used, bounds) = read_used(session, key, now).await?;
            let count = |span| used.iter().find(|(of, _)| *of == span).map_or(0, |(_, used)| used.count);
            self.add(key.clone(), limits, now, count);
            self.check_time(key, bounds);
        }
        Ok(())
    }

    /// Whether these limits were not read yet: they may have changed between two jobs of a group.
    pub fn needs(&self, key: &AccountKey, limits: &AccountLimits) -> bool {
        !limits.is_unlimited() && self.accounts.get(key).is_none_or(|account| account.limits != *limits)
    }

    /// An account with its limit use.
    pub fn add(
        &mut self,
        key: AccountKey,
        limits: AccountLimits,
        now: Time,
        used: impl Fn(LimitSpan) -> i64,
    ) {
        let taken = |span| {
            let of_span = self.taken.iter().filter(|((of, over, _), _)| *of == key && *over == span);
            of_span.map(|(_, taken)| i64::from(*taken)).sum::<i64>()
        };
        let left = limits.left(|span| used(span) + taken(span));
        self.accounts.insert(key, AccountUse { limits, now, left, is_on_time: true });
    }

    /// Grants nothing of an account to a clock that has not heard of the present time.
    pub fn check_time(&mut self, key: &AccountKey, bounds: ClockBounds) {
        if let Some(account) = self.accounts.get_mut(key)
            && !bounds.allows(account.now)
        {
            tracing::debug!("a clock that has not heard of the present time debits no limit");
            (account.left, account.is_on_time) = (0, false);
        }
    }

    /// Whether an account's limits may be debited by the time of this transaction.
    pub fn is_on_time(&self, key: &AccountKey) -> bool {
        self.accounts.get(key).is_none_or(|account| account.is_on_time)
    }

    /// Whether a standing claim may be filled: its limits are those that were read here, and something is
    /// left.
    pub fn covers(&self, want: &AccountWant) -> bool {
        match self.accounts.get(&want.sender()) {
            Some(account) => account.limits == want.limits && account.left > 0,
            None => want.limits.is_unlimited(),
        }
    }

    /// How many more messages an account may lease.
    pub fn left(&self, key: &AccountKey) -> u32 {
        self.accounts.get(key).map_or(u32::MAX, |account| account.left)
    }

    /// Takes a permit. `Ok(None)` if there is no limit, `Err` if nothing is left.
    pub fn take(&mut self, key: &AccountKey) -> Result<Option<SendingPermit>, NothingLeft> {
        let Some(account) = self.accounts.get_mut(key) else { return Ok(None) };
        if account.left == 0 {
            return Err(NothingLeft);
        }
        account.left -= 1;
        let spans: Vec<LimitSpan> = account.limits.spans().collect();
        for span in &spans {
            *self.taken.entry((key.clone(), *span, span.bucket(account.now))).or_default() += 1;
        }
        let use_by = account.limits.use_by(account.now).unwrap_or(account.now);
        Ok(Some(SendingPermit { key: key.clone(), debited_at: account.now, use_by, spans }))
    }

    /// The debits: account, span, bucket, amount.
    pub fn debits(&self) -> impl Iterator<Item = (&Bucket, u32)> {
        self.taken.iter().map(|(bucket, taken)| (bucket, *taken))
    }

    /// Writes the debits.
    pub async fn write(&self, session: &mut dyn SqlSession) -> Result<(), StoreError> {
        for ((key, span, bucket), taken) in &self.taken {
            let values = values![key.tenant.as_str(), key.account.as_str(), span.code(), *bucket, *taken];
            session.execute(DEBIT, values).await?;
        }
        Ok(())
    }
}

/// Takes the locks of all accounts that a transaction may debit or refund: before anything else, and in
/// order, so that transactions never deadlock on them.
pub(crate) async fn lock(session: &mut dyn SqlSession, keys: BTreeSet<AccountKey>) -> Result<(), StoreError> {
    for key in keys {
        session.execute(LOCK, values![key.tenant.as_str(), key.account.as_str()]).await?;
    }
    Ok(())
}

/// A limit is used up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NothingLeft;

/// The amounts to refund, by bucket.
pub(crate) type Refunds = BTreeMap<Bucket, i64>;

/// The refunds of applied changes: account, span, bucket, amount.
pub(crate) fn refunds<'c>(written: impl Iterator<Item = &'c MessageChange>) -> Refunds {
    let mut refunds = BTreeMap::new();
    for permit in written.filter_map(|change| change.refund.as_ref()) {
        for &span in &permit.spans {
            *refunds.entry((permit.key.clone(), span, span.bucket(permit.debited_at))).or_default() += 1;
        }
    }
    refunds
}

/// Refunds unused permits.
pub(crate) async fn refund(session: &mut dyn SqlSession, refunds: Refunds) -> Result<(), StoreError> {
    for ((key, span, bucket), count) in refunds {
        let values = values![count, key.tenant.as_str(), key.account.as_str(), span.code(), bucket, count];
        session.execute(REFUND, values).await?;
    }
    Ok(())
}

/// Moves the limit use that counts now by `by_ms`, because the clock will be set forward: windows stay as
/// full as they are, and no clock debits by the time before.
pub(crate) async fn shift(
    session: &mut dyn SqlSession,
    now: Time,
    by_ms: i64,
) -> Result<ChangeResult, StoreError> {
    clock_bounds::hold_all(session).await?;
    ClockBounds::read(session).await?.set_forward(now, by_ms).write(session).await?;
    for span in LimitSpan::ALL {
        let (oldest, latest) = (span.oldest_counted(now), span.latest(now.plus(ON_ITS_WAY_MAX)));
        let values = values![span.buckets(by_ms), span.code(), oldest, latest];
        session.execute(LIFT, values).await?;
        session.execute(SET_DOWN, values![span.code()]).await?;
    }
    Ok(ChangeResult::Done)
}

/// As [`redate`], by a clock that all others follow and that was set back by `by_ms`: no clock debits by the
/// time that it left.
pub(crate) async fn set_back(
    session: &mut dyn SqlSession,
    now: Time,
    by_ms: i64,
) -> Result<ChangeResult, StoreError> {
    clock_bounds::hold_all(session).await?;
    ClockBounds::read(session).await?.set_back(now, by_ms).write(session).await?;
    redate_ahead(session, now).await
}

/// Counts debits dated in the future as debited now, because the clock was set back: they count for a window
/// from about now on, not until the clock is there again. Stale if it is this clock that is wrong.
pub(crate) async fn redate(session: &mut dyn SqlSession, now: Time) -> Result<ChangeResult, StoreError> {
    if ClockBounds::read(session).await?.allows(now) {
        return redate_ahead(session, now).await;
    }
    Ok(ChangeResult::Stale)
}

async fn redate_ahead(session: &mut dyn SqlSession, now: Time) -> Result<ChangeResult, StoreError> {
    let by_now = now.plus(ON_ITS_WAY_MAX);
    for span in LimitSpan::ALL {
        let latest = values![span.code(), span.latest(by_now)];
        let ahead = session.rows(AHEAD, latest.clone()).await?;
        for row in &ahead {
            let values = values![row.text(0)?, row.text(1)?, span.code(), span.bucket(by_now), row.int(2)?];
            session.execute(DEBIT, values).await?;
        }
        if !ahead.is_empty() {
            session.execute(DROP_AHEAD, latest).await?;
        }
    }
    Ok(ChangeResult::Done)
}

/// Moves the debit of an unused permit to now. The total does not change, whatever other transactions do:
/// nothing need be read.
pub(crate) async fn renew(
    session: &mut dyn SqlSession,
    permit: &SendingPermit,
    now: Time,
) -> Result<ChangeResult, StoreError> {
    if permit.renewed(now).is_none() {
        return Ok(ChangeResult::Stale);
    }
    let key = &permit.key;
    lock(session, BTreeSet::from([key.clone()])).await?;
    if !ClockBounds::read(session).await?.allows(now) {
        return Ok(ChangeResult::Stale);
    }
    for &span in &permit.spans {
        let (from, to) = (span.bucket(permit.debited_at), span.bucket(now));
        let place = |bucket: i64| values![key.tenant.as_str(), key.account.as_str(), span.code(), bucket];
        let taken = session.execute(REFUND, [values![1i64], place(from), values![1i64]].concat()).await?;
        if taken == 0 {
            return Err(StoreError::Unexpected("the debit of a permit is gone".into()));
        }
        session.execute(DEBIT, [place(to), values![1i64]].concat()).await?;
    }
    Ok(ChangeResult::Done)
}

async fn read_used(
    session: &mut dyn SqlSession,
    key: &AccountKey,
    now: Time,
) -> Result<(Vec<(LimitSpan, LimitUse)>, ClockBounds), StoreError> {
    let oldest = LimitSpan::ALL.map(|span| span.oldest_counted(now));
    let values = values![key.tenant.as_str(), key.account.as_str(), oldest[0], oldest[1], oldest[2]];
    let (mut used, mut bounds) = (Vec::new(), ClockBounds::default());
    for row in session.rows(USED, values).await? {
        if !bounds.note(&row)? {
            let span = decode::coded(row.int(0)?, LimitSpan::from_code)?;
            let frees_at = row.opt_int(2)?.map(|bucket| span.counts_until(bucket));
            used.push((span, LimitUse { count: row.int(1)?, frees_at }));
        }
    }
    Ok((used, bounds))
}

/// An account's use of its limits.
pub(crate) async fn used(
    session: &mut dyn SqlSession,
    key: &AccountKey,
    limits: &AccountLimits,
    now: Time,
) -> Result<Vec<(LimitSpan, LimitUse)>, StoreError> {
    let (found, _) = read_used(session, key, now).await?;
    let of = |span| found.iter().find(|(of, _)| *of == span).map_or(LimitUse::default(), |(_, used)| *used);
    Ok(limits.spans().map(|span| (span, of(span))).collect())
}

/// Deletes up to `limit` of the oldest buckets that do not count any more. [`Changed::Already`] if none is
/// left.
pub(crate) async fn forget(
    session: &mut dyn SqlSession,
    now: Time,
    limit: u32,
) -> Result<ChangeResult, StoreError> {
    let bounds = ClockBounds::read(session).await?;
    if !bounds.allows(now) {
        return Ok(ChangeResult::Already);
    }
    if bounds.at(now) != bounds {
        bounds.at(now).write(session).await?;
    }
    let mut left = u64::from(limit);
    for span in LimitSpan::ALL {
        let oldest = span.oldest_counted(now);
        left -= session.execute(FORGET, values![span.code(), oldest, left as i64]).await?.min(left);
    }
    Ok(if left < u64::from(limit) { ChangeResult::Done } else { ChangeResult::Already })
}
