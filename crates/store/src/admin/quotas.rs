//! What tenants have used of their daily quotas.
//!
//! A lease raises the numbers of a day in one statement that also checks them, so that no two nodes lease the
//! same part. What a node leased and did not use when it ended stays counted.

use postway_domain::{
    TenantId,
    quota::{DailyQuota, MailAmount, QuotaDay},
};

use crate::{
    error::StoreError,
    record::{ChangeResult, QuotaLease, QuotaUse},
    sql::{SqlSession, SqlText, values},
};

/// How many days are kept.
pub(crate) const DAYS_KEPT: i64 = 7;

const OPEN: SqlText = SqlText::or_mysql(
    "INSERT INTO quota_use (tenant, day, messages, bytes, recipients, warned) VALUES (?, ?, 0, 0, 0, 0) \
     ON CONFLICT DO NOTHING",
    "INSERT INTO quota_use (tenant, day, messages, bytes, recipients, warned) VALUES (?, ?, 0, 0, 0, 0) \
     ON DUPLICATE KEY UPDATE warned = warned",
);
const LEASE: SqlText = SqlText::same(
    "UPDATE quota_use SET messages = messages + ?, bytes = bytes + ?, recipients = recipients + ? \
     WHERE tenant = ? AND day = ? AND messages <= ? AND bytes <= ? AND recipients <= ?",
);
const WARN: SqlText =
    SqlText::same("UPDATE quota_use SET warned = ? WHERE tenant = ? AND day = ? AND warned < ?");
const READ: SqlText =
    SqlText::same("SELECT messages, bytes, recipients, warned FROM quota_use WHERE tenant = ? AND day = ?");
const FORGET: SqlText = SqlText::same("DELETE FROM quota_use WHERE day < ?");
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[OPEN, LEASE, WARN, READ, FORGET];

/// Leases an amount; [`ChangeResult::Stale`] if the quota does not have it any more.
pub(crate) async fn lease(
    session: &mut dyn SqlSession,
    lease: &QuotaLease,
) -> Result<ChangeResult, StoreError> {
    let QuotaLease { tenant, day, amount, quota } = lease;
    session.execute(OPEN, values![tenant.as_str(), day.0]).await?;
    // Before the lease, each number may be at most what leaves room for it.
    let Some([messages, bytes, recipients]) = room(quota, *amount) else { return Ok(ChangeResult::Stale) };
    let added = [amount.messages, amount.bytes, amount.recipients].map(|number| number as i64);
    let values = values![added[0], added[1], added[2], tenant.as_str(), day.0, messages, bytes, recipients];
    let leased = session.execute(LEASE, values).await? > 0;
    Ok(if leased { ChangeResult::Done } else { ChangeResult::Stale })
}

/// The most that each number may be before this amount is added; `None` if it is more than the whole quota.
fn room(quota: &DailyQuota, amount: MailAmount) -> Option<[i64; 3]> {
    let of = |bound: Option<u64>, amount: u64| {
        let bound = bound.unwrap_or(i64::MAX as u64);
        bound.checked_sub(amount).and_then(|room| i64::try_from(room).ok())
    };
    Some([
        of(quota.messages, amount.messages)?,
        of(quota.bytes, amount.bytes)?,
        of(quota.recipients, amount.recipients)?,
    ])
}

/// Records that the operator is warned of this level; [`ChangeResult::Already`] if that was done.
pub(crate) async fn warn(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    day: QuotaDay,
    level: u8,
) -> Result<ChangeResult, StoreError> {
    let level = u32::from(level);
    let warned = session.execute(WARN, values![level, tenant.as_str(), day.0, level]).await? > 0;
    Ok(if warned { ChangeResult::Done } else { ChangeResult::Already })
}

/// What is leased of a day.
pub(crate) async fn find(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    day: QuotaDay,
) -> Result<QuotaUse, StoreError> {
    let rows = session.rows(READ, values![tenant.as_str(), day.0]).await?;
    let Some(row) = rows.first() else { return Ok(QuotaUse::default()) };
    let number = |at| row.int(at).map(|number| u64::try_from(number).unwrap_or(0));
    let used = MailAmount { messages: number(0)?, bytes: number(1)?, recipients: number(2)? };
    Ok(QuotaUse { used, warned: u8::try_from(row.int(3)?).unwrap_or(u8::MAX) })
}

/// Removes days long past.
pub(crate) async fn forget(session: &mut dyn SqlSession, today: QuotaDay) -> Result<(), StoreError> {
    session.execute(FORGET, values![today.0 - DAYS_KEPT]).await.map(drop)
}
