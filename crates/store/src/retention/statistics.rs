//! Reading the hourly counters, which fan-out writes.

use postway_domain::{TenantId, Time, id::StreamId};

use crate::{
    error::StoreError,
    record::{HourlyCounts, StatisticsRow, StreamCounts, StreamStatisticsRow},
    sql::{Row, SqlSession, SqlText, values},
};

pub(crate) const LIST: SqlText = SqlText::same(
    "SELECT hour, tenant, account, accepted, sent, failed, invalid, deferred, bounced, complained, suppressed, \
     queue_ms FROM statistic WHERE tenant = ? AND hour >= ? AND hour < ? ORDER BY hour, account",
);
pub(crate) const LIST_OF_STREAM: SqlText = SqlText::same(
    "SELECT hour, tenant, stream, accepted, sent, failed, suppressed, delivered, bounced, complained, unsubscribed, \
     resubscribed FROM stream_statistic WHERE tenant = ? AND stream = ? AND hour >= ? AND hour < ? ORDER BY hour",
);
pub(crate) const NEWEST_OF_STREAMS: SqlText = SqlText::same(
    "SELECT hour, tenant, stream, accepted, sent, failed, suppressed, delivered, bounced, complained, unsubscribed, \
     resubscribed FROM stream_statistic WHERE hour >= ? ORDER BY hour DESC LIMIT ?",
);
/// The most hours of streams that are read to find the busiest.
const HOURS_READ_MAX: u32 = 20_000;
#[cfg(test)]
pub(crate) const STATEMENTS: &[SqlText] = &[LIST, LIST_OF_STREAM, NEWEST_OF_STREAMS];

/// The streams that sent most since then.
pub(crate) async fn busiest(
    session: &mut dyn SqlSession,
    since: Time,
    limit: u32,
) -> Result<Vec<StreamStatisticsRow>, StoreError> {
    let rows = session.rows(NEWEST_OF_STREAMS, values![since, HOURS_READ_MAX]).await?;
    let rows: Vec<StreamStatisticsRow> = rows.iter().map(read_of_stream).collect::<Result<_, _>>()?;
    Ok(StreamStatisticsRow::busiest(rows, since, limit))
}

/// A stream's hours that begin in this period.
pub(crate) async fn list_of_stream(
    session: &mut dyn SqlSession,
    tenant: &TenantId,
    stream: &StreamId,
    since: Time,
    until: Time,
) -> Result<Vec<StreamStatisticsRow>, StoreError> {
    let values = values![tenant.as_str(), stream.as_str(), since, until];
    session.rows(LIST_OF_STREAM, values).await?.iter().map(read_of_stream).collect()
}

fn read_of_stream(row: &Row) -> Result<StreamStatisticsRow, StoreError> {
    let counts = StreamCounts {
        accepted: row.int(3)?,
        sent: row.int(4)?,
        failed: row.int(5)?,
        suppressed: row.int(6)?,
        delivered: row.int(7)?,
        bounced: row.int(8)?,
        complained: row.int(9)?,
        unsubscribed: row.int(10)?,
        resubscribed: row.int(11)?,
    };
    Ok(StreamStatisticsRow { hour: row.time(0)?, tenant: row.parsed(1)?, stream: row.parsed(2)?, counts })
}

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
