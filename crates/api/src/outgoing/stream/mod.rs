//! `/v1/streams`: a tenant's named kinds of mail, which readers can unsubscribe from one by one.

mod edit;
mod view;
pub(crate) mod write;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri},
};
use postway_domain::{MailStream, TenantId, id::StreamId};
use postway_store::record::{ChangeResult, DirectoryChange};

pub(crate) use self::view::{StreamList, StreamView};
pub(crate) use self::write::{NewStream, change_stream, make_stream};
use crate::{
    auth::{Manager, Reader},
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The stream that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedStream(pub(crate) StreamId);

path_parameter!(NamedStream, "id", |given| given.parse().map(NamedStream).map_err(|_| no_stream(given)));

pub(crate) fn no_stream(given: &str) -> ApiError {
    let shown: String = given.chars().take(StreamId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no stream `{shown}`; create it with POST /v1/streams"))
}

pub(crate) async fn find(app: &AppState, tenant: &TenantId, id: &StreamId) -> Result<MailStream, ApiError> {
    app.store.stream(tenant, id).await?.ok_or_else(|| no_stream(id.as_str()))
}

/// List streams
///
/// The streams of your tenant, by id.
#[utoipa::path(
    get,
    path = "/v1/streams",
    operation_id = "listStreams",
    tag = "streams",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by id", body = StreamList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<StreamList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let after: Option<StreamId> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    // One item more than requested shows whether there is a next page.
    let mut found = app.store.streams(&caller.tenant, after.as_ref(), limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.id));
    Ok(Json(StreamList { data: found.into_iter().map(StreamView::from).collect(), next_cursor }))
}

/// Show a stream
///
/// The stream, and whether readers can unsubscribe from it.
#[utoipa::path(
    get,
    path = "/v1/streams/{id}",
    operation_id = "getStream",
    tag = "streams",
    params(("id" = String, Path, description = "The stream")),
    responses((status = 200, description = "The stream", body = StreamView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedStream(id): NamedStream,
) -> Result<Json<StreamView>, ApiError> {
    find(&app, &caller.tenant, &id).await.map(|stream| Json(stream.into()))
}

/// Delete a stream
///
/// From then on its mail belongs to an ordinary batch of that name. Readers who unsubscribed still get no
/// mail under its name.
#[utoipa::path(
    delete,
    path = "/v1/streams/{id}",
    operation_id = "deleteStream",
    tag = "streams",
    params(("id" = String, Path, description = "The stream")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedStream(id): NamedStream,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "stream.delete", id.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteStream(tenant.clone(), id.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(no_stream(id.as_str())),
    }
}
