//! `GET /v1/messages/{id}/raw`: the mail itself.

use axum::{
    extract::State,
    http::{HeaderName, header},
    response::{IntoResponse, Response},
};
use postway_domain::Status;
use postway_store::record::MessageSummary;

use super::{GivenId, find};
use crate::{auth::Reader, error::ApiError, room::Counted, state::Shared};

/// Get the mail itself
///
/// The RFC 5322 bytes as they are sent. Bcc is never among the headers. 404 while it is not composed yet, and 403 for a
/// sensitive message.
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
    let message = find(&app, &caller.tenant, &id).await?.summary;
    refuse_sensitive(&message)?;
    let Some(body) = app.store.raw(&caller.tenant, message.uid).await? else {
        return Err(absent(&message));
    };
    let bytes = app.load(&caller.tenant, body).await?;
    Ok((Counted, headers("message/rfc822", &format!("{}.eml", message.uid)), bytes).into_response())
}

/// What is sensitive is for its recipients alone; no key opens it.
pub(super) fn refuse_sensitive(message: &MessageSummary) -> Result<(), ApiError> {
    match message.sensitive {
        true => Err(ApiError::sensitive(format!(
            "message `{}` is marked sensitive: nobody can read it here, and it is removed once it is sent",
            message.uid
        ))),
        false => Ok(()),
    }
}

/// Somebody else's text: a browser must save it, never show it as a page of ours.
pub(crate) fn headers(kind: &'static str, filename: &str) -> [(HeaderName, String); 3] {
    [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{filename}\"")),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ]
}

/// Why there is no mail.
pub(super) fn absent(message: &MessageSummary) -> ApiError {
    let uid = message.uid;
    ApiError::not_found(match message.state.status() {
        Status::Accepted | Status::Validating | Status::Scheduled => {
            format!("the mail of message `{uid}` is not composed yet: what it needs is still being fetched")
        }
        Status::Invalid => format!("message `{uid}` was refused, so its mail was never composed"),
        _ => format!("the mail of message `{uid}` is no longer kept"),
    })
}
