//! The Postmark API, so that its SDKs work with another host and one of our keys as the server token.
//!
//! Sending, templates with layouts, messages, bounces, suppressions, streams and statistics, as its users
//! know them. A MessageID is the message's uid, a template's alias its name, and a message stream a batch, so
//! that a stream can be suspended by itself. As there, unknown fields are ignored; opens and links are not
//! tracked, whatever is requested. Every message of a batch has its own answer.
//!
//! Lists use `count` and `offset` there and cursors here: a list is read from its newest end, at most 10,000
//! items, as there.

mod bounce;
mod bounce_id;
mod error;
mod inactive;
mod message;
mod query;
mod read;
mod search;
mod send;
mod server;
mod stats;
mod status;
mod stream;
mod suppression;
mod template;
mod template_id;
mod template_store;
mod validate;

use std::sync::Arc;

use axum::Extension;

use super::{ErrorStyle, routes::CompatRoutes};

/// How this API takes keys and formats errors.
pub(super) const ERROR_STYLE: ErrorStyle =
    ErrorStyle { key_header: "x-postmark-server-token", refuse: error::refuse };

/// Short-lived caches of this API.
#[derive(Default)]
struct PostmarkCaches {
    lists: inactive::EmptySuppressionLists,
    templates: template_id::TemplateIdCache,
}

/// The routes of this API.
pub(super) fn routes() -> CompatRoutes {
    let routes = CompatRoutes::default()
        .post("/email", send::send)
        .post("/email/batch", send::batch)
        .post("/email/withTemplate", send::send_template)
        .post("/email/batchWithTemplates", send::batch_templates)
        .get("/messages/outbound", search::list)
        .get("/messages/outbound/opens", search::no_opens)
        .get("/messages/outbound/clicks", search::no_clicks)
        .get("/messages/outbound/{id}/details", read::details)
        .get("/messages/outbound/{id}/dump", read::dump)
        .get("/templates", template::list)
        .post("/templates", template::create)
        .post("/templates/validate", validate::validate)
        .get("/templates/{id}", template::show)
        .put("/templates/{id}", template::edit)
        .delete("/templates/{id}", template::delete)
        .get("/bounces", bounce::list)
        .get("/bounces/{id}", bounce::show)
        .get("/bounces/{id}/dump", bounce::dump)
        .put("/bounces/{id}/activate", bounce::activate)
        .get("/message-streams", stream::list)
        .post("/message-streams", stream::create)
        .get("/message-streams/{id}", stream::show)
        .patch("/message-streams/{id}", stream::edit)
        .post("/message-streams/{id}/archive", stream::archive)
        .post("/message-streams/{id}/unarchive", stream::unarchive)
        .get("/message-streams/{id}/suppressions/dump", suppression::dump)
        .post("/message-streams/{id}/suppressions", suppression::create)
        .post("/message-streams/{id}/suppressions/delete", suppression::delete)
        .get("/server", server::show)
        .get("/webhooks", server::no_webhooks)
        .post("/webhooks", server::no_webhooks)
        .get("/webhooks/{id}", server::no_webhooks)
        .put("/webhooks/{id}", server::no_webhooks)
        .delete("/webhooks/{id}", server::no_webhooks);
    stats::routes(routes).around(|router| router.layer(Extension(Arc::<PostmarkCaches>::default())))
}
