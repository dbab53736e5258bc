//! `/account(s)`: relays, which are our accounts of the kind `smtp`.

use axum::{
    Json,
    extract::{Request, State},
    http::request::Parts,
};
use postway_domain::{AccountId, KeyScope};
use serde_json::{Map, Value, json};

use super::caller;
use crate::{
    compat::translate::renamed,
    http::{
        body,
        error::{ApiError, FieldError},
        path::PathText,
        query::QueryParameters,
        request_id::RequestId,
    },
    outgoing::account::{self, AccountView, change, no_account},
    state::SharedState,
};

/// Our fields and their names in this API.
const NAMES: &[(&str, &str)] = &[
    ("username", "user"),
    ("tls", "use_tls"),
    ("allow_plaintext_auth", "use_tls"),
    ("per_minute", "limit_per_minute"),
    ("per_hour", "limit_per_hour"),
    ("per_day", "limit_per_day"),
    ("behavior", "limit_behavior"),
    ("pec", "is_pec_account"),
];
/// Settings without effect here: how long a connection is kept, and how many mails are taken at once. The
/// answer says so.
const WITHOUT_EFFECT: [&str; 2] = ["ttl", "batch_size"];
/// The port of relays with implicit TLS.
const IMPLICIT_TLS_PORT: u64 = 465;

/// `GET /accounts`.
pub(super) async fn list(State(app): State<SharedState>, parts: Parts) -> Result<Json<Value>, ApiError> {
    let caller = caller(&app, &parts, KeyScope::Read, tenant_of(&parts)?.as_deref()).await?;
    let accounts = account::all(&app, &caller.tenant).await?.data;
    let accounts: Result<Vec<Value>, ApiError> = accounts.iter().map(view).collect();
    Ok(Json(json!({"ok": true, "accounts": accounts?})))
}

/// `GET /account/{id}`.
pub(super) async fn show(
    State(app): State<SharedState>,
    PathText(id): PathText<String>,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    let caller = caller(&app, &parts, KeyScope::Read, tenant_of(&parts)?.as_deref()).await?;
    let account = account::find(&app, &caller.tenant, &read_id(&id)?).await?;
    let shown = AccountView::with_standing(&app, &account).await?;
    let mut answer = view(&shown)?;
    answer["ok"] = json!(true);
    Ok(Json(answer))
}

/// `DELETE /account/{id}`.
pub(super) async fn delete(
    State(app): State<SharedState>,
    request_id: RequestId,
    PathText(id): PathText<String>,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    let caller = caller(&app, &parts, KeyScope::Manage, tenant_of(&parts)?.as_deref()).await?;
    account::remove(&app, &caller, &request_id, &read_id(&id)?).await?;
    Ok(Json(json!({"ok": true})))
}

/// `POST /account`: creates an account, or changes the given fields of an existing one.
pub(super) async fn put(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let in_query = tenant_of(&parts)?;
    caller(&app, &parts, KeyScope::Manage, in_query.as_deref()).await?;
    let mut body = body::json_of(&parts, body).await?;
    let in_body = match body.remove("tenant_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(tenant)) => Some(tenant).filter(|tenant| !tenant.trim().is_empty()),
        Some(_) => return Err(ApiError::field("tenant_id", "must be a text")),
    };
    let caller = caller(&app, &parts, KeyScope::Manage, in_query.or(in_body).as_deref()).await?;
    let existing = match body.get("id").and_then(Value::as_str).map(str::parse::<AccountId>) {
        Some(Ok(id)) => app.store.account(&caller.tenant, &id).await?.map(|account| account.id),
        _ => None,
    };
    let ignored: Vec<&str> = WITHOUT_EFFECT.into_iter().filter(|name| body.contains_key(*name)).collect();
    let mut ours = translate(body, existing.is_none()).map_err(ApiError::invalid)?;
    let done = match existing {
        None => account::make(&app, &caller, &request_id, ours).await,
        Some(id) => {
            ours.remove("id");
            change::update(&app, &caller, &request_id, &id, &ours, false).await
        }
    };
    let shown = done.map_err(|error| error.renamed(in_its_names))?;
    let mut answer = view(&shown)?;
    answer["ok"] = json!(true);
    if !ignored.is_empty() {
        answer["ignored"] = json!(ignored);
    }
    Ok(Json(answer))
}

fn tenant_of(parts: &Parts) -> Result<Option<String>, ApiError> {
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let named = query.take("tenant_id");
    query.finish()?;
    Ok(named)
}

fn read_id(given: &str) -> Result<AccountId, ApiError> {
    given.parse().map_err(|_| no_account(given))
}

pub(in crate::compat) fn in_its_names(field: &str) -> String {
    renamed(field.strip_prefix("limits.").unwrap_or(field), NAMES)
}

/// Translates an account.
pub(in crate::compat) fn translate(
    body: Map<String, Value>,
    is_new: bool,
) -> Result<Map<String, Value>, Vec<FieldError>> {
    let (mut ours, mut limits, mut wrong) = (Map::new(), Map::new(), Vec::new());
    let port = body.get("port").and_then(Value::as_u64);
    let use_tls = body.get("use_tls").cloned().unwrap_or(Value::Null);
    // Implicit TLS, as other clients call it; without it, `use_tls` decides.
    let use_ssl = match body.get("use_ssl") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(use_ssl)) => *use_ssl,
        Some(_) => {
            wrong.push(FieldError::new("use_ssl", "must be true or false"));
            false
        }
    };
    for (name, value) in body {
        match name.as_str() {
            "id" | "host" | "port" | "password" => drop(ours.insert(name, value)),
            "user" | "username" => drop(ours.insert("username".to_owned(), value)),
            "limit_per_minute" | "limit_per_hour" | "limit_per_day" | "limit_behavior" => {
                let name = name.strip_prefix("limit_").unwrap_or(&name).to_owned();
                limits.insert(name, value);
            }
            "is_pec_account" => drop(ours.insert("pec".to_owned(), value)),
            "use_tls" | "use_ssl" => {}
            name if WITHOUT_EFFECT.contains(&name) => {}
            _ if name.starts_with("imap_") && value.is_null() => {}
            _ if name.starts_with("imap_") => {
                let message = "an account only sends: watch the mailbox with POST /v1/mailboxes";
                wrong.push(FieldError::new(name, message));
            }
            _ => wrong.push(FieldError::new(name, "is no field of an account: remove it")),
        }
    }
    if !limits.is_empty() {
        ours.insert("limits".to_owned(), Value::Object(limits));
    }
    let tls = match use_tls {
        _ if use_ssl => Some("implicit"),
        Value::Null if !is_new => None,
        _ if port == Some(IMPLICIT_TLS_PORT) && use_tls != json!(false) => Some("implicit"),
        Value::Null => Some("opportunistic"),
        Value::Bool(true) => Some("starttls"),
        Value::Bool(false) => {
            // A caller who turns TLS off and gives a password means both.
            ours.insert("allow_plaintext_auth".to_owned(), json!(true));
            Some("none")
        }
        _ => {
            wrong.push(FieldError::new("use_tls", "must be true or false"));
            None
        }
    };
    if let Some(tls) = tls {
        ours.insert("tls".to_owned(), json!(tls));
    }
    if wrong.is_empty() { Ok(ours) } else { Err(wrong) }
}

/// An account as this API shows it. Its secret is never shown.
fn view(account: &AccountView) -> Result<Value, ApiError> {
    let ours = serde_json::to_value(account).map_err(ApiError::internal)?;
    let limit = |name: &str| match ours["limits"][name].as_u64() {
        Some(0) | None => Value::Null,
        Some(limit) => json!(limit),
    };
    let use_tls = match ours["tls"].as_str() {
        Some("starttls" | "implicit") => json!(true),
        Some("none") => json!(false),
        // The default: TLS if the relay offers it.
        _ => Value::Null,
    };
    Ok(json!({
        "id": ours["id"],
        "tenant_id": ours["tenant"],
        "host": ours["host"],
        "port": ours["port"],
        "user": ours["username"],
        "use_tls": use_tls,
        "limit_per_minute": limit("per_minute"),
        "limit_per_hour": limit("per_hour"),
        "limit_per_day": limit("per_day"),
        "limit_behavior": ours["limits"]["behavior"],
        "is_pec_account": ours["pec"],
        "created_at": ours["created_at"],
        "updated_at": ours["updated_at"],
    }))
}
