//! `GET /v1/stats`: how many messages stand where, and whether the queue keeps up.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use postway_domain::{Status, TenantId, Time};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    error::ApiError,
    state::{App, Shared},
};

/// Rates look back this far.
const WINDOW_MS: i64 = 60_000;
/// At most this many messages are looked at for a rate.
const SAMPLE: u32 = 1_000;

/// Counts of a tenant's messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stats)]
pub(crate) struct StatsView {
    /// How many messages stand where; every state is there.
    #[schema(value_type = Object, example = json!({"ready": 0, "sent": 12}))]
    by_status: BTreeMap<Status, i64>,
    /// How many wait behind a suspension of the tenant, their batch or their account.
    held: i64,
    /// How long the longest-waiting due message has been due.
    oldest_due_seconds: u64,
    /// Messages per second over the last minute, or over the last thousand where that is shorter: `accepted`, `sent`,
    /// `failed`.
    #[schema(value_type = Object)]
    rates: BTreeMap<&'static str, f64>,
}

/// Show counts
#[utoipa::path(
    get,
    path = "/v1/stats",
    operation_id = "getStats",
    tag = "operations",
    responses((status = 200, description = "The counts", body = StatsView))
)]
pub(crate) async fn stats(State(app): State<Shared>, caller: Reader) -> Result<Json<StatsView>, ApiError> {
    gather(&app, &caller.tenant).await.map(Json)
}

/// A tenant's counts now.
pub(crate) async fn gather(app: &App, tenant: &TenantId) -> Result<StatsView, ApiError> {
    let now = app.clock.now();
    let found = app.store.stats(Some(tenant), now).await?;
    let mut by_status: BTreeMap<Status, i64> = Status::ALL.iter().map(|&status| (status, 0)).collect();
    by_status.extend(found.by_status);
    let oldest_due_seconds = found.oldest_due_at.map_or(0, |due| now.since(due).as_secs());
    let mut rates = BTreeMap::new();
    for (name, state) in [("accepted", None), ("sent", Some(Status::Sent)), ("failed", Some(Status::Failed))]
    {
        let since = Time::from_millis(now.as_millis() - WINDOW_MS);
        let latest = app.store.latest(tenant, state, since, SAMPLE).await?;
        rates.insert(name, rate(&latest, now));
    }
    let held = app.store.held(tenant).await?;
    Ok(StatsView { by_status, held, oldest_due_seconds, rates })
}

/// Messages per second: over the whole window where few came, over the time of the sample where many did.
fn rate(latest: &[Time], now: Time) -> f64 {
    let Some(oldest) = latest.last() else { return 0.0 };
    let full = latest.len() == SAMPLE as usize;
    let over_ms = if full { (now.as_millis() - oldest.as_millis()).max(1) } else { WINDOW_MS };
    let per_second = latest.len() as f64 * 1000.0 / over_ms as f64;
    (per_second * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_counted_over_the_window_and_many_over_their_own_time() {
        let now = Time::from_millis(1_000_000);
        assert_eq!(rate(&[], now), 0.0);
        assert_eq!(rate(&[now; 30], now), 0.5);
        let many: Vec<Time> = (0..i64::from(SAMPLE)).map(|n| Time::from_millis(1_000_000 - n)).collect();
        assert_eq!(rate(&many, now).round(), 1001.0);
    }
}
