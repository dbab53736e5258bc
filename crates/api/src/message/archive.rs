//! `/v1/archive`: stored copies of what was sent, which outlive their messages.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use postway_domain::{MessageUid, TenantId, Time, sealed_copy::open_copy};
use postway_store::record::{ArchiveFilter, ArchivedMail, DirectoryChange};
use serde::Serialize;
use utoipa::ToSchema;

use super::content::raw::{headers, kind_for};
use crate::{
    auth::{Admin, ContentReader, Manager, Reader},
    http::{
        body_budget::AlreadyCounted,
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The message whose copy `{id}` in the path names.
pub(crate) struct NamedCopy(MessageUid);

path_parameter!(NamedCopy, "id", |given| { given.parse().map(NamedCopy).map_err(|_| no_copy(given)) });

fn no_copy(given: &str) -> ApiError {
    let shown: String = given.chars().take(64).collect();
    ApiError::not_found(format!("there is no archived copy of a message `{shown}`"))
}

async fn find(app: &AppState, tenant: &TenantId, uid: MessageUid) -> Result<ArchivedMail, ApiError> {
    app.store.archived(tenant, uid).await?.ok_or_else(|| no_copy(&uid.to_string()))
}

/// A stored copy of a sent message.
#[derive(Serialize, ToSchema)]
pub(crate) struct ArchivedCopy {
    /// The uid of the message, which may have been removed since.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// The name of the object in the blob storage.
    #[schema(example = "archive/default/2026/11/19/0192d3a4-5b6c-7d8e-9f01-23456789abcd.eml.sealed")]
    object: String,
    /// Its size in bytes, as it is stored.
    size: u64,
    /// Its SHA-256, as it is stored.
    sha256: String,
    /// Whether it is encrypted with the gateway's secret key.
    encrypted: bool,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    archived_at: Time,
    /// When it is deleted; null if never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
}

impl From<ArchivedMail> for ArchivedCopy {
    fn from(mail: ArchivedMail) -> Self {
        Self {
            id: mail.uid.to_string(),
            object: mail.path,
            size: mail.size,
            sha256: mail.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            encrypted: mail.is_sealed,
            archived_at: mail.archived_at,
            expires_at: mail.expires_at,
        }
    }
}

/// Stored copies.
#[derive(Serialize, ToSchema)]
pub(crate) struct ArchivedCopyList {
    /// How many copies wait to be made, counted up to 10,000; null if the tenant has no archive.
    waiting: Option<i64>,
    /// Since when the oldest of them waits.
    #[schema(value_type = Option<String>, format = DateTime)]
    waiting_since: Option<Time>,
    /// Those of the latest messages first.
    data: Vec<ArchivedCopy>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// List the archive
///
/// Stored copies of what was sent, those of the latest messages first, and how many copies wait.
#[utoipa::path(
    get,
    path = "/v1/archive",
    operation_id = "listArchive",
    tag = "messages",
    params(
        ("since" = Option<String>, Query, description = "Of messages accepted at or after this time"),
        ("until" = Option<String>, Query, description = "Of messages accepted before this time"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = ArchivedCopyList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<ArchivedCopyList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let filter = ArchiveFilter {
        since: query.parse("since", str::parse::<Time>),
        until: query.parse("until", str::parse::<Time>),
    };
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let before: Option<MessageUid> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    // One more than requested shows whether there is a next page.
    let mut found = app.store.archive(&caller.tenant, &filter, before, limit + 1).await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| has_more).map(|last| pagination::write_cursor(&last.uid));
    let backlog = app.store.archive_backlog(Some(&caller.tenant)).await?.pop();
    Ok(Json(ArchivedCopyList {
        waiting: backlog.as_ref().map(|backlog| backlog.waiting),
        waiting_since: backlog.and_then(|backlog| backlog.oldest),
        data: found.into_iter().map(ArchivedCopy::from).collect(),
        next_cursor,
    }))
}

/// Show an archived copy
///
/// Where the copy is, and until when.
#[utoipa::path(
    get,
    path = "/v1/archive/{id}",
    operation_id = "getArchived",
    tag = "messages",
    params(("id" = String, Path, description = "The uid of the message")),
    responses((status = 200, description = "The copy", body = ArchivedCopy))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedCopy(uid): NamedCopy,
) -> Result<Json<ArchivedCopy>, ApiError> {
    find(&app, &caller.tenant, uid).await.map(|mail| Json(mail.into()))
}

/// Get an archived mail
///
/// The mail as it was sent, below fields with its envelope; an encrypted copy is opened.
#[utoipa::path(
    get,
    path = "/v1/archive/{id}/raw",
    operation_id = "getRawArchived",
    tag = "messages",
    params(("id" = String, Path, description = "The uid of the message")),
    responses((status = 200, description = "The mail", body = String, content_type = "message/rfc822"))
)]
pub(crate) async fn raw(
    State(app): State<SharedState>,
    caller: ContentReader,
    NamedCopy(uid): NamedCopy,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let mail = find(&app, &caller.tenant, uid).await?;
    // An encrypted copy is in memory twice.
    let copies = if mail.is_sealed { 2 } else { 1 };
    let size = usize::try_from(mail.size).map_err(ApiError::internal)?;
    let held = app.body_budget.reserve_answer(&caller.tenant, size.saturating_mul(copies))?;
    let stored = app.door.read_object(&mail.path).await?;
    let bytes = match mail.is_sealed {
        true => Bytes::from(open_copy(&app.secret_key, &stored).map_err(ApiError::internal)?),
        false => stored,
    };
    let headers = headers(kind_for(&asked, "message/rfc822"), &format!("{uid}.eml"));
    Ok((AlreadyCounted, headers, held.attach_to(bytes)).into_response())
}

/// Delete an archived copy
///
/// Deletes a copy before its time, for example because a person asks for it. Only an admin may, so that what
/// is archived stays even if a tenant's keys are lost.
#[utoipa::path(
    delete,
    path = "/v1/archive/{id}",
    operation_id = "deleteArchived",
    tag = "messages",
    params(("id" = String, Path, description = "The uid of the message")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    _admin: Admin,
    caller: Manager,
    request_id: RequestId,
    NamedCopy(uid): NamedCopy,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let mail = find(&app, tenant, uid).await?;
    app.door.delete_object(&mail.path).await?;
    let target = uid.to_string();
    let entry = app.audit(&caller.actor, Some(tenant), "archive.delete", &target, &request_id, None);
    app.store.change(DirectoryChange::ForgetArchived(mail), Some(entry)).await?;
    Ok(StatusCode::NO_CONTENT)
}
