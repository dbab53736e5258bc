//! The door of reference 000, an outbox with callbacks: mails in by the list, their states, and the way back for those
//! that are stuck.
//!
//! A mail's id is its sender's, a UUID as a rule; the same one again with the same content changes nothing. An error is
//! `{"error":"…","code":"…","details":[…]}`.

pub(super) mod accept;
mod list;
mod requeue;
mod status;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Dress, routes::DoorRoutes};
use crate::{http::error::ApiError, observe::health};

/// How this door takes keys and says no.
pub(super) const DRESS: Dress = Dress { key_header: "x-api-key", refuse };

/// Our fields in the names of a door.
pub(super) type Names = &'static [(&'static str, &'static str)];

/// Our fields in its names.
pub(super) const NAMES: Names = &[("html", "body_html"), ("text", "body_text")];
/// The same for a mail that calls its headers by the other name.
const CUSTOM_NAMES: Names = &[("html", "body_html"), ("text", "body_text"), ("headers", "custom_headers")];

/// Its routes.
pub(super) fn routes() -> DoorRoutes {
    DoorRoutes::default()
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
