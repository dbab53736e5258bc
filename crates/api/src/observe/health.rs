//! `/health/live` and `/health/ready`: for whoever restarts or routes. No key needed, nothing told but the state.
//!
//! Any stranger may ask, as often as they like: readiness is found out by a write, of which the store makes at most one a
//! second.

use std::time::Duration;

use axum::{Json, extract::State};
use postway_store::durability::LossMoment;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::error::ApiError, state::Shared};

/// How long the store may take to say that it is there.
const PING_S_MAX: Duration = Duration::from_secs(2);

/// How the server feels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// What an operator should look at though mail is taken: `storage_apart`, where nodes do not share `storage.url`;
    /// `database_not_durable`, where the database is set up to lose commits when it crashes; `isolated`, while this node's heartbeat
    /// fails and it sends nothing; `secret_key_wrong`, where stored passwords do not open with the server's secret key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'static str>,
}

/// Is the process alive?
///
/// Answers as long as the process serves requests, whatever its database does. For liveness probes; no key is needed.
#[utoipa::path(
    get,
    path = "/health/live",
    operation_id = "getLiveness",
    tag = "operations",
    security(()),
    responses((status = 200, description = "It is", body = Health))
)]
pub(crate) async fn live() -> Json<Health> {
    Json(Health { status: "ok", warnings: Vec::new() })
}

/// Can it take mail?
///
/// 200 when something could be written just now, 503 otherwise.
#[utoipa::path(
    get,
    path = "/health/ready",
    operation_id = "getReadiness",
    tag = "operations",
    security(()),
    responses((status = 200, description = "It can", body = Health))
)]
pub(crate) async fn ready(State(app): State<Shared>) -> Result<Json<Health>, ApiError> {
    match tokio::time::timeout(PING_S_MAX, app.store.ping()).await {
        Ok(Ok(())) => {
            let is_apart = !app.roster.apart().is_empty();
            let risks = app.store.durability_risks();
            let is_risky = risks.iter().any(|risk| risk.loses_at == LossMoment::Crash);
            let warnings = [
                (is_apart, "storage_apart"),
                (is_risky, "database_not_durable"),
                (app.roster.is_isolated(), "isolated"),
                (app.unopened_secrets.is_any(), "secret_key_wrong"),
            ];
            let warnings = warnings.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
            Ok(Json(Health { status: "ok", warnings }))
        }
        Ok(Err(error)) => Err(ApiError::unavailable("the store is not available", error)),
        Err(_) => Err(ApiError::unavailable("the store does not answer", "ping ran into its deadline")),
    }
}

/// The answer to everything while there is no store yet.
pub(crate) async fn waiting() -> ApiError {
    ApiError::unavailable("starting: the database cannot be reached yet", "the server waits for its database")
}
