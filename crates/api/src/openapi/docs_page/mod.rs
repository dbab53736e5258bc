//! `/docs`: the OpenAPI document as a page to read. Rendered by the server, once; it loads nothing from
//! elsewhere. Its script searches it and tries calls against this server; without it the text is the same.

mod render;
mod schema;

use std::sync::LazyLock;

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use bytes::Bytes;

/// The page needs its style sheet, its script, and the calls that are tried, so nothing else is allowed.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Read the documentation
///
/// This page. No key is needed.
#[utoipa::path(
    get,
    path = "/docs",
    operation_id = "getDocs",
    tag = "operations",
    security(()),
    responses((status = 200, description = "The page", body = String, content_type = "text/html"))
)]
pub(crate) async fn docs() -> Response {
    static PAGE: LazyLock<Bytes> = LazyLock::new(|| {
        let document = serde_json::to_value(crate::openapi::document()).unwrap_or_default();
        render::page(&document).into()
    });
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, PAGE.clone()).into_response()
}

/// The page's script.
pub(crate) async fn script() -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/javascript; charset=utf-8"), (header::CACHE_CONTROL, "max-age=3600")];
    (headers, SCRIPT).into_response()
}

/// The page's style sheet.
pub(crate) async fn style() -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "max-age=3600")];
    (headers, STYLE).into_response()
}
