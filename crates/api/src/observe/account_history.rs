//! `GET /v1/statistics`: what a tenant's accounts did, by hour or day. The counts remain after the messages
//! are removed.

use std::{collections::BTreeMap, time::Duration};

use axum::{Json, extract::State, http::Uri};
use postway_domain::{AccountId, Time};
use postway_store::record::{HourlyCounts, StatisticsRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    http::{
        error::{ApiError, FieldError},
        pagination::ListPart,
        query::QueryParameters,
    },
    state::SharedState,
};

/// The length of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum HistoryPeriod {
    Hour,
    Day,
}

impl HistoryPeriod {
    const fn length(self) -> Duration {
        match self {
            HistoryPeriod::Hour => Duration::from_secs(3_600),
            HistoryPeriod::Day => Duration::from_secs(86_400),
        }
    }

    /// How far back the list goes by default.
    const fn span(self) -> Duration {
        match self {
            HistoryPeriod::Hour => Duration::from_secs(86_400),
            HistoryPeriod::Day => Duration::from_secs(30 * 86_400),
        }
    }

    /// The longest time range of one call, in days.
    const fn days_max(self) -> u64 {
        match self {
            HistoryPeriod::Hour => 31,
            HistoryPeriod::Day => 366,
        }
    }

    /// The beginning of the period.
    pub(super) fn begin(self, at: Time) -> Time {
        let length = self.length().as_millis() as i64;
        Time::from_millis(at.as_millis().div_euclid(length) * length)
    }
}

/// The time range of a call, as it was asked for.
pub(super) struct AskedSpan {
    by: Option<HistoryPeriod>,
    since: Option<Time>,
    until: Option<Time>,
}

/// The time range of a call.
pub(super) struct HistorySpan {
    pub(super) by: HistoryPeriod,
    pub(super) since: Time,
    pub(super) until: Time,
}

impl HistorySpan {
    pub(super) fn take(query: &mut QueryParameters) -> AskedSpan {
        let by = query.parse("by", |text| match text {
            "hour" => Ok(HistoryPeriod::Hour),
            "day" => Ok(HistoryPeriod::Day),
            _ => Err("must be hour or day"),
        });
        AskedSpan {
            by,
            since: query.parse("since", str::parse::<Time>),
            until: query.parse("until", str::parse::<Time>),
        }
    }
}

impl AskedSpan {
    /// The range, unless it is too long for one call.
    pub(super) fn within(self, now: Time) -> Result<HistorySpan, ApiError> {
        let by = self.by.unwrap_or(HistoryPeriod::Hour);
        // The current hour counts too.
        let until = self.until.unwrap_or_else(|| now.plus(Duration::from_millis(1)));
        let since = by.begin(self.since.unwrap_or_else(|| until.minus(by.span())));
        if until.since(since) > Duration::from_secs(by.days_max() * 86_400) + by.length() {
            let message =
                format!("is more than {} days before `until`; ask for less, or by=day", by.days_max());
            return Err(ApiError::invalid(vec![FieldError::new("since", message)]));
        }
        Ok(HistorySpan { by, since, until })
    }
}

/// What one account did in one period.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatisticsRow)]
pub(crate) struct AccountHistoryRow {
    /// When the period began, in UTC.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// The account.
    account: String,
    /// Messages accepted.
    accepted: i64,
    /// Messages accepted by a relay.
    sent: i64,
    /// Messages that failed.
    failed: i64,
    /// Messages refused by a check.
    invalid: i64,
    /// Transient failures that delayed a message.
    deferred: i64,
    /// Bounces.
    bounced: i64,
    /// Complaints.
    complained: i64,
    /// Messages not sent because of the suppression list.
    suppressed: i64,
    /// The average time from acceptance to `sent`, in milliseconds; null if nothing was sent.
    average_queue_ms: Option<i64>,
}

/// What a tenant's accounts did.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Statistics)]
pub(crate) struct AccountHistoryList {
    /// The periods by time and account; a period without activity has no row.
    data: Vec<AccountHistoryRow>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// Show account statistics
///
/// Counts by account and hour or day, including messages that were removed since. An event counts in the hour
/// in which it happened.
#[utoipa::path(
    get,
    path = "/v1/statistics",
    operation_id = "getStatistics",
    tag = "operations",
    params(
        ("by" = Option<String>, Query, description = "`hour` (default) or `day`, in UTC"),
        ("since" = Option<String>, Query, description = "From the hour or day that contains this time; when absent, one day back by hour, 30 days back by day"),
        ("until" = Option<String>, Query, description = "Before this time; now when absent. At most 31 days by hour, 366 by day"),
        ("account" = Option<String>, Query, description = "Only this account"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The counts", body = AccountHistoryList))
)]
pub(crate) async fn statistics(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<AccountHistoryList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let span = HistorySpan::take(&mut query);
    let account = query.parse("account", str::parse::<AccountId>);
    let part = ListPart::take(&mut query);
    query.finish()?;
    let HistorySpan { by, since, until } = span.within(app.clock.now())?;
    let rows = app.store.statistics(&caller.tenant, since, until).await?;
    let wanted =
        rows.into_iter().filter(|row| account.as_ref().is_none_or(|account| row.account == *account));
    let (data, next_cursor) =
        part.select(summed(wanted, by), |row| (row.at.as_millis(), row.account.clone()))?;
    Ok(Json(AccountHistoryList { data, next_cursor }))
}

fn summed(rows: impl Iterator<Item = StatisticsRow>, by: HistoryPeriod) -> Vec<AccountHistoryRow> {
    let mut sums: BTreeMap<(Time, AccountId), HourlyCounts> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry((by.begin(row.hour), row.account)).or_default();
        let HourlyCounts {
            accepted,
            sent,
            failed,
            invalid,
            deferred,
            bounced,
            complained,
            suppressed,
            queue_ms,
        } = row.counts;
        sum.accepted += accepted;
        sum.sent += sent;
        sum.failed += failed;
        sum.invalid += invalid;
        sum.deferred += deferred;
        sum.bounced += bounced;
        sum.complained += complained;
        sum.suppressed += suppressed;
        sum.queue_ms += queue_ms;
    }
    sums.into_iter().map(|((at, account), counts)| AccountHistoryRow::new(at, &account, &counts)).collect()
}

impl AccountHistoryRow {
    fn new(at: Time, account: &AccountId, counts: &HourlyCounts) -> Self {
        Self {
            at,
            account: account.to_string(),
            accepted: counts.accepted,
            sent: counts.sent,
            failed: counts.failed,
            invalid: counts.invalid,
            deferred: counts.deferred,
            bounced: counts.bounced,
            complained: counts.complained,
            suppressed: counts.suppressed,
            average_queue_ms: (counts.sent > 0).then(|| counts.queue_ms / counts.sent.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(hour: i64, account: &str, sent: i64, queue_ms: i64) -> StatisticsRow {
        StatisticsRow {
            hour: Time::from_millis(hour * 3_600_000),
            tenant: "default".parse().unwrap(),
            account: account.parse().unwrap(),
            counts: HourlyCounts { accepted: 1, sent, queue_ms, ..HourlyCounts::default() },
        }
    }

    #[test]
    fn hours_of_a_day_are_summed_by_account_and_their_averages_weighed() {
        let rows = || [row(1, "b", 1, 100), row(23, "a", 3, 300), row(1, "a", 1, 900), row(24, "a", 0, 0)];
        let by_day = summed(rows().into_iter(), HistoryPeriod::Day);
        let counted: Vec<_> = by_day
            .iter()
            .map(|row| {
                (row.at.as_millis() / 86_400_000, row.account.as_str(), row.sent, row.average_queue_ms)
            })
            .collect();
        assert_eq!(counted, [(0, "a", 4, Some(300)), (0, "b", 1, Some(100)), (1, "a", 0, None)]);
        assert_eq!(summed(rows().into_iter(), HistoryPeriod::Hour).len(), 4);
    }
}
