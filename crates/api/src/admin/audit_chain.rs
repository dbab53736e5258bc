//! `GET /v1/audit/lines`: the audit log as a chain, to follow, to export and to verify.
//!
//! Lines come in the order in which they were written, whatever clocks said. A reader keeps the position of
//! the last line and asks for what follows: a line that is there has all lines before it. The answer has
//! everything that is digested, so that whoever keeps the lines elsewhere can check them without this server;
//! `docs/guide/security.md` says how.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use postway_domain::Time;
use postway_store::{
    StoreError,
    record::{AuditHead, AuditLine},
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::audit::wants_lines;
use crate::{
    auth::{Admin, LongRequest},
    http::{
        error::ApiError,
        hex_digest::hex,
        pagination::{self, PageRequest},
        query::QueryParameters,
    },
    state::{AppState, SharedState},
};

/// The longest a reader may wait.
const WAIT_S_MAX: u64 = 30;
/// How often the store is polled for a waiting reader.
const GLANCE: Duration = Duration::from_secs(1);
/// Lines read at a time for an export.
const EXPORT_PAGE: u32 = 500;

/// A line of the audit log, with what is digested.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditLine)]
pub(crate) struct AuditLineView {
    /// The position: each line has the next one.
    position: i64,
    /// The entry's id.
    id: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// Who: `admin`, `user:` and a name, or `key:` and the id of a key.
    #[schema(example = "user:ada")]
    actor: String,
    /// The tenant concerned.
    tenant: Option<String>,
    /// What was done.
    #[schema(example = "tenant.create")]
    action: String,
    /// The resource concerned.
    target: String,
    /// The id of the request.
    request_id: Option<String>,
    /// Further data; never a secret.
    #[schema(value_type = Option<Object>)]
    detail: Option<Box<RawValue>>,
    /// Random bytes that are digested with the target, in hexadecimal; null once the target was erased.
    salt: Option<String>,
    /// SHA-256 of salt and target, in hexadecimal.
    target_digest: String,
    /// The digest of the line before; zeros for the first line.
    previous: String,
    /// The digest of this line.
    digest: String,
}

impl From<AuditLine> for AuditLineView {
    fn from(line: AuditLine) -> Self {
        let AuditLine { entry, position, previous, digest, target_digest } = line;
        Self {
            position,
            id: entry.id.to_string(),
            at: entry.at,
            actor: entry.actor,
            tenant: entry.tenant.map(|tenant| tenant.to_string()),
            action: entry.action,
            target: entry.target,
            request_id: entry.request_id,
            detail: entry.detail.and_then(|text| RawValue::from_string(text).ok()),
            salt: entry.salt.map(|salt| salt.iter().map(|byte| format!("{byte:02x}")).collect()),
            target_digest: hex(&target_digest),
            previous: hex(&previous),
            digest: hex(&digest),
        }
    }
}

/// Where the chain begins and ends.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditHead)]
pub(crate) struct AuditHeadView {
    /// The last position; 0 before the first line.
    position: i64,
    /// The digest of the last line: keep it elsewhere, and a chain that was rewritten shows.
    digest: String,
    /// The last position that retention has removed; 0 if it has removed none.
    trimmed: i64,
}

impl From<AuditHead> for AuditHeadView {
    fn from(head: AuditHead) -> Self {
        Self { position: head.position, digest: hex(&head.digest), trimmed: head.trimmed }
    }
}

/// Lines of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditLineList {
    /// The lines, in their order.
    data: Vec<AuditLineView>,
    /// Pass this as `after` to read what follows.
    position: i64,
    /// Where the chain begins and ends.
    head: AuditHeadView,
}

/// Follow the audit log
///
/// For the admin key and admins of all tenants. The lines after a position, in the order in which they were
/// written, with their digests. With `wait`, an empty answer comes only after that many seconds. With
/// `format=jsonl`, or `Accept: application/x-ndjson`, all lines after the position are returned as JSON
/// lines.
#[utoipa::path(
    get,
    path = "/v1/audit/lines",
    operation_id = "followAudit",
    tag = "operations",
    params(
        ("after" = Option<i64>, Query, description = "The position of the last line that you have; from the first kept line when absent"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for new lines, at most 30"),
        ("format" = Option<String>, Query, description = "`json` (default), or `jsonl` for all lines that follow, one per line"),
    ),
    responses((
        status = 200,
        description = "The lines that follow",
        content((AuditLineList = "application/json"), (String = "application/x-ndjson")),
    ))
)]
pub(crate) async fn lines(
    State(app): State<SharedState>,
    _: Admin,
    parts: Parts,
) -> Result<Response, ApiError> {
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let after = query.parse("after", |text| match text.parse::<i64>() {
        Ok(after @ 0..) => Ok(after),
        _ => Err("must be a position: a whole number, 0 or more"),
    });
    let after: i64 = after.unwrap_or_default();
    let wait = query.parse("wait", |text| match text.parse() {
        Ok(wait @ 0..=WAIT_S_MAX) => Ok(Duration::from_secs(wait)),
        _ => Err(format!("must be a number of seconds, at most {WAIT_S_MAX}")),
    });
    let is_export = query.parse("format", |text| match text {
        "json" => Ok(false),
        "jsonl" => Ok(true),
        _ => Err("must be json or jsonl"),
    });
    let limit = PageRequest::take_limit(&mut query);
    query.finish()?;
    if is_export.unwrap_or_else(|| wants_lines(&parts.headers)) {
        return export(app, after).await;
    }
    // If no slot is free, the answer comes at once.
    let slot = app.waiting_readers.take();
    let wait = wait.filter(|_| slot.is_some()).unwrap_or_default();
    let found = wait_for_lines(&app, after, limit, Instant::now() + wait).await?;
    if !wait.is_zero() {
        LongRequest::of(&parts).check_admin(&app).await?;
    }
    // Read after the lines, so that it is not behind them.
    let head = app.store.audit_head().await?;
    let position = found.last().map_or(after, |last| last.position);
    let data = found.into_iter().map(AuditLineView::from).collect();
    Ok(Json(AuditLineList { data, position, head: head.into() }).into_response())
}

/// The lines after a position, as soon as there are any; none at the deadline.
async fn wait_for_lines(
    app: &AppState,
    after: i64,
    limit: u32,
    deadline: Instant,
) -> Result<Vec<AuditLine>, StoreError> {
    loop {
        let found = app.store.audit_lines(after, limit).await?;
        let now = Instant::now();
        if !found.is_empty() || now >= deadline {
            return Ok(found);
        }
        tokio::time::sleep_until(deadline.min(now + GLANCE)).await;
    }
}

async fn export(app: SharedState, after: i64) -> Result<Response, ApiError> {
    let body = pagination::streamed(after, move |after: i64| {
        let app = app.clone();
        async move {
            let found = app.store.audit_lines(after, EXPORT_PAGE).await?;
            let next = found.last().filter(|_| found.len() == EXPORT_PAGE as usize).map(|last| last.position);
            let mut lines = Vec::new();
            for line in found {
                serde_json::to_writer(&mut lines, &AuditLineView::from(line)).map_err(ApiError::internal)?;
                lines.push(b'\n');
            }
            Ok((lines, next))
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body.await?).into_response())
}
