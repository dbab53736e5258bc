//! The Resend API, so that its SDKs work with another base URL and one of our keys.
//!
//! Emails with their attachments, templates and webhooks. An email's id is the message's uid. As there,
//! unknown fields are ignored; a known field that cannot be honoured here, such as a topic, is refused. A
//! batch is accepted completely or not at all, unless `x-batch-validation: permissive` asks for the valid
//! ones.

mod attachments;
mod change;
mod email;
mod error;
mod list;
mod read;
mod send;
mod status;
mod template_source;
mod templates;
mod time;
mod webhooks;

use axum::{
    Json,
    extract::Request,
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};

use super::{ErrorStyle, routes::CompatRoutes};

/// How this API takes keys and formats errors.
pub(super) const ERROR_STYLE: ErrorStyle = ErrorStyle { key_header: "x-api-key", refuse: error::refuse };

/// The routes of this API.
pub(super) fn routes() -> CompatRoutes {
    CompatRoutes::default()
        .post("/emails", send::send)
        .get("/emails", list::list)
        .post("/emails/batch", send::batch)
        .get("/emails/{id}", read::show)
        .patch("/emails/{id}", change::update)
        .post("/emails/{id}/cancel", change::cancel)
        .get("/emails/{id}/attachments", attachments::list)
        .get("/emails/{id}/attachments/{attachment_id}", attachments::show)
        .post("/templates", templates::create)
        .get("/templates", templates::list)
        .get("/templates/{id}", templates::show)
        .patch("/templates/{id}", templates::update)
        .delete("/templates/{id}", templates::remove)
        .post("/templates/{id}/publish", templates::publish)
        .post("/webhooks", webhooks::create)
        .get("/webhooks", webhooks::list)
        .get("/webhooks/{id}", webhooks::show)
        .patch("/webhooks/{id}", webhooks::update)
        .delete("/webhooks/{id}", webhooks::remove)
        .post("/webhooks/{id}/signing-secret/rotate", webhooks::rotate)
        .around(|router| router.route_layer(middleware::from_fn(expect_key)))
}

/// This API distinguishes a missing key from a wrong one.
async fn expect_key(request: Request, next: Next) -> Response {
    match request.headers().contains_key(header::AUTHORIZATION) {
        true => next.run(request).await,
        false => {
            let message = "there is no key: send it as `Authorization: Bearer KEY`";
            let body = error::body(StatusCode::UNAUTHORIZED, "missing_api_key", message);
            (StatusCode::UNAUTHORIZED, Json(body)).into_response()
        }
    }
}
