//! `GET /v1/streams/{id}/statistics`: the mail of a stream by hour or day, and the rates by which
//! mailbox providers judge a sender. The counts remain after the messages are removed.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::Uri};
use postway_domain::Time;
use postway_store::record::{StreamCounts, StreamStatisticsRow};
use serde::Serialize;
use utoipa::ToSchema;

use super::account_history::{HistoryPeriod, HistorySpan};
use crate::{
    auth::Reader,
    http::{error::ApiError, query::QueryParameters},
    outgoing::stream::{NamedStream, find},
    state::SharedState,
};

/// The counts of a stream's mail in one period, or in all of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StreamStatisticsRow)]
pub(crate) struct StreamHistoryRow {
    /// When the period began, in UTC; null in the total.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Time>,
    /// Messages accepted.
    accepted: i64,
    /// Messages accepted by a relay.
    sent: i64,
    /// Messages that failed.
    failed: i64,
    /// Messages not sent because of the suppression lists.
    suppressed: i64,
    /// Reports of delivery.
    delivered: i64,
    /// Bounces.
    bounced: i64,
    /// Complaints.
    complained: i64,
    /// Readers who left the stream.
    unsubscribed: i64,
    /// Readers who came back to it.
    resubscribed: i64,
    /// Complaints for each message sent; null if none was sent. Gmail and Yahoo ask for less than 0.001.
    #[schema(example = 0.0004)]
    complaint_rate: Option<f64>,
    /// Bounces for each message sent; null if none was sent.
    bounce_rate: Option<f64>,
    /// Readers who left for each message sent; null if none was sent.
    unsubscribe_rate: Option<f64>,
}

/// The counts of a stream's mail, and the rates.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StreamStatistics)]
pub(crate) struct StreamHistory {
    /// All periods together.
    total: StreamHistoryRow,
    /// The periods, the oldest first; one without activity has no row.
    data: Vec<StreamHistoryRow>,
}

/// Show stream statistics
///
/// Counts and rates of a stream by hour or day, including messages that were removed since. An event counts
/// in the hour in which it happened.
#[utoipa::path(
    get,
    path = "/v1/streams/{id}/statistics",
    operation_id = "getStreamStatistics",
    tag = "streams",
    params(
        ("id" = String, Path, description = "The stream"),
        ("by" = Option<String>, Query, description = "`hour` (default) or `day`, in UTC"),
        ("since" = Option<String>, Query, description = "From the hour or day that contains this time; when absent, one day back by hour, 30 days back by day"),
        ("until" = Option<String>, Query, description = "Before this time; now when absent. At most 31 days by hour, 366 by day"),
    ),
    responses((status = 200, description = "The counts", body = StreamHistory))
)]
pub(crate) async fn statistics(
    State(app): State<SharedState>,
    caller: Reader,
    NamedStream(id): NamedStream,
    uri: Uri,
) -> Result<Json<StreamHistory>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let span = HistorySpan::take(&mut query);
    query.finish()?;
    let HistorySpan { by, since, until } = span.within(app.clock.now())?;
    find(&app, &caller.tenant, &id).await?;
    let rows = app.store.stream_statistics(&caller.tenant, &id, since, until).await?;
    Ok(Json(summed(&rows, by)))
}

fn summed(rows: &[StreamStatisticsRow], by: HistoryPeriod) -> StreamHistory {
    let (mut total, mut sums) = (StreamCounts::default(), BTreeMap::new());
    for row in rows {
        total.add(&row.counts);
        sums.entry(by.begin(row.hour)).or_insert_with(StreamCounts::default).add(&row.counts);
    }
    let data = sums.iter().map(|(at, counts)| StreamHistoryRow::new(Some(*at), counts)).collect();
    StreamHistory { total: StreamHistoryRow::new(None, &total), data }
}

impl StreamHistoryRow {
    fn new(at: Option<Time>, counts: &StreamCounts) -> Self {
        let rate = |part: i64| (counts.sent > 0).then(|| part as f64 / counts.sent as f64);
        Self {
            at,
            accepted: counts.accepted,
            sent: counts.sent,
            failed: counts.failed,
            suppressed: counts.suppressed,
            delivered: counts.delivered,
            bounced: counts.bounced,
            complained: counts.complained,
            unsubscribed: counts.unsubscribed,
            resubscribed: counts.resubscribed,
            complaint_rate: rate(counts.complained),
            bounce_rate: rate(counts.bounced),
            unsubscribe_rate: rate(counts.unsubscribed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_summed_by_day_and_rates_are_of_what_was_sent() {
        let row = |hour: i64, sent: i64, complained: i64| StreamStatisticsRow {
            hour: Time::from_millis(hour * 3_600_000),
            tenant: "default".parse().unwrap(),
            stream: "news".parse().unwrap(),
            counts: StreamCounts { sent, complained, ..StreamCounts::default() },
        };
        let found = summed(&[row(1, 100, 1), row(23, 100, 1), row(24, 0, 1)], HistoryPeriod::Day);
        let rates: Vec<_> = found.data.iter().map(|row| (row.sent, row.complaint_rate)).collect();
        assert_eq!(rates, [(200, Some(0.01)), (0, None)]);
        assert_eq!((found.total.complained, found.total.at), (3, None));
    }
}
