//! `GET /v1/messages/{id}/content`, `/preview`, `/attachments/{index}`: the mail as its readers see it.

use axum::{extract::State, response::Response};
use bytes::Bytes;
use postway_domain::TenantId;

use crate::{
    auth::ContentReader,
    http::{error::ApiError, path::PathText},
    message::{
        MessagePathId,
        content::{
            mail_view::{self, MailContentView},
            raw,
        },
        find,
    },
    state::{AppState, SharedState},
};

/// The mail's bytes, unless they are sensitive, not composed yet, or removed.
pub(crate) async fn bytes(app: &AppState, tenant: &TenantId, id: &str) -> Result<Bytes, ApiError> {
    let message = find(app, tenant, id).await?.summary;
    raw::refuse_sensitive(&message)?;
    match app.store.raw(tenant, message.uid).await? {
        Some(body) => app.load(tenant, body).await,
        None => Err(raw::absent(&message)),
    }
}

/// Read the mail
///
/// The decoded header fields and text, and the list of attachments.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/content",
    operation_id = "getMessageContent",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "The mail", body = MailContentView))
)]
pub(crate) async fn content(
    State(app): State<SharedState>,
    caller: ContentReader,
    MessagePathId(id): MessagePathId,
) -> Result<Response, ApiError> {
    let raw = bytes(&app, &caller.tenant, &id).await?;
    mail_view::content(&app, &caller.tenant, raw).await
}

/// Preview the mail
///
/// The html with its embedded images. It is served so that no script runs and nothing is fetched.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/preview",
    operation_id = "previewMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "The html", body = String, content_type = "text/html"))
)]
pub(crate) async fn preview(
    State(app): State<SharedState>,
    caller: ContentReader,
    MessagePathId(id): MessagePathId,
) -> Result<Response, ApiError> {
    let raw = bytes(&app, &caller.tenant, &id).await?;
    mail_view::preview(&app, &caller.tenant, raw).await
}

/// Download a file of the mail
///
/// The bytes of one attachment, as a download: the answer never opens in a browser. `GET
/// /v1/messages/{id}/content` lists the files. 403 for a sensitive message.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/attachments/{index}",
    operation_id = "getMessageAttachment",
    tag = "messages",
    params(
        ("id" = String, Path, description = "Your id of the message, or its uid"),
        ("index" = usize, Path, description = "The file's position among the attachments, from 0"),
    ),
    responses((status = 200, description = "The file", body = String, content_type = "application/octet-stream"))
)]
pub(crate) async fn attachment(
    State(app): State<SharedState>,
    caller: ContentReader,
    PathText((id, index)): PathText<(String, String)>,
) -> Result<Response, ApiError> {
    let raw = bytes(&app, &caller.tenant, &id).await?;
    mail_view::attachment(&app, &caller.tenant, raw, &index).await
}
