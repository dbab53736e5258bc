//! `GET /v1/stats`: how many messages are in each state, and whether the queue keeps up.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use postway_domain::{MessageStatus, TenantId, Time};
use postway_store::record::SendingRate;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    http::error::ApiError,
    state::{AppState, SharedState},
};

/// The shortest time over which rates are computed.
const WINDOW_MS: i64 = 50_000;

/// Counts of a tenant's messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stats)]
pub(crate) struct QueueStatsView {
    /// How many messages are in each status; every status is present.
    #[schema(value_type = Object, example = json!({"ready": 0, "sent": 12}))]
    by_status: BTreeMap<MessageStatus, i64>,
    /// How many messages wait because their tenant, batch or account is suspended, or because of a used-up
    /// limit or an open circuit of their account; counted up to 100,000: that value means "at least".
    held: i64,
    /// How many messages `in_doubt` wait for your decision (`/resolve`); the others are sent again
    /// automatically. Of the newest 10,000.
    in_doubt_held: i64,
    /// How long the oldest message that nothing blocks has been due: whether the queue keeps up.
    oldest_due_seconds: u64,
    /// How long the oldest blocked message (see `held`) has been due.
    oldest_held_seconds: u64,
    /// Messages per second over the last minute: `accepted`, `sent`, `failed`.
    #[schema(value_type = Object)]
    rates: BTreeMap<&'static str, f64>,
}

/// Show queue statistics
///
/// How many messages are in each status now, the age of the oldest waiting ones, and current rates. `GET
/// /v1/statistics` has the past.
#[utoipa::path(
    get,
    path = "/v1/stats",
    operation_id = "getStats",
    tag = "operations",
    responses((status = 200, description = "The counts", body = QueueStatsView))
)]
pub(crate) async fn stats(
    State(app): State<SharedState>,
    caller: Reader,
) -> Result<Json<QueueStatsView>, ApiError> {
    gather(&app, &caller.tenant).await.map(Json)
}

/// A tenant's current counts.
pub(crate) async fn gather(app: &AppState, tenant: &TenantId) -> Result<QueueStatsView, ApiError> {
    let now = app.clock.now();
    let found = app.store.stats(Some(tenant), now).await?;
    let mut by_status: BTreeMap<MessageStatus, i64> =
        MessageStatus::ALL.iter().map(|&status| (status, 0)).collect();
    by_status.extend(found.by_status);
    let seconds = |due: Option<Time>| due.map_or(0, |due| now.since(due).as_secs());
    let since = SendingRate::begin_of(Time::from_millis(now.as_millis() - WINDOW_MS));
    let rates = rates(&app.store.pace(tenant, since).await?, since, now);
    let held = app.store.held(tenant, now).await?;
    Ok(QueueStatsView {
        by_status,
        held,
        in_doubt_held: found.doubts_held,
        oldest_due_seconds: seconds(found.oldest_due_at),
        oldest_held_seconds: seconds(found.oldest_held_at),
        rates,
    })
}

/// Messages per second since then.
fn rates(pace: &[SendingRate], since: Time, now: Time) -> BTreeMap<&'static str, f64> {
    let over_ms = (now.as_millis() - since.as_millis()).max(1) as f64;
    let rate = |count: fn(&SendingRate) -> i64| {
        let per_second = pace.iter().map(count).sum::<i64>() as f64 * 1_000.0 / over_ms;
        (per_second * 100.0).round() / 100.0
    };
    BTreeMap::from([
        ("accepted", rate(|pace| pace.accepted)),
        ("sent", rate(|pace| pace.sent)),
        ("failed", rate(|pace| pace.failed)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_time_that_was_looked_at() {
        let at = Time::from_millis;
        assert_eq!(rates(&[], at(0), at(50_000))["sent"], 0.0);
        let pace = [
            SendingRate { sent: 20, ..SendingRate::empty(at(0)) },
            SendingRate { sent: 10, accepted: 1, ..SendingRate::empty(at(10_000)) },
        ];
        let rates = rates(&pace, at(0), at(60_000));
        assert_eq!((rates["sent"], rates["accepted"], rates["failed"]), (0.5, 0.02, 0.0));
    }
}
