//! The API of reference 000, an outbox with callbacks: submits lists of mails, shows their states, and
//! requeues stuck ones.
//!
//! A mail's id is its sender's, usually a UUID; the same id with the same content changes nothing. An error
//! is `{"error":"…","code":"…","details":[…]}`.

pub(super) mod accept;
mod list;
mod requeue;
mod status;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{ErrorStyle, routes::CompatRoutes};
use crate::{http::error::ApiError, observe::health};

/// How this API takes keys and formats errors.
pub(super) const ERROR_STYLE: ErrorStyle = ErrorStyle { key_header: "x-api-key", refuse };

/// Pairs of our field and its name in another API.
pub(super) type FieldNames = &'static [(&'static str, &'static str)];

/// Our fields and their names in this API.
pub(super) const NAMES: FieldNames = &[("html", "body_html"), ("text", "body_text")];
/// The names for a mail that uses the other name for its headers.
const CUSTOM_NAMES: FieldNames =
    &[("html", "body_html"), ("text", "body_text"), ("headers", "custom_headers")];

/// The routes of this API.
pub(super) fn routes() -> CompatRoutes {
    CompatRoutes::default()
        .get("/emails", list::list)
        .post("/emails", accept::accept)
        .get("/emails/stale", list::stale)
        .get("/emails/invalid", list::invalid)
        .post("/emails/requeue", requeue::many)
        .get("/emails/{id}", list::show)
        .post("/emails/{id}/requeue", requeue::one)
        .get("/stale-emails", list::bare_stale)
        .get("/invalid-emails", list::bare_invalid)
        .get("/health-check", health::live)
}

fn refuse(error: &ApiError, request_id: &str) -> (StatusCode, Value) {
    let body = json!({"error": error.message(), "code": error.code(), "request_id": request_id,
        "details": error.details()});
    (error.status(), body)
}
