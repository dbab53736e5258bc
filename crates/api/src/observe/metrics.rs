//! `/metrics`: counters and histograms in Prometheus' text form.
//!
//! No key is asked for unless one is configured: it holds numbers only, no addresses and nothing of mail, but it names tenants
//! and mailboxes. Nothing listens beyond loopback unless configured to; who opens the port to others sets a key or keeps this
//! path behind a proxy.

use axum::{
    extract::State,
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::{
    auth::{AdminKey, Shown, presented_key, shown},
    http::error::ApiError,
    state::Shared,
};

/// What `/metrics` shows, and to whom.
#[derive(Clone)]
pub struct MetricsAccess {
    /// The recorders that are shown, one after the other. No metric is in two of them.
    pub recorders: Vec<PrometheusHandle>,
    /// What the system says of the process, in the same form; read anew for each look.
    pub process: fn() -> String,
    /// The key that a scraper must show; none: everybody may look. The admin key opens as well.
    pub key: Option<MetricsKey>,
}

/// The key that opens `/metrics` and nothing else, as its digest.
#[derive(Clone, Debug)]
pub struct MetricsKey(AdminKey);

impl MetricsKey {
    /// Keeps the digest of `key` and forgets the key.
    pub fn new(key: &str) -> Self {
        Self(AdminKey::new(key))
    }
}

/// Show metrics
///
/// In Prometheus' text form. No key is needed unless `telemetry.metrics_key` is set: then that one, or the admin key.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "operations",
    security((), ("bearer" = []), ("key" = [])),
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(app): State<Shared>, parts: Parts) -> Result<Response, ApiError> {
    if let Some(MetricsKey(key)) = &app.metrics.key
        && !presented_key(&parts.headers).is_some_and(|presented| key.opens(presented))
        && let Shown::Key(_) = shown(&parts, &app).await?
    {
        return Err(ApiError::forbidden("metrics need the key of telemetry.metrics_key, or the admin key"));
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let mut text: String = app.metrics.recorders.iter().map(PrometheusHandle::render).collect();
    text.push_str(&(app.metrics.process)());
    Ok((kind, text).into_response())
}
