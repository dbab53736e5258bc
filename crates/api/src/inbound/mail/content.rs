//! `GET /v1/inbound/{id}/content`, `/preview`, `/attachments/{index}`: the mail as a reader sees it.

use axum::{extract::State, response::Response};

use super::{NamedInbound, bytes_of};
use crate::{
    auth::ContentReader,
    http::{error::ApiError, path::PathText},
    message::content::mail_view::{self, MailContentView},
    state::SharedState,
};

/// Read an inbound mail
///
/// The decoded header fields and text, and the list of attachments.
#[utoipa::path(
    get,
    path = "/v1/inbound/{id}/content",
    operation_id = "getInboundContent",
    tag = "inbound",
    params(("id" = String, Path, description = "The mail")),
    responses((status = 200, description = "The mail", body = MailContentView))
)]
pub(crate) async fn content(
    State(app): State<SharedState>,
    caller: ContentReader,
    NamedInbound(uid): NamedInbound,
) -> Result<Response, ApiError> {
    let raw = bytes_of(&app, &caller.tenant, uid).await?;
    mail_view::content(&app, &caller.tenant, raw).await
}

/// Preview an inbound mail
///
/// The html with its embedded images. It is served so that no script runs and nothing is fetched.
#[utoipa::path(
    get,
    path = "/v1/inbound/{id}/preview",
    operation_id = "previewInbound",
    tag = "inbound",
    params(("id" = String, Path, description = "The mail")),
    responses((status = 200, description = "The html", body = String, content_type = "text/html"))
)]
pub(crate) async fn preview(
    State(app): State<SharedState>,
    caller: ContentReader,
    NamedInbound(uid): NamedInbound,
) -> Result<Response, ApiError> {
    let raw = bytes_of(&app, &caller.tenant, uid).await?;
    mail_view::preview(&app, &caller.tenant, raw).await
}

/// Download a file of an inbound mail
///
/// The bytes of one attachment as they were received, as a download: the answer never opens in a browser.
/// `GET /v1/inbound/{id}/content` lists the files.
#[utoipa::path(
    get,
    path = "/v1/inbound/{id}/attachments/{index}",
    operation_id = "getInboundAttachment",
    tag = "inbound",
    params(
        ("id" = String, Path, description = "The mail"),
        ("index" = usize, Path, description = "The file's position among the attachments, from 0"),
    ),
    responses((status = 200, description = "The file", body = String, content_type = "application/octet-stream"))
)]
pub(crate) async fn attachment(
    State(app): State<SharedState>,
    caller: ContentReader,
    PathText((id, index)): PathText<(String, String)>,
) -> Result<Response, ApiError> {
    let NamedInbound(uid) = NamedInbound::parse(&id)?;
    let raw = bytes_of(&app, &caller.tenant, uid).await?;
    mail_view::attachment(&app, &caller.tenant, raw, &index).await
}
