//! `/v1/batches`: mail that is suspended and activated together.
//!
//! The messages of a suspended batch stay in the queue and cost nothing; mail for it is still accepted, and
//! other mail is sent. A code that was never used can be suspended before its first message.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::Uri};
use postway_domain::{MessageStatus, TenantId, Time, id::BatchCode};
use postway_store::record::{BatchRecord as Batch, DirectoryChange, SuspensionRecord, SuspensionScope};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::{Caller, Manager, Reader},
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// A batch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Batch)]
pub(crate) struct MailBatchView {
    /// The code.
    #[schema(example = "campaign-2024-01")]
    code: String,
    /// Whether its mail is suspended.
    suspended: bool,
    /// When it was suspended.
    #[schema(value_type = Option<String>, format = DateTime)]
    suspended_since: Option<Time>,
    /// How many of its messages wait to be sent, counted up to 10,000: that value means "at least".
    waiting: i64,
}

impl From<Batch> for MailBatchView {
    fn from(Batch { code, suspended_since, waiting }: Batch) -> Self {
        Self { code: code.to_string(), suspended: suspended_since.is_some(), suspended_since, waiting }
    }
}

/// A batch and its progress.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchProgress {
    #[serde(flatten)]
    batch: MailBatchView,
    /// How many of its messages are in each status; a status without messages is absent.
    #[schema(value_type = Object, example = json!({"ready": 3, "sent": 12}))]
    by_status: BTreeMap<MessageStatus, i64>,
    /// Whether all messages were counted: of a larger batch 10,000 are.
    counted_all: bool,
}

/// A page of batches.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchList {
    /// The batches, by code.
    data: Vec<MailBatchView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// The batch that `{code}` in the path names.
pub(crate) struct NamedBatch(BatchCode);

path_parameter!(NamedBatch, "code", |given| given
    .parse()
    .map(NamedBatch)
    .map_err(|error| ApiError::field("code", format!("{error}"))));

/// List batches
///
/// Batches that have had messages, and batches suspended before their first.
#[utoipa::path(
    get,
    path = "/v1/batches",
    operation_id = "listBatches",
    tag = "batches",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by code", body = BatchList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<BatchList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let after: Option<BatchCode> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let mut found = app.store.batches(&caller.tenant, after.as_ref(), limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.code));
    Ok(Json(BatchList { data: found.into_iter().map(MailBatchView::from).collect(), next_cursor }))
}

/// Show a batch
///
/// The batch, and how many of its messages are in each status.
#[utoipa::path(
    get,
    path = "/v1/batches/{code}",
    operation_id = "getBatch",
    tag = "batches",
    params(("code" = String, Path, description = "The batch")),
    responses((status = 200, description = "The batch", body = BatchProgress))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedBatch(code): NamedBatch,
) -> Result<Json<BatchProgress>, ApiError> {
    let Some(batch) = find(&app, &caller.tenant, &code).await? else {
        return Err(ApiError::not_found(format!("there is no batch `{code}`")));
    };
    let by_status = app.store.batch_states(&caller.tenant, &code).await?;
    let counted_all = by_status.values().sum::<i64>() < Batch::COUNTED_MAX;
    Ok(Json(BatchProgress { batch: batch.into(), by_status, counted_all }))
}

/// Suspend a batch
///
/// Its mail is not sent, on any node, until the batch is activated. Mail that is being transmitted is
/// finished. The code need not have been used yet.
#[utoipa::path(
    post,
    path = "/v1/batches/{code}/suspend",
    operation_id = "suspendBatch",
    tag = "batches",
    params(("code" = String, Path, description = "The batch")),
    responses((status = 200, description = "The batch after the change", body = MailBatchView))
)]
pub(crate) async fn suspend(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedBatch(code): NamedBatch,
) -> Result<Json<MailBatchView>, ApiError> {
    suspend_batch(&app, &caller, &request_id, &code).await?;
    current_view(&app, &caller.tenant, code).await
}

/// Suspends a batch.
pub(crate) async fn suspend_batch(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    code: &BatchCode,
) -> Result<(), ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "batch.suspend", code.as_str(), request_id, None);
    let scope = SuspensionScope::Batch(code.clone());
    let suspension = SuspensionRecord { tenant: tenant.clone(), scope, since: app.clock.now() };
    app.store.change(DirectoryChange::Suspend(suspension), Some(entry)).await?;
    tracing::info!(%tenant, batch = %code, "batch suspended");
    Ok(())
}

/// Activate a batch
///
/// Its mail is sent again.
#[utoipa::path(
    post,
    path = "/v1/batches/{code}/activate",
    operation_id = "activateBatch",
    tag = "batches",
    params(("code" = String, Path, description = "The batch")),
    responses((status = 200, description = "The batch after the change", body = MailBatchView))
)]
pub(crate) async fn activate(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedBatch(code): NamedBatch,
) -> Result<Json<MailBatchView>, ApiError> {
    activate_batch(&app, &caller, &request_id, &code).await?;
    current_view(&app, &caller.tenant, code).await
}

/// Activates a suspended batch.
pub(crate) async fn activate_batch(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    code: &BatchCode,
) -> Result<(), ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "batch.activate", code.as_str(), request_id, None);
    let change = DirectoryChange::Activate(tenant.clone(), SuspensionScope::Batch(code.clone()));
    app.store.change(change, Some(entry)).await?;
    tracing::info!(%tenant, batch = %code, "batch activated");
    Ok(())
}

/// How many of a batch's messages wait to be sent, as its view counts them.
pub(crate) async fn waiting(app: &AppState, tenant: &TenantId, code: &BatchCode) -> Result<i64, ApiError> {
    Ok(find(app, tenant, code).await?.map_or(0, |batch| batch.waiting))
}

async fn current_view(
    app: &AppState,
    tenant: &TenantId,
    code: BatchCode,
) -> Result<Json<MailBatchView>, ApiError> {
    let found = find(app, tenant, &code).await?;
    let batch = found.unwrap_or(Batch { code, suspended_since: None, waiting: 0 });
    Ok(Json(batch.into()))
}

/// The batch with this code, if it has had a message or is suspended.
pub(crate) async fn find(
    app: &AppState,
    tenant: &TenantId,
    code: &BatchCode,
) -> Result<Option<Batch>, ApiError> {
    let found = app.store.batches(tenant, just_before(code).as_ref(), 1).await?;
    Ok(found.into_iter().next().filter(|batch| batch.code == *code))
}

/// The last code before this one, in byte order: the list after it begins with this one.
fn just_before(code: &BatchCode) -> Option<BatchCode> {
    let (last, head) = code.as_str().as_bytes().split_last()?;
    let head = std::str::from_utf8(head).ok()?;
    let lower = (0..*last).rev().map(char::from);
    // The longest code that shares all but the last character, has a lower one there, and is filled with the
    // highest.
    let mut before =
        lower.map(|lower| format!("{head}{lower}{}", "z".repeat(BatchCode::BYTES_MAX - head.len() - 1)));
    // Without a lower character, it is the code without its last one.
    before.find_map(|text| text.parse().ok()).or_else(|| head.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_fits_between_one_and_the_one_just_before() {
        let just_before = |code: &str| just_before(&code.parse().unwrap()).map(|code| code.to_string());
        assert_eq!(just_before("-"), None);
        assert_eq!(just_before("ab-").as_deref(), Some("ab"));
        assert_eq!(just_before("b").unwrap(), format!("a{}", "z".repeat(127)));
        assert_eq!(just_before("A").unwrap(), format!("@{}", "z".repeat(127)), "not all bytes are allowed");
        let longest = "z".repeat(128);
        assert_eq!(just_before(&longest).unwrap(), format!("{}y", "z".repeat(127)));
    }
}
