//! `/v1/tenants`: the tenants. For the admin key; a tenant's own key reads its tenant at `/v1/tenant`.
//!
//! A new tenant has a `sandbox` account, so that its mail goes somewhere at once. Tokens and passwords in its
//! settings are encrypted before they are stored, and never shown. A deleted tenant is gone at once, its data
//! soon after, and its id is never used again.

pub(crate) mod change;
mod edit;
pub(crate) mod key;
pub(crate) mod pause;
mod schema;
mod secret;
mod view;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use postway_domain::{Account, AccountId, AccountSettings, Tenant, TenantId, TenantSettings, Time};
use postway_store::record::{ChangeResult, DirectoryChange, SuspensionScope};
use serde_json::{Map, Value, json};

pub(crate) use self::view::{TenantList, TenantView};
use self::{edit::TenantEdit, schema::TenantRequest};
use crate::{
    auth::{Admin, DEFAULT_TENANT, Reader},
    http::{
        body,
        error::{ApiError, FieldError},
        pagination::{self, PageRequest},
        query::{QueryParameters, dry_run},
        request_id::RequestId,
        resource::path_parameter,
    },
    setting::callback_url,
    state::{AppState, SharedState},
};

/// The account that every tenant begins with.
const FIRST_ACCOUNT: &str = "sandbox";

/// The tenant that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedTenant(pub(crate) TenantId);

path_parameter!(NamedTenant, "id", |given| given.parse().map(NamedTenant).map_err(|_| no_tenant(given)));

pub(crate) fn no_tenant(given: &str) -> ApiError {
    let shown: String = given.chars().take(TenantId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no tenant `{shown}`"))
}

/// The tenant, unless it is deleted.
async fn find(app: &AppState, id: &TenantId) -> Result<Tenant, ApiError> {
    let found = app.store.tenant(id).await?.filter(|tenant| tenant.deleted_at.is_none());
    found.ok_or_else(|| no_tenant(id.as_str()))
}

/// When a tenant was suspended, if it is.
async fn suspended_since(app: &AppState, id: &TenantId) -> Result<Option<Time>, ApiError> {
    let suspensions = app.store.suspensions(id).await?;
    let whole = suspensions.into_iter().find(|suspension| suspension.scope == SuspensionScope::Tenant);
    Ok(whole.map(|suspension| suspension.since))
}

async fn view(app: &AppState, tenant: &Tenant) -> Result<TenantView, ApiError> {
    Ok(TenantView::new(tenant, suspended_since(app, &tenant.id).await?))
}

/// Create a tenant
///
/// It has a `sandbox` account as its default, which captures mail instead of sending it. 409 for an id that
/// is or was in use.
#[utoipa::path(
    post,
    path = "/v1/tenants",
    operation_id = "createTenant",
    tag = "tenants",
    params(("dry_run" = Option<bool>, Query, description = "Only check; store nothing")),
    request_body = TenantRequest,
    responses(
        (status = 201, description = "Created", body = TenantView),
        (status = 200, description = "A dry run; nothing is stored", body = TenantView),
    )
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    if dry_run(request.uri())? {
        let tenant = draft(&app, body::json_object(request).await?)?;
        return Ok(Json(TenantView::new(&tenant, None)).into_response());
    }
    let shown = make(&app, &admin, &request_id, body::json_object(request).await?).await?;
    let location = [(header::LOCATION, format!("/v1/tenants/{}", shown.id()))];
    Ok((StatusCode::CREATED, location, Json(shown)).into_response())
}

/// Creates the tenant that `body` describes.
pub(crate) async fn make(
    app: &AppState,
    admin: &Admin,
    request_id: &RequestId,
    body: Map<String, Value>,
) -> Result<TenantView, ApiError> {
    let tenant = draft(app, body)?;
    let (id, now) = (tenant.id.clone(), tenant.created_at);
    let shown = TenantView::new(&tenant, None);
    let detail = json!({"name": &tenant.name});
    let entry = app.audit(&admin.actor, Some(&id), "tenant.create", id.as_str(), request_id, Some(detail));
    let account = Account {
        tenant: id.clone(),
        id: FIRST_ACCOUNT.parse().map_err(ApiError::internal)?,
        settings: AccountSettings::sandbox(),
        secret: None,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let create = DirectoryChange::CreateTenant(tenant, vec![account]);
    if app.store.change(create, Some(entry)).await? != ChangeResult::Done {
        let was = app.store.tenant(&id).await?.is_some_and(|tenant| tenant.deleted_at.is_some());
        return Err(ApiError::conflict(match was {
            true => format!("there was a tenant `{id}`, and its id is not given out again: choose another"),
            false => format!("there is a tenant `{id}` already: change that one, or choose another id"),
        }));
    }
    tracing::info!(tenant = %id, "tenant created");
    Ok(shown)
}

/// The tenant that `body` describes, checked but not stored.
fn draft(app: &AppState, mut body: Map<String, Value>) -> Result<Tenant, ApiError> {
    let id = read_id(body.remove("id"));
    let mut wrong = edit::take_shown_only(&mut body, None);
    let now = app.clock.now();
    let first_account: AccountId = FIRST_ACCOUNT.parse().map_err(ApiError::internal)?;
    let edited = edit::read(body, &TenantSettings::default());
    if let Ok(TenantEdit { default_account: Some(other), .. }) = &edited
        && *other != first_account
    {
        wrong.push(FieldError::new(
            "default_account",
            format!("a new tenant has only the account `{FIRST_ACCOUNT}`: create `{other}`, then PATCH this"),
        ));
    }
    let (id, edited) = match (id, edited) {
        (Ok(id), Ok(edited)) if wrong.is_empty() => (id, edited),
        (id, edited) => {
            wrong.extend(id.err().into_iter().chain(edited.err().into_iter().flatten()));
            return Err(ApiError::invalid(wrong));
        }
    };
    check_targets(app, &TenantSettings::default(), &edited.settings)?;
    let secret = secret::reseal(app, &id, None, edited.client_sync, edited.attachment_endpoint)?;
    Ok(Tenant {
        name: edited.name.unwrap_or_else(|| id.to_string()),
        default_account: Some(first_account),
        settings: edited.settings,
        secret,
        ..Tenant::new(id, "", now)
    })
}

/// Checks the URLs that a tenant has us call and fetch from. An unchanged one is not checked again.
fn check_targets(app: &AppState, before: &TenantSettings, after: &TenantSettings) -> Result<(), ApiError> {
    let remotes = [
        ("client_sync.url", &before.client_sync, &after.client_sync),
        ("attachment_endpoint.url", &before.attachment_endpoint, &after.attachment_endpoint),
    ];
    let wrong = remotes.into_iter().filter_map(|(field, before, after)| {
        let url = &after.as_ref()?.url;
        let is_known = before.as_ref().is_some_and(|before| before.url == *url);
        if is_known { None } else { callback_url::check(app, field, url).err() }
    });
    let wrong: Vec<FieldError> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(wrong)) }
}

fn read_id(given: Option<Value>) -> Result<TenantId, FieldError> {
    match given {
        Some(Value::String(id)) => id.parse().map_err(|error| FieldError::new("id", format!("{error}"))),
        _ => Err(FieldError::new("id", "a tenant needs an id, as a text")),
    }
}

/// List tenants
///
/// All tenants with their settings, without secrets. For the admin key.
#[utoipa::path(
    get,
    path = "/v1/tenants",
    operation_id = "listTenants",
    tag = "tenants",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by id", body = TenantList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    _: Admin,
    uri: Uri,
) -> Result<Json<TenantList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    page_of(&app, PageRequest { limit, cursor }).await.map(Json)
}

/// A page of tenants.
pub(crate) async fn page_of(
    app: &AppState,
    PageRequest { limit, cursor }: PageRequest,
) -> Result<TenantList, ApiError> {
    let after: Option<TenantId> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let read = |after: Option<TenantId>, limit| {
        let store = &app.store;
        async move { store.tenants(after.as_ref(), limit).await }
    };
    let is_there = |tenant: &Tenant| tenant.deleted_at.is_none();
    let (tenants, next) =
        pagination::filled(after, limit, read, |tenant| tenant.id.clone(), is_there).await?;
    let mut data = Vec::with_capacity(tenants.len());
    for tenant in &tenants {
        data.push(view(app, tenant).await?);
    }
    Ok(TenantList { data, next_cursor: next.as_ref().map(pagination::write_cursor) })
}

/// Show a tenant
///
/// One tenant with its settings, without secrets. For the admin key.
#[utoipa::path(
    get,
    path = "/v1/tenants/{id}",
    operation_id = "getTenant",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    responses((status = 200, description = "The tenant, without its secrets", body = TenantView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    _: Admin,
    NamedTenant(id): NamedTenant,
) -> Result<Json<TenantView>, ApiError> {
    one(&app, &id).await.map(Json)
}

/// Show your tenant
///
/// The settings of the tenant that the key belongs to; an admin key names one with `X-Tenant`. Only the admin
/// key changes them.
#[utoipa::path(
    get,
    path = "/v1/tenant",
    operation_id = "getOwnTenant",
    tag = "tenants",
    responses((status = 200, description = "The tenant, without its secrets", body = TenantView))
)]
pub(crate) async fn own(
    State(app): State<SharedState>,
    Reader(caller): Reader,
) -> Result<Json<TenantView>, ApiError> {
    one(&app, &caller.tenant).await.map(Json)
}

/// The view of one tenant.
pub(crate) async fn one(app: &AppState, id: &TenantId) -> Result<TenantView, ApiError> {
    view(app, &find(app, id).await?).await
}

/// Delete a tenant
///
/// With everything it has: mail, accounts, keys, suppressions. Confirm by repeating its id in `confirm`. It
/// cannot be undone. The tenant `default` cannot be deleted.
#[utoipa::path(
    delete,
    path = "/v1/tenants/{id}",
    operation_id = "deleteTenant",
    tag = "tenants",
    params(
        ("id" = String, Path, description = "The tenant"),
        ("confirm" = String, Query, description = "The tenant's id, repeated"),
    ),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    NamedTenant(id): NamedTenant,
    uri: Uri,
) -> Result<StatusCode, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let confirm = query.take("confirm");
    query.finish()?;
    find(&app, &id).await?;
    if confirm.as_deref() != Some(id.as_str()) {
        let message =
            format!("deleting a tenant deletes its mail, accounts and keys: confirm with ?confirm={id}");
        return Err(ApiError::field("confirm", message));
    }
    remove(&app, &admin, &request_id, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a tenant with everything it has; `default` is refused.
pub(crate) async fn remove(
    app: &AppState,
    admin: &Admin,
    request_id: &RequestId,
    id: TenantId,
) -> Result<(), ApiError> {
    if id.as_str() == DEFAULT_TENANT {
        return Err(ApiError::conflict("the tenant `default` cannot be deleted"));
    }
    let entry = app.audit(&admin.actor, Some(&id), "tenant.delete", id.as_str(), request_id, None);
    let change = DirectoryChange::DeleteTenant(id.clone(), app.clock.now());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => {
            app.forget_tenant(&id);
            tracing::info!(tenant = %id, "tenant deleted");
            Ok(())
        }
        _ => Err(no_tenant(id.as_str())),
    }
}
