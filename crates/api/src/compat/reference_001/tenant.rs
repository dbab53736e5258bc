//! `/tenant(s)`: for the admin token alone, as ours are.

use axum::{
    Json,
    extract::{Path, Request, State},
    http::Uri,
};
use postway_domain::{Scope, TenantId};
use serde_json::{Map, Value, json};

use crate::{
    auth::Admin,
    body,
    error::{ApiError, FieldError},
    page::Paging,
    query::Parameters,
    request_id::RequestId,
    state::{App, Shared},
    tenant::{self, TenantView, change, key, no_tenant, pause},
};

/// What the key of a new tenant is called.
const KEY_NAME: &str = "001";

/// `GET /tenants`.
pub(super) async fn list(State(app): State<Shared>, _: Admin, uri: Uri) -> Result<Json<Value>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let paging = Paging::take(&mut query);
    query.finish()?;
    let page = tenant::page_of(&app, paging).await?;
    let tenants: Result<Vec<Value>, ApiError> = page.data.iter().map(view).collect();
    Ok(Json(json!({"ok": true, "tenants": tenants?, "next_cursor": page.next_cursor})))
}

/// `GET /tenant/{id}`.
pub(super) async fn show(
    State(app): State<Shared>,
    _: Admin,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    answer(&tenant::one(&app, &read_id(&id)?).await?)
}

/// `DELETE /tenant/{id}`: with all it has.
pub(super) async fn delete(
    State(app): State<Shared>,
    admin: Admin,
    request_id: RequestId,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    tenant::remove(&app, &admin, &request_id, read_id(&id)?).await?;
    Ok(Json(json!({"ok": true})))
}

/// `POST /tenant`: makes it with a key of its own, or changes what is given of the one there is.
pub(super) async fn put(
    State(app): State<Shared>,
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

/// `PUT /tenant/{id}`: changes what is given.
pub(super) async fn update(
    State(app): State<Shared>,
    admin: Admin,
    request_id: RequestId,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let id = read_id(&id)?;
    let body = body::json_object(request).await?;
    if body.get("id").is_some_and(|given| given != id.as_str()) {
        return Err(ApiError::field("id", "names another tenant than the path: leave it out"));
    }
    change(&app, &admin, &request_id, id, body).await
}

/// Its key is answered this once.
async fn make(
    app: &App,
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
        ("scopes".to_owned(), json!([Scope::Send, Scope::Read, Scope::Manage])),
    ]);
    let shown = match active {
        Some(false) => pause::hold(app, admin, request_id, id.clone()).await?,
        Some(true) | None => made,
    };
    let key = key::make(app, admin, request_id, &id, wanted).await?;
    let Json(mut answer) = answer(&shown)?;
    answer["api_key"] = json!(key.key);
    Ok(Json(answer))
}

async fn change(
    app: &App,
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
        Some(true) => pause::let_go(app, admin, request_id, id).await?,
        Some(false) => pause::hold(app, admin, request_id, id).await?,
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

fn in_its_names(field: &str) -> String {
    let (first, rest) = field.split_once('.').unwrap_or((field, ""));
    match (first, rest) {
        ("client_sync" | "attachment_endpoint", rest) if rest.starts_with("auth") => format!("client_{rest}"),
        ("client_sync" | "attachment_endpoint", "url") => "client_base_url".to_owned(),
        ("client_sync", _) => "client_sync_path".to_owned(),
        ("attachment_endpoint", _) => "client_attachment_path".to_owned(),
        _ => field.to_owned(),
    }
}

/// Its tenant in our words, where it is `current` already: one base address and one way to sign in stand for both of our
/// remotes.
fn translate(
    mut body: Map<String, Value>,
    current: Option<&Value>,
) -> Result<Map<String, Value>, Vec<FieldError>> {
    let (mut ours, mut wrong) = (Map::new(), Vec::new());
    let mut take = |name: &str| body.remove(name).filter(|value| !value.is_null());
    let base = take("client_base_url");
    let auth = take("client_auth").and_then(|auth| match auth_of(auth) {
        Ok(auth) => Some(auth),
        Err(fault) => {
            wrong.push(fault);
            None
        }
    });
    let paths = [("client_sync_path", "client_sync"), ("client_attachment_path", "attachment_endpoint")];
    for (theirs, name) in paths {
        let path = take(theirs);
        let is_there = current.is_some_and(|current| !current[name].is_null());
        if path.is_some() && base.is_none() && !is_there {
            wrong.push(FieldError::new(theirs, "needs a client_base_url beside it"));
        }
        let given = [("url", base.clone()), ("path", path.clone()), ("auth", auth.clone())].into_iter();
        let remote: Map<String, Value> =
            given.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if path.is_some() || is_there && !remote.is_empty() {
            ours.insert(name.to_owned(), Value::Object(remote));
        }
    }
    for (given, theirs) in [(&base, "client_base_url"), (&auth, "client_auth")] {
        if given.is_some() && ours.is_empty() {
            let message = "needs a client_sync_path or a client_attachment_path beside it";
            wrong.push(FieldError::new(theirs, message));
        }
    }
    if current.is_none() && ours.contains_key("client_sync") {
        // Many outcomes in one call, whose answer says which were taken: the reports that its users know.
        ours.insert("callback_form".to_owned(), json!("batch"));
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

/// A tenant in its words. Secrets are never shown.
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
