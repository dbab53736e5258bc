//! Reading the hourly counters, which fan-out writes.

use postway_domain::{TenantId, Time};

use crate::{
    error::StoreError,
    record::{HourlyCounts, StatisticsRow},
    sql::{Row, SqlSession, SqlText, values},
};

pub(crate) const LIST: SqlText = SqlText::same(
    "SELECT hour, tenant, account, accepted, sent, failed, invalid, deferred, bounced, complained, suppressed, \
     queue_ms FROM statistic WHERE tenant = ? AND hour >= ? AND hour < ? ORDER BY hour, account",
);
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[LIST];

/// A tenant's hours that begin in this period, for each account.
pub(crate) async fn list(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    since: Time,
    until: Time,
) -> Result<Vec<StatisticsRow>, StoreError> {
    let rows = session.rows(LIST, values![tenant.as_str(), since, until]).await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<StatisticsRow, StoreError> {
    let counts = HourlyCounts {
        accepted: row.int(3)?,
        sent: row.int(4)?,
        failed: row.int(5)?,
        invalid: row.int(6)?,
        deferred: row.int(7)?,
        bounced: row.int(8)?,
        complained: row.int(9)?,
        suppressed: row.int(10)?,
        queue_ms: row.int(11)?,
    };
    Ok(StatisticsRow { hour: row.time(0)?, tenant: row.parsed(1)?, account: row.parsed(2)?, counts })
}
