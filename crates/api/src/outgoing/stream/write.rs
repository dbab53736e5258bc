//! `POST /v1/streams` and `PATCH /v1/streams/{id}`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{MailStream, TenantId, id::StreamId};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

pub(crate) use super::edit::StreamEdit as NewStream;
use super::{NamedStream, StreamView, edit, find, view::StreamRequest};
use crate::{
    auth::Manager,
    http::{
        body,
        error::ApiError,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    state::{AppState, SharedState},
};

/// Create a stream
///
/// 409 if the id is taken, or your tenant has the maximum number of streams.
#[utoipa::path(
    post,
    path = "/v1/streams",
    operation_id = "createStream",
    tag = "streams",
    request_body = StreamRequest,
    responses((status = 201, description = "Created", body = StreamView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let given = edit::read(body::json_object(request).await?, true).map_err(ApiError::invalid)?;
    let view = StreamView::from(make_stream(&app, &caller, &request_id, given).await?);
    let location = [(header::LOCATION, format!("/v1/streams/{}", view.id()))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

/// Creates the stream that an edit describes.
pub(crate) async fn make_stream(
    app: &AppState,
    caller: &Manager,
    request_id: &RequestId,
    given: NewStream,
) -> Result<MailStream, ApiError> {
    let id = given.id.ok_or_else(|| ApiError::field("id", "is needed: what messages call it"))?;
    let (tenant, now) = (caller.tenant.clone(), app.clock.now());
    let stream = MailStream {
        tenant: tenant.clone(),
        id: id.clone(),
        name: given.name.unwrap_or_default(),
        description: given.description.flatten(),
        unsubscribe: given.unsubscribe.unwrap_or(false),
        unsubscribe_mailto: given.unsubscribe_mailto.flatten(),
        version: 1,
        created_at: now,
        updated_at: now,
    };
    check_way_out(app, &stream)?;
    let max = MailStream::PER_TENANT_MAX;
    if app.store.streams(&tenant, None, max).await?.len() >= max as usize {
        return Err(ApiError::conflict(format!("there are {max} streams already, the most of a tenant")));
    }
    let entry = app.audit(&caller.actor, Some(&tenant), "stream.create", id.as_str(), request_id, None);
    match app.store.change(DirectoryChange::CreateStream(stream.clone()), Some(entry)).await? {
        ChangeResult::Done => Ok(stream),
        _ => Err(ApiError::conflict("there is a stream with this id already; change it with PATCH")),
    }
}

/// Refuses a stream that is to offer unsubscribing but cannot.
fn check_way_out(app: &AppState, stream: &MailStream) -> Result<(), ApiError> {
    match stream.unsubscribe && stream.unsubscribe_mailto.is_none() && !app.door.serves_readers() {
        true => Err(ApiError::field(
            "unsubscribe",
            "readers have no way here: the operator must set public_url with https, or give unsubscribe_mailto",
        )),
        false => Ok(()),
    }
}

/// Change a stream
///
/// Changes the given fields. With `version`, the change is made only if the stream still has that version;
/// 409 otherwise.
#[utoipa::path(
    patch,
    path = "/v1/streams/{id}",
    operation_id = "changeStream",
    tag = "streams",
    params(("id" = String, Path, description = "The stream")),
    request_body = StreamRequest,
    responses((status = 200, description = "The stream after the change", body = StreamView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedStream(id): NamedStream,
    request: Request,
) -> Result<Json<StreamView>, ApiError> {
    let given = edit::read(body::json_object(request).await?, false).map_err(ApiError::invalid)?;
    change_stream(&app, &caller, &request_id, &id, given).await.map(|stream| Json(stream.into()))
}

/// Applies an edit to a stream.
pub(crate) async fn change_stream(
    app: &AppState,
    caller: &Manager,
    request_id: &RequestId,
    id: &StreamId,
    given: NewStream,
) -> Result<MailStream, ApiError> {
    let tenant: &TenantId = &caller.tenant;
    change_versioned("stream", || async {
        let current = find(app, tenant, id).await?;
        let expected = current.version;
        check_version("stream", given.version, expected)?;
        let stream = MailStream {
            name: given.name.clone().unwrap_or_else(|| current.name.clone()),
            description: given.description.clone().unwrap_or_else(|| current.description.clone()),
            unsubscribe: given.unsubscribe.unwrap_or(current.unsubscribe),
            unsubscribe_mailto: given
                .unsubscribe_mailto
                .clone()
                .unwrap_or_else(|| current.unsubscribe_mailto.clone()),
            version: expected + 1,
            updated_at: app.clock.now(),
            ..current
        };
        check_way_out(app, &stream)?;
        let detail = Some(json!({"fields": given.fields, "version": stream.version}));
        let entry = app.audit(&caller.actor, Some(tenant), "stream.change", id.as_str(), request_id, detail);
        let change = DirectoryChange::UpdateStream(stream.clone(), expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            return Ok(Some(stream));
        }
        Ok::<_, ApiError>(None)
    })
    .await
}
