//! `GET /v1/messages/{id}/payload`: the request that created a message, as it was submitted.

use axum::{
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};

use crate::{
    auth::ContentReader,
    http::{body_budget::AlreadyCounted, error::ApiError},
    message::{MessagePathId, content::raw, find},
    state::SharedState,
};

/// Get the submitted request
///
/// The request as it was received, for as long as the message is kept: JSON, or the ready-made mail. For a
/// message of a batch, the message alone. 403 for a sensitive message.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/payload",
    operation_id = "getMessagePayload",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((
        status = 200,
        description = "The request, as `application/json` or `message/rfc822`",
        content((Object = "application/json"), (String = "message/rfc822")),
    ))
)]
pub(crate) async fn payload(
    State(app): State<SharedState>,
    caller: ContentReader,
    MessagePathId(id): MessagePathId,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let message = find(&app, &caller.tenant, &id).await?.summary;
    raw::refuse_sensitive(&message)?;
    let uid = message.uid;
    let Some(body) = app.store.payload(&caller.tenant, uid).await? else {
        let message = format!("the request that brought message `{uid}` is not kept, or no longer");
        return Err(ApiError::not_found(message));
    };
    let bytes = app.load(&caller.tenant, body).await?;
    let (kind, ending) = match is_json(&bytes) {
        true => ("application/json", "json"),
        false => (raw::kind_for(&asked, "message/rfc822"), "eml"),
    };
    Ok((AlreadyCounted, raw::headers(kind, &format!("{uid}.{ending}")), bytes).into_response())
}

/// A request is a JSON object or a mail, and no mail begins with a brace.
fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}
