//! The door of Postmark, so that its SDKs work with another host and a key of ours as the server token.
//!
//! Sending, templates with layouts, messages, bounces, suppressions, streams and statistics, as its users know them. A MessageID
//! is the message's uid, a template's alias its name, a message stream a batch, so that a stream can be suspended as one
//! and holds up no other. As there, a field that the call does not know is passed over; opens and links are not
//! tracked, whatever is asked for. Every message of a batch has its own answer.
//!
//! Lists go by `count` and `offset` there and by cursor here: a list is walked from its newest end, 10,000 at most, as there.

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

use super::{Dress, routes::DoorRoutes};

/// How this door takes keys and says no.
pub(super) const DRESS: Dress = Dress { key_header: "x-postmark-server-token", refuse: error::refuse };

/// What the door remembers for a moment.
#[derive(Default)]
struct DoorMemory {
    lists: inactive::EmptyLists,
    templates: template_id::TemplateIds,
}

/// Its routes.
pub(super) fn routes() -> DoorRoutes {
    let routes = DoorRoutes::default()
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
    stats::routes(routes).around(|router| router.layer(Extension(Arc::<DoorMemory>::default())))
}
