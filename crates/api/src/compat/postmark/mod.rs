//! The door of Postmark, so that its SDKs work with another host and a key of ours as the server token.
//!
//! `POST /email`, `/email/batch`, `/email/withTemplate`, `/email/batchWithTemplates`, and `GET /messages/outbound/{id}/details`
//! and `/dump`. A MessageID is the message's uid, a template's alias or id its name, a message stream a batch, so that a stream
//! can be suspended as one and holds up no other. As there, a field that the call does not know is passed over; opens and
//! links are not tracked, whatever is asked for. Every message of a batch has its own answer.

mod error;
mod inactive;
mod message;
mod read;
mod send;
mod word;

use std::sync::Arc;

use axum::Extension;

use super::{Dress, routes::DoorRoutes};

/// How this door takes keys and says no.
pub(super) const DRESS: Dress = Dress { key_header: "x-postmark-server-token", refuse: error::refuse };

/// Its routes.
pub(super) fn routes() -> DoorRoutes {
    DoorRoutes::default()
        .post("/email", send::send)
        .post("/email/batch", send::batch)
        .post("/email/withTemplate", send::send_template)
        .post("/email/batchWithTemplates", send::batch_templates)
        .get("/messages/outbound/{id}/details", read::details)
        .get("/messages/outbound/{id}/dump", read::dump)
        .around(|router| router.layer(Extension(Arc::<inactive::EmptyLists>::default())))
}
