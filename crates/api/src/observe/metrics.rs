//! `/metrics`: counters and histograms in Prometheus' text format.
//!
//! No key is required unless one is configured: the metrics contain numbers only, no addresses and no mail,
//! but they name tenants and mailboxes. Nothing listens beyond loopback unless configured to; an operator who
//! opens the port to others sets a key or keeps this path behind a proxy.

use axum::{
    extract::State,
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::{
    auth::{AdminKey, AuthenticatedKey, authenticate, presented_key},
    http::error::ApiError,
    state::SharedState,
};

/// What `/metrics` shows, and to whom.
#[derive(Clone)]
pub struct MetricsAccess {
    /// The recorders that are shown, one after the other. No metric is in two of them.
    pub recorders: Vec<PrometheusHandle>,
    /// Process metrics from the operating system, in the same format; read for each request.
    pub process: fn() -> String,
    /// The key that a scraper must present; `None` means that anyone may read. The admin key works as well.
    pub key: Option<MetricsKey>,
}

/// The key for `/metrics` and nothing else, as its digest.
#[derive(Clone, Debug)]
pub struct MetricsKey(AdminKey);

impl MetricsKey {
    /// Stores the digest of `key`, not the key.
    pub fn new(key: &str) -> Self {
        Self(AdminKey::new(key))
    }
}

/// Show metrics
///
/// In Prometheus' text format. No key is needed unless `telemetry.metrics_key` is set: then that one, or the
/// admin key.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "operations",
    security((), ("bearer" = []), ("key" = [])),
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(app): State<SharedState>, parts: Parts) -> Result<Response, ApiError> {
    if let Some(MetricsKey(key)) = &app.metrics.key
        && !presented_key(&parts.headers).is_some_and(|presented| key.opens(presented))
        && !is_admin(&authenticate(&parts, &app).await?)
    {
        return Err(ApiError::forbidden("metrics need the key of telemetry.metrics_key, or the admin key"));
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let mut text: String = app.metrics.recorders.iter().map(PrometheusHandle::render).collect();
    text.push_str(&(app.metrics.process)());
    Ok((kind, text).into_response())
}

/// Whether this is the admin key, or a user who may do as much.
fn is_admin(who: &AuthenticatedKey) -> bool {
    match who {
        AuthenticatedKey::Admin => true,
        AuthenticatedKey::Key(_) => false,
        AuthenticatedKey::User(signed_in) => signed_in.user.is_full_admin(),
    }
}
