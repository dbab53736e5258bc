//! `POST /v3/mail/send`.

use axum::{
    extract::{Request, State},
    http::{HeaderName, StatusCode},
    response::{IntoResponse, Response},
};
use postway_intake::RequestContext;

use super::{error::theirs, mail};
use crate::{
    auth::Sender,
    compat::expansion::{ExpansionBudget, take_all},
    http::{body, error::ApiError, request_id::RequestId},
    message::submit::accept,
    state::SharedState,
};

/// The header in which SendGrid's users find the id.
const MESSAGE_ID: HeaderName = HeaderName::from_static("x-message-id");

pub(super) async fn send(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let context = accept::compat_context(caller, &id, &parts.headers)?;
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let mut budget = ExpansionBudget::new(&app, &parts, bytes.len());
    let mail::SendGridMail { messages, is_trial } = mail::translate(&bytes, &mut budget)?;
    // SendGrid has no limit on subjects of its own.
    let context = RequestContext { any_subject: true, dry_run: is_trial, ..context };
    let receipts = take_all(&app, &context, messages, theirs).await?;
    if is_trial {
        return Ok(StatusCode::OK.into_response());
    }
    let uid = receipts.first().map(|receipt| receipt.uid.to_string()).unwrap_or_default();
    Ok((StatusCode::ACCEPTED, [(MESSAGE_ID, uid)]).into_response())
}
