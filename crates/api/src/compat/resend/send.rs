//! `POST /emails` and `POST /emails/batch`.

use axum::{
    Json,
    extract::{Request, State},
    http::HeaderMap,
};
use bytes::Bytes;
use postway_intake::{AcceptReceipt, BatchReceipt, RequestContext};
use serde_json::{Value, json};

use super::{
    email,
    error::{theirs, words},
};
use crate::{
    auth::Sender,
    compat::translate::{RawItems, misshapen},
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::submit::{accept, batch as many},
    state::SharedState,
};

/// The most emails of a batch.
const BATCH_MAX: usize = 100;

pub(super) async fn send(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let context = context(caller, &id, &parts.headers)?;
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let message = email::message(&bytes)?;
    let receipt = accept::take(&app, &context, message.into()).await.map_err(theirs)?;
    Ok(Json(json!({"id": receipt.uid})))
}

pub(super) async fn batch(
    State(app): State<SharedState>,
    caller: Sender,
    id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let is_strict = is_strict(&parts.headers)?;
    let context = context(caller, &id, &parts.headers)?;
    body::expect_json(&parts.headers)?;
    let bytes = body::read(&parts, body, app.door.limits().request_bytes_max).await?;
    let emails = read(&bytes)?;
    let (messages, mut results) = translate(&emails);
    if is_strict {
        all_or_none(&results)?;
    }
    if results.iter().any(Result::is_ok) {
        let BatchReceipt { results: taken, .. } = match is_strict {
            true => many::take_whole(&app, &context, messages).await,
            false => many::take_each(&app, &context, messages).await,
        }
        .map_err(theirs)?;
        let mut taken = taken.into_iter();
        for result in results.iter_mut().filter(|result| result.is_ok()) {
            *result = match taken.next() {
                Some(Ok(receipt)) => Ok(Some(receipt)),
                Some(Err(rejected)) => Err(theirs(rejected.refusal.into())),
                None => Err(ApiError::internal("the intake did not answer for every message")),
            };
        }
    }
    if is_strict {
        all_or_none(&results)?;
    }
    Ok(Json(answer(results, is_strict)))
}

/// The state of an email: refused, to be accepted, or accepted.
type EmailOutcome = Result<Option<AcceptReceipt>, ApiError>;

/// Resend has no limit on subjects, and accepts times in words.
fn context(caller: Sender, id: &RequestId, headers: &HeaderMap) -> Result<RequestContext, ApiError> {
    let context = accept::compat_context(caller, id, headers)?;
    Ok(RequestContext { any_subject: true, spoken_times: true, ..context })
}

fn is_strict(headers: &HeaderMap) -> Result<bool, ApiError> {
    match headers.get("x-batch-validation").map(|value| value.as_bytes()) {
        None | Some(b"strict") => Ok(true),
        Some(b"permissive") => Ok(false),
        Some(_) => Err(ApiError::field("x-batch-validation", "must be strict or permissive")),
    }
}

fn read(bytes: &Bytes) -> Result<RawItems<'_>, ApiError> {
    let emails: RawItems<'_> = serde_json::from_slice(bytes).map_err(|error| {
        misshapen(bytes, &error, |_| ApiError::field("", "the body must be a list of emails"))
    })?;
    match emails.0.len() {
        0 => Err(ApiError::field("", "give at least one email")),
        1..=BATCH_MAX => Ok(emails),
        count => Err(ApiError::field("", format!("there are {count} emails: send at most {BATCH_MAX}"))),
    }
}

/// Our messages of those that can be translated, and for every email whether it is one of them.
fn translate(emails: &RawItems<'_>) -> (Vec<Bytes>, Vec<EmailOutcome>) {
    let mut messages = Vec::with_capacity(emails.0.len());
    let mut results = Vec::with_capacity(emails.0.len());
    for item in &emails.0 {
        results.push(email::message(item.get().as_bytes()).map(|message| {
            messages.push(message.into());
            None
        }));
    }
    (messages, results)
}

/// The faults of all emails, each field with its email's index before it.
fn all_or_none(results: &[EmailOutcome]) -> Result<(), ApiError> {
    let mut faults = Vec::new();
    for (place, error) in
        results.iter().enumerate().filter_map(|(place, result)| Some((place, result.as_ref().err()?)))
    {
        if error.details().is_empty() {
            // Too large, or the store does not answer: that is not a fault of a field.
            return Err(error.clone());
        }
        faults.extend(error.details().iter().map(|detail| {
            let dot = if detail.field.is_empty() { "" } else { "." };
            FieldError { field: format!("[{place}]{dot}{}", detail.field), ..detail.clone() }
        }));
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(ApiError::invalid(faults)),
    }
}

fn answer(results: Vec<EmailOutcome>, is_strict: bool) -> Value {
    let (mut data, mut errors) = (Vec::new(), Vec::new());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(receipt) => data.extend(receipt.map(|receipt| json!({"id": receipt.uid}))),
            Err(error) => errors.push(json!({"index": index, "message": words(&error)})),
        }
    }
    match is_strict {
        true => json!({"data": data}),
        false => json!({"data": data, "errors": errors}),
    }
}
