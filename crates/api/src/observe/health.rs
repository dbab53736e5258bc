//! `/health/live` and `/health/ready`, for supervisors and load balancers. They need no key and reveal only
//! the state.
//!
//! Anyone may call them, as often as they like: readiness is tested by a write, which the store makes at most
//! once a second.

use std::time::Duration;

use axum::{Json, extract::State};
use postway_store::durability::LossMoment;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::error::ApiError, state::SharedState};

/// How long the store may take to answer.
const PING_S_MAX: Duration = Duration::from_secs(2);

/// The health of the server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct HealthView {
    /// `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// Problems that an operator should look at although mail is accepted: `storage_apart`: nodes do not
    /// share `storage.url`; `database_not_durable`: the database is configured to lose commits when it
    /// crashes; `isolated`: this node's heartbeat fails and it sends nothing; `secret_key_wrong`: stored
    /// passwords do not open with the server's secret key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'static str>,
}

/// Liveness
///
/// Answers as long as the process serves requests, whatever its database does. For liveness probes; no key is
/// needed.
#[utoipa::path(
    get,
    path = "/health/live",
    operation_id = "getLiveness",
    tag = "operations",
    security(()),
    responses((status = 200, description = "The process is alive", body = HealthView))
)]
pub(crate) async fn live() -> Json<HealthView> {
    Json(HealthView { status: "ok", warnings: Vec::new() })
}

/// Readiness
///
/// 200 if a write to the database just succeeded, 503 otherwise.
#[utoipa::path(
    get,
    path = "/health/ready",
    operation_id = "getReadiness",
    tag = "operations",
    security(()),
    responses((status = 200, description = "The server accepts mail", body = HealthView))
)]
pub(crate) async fn ready(State(app): State<SharedState>) -> Result<Json<HealthView>, ApiError> {
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
            Ok(Json(HealthView { status: "ok", warnings }))
        }
        Ok(Err(error)) => Err(ApiError::unavailable("the store is not available", error)),
        Err(_) => Err(ApiError::unavailable("the store does not answer", "ping ran into its deadline")),
    }
}

/// The answer to every request until the store is open.
pub(crate) async fn waiting() -> ApiError {
    ApiError::unavailable("starting: the database cannot be reached yet", "the server waits for its database")
}
