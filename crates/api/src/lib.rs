//! The HTTP API: the endpoints under `/v1/…`, the compatibility APIs, the dashboard, and what monitoring
//! reads.
//!
//! One file per endpoint or small group of endpoints; `README.md` says what each folder holds. Every request
//! passes the middleware (`middleware.rs`), which gives it an id, counts it, catches its panics and writes
//! its error body. Handlers return [`ApiError`] and know nothing of that.
//!
//! Promises: every answer carries `X-Request-Id`; every error has the one JSON shape of `http/error.rs`; a
//! body is read only up to its bound; no handler reads data of another tenant; a 202 is given only for a
//! message that the intake has made durable.
//!
//! Not here: parsing and checking messages (the intake, [`postway_intake`]), sockets and TLS (the binary).

mod admin;
mod auth;
mod compat;
mod http;
mod inbound;
mod limit;
mod message;
mod middleware;
mod observe;
mod openapi;
mod outgoing;
mod people;
mod setting;
mod state;
mod web;
mod webhook;

pub use auth::{AdminKey, AwayFailure, AwaySignIn, KeyCheck, KeyDenied, ProviderSignIn, SignInProvider};
pub use compat::{
    CompatApi, CompatConfig, CompatRoute, ForeignRowKind, REQUEST_ID, UnknownCompatApi, compat_routes,
    foreign_field_name, translate_row,
};
pub use http::error::{ApiError, FieldError};
pub use http::origin::RequestOrigin;
pub use inbound::mailbox::probe::{InboundProbe, MailboxStep};
pub use inbound::rule::trial::{RuleTrial, TriedCondition};
pub use limit::{RequestLimits, SubjectLimits, WindowLimit};
pub use message::bulk::BulkWorker;
pub use message::operate::transition::{OperatorAction, change as operator_change};
pub use observe::metrics::{MetricsAccess, MetricsKey};
pub use openapi::document;
pub use outgoing::account::probe::{AccountProbe, ProbeStep};
pub use outgoing::account::unopened::UnopenedSecrets;
pub use outgoing::domain::check::{DnsFinding, DnsRecordView, DomainChecker, DomainProbe, DomainUse};
pub use state::ApiState;
pub use webhook::probe::WebhookTest;

use std::sync::Arc;

use axum::{Router, middleware::from_fn_with_state, routing::get};
use postway_domain::Clock;

use self::{observe::health, state::AppState, web::dashboard};

/// The router that is served until the store is open: the process is alive, but not ready.
pub fn not_ready_router(clock: Arc<dyn Clock>) -> Router {
    Router::new()
        .route("/health/live", get(health::live))
        .fallback(health::waiting)
        .layer(from_fn_with_state(clock, middleware::observe))
}

/// The complete API, ready to be served. It spawns no task.
pub fn router(state: ApiState) -> Router {
    surface(state).0
}

/// The complete API, and the key check that other listeners (SMTP) use. Both share one cache of keys, so a
/// key revoked through one is revoked for the other at once.
pub fn surface(state: ApiState) -> (Router, KeyCheck) {
    let compat_routes = compat::routes(&state.compat);
    let unmatched = compat::UnmatchedRoutes::new(&state.compat);
    let app = Arc::new(AppState::new(state));
    let clock = app.clock.clone();
    let (router, _) = openapi::routes().split_for_parts();
    let keys = KeyCheck(app.clone());
    let router = router
        .merge(compat_routes)
        .route("/", get(dashboard::home))
        .route("/assets/{*path}", get(dashboard::asset))
        .fallback(move |state, request| unmatched.clone().answer(state, request))
        .method_not_allowed_fallback(http::fallback::no_such_method)
        .layer(from_fn_with_state(app.clone(), middleware::authorize))
        .layer(from_fn_with_state(clock, middleware::observe))
        .with_state(app);
    (router, keys)
}
