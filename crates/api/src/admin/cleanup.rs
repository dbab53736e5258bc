//! `POST /v1/cleanup`: removes messages before their time.
//!
//! The same as housekeeping does by itself once a tenant's `report_retention_seconds` have passed. Never a message that
//! has not ended, nor one that somebody is still to be told of.

use std::time::Duration;

use axum::{Json, extract::State, http::Uri};
use postway_domain::{Tenant, TenantSettings};
use postway_store::record::Expunge;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::{
    auth::{Caller, Manager},
    http::{error::ApiError, query::Parameters, request_id::RequestId},
    state::{App, Shared},
};

/// Messages removed in one transaction.
pub(crate) const SLICE: u32 = 200;
/// The longest time that can be asked for, as that for which a tenant can have its messages kept.
pub(crate) const OLDER_THAN_S_MAX: u64 = TenantSettings::RETENTION_DAYS_MAX as u64 * 24 * 60 * 60;
/// How long one call goes on removing.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(20);

/// What a cleanup did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Cleanup {
    /// Messages that were removed.
    pub(crate) deleted: u64,
    /// Whether there may be more: call again.
    pub(crate) more: bool,
}

/// Remove old messages
///
/// Those that ended and were reported more than `older_than_seconds` ago; the tenant's own `report_retention_seconds`, or the
/// gateway's, when absent. Those whose reports were given up stay for `unreported_retention_days` at least. A call removes for at most 20
/// seconds and then says that there is `more`.
#[utoipa::path(
    post,
    path = "/v1/cleanup",
    operation_id = "cleanUp",
    tag = "operations",
    params(("older_than_seconds" = Option<u64>, Query, description = "How old they must be at least, up to 315,360,000; 0 for all")),
    responses((status = 200, description = "What was removed", body = Cleanup))
)]
pub(crate) async fn cleanup(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    uri: Uri,
) -> Result<Json<Cleanup>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let seconds = query.parse("older_than_seconds", |text| {
        let seconds = text.parse().ok().filter(|seconds| *seconds <= OLDER_THAN_S_MAX);
        seconds.ok_or_else(|| format!("must be a whole number of seconds, 0 to {OLDER_THAN_S_MAX}"))
    });
    let older_than = seconds.map(Duration::from_secs);
    query.finish()?;
    remove(&app, &caller, &request_id, older_than).await.map(Json)
}

/// Removes what ended and was reported so long ago, or as long ago as the tenant's own setting says.
pub(crate) async fn remove(
    app: &App,
    caller: &Caller,
    request_id: &RequestId,
    older_than: Option<Duration>,
) -> Result<Cleanup, ApiError> {
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
        let slice = app.store.expunge(Expunge {
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
            return Ok(Cleanup { deleted, more });
        }
    }
}
