//! `/v1/accounts`: how a tenant's mail leaves. Passwords go in, sealed before they are stored, and never come out.
//!
//! `PATCH` changes the fields given. `PUT` replaces the settings: what is not given takes its default, but for the
//! password, which nobody can read back and which stays unless one is given. What `GET` shows may be put back as it is.

mod edit;
mod view;

use axum::{
    Json,
    extract::{FromRequestParts, Path, Request, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use postway_domain::{Account, AccountId, TenantId, secret::Sealed};
use postway_store::record::Changed;
use serde_json::{Map, Value};

use self::edit::{Edited, Password};
pub(crate) use self::view::{AccountList, AccountView};
use crate::{
    auth::Caller,
    body,
    error::{ApiError, FieldError},
    schema::AccountRequest,
    state::{App, Shared},
};

/// How often a change is made anew when another one was faster.
const TRIES_MAX: u32 = 5;

/// `{id}` in a path. What cannot be an account's id names none.
pub(crate) struct NamedAccount(AccountId);

impl<S: Send + Sync> FromRequestParts<S> for NamedAccount {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(given) = Path::<String>::from_request_parts(parts, state).await.map_err(|_| {
            ApiError::malformed("the id in the path cannot be read: use percent-encoded UTF-8")
        })?;
        given.parse().map(Self).map_err(|_| no_account(&given))
    }
}

fn no_account(given: &str) -> ApiError {
    let shown: String = given.chars().take(AccountId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no account `{shown}`"))
}

/// Create an account
#[utoipa::path(
    post,
    path = "/v1/accounts",
    operation_id = "createAccount",
    tag = "accounts",
    request_body = AccountRequest,
    responses((status = 201, description = "It is made", body = AccountView))
)]
pub(crate) async fn create(
    State(app): State<Shared>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let mut body = body::json_object(request).await?;
    let id = read_id(body.remove("id"));
    let edited = edit::edit(edit::defaults(&body, None), &body, None);
    let (id, Edited { settings, password }) = match (id, edited) {
        (Ok(id), Ok(edited)) => (id, edited),
        (id, edited) => {
            let wrong = id.err().into_iter().chain(edited.err().into_iter().flatten());
            return Err(ApiError::invalid(wrong.collect()));
        }
    };
    let now = app.clock.now();
    let secret = seal(&app, &caller.tenant, &id, password, None)?;
    let account =
        Account { tenant: caller.tenant, id, settings, secret, version: 1, created_at: now, updated_at: now };
    let view = AccountView::from(&account);
    let (tenant, id) = (account.tenant.clone(), account.id.clone());
    if !app.store.create_account(account).await? {
        return Err(ApiError::conflict(format!("there is an account `{id}` already; change it with PATCH")));
    }
    tracing::info!(%tenant, account = %id, "account created");
    let location = [(header::LOCATION, format!("/v1/accounts/{id}"))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

fn read_id(given: Option<Value>) -> Result<AccountId, FieldError> {
    match given {
        Some(Value::String(id)) => id.parse().map_err(|error| FieldError::new("id", format!("{error}"))),
        _ => Err(FieldError::new("id", "an account needs an id, as a text")),
    }
}

/// List accounts
#[utoipa::path(
    get,
    path = "/v1/accounts",
    operation_id = "listAccounts",
    tag = "accounts",
    responses((status = 200, description = "All of them, by id", body = AccountList))
)]
pub(crate) async fn list(State(app): State<Shared>, caller: Caller) -> Result<Json<AccountList>, ApiError> {
    let accounts = app.store.accounts(Some(&caller.tenant)).await?;
    Ok(Json(AccountList { data: accounts.iter().map(AccountView::from).collect(), next_cursor: None }))
}

/// Show an account
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}",
    operation_id = "getAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 200, description = "The account, without its password", body = AccountView))
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    caller: Caller,
    NamedAccount(id): NamedAccount,
) -> Result<Json<AccountView>, ApiError> {
    let account = app.store.account(&caller.tenant, &id).await?.ok_or_else(|| no_account(id.as_str()))?;
    Ok(Json(AccountView::from(&account)))
}

/// Change an account
///
/// Changes the fields given and leaves the rest.
#[utoipa::path(
    patch,
    path = "/v1/accounts/{id}",
    operation_id = "changeAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    request_body = AccountRequest,
    responses((status = 200, description = "The account as it is now", body = AccountView))
)]
pub(crate) async fn patch(
    State(app): State<Shared>,
    caller: Caller,
    NamedAccount(id): NamedAccount,
    request: Request,
) -> Result<Json<AccountView>, ApiError> {
    let body = body::json_object(request).await?;
    update(&app, &caller.tenant, &id, &body, false).await.map(Json)
}

/// Replace an account's settings
///
/// Fields that are not given take their defaults; the password stays unless one is given.
#[utoipa::path(
    put,
    path = "/v1/accounts/{id}",
    operation_id = "replaceAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    request_body = AccountRequest,
    responses((status = 200, description = "The account as it is now", body = AccountView))
)]
pub(crate) async fn put(
    State(app): State<Shared>,
    caller: Caller,
    NamedAccount(id): NamedAccount,
    request: Request,
) -> Result<Json<AccountView>, ApiError> {
    let body = body::json_object(request).await?;
    update(&app, &caller.tenant, &id, &body, true).await.map(Json)
}

async fn update(
    app: &App,
    tenant: &TenantId,
    id: &AccountId,
    body: &Map<String, Value>,
    replace: bool,
) -> Result<AccountView, ApiError> {
    for _ in 0..TRIES_MAX {
        let current = app.store.account(tenant, id).await?.ok_or_else(|| no_account(id.as_str()))?;
        let base = match replace {
            true => edit::defaults(body, Some(current.settings.kind)),
            false => current.settings.clone(),
        };
        let Edited { settings, password } =
            edit::edit(base, body, Some(&current)).map_err(ApiError::invalid)?;
        let expected_version = current.version;
        let secret = seal(app, tenant, id, password, current.secret)?;
        let version = expected_version + 1;
        let account = Account { settings, secret, version, updated_at: app.clock.now(), ..current };
        let view = AccountView::from(&account);
        if app.store.update_account(account, expected_version).await? {
            tracing::info!(%tenant, account = %id, version, "account changed");
            return Ok(view);
        }
    }
    Err(ApiError::conflict("the account is being changed by others; read it and try again"))
}

fn seal(
    app: &App,
    tenant: &TenantId,
    id: &AccountId,
    password: Password,
    stored: Option<Sealed>,
) -> Result<Option<Sealed>, ApiError> {
    match password {
        Password::Keep => Ok(stored),
        Password::Remove => Ok(None),
        Password::Set(text) => {
            let sealed = app.secret_key.seal(&Account::secret_place(tenant, id), &text);
            sealed.map(Some).map_err(ApiError::internal)
        }
    }
}

/// Delete an account
///
/// 409 while mail waits for it, or while it is its tenant's default.
#[utoipa::path(
    delete,
    path = "/v1/accounts/{id}",
    operation_id = "deleteAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 204, description = "It is gone"))
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    caller: Caller,
    NamedAccount(id): NamedAccount,
) -> Result<StatusCode, ApiError> {
    match app.store.delete_account(&caller.tenant, &id).await? {
        Changed::Done => {
            tracing::info!(tenant = %caller.tenant, account = %id, "account deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        Changed::Missing | Changed::Already | Changed::Exists | Changed::Stale => {
            Err(no_account(id.as_str()))
        }
        Changed::InUse => Err(ApiError::conflict(format!(
            "the account `{id}` is in use: mail waits for it, or it is its tenant's default"
        ))),
    }
}
