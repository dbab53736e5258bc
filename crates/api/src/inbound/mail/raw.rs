//! `GET /v1/inbound/{id}/raw`: the complete mail.

use axum::{
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};

use super::{NamedInbound, bytes_of};
use crate::{
    auth::ContentReader,
    http::{body_budget::AlreadyCounted, error::ApiError},
    message::content::raw::{headers, kind_for},
    state::SharedState,
};

/// Get the complete inbound mail
///
/// Its bytes as the server delivered them. 404 if it could not be read, or is no longer stored.
#[utoipa::path(
    get,
    path = "/v1/inbound/{id}/raw",
    operation_id = "getRawInbound",
    tag = "inbound",
    params(("id" = String, Path, description = "The mail")),
    responses((status = 200, description = "The mail", body = String, content_type = "message/rfc822"))
)]
pub(crate) async fn raw(
    State(app): State<SharedState>,
    caller: ContentReader,
    NamedInbound(uid): NamedInbound,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let bytes = bytes_of(&app, &caller.tenant, uid).await?;
    let headers = headers(kind_for(&asked, "message/rfc822"), &format!("{uid}.eml"));
    Ok((AlreadyCounted, headers, bytes).into_response())
}
