//! The HTTP surface: what users script against, as `/v1/…`, and what operators watch.
//!
//! One file per endpoint or small group of them. Every request passes one frame (`frame.rs`) that gives it an id,
//! counts it, catches its panics and writes its error body; handlers return [`ApiError`] and know nothing of that.
//!
//! Promises: every answer carries `X-Request-Id`; every error has the one JSON shape of `error.rs`; a body is read only
//! up to its bound; no handler reads across the caller's tenant; a 202 is given only for what the door made durable.
//!
//! Not here: parsing and checking of messages (that is the door, [`postway_intake`]), sockets and TLS (the binary's).

mod account;
mod attachment_link;
mod audit;
mod auth;
mod batch;
mod body;
mod cleanup;
mod compat;
mod contact;
mod dashboard;
mod dead_letter;
mod dkim;
mod docs;
mod erase;
mod error;
mod feed;
mod fields;
mod file;
mod frame;
mod fresh;
mod health;
mod inbound;
mod mail_view;
mod mailbox;
mod message;
mod metrics;
mod node;
mod oauth;
mod openapi;
mod operate;
mod origin;
mod outbox;
mod overview;
mod page;
mod path;
mod query;
mod recent;
mod recipient;
mod request_id;
mod room;
mod rule;
mod schema;
mod session;
mod spelling;
mod state;
mod statistics;
mod stats;
mod stream;
mod suppression;
mod target;
mod template;
mod tenant;
mod token;
mod unsubscribe;
mod way;
mod webhook;

pub use account::probe::{AccountProbe, ProbeStep};
pub use account::unopened::UnopenedSecrets;
pub use auth::{AdminKey, KeyCheck, KeyDenied};
pub use compat::{
    CompatConfig, CompatRoute, DoorName, OldKind, REQUEST_ID, UnknownDoor, compat_routes, in_our_words,
    in_their_words,
};
pub use error::{ApiError, FieldError};
pub use mailbox::probe::{InboundProbe, MailboxStep};
pub use metrics::{MetricsAccess, MetricsKey};
pub use openapi::document;
pub use operate::{Asked, change as operator_change};
pub use origin::RequestOrigin;
pub use rule::trial::{RuleTrial, TriedCondition};
pub use state::ApiState;
pub use webhook::probe::WebhookTest;

use std::sync::Arc;

use axum::{Router, middleware};
use postway_domain::Clock;

use state::App;

/// What is served until there is a store: alive, but not ready.
pub fn waiting_router(clock: Arc<dyn Clock>) -> Router {
    Router::new()
        .route("/health/live", axum::routing::get(health::live))
        .fallback(health::waiting)
        .layer(middleware::from_fn_with_state(clock, frame::frame))
}

/// The whole surface, ready to be served. Its state is complete; nothing is spawned.
pub fn router(state: ApiState) -> Router {
    surface(state).0
}

/// The same, with what says to other ways in who may send. Both have one memory of keys: a key revoked by the one is
/// revoked for the other at once.
pub fn surface(state: ApiState) -> (Router, KeyCheck) {
    let doors = compat::routes(&state.compat);
    let unmatched = compat::Unmatched::new(&state.compat);
    let app = Arc::new(App::new(state));
    let clock = app.clock.clone();
    let (router, _) = openapi::routes().split_for_parts();
    let keys = KeyCheck(app.clone());
    let router = router
        .merge(doors)
        .route("/", axum::routing::get(dashboard::home))
        .route("/assets/{*path}", axum::routing::get(dashboard::asset))
        .fallback(move |state, request| unmatched.clone().answer(state, request))
        .method_not_allowed_fallback(frame::no_such_method)
        .layer(middleware::from_fn_with_state(app.clone(), frame::judge))
        .layer(middleware::from_fn_with_state(clock, frame::frame))
        .with_state(app);
    (router, keys)
}
