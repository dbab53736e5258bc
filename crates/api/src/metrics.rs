//! `/metrics`: counters and histograms in Prometheus' text form.
//!
//! No key is asked for, as scrapers expect: it holds numbers only, no addresses and no names of mail. Nothing listens
//! beyond loopback unless configured to; who opens the port to others keeps this path behind a proxy.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use crate::state::Shared;

/// Show metrics
///
/// In Prometheus' text form. No key is needed.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "operations",
    security(()),
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(app): State<Shared>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, app.metrics.render()).into_response()
}
