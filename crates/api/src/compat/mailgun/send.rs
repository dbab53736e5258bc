//! `POST /v3/{domain}/messages` and `POST /v3/{domain}/messages.mime`.

use axum::{
    Json,
    extract::{Request, State},
};
use bytes::Bytes;
use postway_domain::TenantId;
use postway_intake::{AcceptReceipt, RawOptions, RequestContext};
use serde_json::{Value, json};

use super::{
    error::theirs,
    form::MailgunForm,
    message::{self, addresses},
    option::MailgunOptions,
};
use crate::{
    auth::Sender,
    compat::{
        expansion::{ExpansionBudget, take_all},
        translate::refuse_mail,
    },
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::{find, submit::accept},
    state::{AppState, SharedState},
};

/// The field of a ready-made mail.
const MAIL: &str = "message";

pub(super) async fn send(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let context = accept::compat_context(caller, &id, &parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let form = MailgunForm::read(&parts.headers, &bytes)?;
    let messages = message::translate(&form, &mut ExpansionBudget::new(&app, &parts, bytes.len()))?;
    // Mailgun has no limit on subjects of its own.
    let context = RequestContext { any_subject: true, ..context };
    let receipts = take_all(&app, &context, messages, |_, path| theirs(path)).await?;
    queued(&app, &context.tenant, receipts.first()).await
}

/// Takes a ready-made mail, to the recipients in `to`, whatever its header says.
pub(super) async fn send_ready_made(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let context = accept::compat_context(caller, &id, &parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let form = MailgunForm::read(&parts.headers, &bytes)?;
    let (options, mail) = ready_made(&form).map_err(|fault| refuse_mail(vec![fault]))?;
    let timed = accept::AcceptTimer::start();
    let receipt = app.door.accept_raw(&context, options, mail).await;
    let receipt = receipt.map_err(|refusal| ApiError::from(refusal).renamed(theirs))?;
    timed.stop();
    queued(&app, &context.tenant, Some(&receipt)).await
}

fn ready_made(form: &MailgunForm) -> Result<(RawOptions, Bytes), FieldError> {
    let to = addresses(form, "to");
    if to.is_empty() {
        return Err(FieldError::new("", "'to' parameter is missing"));
    }
    if form.text("recipient-variables").is_some_and(|json| json.trim() != "{}") {
        let message = "are not filled in in ready-made mails: send the parts instead";
        return Err(FieldError::new("recipient-variables", message));
    }
    let file = form.files.iter().find(|file| file.field == MAIL).map(|file| file.bytes.clone());
    let mail = file.or_else(|| form.text(MAIL).map(|text| Bytes::copy_from_slice(text.as_bytes())));
    let mail = mail.ok_or_else(|| FieldError::new("", "'message' parameter is missing"))?;
    let MailgunOptions { account, tags, send_at, metadata } = MailgunOptions::read(form)?;
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let options = RawOptions {
        account: account.map(str::to_owned),
        send_at: send_at.map(|at| at.to_string()),
        to: to.into_iter().map(str::to_owned).collect(),
        tags,
        metadata: metadata.into_iter().map(|(name, value)| (name, text(value))).collect(),
        ..RawOptions::default()
    };
    Ok((options, mail))
}

/// The answer for mail that is durable: the Message-ID, which Mailgun's users know it by.
async fn queued(
    app: &AppState,
    tenant: &TenantId,
    receipt: Option<&AcceptReceipt>,
) -> Result<Json<Value>, ApiError> {
    let receipt = receipt.ok_or_else(|| ApiError::internal("the intake did not answer"))?;
    let uid = receipt.uid.to_string();
    // The mail is durable whether its Message-ID can be read now or not.
    let id = find(app, tenant, &uid).await.map(|found| found.summary.message_id).unwrap_or(uid);
    Ok(Json(json!({"id": format!("<{id}>"), "message": "Queued. Thank you."})))
}
