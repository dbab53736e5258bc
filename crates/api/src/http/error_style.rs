//! Error formats other than our own.
//!
//! A compatibility API attaches its [`ErrorStyle`] to an answer that has an error, and the middleware writes
//! the body with it.

use axum::http::StatusCode;
use serde_json::Value;

use super::error::ApiError;

/// How a compatibility API takes keys and formats errors.
pub(crate) struct ErrorStyle {
    /// The header, in lower case, that its users send their key in; `Authorization: Bearer` works too.
    pub(crate) key_header: &'static str,
    /// Returns the status and the body of an error, given the request's id.
    pub(crate) refuse: fn(&ApiError, &str) -> (StatusCode, Value),
}
