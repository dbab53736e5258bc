//! Limits, debited in the transaction that leases: the same for every SQL database.
//!
//! Whoever debits an account first takes its lock row, so that no two transactions, on whichever node, grant the same
//! permit. Buckets and windows are the domain's ([`postway_domain::limit`]).

use std::collections::BTreeMap;

use postway_domain::{AccountLimits, Span, Time};

use crate::{
    decode,
    error::StoreError,
    record::{AccountKey, Change, Permit, Used},
    sql::{Session, Sql, values},
};

const LOCK: Sql = Sql::or_mysql(
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, 0, 0, 1) \
     ON CONFLICT (tenant, account, span, bucket) DO UPDATE SET used = spent.used + 1",
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, 0, 0, 1) \
     ON DUPLICATE KEY UPDATE used = used + 1",
);
const USED: Sql = Sql::or_mysql(
    "SELECT span, CAST(SUM(used) AS BIGINT), MIN(bucket) FROM spent WHERE tenant = ? AND account = ? AND used > 0 \
     AND ((span = 1 AND bucket >= ?) OR (span = 2 AND bucket >= ?) OR (span = 3 AND bucket >= ?)) GROUP BY span",
    "SELECT span, CAST(SUM(used) AS SIGNED), MIN(bucket) FROM spent WHERE tenant = ? AND account = ? AND used > 0 \
     AND ((span = 1 AND bucket >= ?) OR (span = 2 AND bucket >= ?) OR (span = 3 AND bucket >= ?)) GROUP BY span",
);
const DEBIT: Sql = Sql::or_mysql(
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, ?, ?, ?) \
     ON CONFLICT (tenant, account, span, bucket) DO UPDATE SET used = spent.used + excluded.used",
    "INSERT INTO spent (tenant, account, span, bucket, used) VALUES (?, ?, ?, ?, ?) \
     ON DUPLICATE KEY UPDATE used = used + VALUES(used)",
);
const REFUND: Sql = Sql::same(
    "UPDATE spent SET used = used - ? WHERE tenant = ? AND account = ? AND span = ? AND bucket = ? AND used >= ?",
);
const FORGET: Sql = Sql::same("DELETE FROM spent WHERE span = ? AND bucket < ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[Sql] = &[LOCK, USED, DEBIT, REFUND, FORGET];

/// What one account may still lease in this transaction.
struct Account {
    limits: AccountLimits,
    now: Time,
    left: u32,
    taken: u32,
}

/// What the accounts of one transaction may still lease. Accounts that are not here have no limit.
#[derive(Default)]
pub(crate) struct Allowances(BTreeMap<AccountKey, Account>);

impl Allowances {
    /// Takes an account's lock and reads what is left of its limits, once per transaction.
    pub async fn open(
        &mut self,
        session: &mut dyn Session,
        key: &AccountKey,
        limits: AccountLimits,
        now: Time,
    ) -> Result<(), StoreError> {
        if limits.is_unlimited() || self.knows(key) {
            return Ok(());
        }
        session.execute(LOCK, values![key.tenant.as_str(), key.account.as_str()]).await?;
        let used = read_used(session, key, now).await?;
        let count = |span| used.iter().find(|(of, _)| *of == span).map_or(0, |(_, used)| used.count);
        self.add(key.clone(), limits, now, limits.left(count));
        Ok(())
    }

    /// An account of which this much is left.
    pub fn add(&mut self, key: AccountKey, limits: AccountLimits, now: Time, left: u32) {
        self.0.insert(key, Account { limits, now, left, taken: 0 });
    }

    /// Whether this account's limits were read already.
    pub fn knows(&self, key: &AccountKey) -> bool {
        self.0.contains_key(key)
    }

    /// How many more messages an account may lease.
    pub fn left(&self, key: &AccountKey) -> u32 {
        self.0.get(key).map_or(u32::MAX, |account| account.left)
    }

    /// Takes a permit. `Ok(None)` where there is no limit, `Err` where nothing is left.
    pub fn take(&mut self, key: &AccountKey) -> Result<Option<Permit>, NothingLeft> {
        let Some(account) = self.0.get_mut(key) else { return Ok(None) };
        if account.left == 0 {
            return Err(NothingLeft);
        }
        account.left -= 1;
        account.taken += 1;
        let spans = account.limits.spans().collect();
        let use_by = account.limits.use_by(account.now).unwrap_or(account.now);
        Ok(Some(Permit { key: key.clone(), debited_at: account.now, use_by, spans }))
    }

    /// What was taken: account, span, bucket, how much.
    pub fn debits(&self) -> impl Iterator<Item = (&AccountKey, Span, i64, u32)> {
        self.0.iter().filter(|(_, account)| account.taken > 0).flat_map(|(key, account)| {
            let spans = account.limits.spans();
            spans.map(move |span| (key, span, span.bucket(account.now), account.taken))
        })
    }

    /// Writes what was taken.
    pub async fn write(&self, session: &mut dyn Session) -> Result<(), StoreError> {
        let debits: Vec<_> =
            self.debits().map(|(key, span, bucket, taken)| (key.clone(), span, bucket, taken)).collect();
        for (key, span, bucket, taken) in debits {
            let values = values![key.tenant.as_str(), key.account.as_str(), span.code(), bucket, taken];
            session.execute(DEBIT, values).await?;
        }
        Ok(())
    }
}

/// A limit is used up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NothingLeft;

/// How much goes back into which bucket.
pub(crate) type Refunds = BTreeMap<(AccountKey, Span, i64), i64>;

/// What the changes that were written give back: account, span, bucket, how much.
pub(crate) fn refunds<'c>(written: impl Iterator<Item = &'c Change>) -> Refunds {
    let mut refunds = BTreeMap::new();
    for permit in written.filter_map(|change| change.refund.as_ref()) {
        for &span in &permit.spans {
            *refunds.entry((permit.key.clone(), span, span.bucket(permit.debited_at))).or_default() += 1;
        }
    }
    refunds
}

/// Gives permits back that were not used.
pub(crate) async fn refund(session: &mut dyn Session, refunds: Refunds) -> Result<(), StoreError> {
    for ((key, span, bucket), count) in refunds {
        let values = values![count, key.tenant.as_str(), key.account.as_str(), span.code(), bucket, count];
        session.execute(REFUND, values).await?;
    }
    Ok(())
}

async fn read_used(
    session: &mut dyn Session,
    key: &AccountKey,
    now: Time,
) -> Result<Vec<(Span, Used)>, StoreError> {
    let oldest = Span::ALL.map(|span| span.oldest_counted(now));
    let values = values![key.tenant.as_str(), key.account.as_str(), oldest[0], oldest[1], oldest[2]];
    let read = |row: &crate::sql::Row| {
        let span = decode::coded(row.int(0)?, Span::from_code)?;
        let frees_at = row.opt_int(2)?.map(|bucket| span.counts_until(bucket));
        Ok((span, Used { count: row.int(1)?, frees_at }))
    };
    session.rows(USED, values).await?.iter().map(read).collect()
}

/// What an account has used of its limits.
pub(crate) async fn used(
    session: &mut dyn Session,
    key: &AccountKey,
    limits: &AccountLimits,
    now: Time,
) -> Result<Vec<(Span, Used)>, StoreError> {
    let found = read_used(session, key, now).await?;
    let of = |span| found.iter().find(|(of, _)| *of == span).map_or(Used::default(), |(_, used)| *used);
    Ok(limits.spans().map(|span| (span, of(span))).collect())
}

/// Deletes what counts no more.
pub(crate) async fn forget(session: &mut dyn Session, now: Time) -> Result<(), StoreError> {
    for span in Span::ALL {
        session.execute(FORGET, values![span.code(), span.oldest_counted(now)]).await?;
    }
    Ok(())
}
