//! Answers when no handler answers: unknown paths, unknown methods, and panics.

use std::{any::Any, panic::AssertUnwindSafe};

use axum::{
    http::Method,
    response::{IntoResponse, Response},
};
use futures::FutureExt;

use super::error::ApiError;

/// The handler's answer, or 500 if it panics. A handler changes state only through the store's transactions,
/// so a panic leaves nothing half done.
pub(crate) async fn catch_panics(answer: impl Future<Output = Response>) -> Response {
    match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => ApiError::internal(panic_text(&*panic)).into_response(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a handler panicked: {}", text.unwrap_or("without a word"))
}

/// 404 for a path without a route.
pub(crate) async fn no_such_path() -> ApiError {
    ApiError::not_found("there is nothing at this path; GET /docs lists what there is")
}

/// 405 for a route that has other methods.
pub(crate) async fn no_such_method(method: Method) -> ApiError {
    ApiError::method_not_allowed(format!("this path has no {method}; the Allow header lists what it has"))
}
