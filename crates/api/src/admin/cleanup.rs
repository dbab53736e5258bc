//! `POST /v1/cleanup`: removes messages early.
//!
//! Housekeeping does the same by itself once a tenant's `report_retention_seconds` have passed. A message
//! that has not ended, or has a pending notification, is never removed.

use std::time::Duration;

use axum::{Json, extract::State, http::Uri};
use postway_domain::{Tenant, TenantSettings};
use postway_store::record::ExpungeRequest;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::{
    auth::{Caller, Manager},
    http::{error::ApiError, query::QueryParameters, request_id::RequestId},
    state::{AppState, SharedState},
};

/// Messages removed in one transaction.
pub(crate) const SLICE: u32 = 200;
/// The largest `older_than_seconds`: the longest retention that a tenant can set.
pub(crate) const OLDER_THAN_S_MAX: u64 = TenantSettings::RETENTION_DAYS_MAX as u64 * 24 * 60 * 60;
/// How long one call goes on removing.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(20);

/// The result of a clean-up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cleanup)]
pub(crate) struct CleanupResult {
    /// Messages that were removed.
    pub(crate) deleted: u64,
    /// Whether there may be more: call again.
    pub(crate) more: bool,
}

/// Remove old messages
///
/// Messages that ended and were completely reported more than `older_than_seconds` ago; the tenant's own
/// `report_retention_seconds`, or the gateway's, when absent. Messages whose notifications were given up stay
/// for `unreported_retention_days` at least. A call runs for at most 20 seconds and then says that there is
/// `more`.
#[utoipa::path(
    post,
    path = "/v1/cleanup",
    operation_id = "cleanUp",
    tag = "operations",
    params(("older_than_seconds" = Option<u64>, Query, description = "The minimum age, up to 315,360,000; 0 for all")),
    responses((status = 200, description = "The result", body = CleanupResult))
)]
pub(crate) async fn cleanup(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    uri: Uri,
) -> Result<Json<CleanupResult>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let seconds = query.parse("older_than_seconds", |text| {
        let seconds = text.parse().ok().filter(|seconds| *seconds <= OLDER_THAN_S_MAX);
        seconds.ok_or_else(|| format!("must be a whole number of seconds, 0 to {OLDER_THAN_S_MAX}"))
    });
    let older_than = seconds.map(Duration::from_secs);
    query.finish()?;
    remove(&app, &caller, &request_id, older_than).await.map(Json)
}

/// Removes messages that ended and were reported before this age, or before the tenant's own retention.
pub(crate) async fn remove(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    older_than: Option<Duration>,
) -> Result<CleanupResult, ApiError> {
    let tenant = app.store.tenant(&caller.tenant).await?;
    let settings = tenant.map(|tenant| tenant.settings).unwrap_or_default();
    let kept = older_than.unwrap_or_else(|| settings.report_retention(app.report_retention));
    let detail = json!({"older_than_seconds": kept.as_secs()});
    let tenant = &caller.tenant;
    let entry =
        app.audit(&caller.actor, Some(tenant), "messages.cleanup", tenant.as_str(), request_id, Some(detail));
    app.record(entry).await?;

    let recipient_key = app.secret_key.derive(Tenant::TRACE_KEY_LABEL);
    let deadline = Instant::now() + TIME_MAX;
    let now = app.clock.now();
    let mut deleted = 0;
    loop {
        let slice = app.store.expunge(ExpungeRequest {
            tenant: tenant.clone(),
            reported_before: now.minus(kept),
            unreported_before: now.minus(kept.max(settings.unreported_retention(app.report_retention))),
            now,
            recipient_key,
            limit: SLICE,
        });
        let removed = slice.await?;
        deleted += u64::from(removed);
        let more = removed == SLICE;
        if !more || Instant::now() >= deadline {
            tracing::info!(%tenant, deleted, more, "messages were removed on request");
            return Ok(CleanupResult { deleted, more });
        }
    }
}
