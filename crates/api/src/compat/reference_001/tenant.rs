//! `/tenant(s)`: for the admin token only, as ours are.

use axum::{
    Json,
    extract::{Request, State},
    http::Uri,
};
use postway_domain::{KeyScope, TenantId};
use serde_json::{Map, Value, json};

use crate::{
    admin::tenant::{self, TenantView, change, key, no_tenant, pause},
    auth::Admin,
    compat::lookup,
    http::{
        body,
        error::{ApiError, FieldError},
        path::PathText,
        query::{QueryParameters, flag},
        request_id::RequestId,
    },
    state::{AppState, SharedState},
};

/// The name of a new tenant's key.
const KEY_NAME: &str = "001";
/// The endpoints: the name of each path there, our name for the endpoint, and its default path.
const REMOTES: [(&str, &str, &str); 2] = [
    ("client_sync_path", "client_sync", "/mail-proxy/sync"),
    ("client_attachment_path", "attachment_endpoint", "/mail-proxy/attachments"),
];

/// `GET /tenants?active_only=`. Suspended tenants are left out of a page, so it may be short.
pub(super) async fn list(
    State(app): State<SharedState>,
    _: Admin,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let active_only = query.parse("active_only", flag).unwrap_or(false);
    let paging = lookup::long_page(&mut query);
    query.finish()?;
    let page = tenant::page_of(&app, paging).await?;
    let mut tenants = page.data.iter().map(view).collect::<Result<Vec<Value>, ApiError>>()?;
    tenants.retain(|tenant| !active_only || tenant["active"] == json!(true));
    Ok(Json(json!({"ok": true, "tenants": tenants, "next_cursor": page.next_cursor})))
}

/// `GET /tenant/{id}`.
pub(super) async fn show(
    State(app): State<SharedState>,
    _: Admin,
    PathText(id): PathText<String>,
) -> Result<Json<Value>, ApiError> {
    answer(&tenant::one(&app, &read_id(&id)?).await?)
}

/// `DELETE /tenant/{id}`: with everything it has.
pub(super) async fn delete(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    PathText(id): PathText<String>,
) -> Result<Json<Value>, ApiError> {
    tenant::remove(&app, &admin, &request_id, read_id(&id)?).await?;
    Ok(Json(json!({"ok": true})))
}

/// `POST /tenant`: creates a tenant with a key, or changes the given fields of an existing one.
pub(super) async fn put(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let body = body::json_object(request).await?;
    match body.get("id").and_then(Value::as_str).map(str::parse::<TenantId>) {
        Some(Ok(id)) if app.knows_tenant(&id).await? => change(&app, &admin, &request_id, id, body).await,
        _ => make(&app, &admin, &request_id, body).await,
    }
}

/// `PUT /tenant/{id}`: changes the given fields.
pub(super) async fn update(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    PathText(id): PathText<String>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let id = read_id(&id)?;
    let body = body::json_object(request).await?;
    if body.get("id").is_some_and(|given| given != id.as_str()) {
        return Err(ApiError::field("id", "names another tenant than the path: leave it out"));
    }
    change(&app, &admin, &request_id, id, body).await
}

/// Creates the tenant. Its key is returned only once.
async fn make(
    app: &AppState,
    admin: &Admin,
    request_id: &RequestId,
    mut body: Map<String, Value>,
) -> Result<Json<Value>, ApiError> {
    let active = take_active(&mut body)?;
    let ours = translate(body, None).map_err(ApiError::invalid)?;
    let made =
        tenant::make(app, admin, request_id, ours).await.map_err(|error| error.renamed(in_its_names))?;
    let id = read_id(made.id())?;
    let wanted = Map::from_iter([
        ("name".to_owned(), json!(KEY_NAME)),
        ("scopes".to_owned(), json!([KeyScope::Send, KeyScope::Read, KeyScope::Manage])),
    ]);
    let shown = match active {
        Some(false) => pause::suspend_tenant(app, admin, request_id, id.clone()).await?,
        Some(true) | None => made,
    };
    let key = key::make(app, &admin.actor, request_id, &id, wanted).await?;
    let Json(mut answer) = answer(&shown)?;
    answer["api_key"] = json!(key.key);
    Ok(Json(answer))
}

async fn change(
    app: &AppState,
    admin: &Admin,
    request_id: &RequestId,
    id: TenantId,
    mut body: Map<String, Value>,
) -> Result<Json<Value>, ApiError> {
    let active = take_active(&mut body)?;
    body.remove("id");
    let current = serde_json::to_value(tenant::one(app, &id).await?).map_err(ApiError::internal)?;
    let ours = translate(body, Some(&current)).map_err(ApiError::invalid)?;
    let changed = change::update(app, admin, request_id, &id, &ours).await;
    let changed = changed.map_err(|error| error.renamed(in_its_names))?;
    answer(&match active {
        None => changed,
        Some(true) => pause::activate_tenant(app, admin, request_id, id).await?,
        Some(false) => pause::suspend_tenant(app, admin, request_id, id).await?,
    })
}

fn take_active(body: &mut Map<String, Value>) -> Result<Option<bool>, ApiError> {
    match body.remove("active") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(active)) => Ok(Some(active)),
        Some(_) => Err(ApiError::field("active", "must be true or false")),
    }
}

fn read_id(given: &str) -> Result<TenantId, ApiError> {
    given.parse().map_err(|_| no_tenant(given))
}

pub(in crate::compat) fn in_its_names(field: &str) -> String {
    let (first, rest) = field.split_once('.').unwrap_or((field, ""));
    match (first, rest) {
        ("client_sync" | "attachment_endpoint", rest) if rest.starts_with("auth") => format!("client_{rest}"),
        ("client_sync" | "attachment_endpoint", "url") => "client_base_url".to_owned(),
        ("client_sync", _) => "client_sync_path".to_owned(),
        ("attachment_endpoint", _) => "client_attachment_path".to_owned(),
        _ => field.to_owned(),
    }
}

/// Translates a tenant, whose current settings are `current`: one base URL and one authentication method
/// apply to both of our endpoints. A base URL alone creates both, at the default paths.
pub(in crate::compat) fn translate(
    mut body: Map<String, Value>,
    current: Option<&Value>,
) -> Result<Map<String, Value>, Vec<FieldError>> {
    let (mut ours, mut wrong) = (Map::new(), Vec::new());
    let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    let mut take = |name: &str| body.remove(name).filter(|value| !value.is_null() && !is_blank(value));
    let base = take("client_base_url");
    let auth = take("client_auth").and_then(|auth| match auth_of(auth) {
        Ok(auth) => Some(auth),
        Err(fault) => {
            wrong.push(fault);
            None
        }
    });
    let limits = take("rate_limits");
    let is_there = |name: &str| current.is_some_and(|current| !current[name].is_null());
    let is_any_there = REMOTES.iter().any(|(_, name, _)| is_there(name));
    for (theirs, name, default_path) in REMOTES {
        let given_path = take(theirs);
        if given_path.is_some() && base.is_none() && !is_there(name) {
            wrong.push(FieldError::new(theirs, "needs a client_base_url beside it"));
        }
        let is_made = given_path.is_some() || base.is_some() && !is_any_there;
        let path = given_path.or_else(|| (is_made && !is_there(name)).then(|| json!(default_path)));
        let given = [("url", base.clone()), ("path", path), ("auth", auth.clone())].into_iter();
        let remote: Map<String, Value> =
            given.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if is_made || is_there(name) && !remote.is_empty() {
            ours.insert(name.to_owned(), Value::Object(remote));
        }
    }
    if ours.is_empty() && auth.is_some_and(|auth| !is_no_auth(&auth)) {
        wrong.push(FieldError::new("client_auth", "needs a client_base_url beside it"));
    }
    if ours.contains_key("client_sync") && !is_there("client_sync") {
        // Many outcomes in one call, whose answer says which were accepted: the reports that its users know.
        ours.insert("callback_form".to_owned(), json!("batch"));
    }
    if limits.is_some_and(|limits| !is_no_limit(&limits)) {
        let message = "limits are an account's here: set limit_per_hour and limit_per_day with POST /account";
        wrong.push(FieldError::new("rate_limits", message));
    }
    for (name, value) in body {
        match name.as_str() {
            "id" | "name" => drop(ours.insert(name, value)),
            _ => wrong
                .push(FieldError::new(name, "is no field of a tenant here: set it with PATCH /v1/tenants")),
        }
    }
    if wrong.is_empty() { Ok(ours) } else { Err(wrong) }
}

/// Whether an authentication method means none.
fn is_no_auth(ours: &Value) -> bool {
    ours["type"].is_null() || ours["type"] == json!("none")
}

/// Whether limits, such as `{"hourly": 0, "daily": null}`, limit nothing: zero means no limit there.
fn is_no_limit(limits: &Value) -> bool {
    let limits_nothing = |limit: &Value| limit.is_null() || limit.as_f64() == Some(0.0);
    limits.as_object().is_some_and(|limits| limits.values().all(limits_nothing))
}

fn auth_of(theirs: Value) -> Result<Value, FieldError> {
    let Value::Object(mut theirs) = theirs else {
        return Err(FieldError::new("client_auth", "must be an object"));
    };
    let mut ours = Map::new();
    for (from, to) in [("method", "type"), ("token", "token"), ("user", "username"), ("password", "password")]
    {
        if let Some(value) = theirs.remove(from).filter(|value| !value.is_null()) {
            ours.insert(to.to_owned(), value);
        }
    }
    match theirs.keys().next() {
        None => Ok(Value::Object(ours)),
        Some(name) => Err(FieldError::new(format!("client_auth.{name}"), "is no field of it: remove it")),
    }
}

fn answer(tenant: &TenantView) -> Result<Json<Value>, ApiError> {
    let mut answer = view(tenant)?;
    answer["ok"] = json!(true);
    Ok(Json(answer))
}

/// A tenant as this API shows it. Secrets are never shown.
fn view(tenant: &TenantView) -> Result<Value, ApiError> {
    let ours = serde_json::to_value(tenant).map_err(ApiError::internal)?;
    let (sync, endpoint) = (&ours["client_sync"], &ours["attachment_endpoint"]);
    let either = if sync.is_null() { endpoint } else { sync };
    Ok(json!({
        "id": ours["id"],
        "name": ours["name"],
        "active": ours["suspended"] == json!(false),
        "client_base_url": either["url"],
        "client_sync_path": sync["path"],
        "client_attachment_path": endpoint["path"],
        "client_auth": {"method": either["auth"]["type"], "user": either["auth"]["username"]},
        "created_at": ours["created_at"],
        "updated_at": ours["updated_at"],
    }))
}
