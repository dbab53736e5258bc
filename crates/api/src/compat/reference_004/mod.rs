//! The API of reference 004, a gateway that validates and sends: one mail per call, and its states and
//! events.
//!
//! A key comes as `X-API-Key`; `Idempotency-Key` and `X-Request-Id` mean what they mean everywhere here. Its
//! mails need no sender: the tenant's `default_from` is used. Errors are
//! `{"error":{"code","message","requestId","details"}}`, whose `code` for a mail that fails a check is the
//! check's own (`INVALID_EMAIL`, `INVALID_TEMPLATE`, …).

mod event;
mod refused;
pub(super) mod send;
mod show;
mod status;

use std::time::Instant;

use axum::http::StatusCode;
use postway_domain::MessageUid;
use postway_intake::RequestContext;
use serde_json::{Value, json};

use super::{ErrorStyle, routes::CompatRoutes};
use crate::http::error::ApiError;

/// How this API takes keys and formats errors.
pub(super) const ERROR_STYLE: ErrorStyle = ErrorStyle { key_header: "x-api-key", refuse };

/// Our fields and their names in this API.
pub(super) const NAMES: &[(&str, &str)] = &[
    ("reply_to", "replyTo"),
    ("external_id", "externalId"),
    ("content_type", "contentType"),
    ("content_id", "contentId"),
];

/// The routes of this API.
pub(super) fn routes() -> CompatRoutes {
    CompatRoutes::default()
        .post("/v1/email/send", send::send)
        .get("/v1/emails", show::list)
        .get("/v1/emails/{id}", show::show)
}

fn refuse(error: &ApiError, request_id: &str) -> (StatusCode, Value) {
    let message = match error.status() {
        StatusCode::UNAUTHORIZED => "a valid key is needed: send it as `X-API-Key: KEY`",
        _ => error.message(),
    };
    let code = error.details().iter().find_map(|detail| detail.code);
    let code = code.map_or_else(|| error.code().to_uppercase(), str::to_owned);
    let body = json!({"code": code, "message": message, "requestId": request_id, "details": error.details()});
    (error.status(), json!({ "error": body }))
}

/// The log line for a received mail, with the fields that every line about a mail has. Never an address.
fn log_received(context: &RequestContext, uid: Option<MessageUid>, state: &str, started: Instant) {
    tracing::info!(
        uid = uid.map(tracing::field::display),
        request_id = context.request_id,
        tenant = %context.tenant,
        attempt = 0,
        state,
        duration_ms = started.elapsed().as_millis() as u64,
        "received"
    );
}
