//! The API of reference 001, a message proxy for many tenants: commands under `/commands/…`, lists beside
//! them.
//!
//! A token comes as `X-API-Token`. A tenant's token works for its tenant: a `tenant_id` that names another is
//! 403. The admin token names the tenant with `tenant_id`, which is required for commands that suspend,
//! activate or remove. Every answer has `ok`; an error is `{"ok":false,"error":"…","detail":"…"}` with the
//! reason in both, because there are clients of both kinds.

pub(super) mod account;
mod add;
mod command;
mod list;
pub(super) mod message;
mod request;
mod status;
pub(super) mod tenant;

use axum::http::{StatusCode, request::Parts};
use postway_domain::KeyScope;
use serde_json::{Value, json};

use super::{ErrorStyle, routes::CompatRoutes};
use crate::{
    auth::{AuthenticatedKey, Caller},
    http::error::ApiError,
    observe::health,
    state::AppState,
};

/// How this API takes keys and formats errors.
pub(super) const ERROR_STYLE: ErrorStyle = ErrorStyle { key_header: "x-api-token", refuse };

/// Our fields and their names in this API.
pub(super) const NAMES: &[(&str, &str)] = &[
    ("account", "account_id"),
    ("text", "body"),
    ("html", "body"),
    ("batch", "batch_code"),
    ("send_at", "deferred_ts"),
    ("external_id", "message_id"),
    ("content_type", "mime_type"),
];

/// The routes of this API.
pub(super) fn routes() -> CompatRoutes {
    CompatRoutes::default()
        .post("/commands/add-messages", add::add)
        // The path in its diagrams.
        .post("/add-messages", add::add)
        .post("/commands/delete-messages", command::delete)
        .post("/commands/suspend", command::suspend)
        .post("/commands/activate", command::activate)
        .post("/commands/cleanup-messages", command::clean_up)
        .post("/commands/run-now", command::run_now)
        .get("/messages", list::list)
        .get("/account", account::list)
        .post("/account", account::put)
        .get("/accounts", account::list)
        .post("/accounts", account::put)
        .get("/account/{id}", account::show)
        .delete("/account/{id}", account::delete)
        .get("/accounts/{id}", account::show)
        .delete("/accounts/{id}", account::delete)
        .get("/tenant", tenant::list)
        .post("/tenant", tenant::put)
        .get("/tenants", tenant::list)
        .post("/tenants", tenant::put)
        .get("/tenant/{id}", tenant::show)
        .put("/tenant/{id}", tenant::update)
        .delete("/tenant/{id}", tenant::delete)
        .get("/tenants/{id}", tenant::show)
        .put("/tenants/{id}", tenant::update)
        .delete("/tenants/{id}", tenant::delete)
        .get("/status", command::status)
        .get("/health", health::live)
}

fn refuse(error: &ApiError, request_id: &str) -> (StatusCode, Value) {
    let message = match error.status() {
        StatusCode::UNAUTHORIZED => "a valid token is needed: send it as `X-API-Token: TOKEN`".to_owned(),
        _ => reason(error),
    };
    let body = json!({"ok": false, "error": message, "detail": message, "code": error.code(),
        "request_id": request_id});
    (error.status(), body)
}

/// The faults in one line, at most ten fields.
fn reason(error: &ApiError) -> String {
    match error.details() {
        [] => error.message().to_owned(),
        details => details.iter().take(10).map(ToString::to_string).collect::<Vec<_>>().join("; "),
    }
}

/// The caller, for the tenant that the call names, if the key has `scope`.
async fn caller(
    app: &AppState,
    parts: &Parts,
    scope: KeyScope,
    tenant: Option<&str>,
) -> Result<Caller, ApiError> {
    let who = crate::auth::authenticate(parts, app).await?;
    Caller::for_tenant(who, scope, tenant, parts, app).await
}

/// The caller, if the admin token names a tenant: suspending or removing by mistake loses mail.
async fn named_caller(
    app: &AppState,
    parts: &Parts,
    scope: KeyScope,
    tenant: Option<&str>,
) -> Result<Caller, ApiError> {
    let who = crate::auth::authenticate(parts, app).await?;
    if matches!(who, AuthenticatedKey::Admin) && tenant.is_none() && !parts.headers.contains_key("x-tenant") {
        return Err(ApiError::field("tenant_id", "is needed with the admin token: say whose mail it is"));
    }
    Caller::for_tenant(who, scope, tenant, parts, app).await
}
