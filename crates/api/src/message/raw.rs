//! `GET /v1/messages/{id}/raw`: the mail itself.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use super::{GivenId, find};
use crate::{auth::Reader, error::ApiError, state::Shared};

/// Get the mail itself
///
/// The RFC 5322 bytes as they are sent. Bcc is never among the headers.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/raw",
    operation_id = "getRawMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "The mail", body = String, content_type = "message/rfc822"))
)]
pub(crate) async fn raw(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Response, ApiError> {
    let uid = find(&app, &caller.tenant, &id).await?.summary.uid;
    let Some(bytes) = app.store.raw(&caller.tenant, uid).await? else {
        return Err(ApiError::not_found(format!("the mail of message `{uid}` is no longer kept")));
    };
    // A mail is somebody else's text: a browser must save it, never show it as a page of ours.
    let headers = [
        (header::CONTENT_TYPE, "message/rfc822".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{uid}.eml\"")),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((headers, bytes).into_response())
}
