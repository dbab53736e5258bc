//! `/v1/accounts`: how a tenant's mail leaves. Secrets are encrypted before they are stored, and are never
//! shown.

pub(crate) mod change;
mod edit;
mod egress;
pub(crate) mod hook;
pub(crate) mod pause;
pub(crate) mod probe;
mod schema;
pub(crate) mod secrets;
pub(crate) mod unopened;
pub(crate) mod value;
mod view;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use postway_domain::{
    Account, AccountId, AccountSettings, TenantId, oauth::OAuthSecrets, rule::RuleAction,
    secret::SealedSecret,
};
use postway_store::record::{AccountKey, ChangeResult, DirectoryChange, SuspensionScope};
use serde_json::{Map, Value, json};

pub(crate) use self::view::{AccountList, AccountView};
use self::{
    edit::{AccountEdit, AccountSecretEdit},
    schema::AccountRequest,
};
use crate::{
    auth::{Caller, CallerActor, Manager, Reader},
    http::{
        body,
        error::{ApiError, FieldError},
        pagination::ListPart,
        query::{QueryParameters, dry_run, flag},
        request_id::RequestId,
        resource::path_parameter,
    },
    setting::{
        callback_url,
        oauth::{self, OAuthSecretsEdit},
        proxy::proxy_host,
    },
    state::{AppState, SharedState},
};

/// How many rules or routes an answer names.
const RULES_NAMED_MAX: usize = 20;

/// The account that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedAccount(AccountId);

path_parameter!(NamedAccount, "id", |given| given.parse().map(NamedAccount).map_err(|_| no_account(given)));

pub(crate) fn no_account(given: &str) -> ApiError {
    let shown: String = given.chars().take(AccountId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no account `{shown}`"))
}

pub(crate) async fn find(app: &AppState, tenant: &TenantId, id: &AccountId) -> Result<Account, ApiError> {
    app.store.account(tenant, id).await?.ok_or_else(|| no_account(id.as_str()))
}

fn key_of(account: &Account) -> AccountKey {
    AccountKey { tenant: account.tenant.clone(), account: account.id.clone() }
}

/// Create an account
///
/// The settings are checked, but nothing is called: `POST /v1/accounts/{id}/test` tests them. 409 if the id
/// is taken.
#[utoipa::path(
    post,
    path = "/v1/accounts",
    operation_id = "createAccount",
    tag = "accounts",
    params(("dry_run" = Option<bool>, Query, description = "Only check; store nothing")),
    request_body = AccountRequest,
    responses(
        (status = 201, description = "Created", body = AccountView),
        (status = 200, description = "A dry run; nothing is stored", body = AccountView),
    )
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    if dry_run(request.uri())? {
        let account = draft(&app, &caller, body::json_object(request).await?).await?;
        return Ok(Json(AccountView::new(&account, false)).into_response());
    }
    let view = make(&app, &caller, &request_id, body::json_object(request).await?).await?;
    let location = [(header::LOCATION, format!("/v1/accounts/{}", view.id()))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

/// Creates the account that `body` describes.
pub(crate) async fn make(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    body: Map<String, Value>,
) -> Result<AccountView, ApiError> {
    let account = draft(app, caller, body).await?;
    let view = AccountView::new(&account, false);
    let (tenant, id) = (account.tenant.clone(), account.id.clone());
    let detail = Some(json!({"kind": account.settings.kind.as_str()}));
    let entry = app.audit(&caller.actor, Some(&tenant), "account.create", id.as_str(), request_id, detail);
    match app.store.change(DirectoryChange::CreateAccount(account), Some(entry)).await? {
        ChangeResult::Done => {}
        _ => {
            let message =
                format!("there is an account `{id}` already: change that one, or choose another id");
            return Err(ApiError::conflict(message));
        }
    }
    tracing::info!(%tenant, account = %id, "account created");
    Ok(view)
}

/// The account that `body` describes, checked but not stored.
async fn draft(app: &AppState, caller: &Caller, mut body: Map<String, Value>) -> Result<Account, ApiError> {
    let id = read_id(body.remove("id"));
    let now = app.clock.now();
    let edited = edit::edit(edit::defaults(&body, None), &body, None, now);
    let (id, AccountEdit { mut settings, secret, grant, proxy }) = match (id, edited) {
        (Ok(id), Ok(edited)) => (id, edited),
        (id, edited) => {
            let wrong = id.err().into_iter().chain(edited.err().into_iter().flatten());
            return Err(ApiError::invalid(wrong.collect()));
        }
    };
    check_target(app, &caller.actor, None, &mut settings)?;
    egress::check_source(&caller.actor, None, &mut settings, body.contains_key("source_address"))?;
    check_fallback(app, &caller.tenant, &id, &settings).await?;
    let tenant = caller.tenant.clone();
    egress::seal_password(app, (&tenant, &id), &mut settings, proxy, None)?;
    let secret = seal(app, &tenant, &id, (&mut settings, secret, grant), None)?;
    Ok(Account { tenant, id, settings, secret, version: 1, created_at: now, updated_at: now })
}

fn read_id(given: Option<Value>) -> Result<AccountId, FieldError> {
    match given {
        Some(Value::String(id)) => id.parse().map_err(|error| FieldError::new("id", format!("{error}"))),
        _ => Err(FieldError::new("id", "an account needs an id, as a text")),
    }
}

/// Checks the host of a new or changed account, whichever key names it, and records whether a tenant's key
/// did: such an account must not use the server's own AWS key.
fn check_target(
    app: &AppState,
    actor: &CallerActor,
    before: Option<&AccountSettings>,
    settings: &mut AccountSettings,
) -> Result<(), ApiError> {
    let same = |before: &AccountSettings| {
        before.kind == settings.kind
            && (&before.host, before.port) == (&settings.host, settings.port)
            && before.ses == settings.ses
            && before.provider == settings.provider
            && before.proxy == settings.proxy
    };
    oauth::check_target(app, settings.oauth.as_ref())?;
    if before.is_some_and(same) {
        return Ok(());
    }
    settings.by_tenant = !actor.is_admin();
    let host_of = |endpoint: &str| {
        let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest).trim_end_matches('/');
        let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let host = rest.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(rest, |(host, _)| host);
        host.trim_matches(['[', ']']).to_owned()
    };
    if let Some(url) = &settings.provider.base_url {
        callback_url::check(app, "base_url", url).map_err(|wrong| ApiError::invalid(vec![wrong]))?;
    }
    let proxy = settings.proxy.as_ref().and_then(|proxy| proxy_host(&proxy.url));
    let named = [
        ("host", settings.host.clone()),
        ("endpoint", settings.ses.endpoint.as_deref().map(host_of)),
        ("proxy", proxy),
    ];
    callback_url::check_hosts(app, named)
}

/// A fallback must be another account of the tenant, and a chain of fallbacks must not lead back.
async fn check_fallback(
    app: &AppState,
    tenant: &TenantId,
    id: &AccountId,
    settings: &AccountSettings,
) -> Result<(), ApiError> {
    let Some(first) = &settings.fallback else { return Ok(()) };
    let accounts = app.store.accounts(Some(tenant)).await?;
    let mut next = Some(first);
    // Each step names another account, so more steps than accounts are a loop.
    for _ in 0..=accounts.len() {
        let Some(named) = next else { return Ok(()) };
        if named == id {
            break;
        }
        match accounts.iter().find(|account| account.id == *named) {
            Some(account) => next = account.settings.fallback.as_ref(),
            None if named == first => {
                return Err(ApiError::field("fallback", format!("there is no account `{named}`")));
            }
            None => return Ok(()),
        }
    }
    Err(ApiError::field("fallback", "leads back to this account; name one that does not"))
}

fn seal(
    app: &AppState,
    tenant: &TenantId,
    id: &AccountId,
    (settings, secret, grant): (&mut AccountSettings, AccountSecretEdit, OAuthSecretsEdit),
    current: Option<&Account>,
) -> Result<Option<SealedSecret>, ApiError> {
    let stored = current.and_then(|account| account.secret.clone());
    let had_grant = current.is_some_and(|account| account.settings.oauth.is_some());
    if let Some(oauth) = &mut settings.oauth {
        let place = Account::grant_sealing_context(tenant, id);
        let secrets = match stored.filter(|_| had_grant) {
            None => OAuthSecrets::default(),
            Some(sealed) => {
                match app.secret_key.open(&place, &sealed).map(|text| serde_json::from_str(&text)) {
                    Ok(Ok(secrets)) => secrets,
                    // A secret that no key opens any more does not prevent setting a new one.
                    _ if grant.gives_any() => OAuthSecrets::default(),
                    _ => {
                        let message = "the stored secrets cannot be opened: give those of the grant anew";
                        return Err(ApiError::conflict(message));
                    }
                }
            }
        };
        let secrets = oauth::apply_secrets(oauth, secrets, grant)?;
        let text = serde_json::to_string(&secrets).map_err(ApiError::internal)?;
        return app.secret_key.seal(&place, &text).map(Some).map_err(ApiError::internal);
    }
    match secret {
        AccountSecretEdit::Keep => Ok(stored.filter(|_| !had_grant)),
        AccountSecretEdit::Remove => Ok(None),
        AccountSecretEdit::Set(text) => {
            let sealed = app.secret_key.seal(&Account::sealing_context(tenant, id), &text);
            sealed.map(Some).map_err(ApiError::internal)
        }
    }
}

/// List accounts
///
/// All accounts of your tenant by id, without their secrets, each with its circuit and the use of its limits.
#[utoipa::path(
    get,
    path = "/v1/accounts",
    operation_id = "listAccounts",
    tag = "accounts",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "By id", body = AccountList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    part: ListPart,
) -> Result<Json<AccountList>, ApiError> {
    let AccountList { data, .. } = all(&app, &caller.tenant).await?;
    let (data, next_cursor) = part.select(data, |account| account.id().to_owned())?;
    Ok(Json(AccountList { data, next_cursor }))
}

/// All accounts of a tenant.
pub(crate) async fn all(app: &AppState, tenant: &TenantId) -> Result<AccountList, ApiError> {
    let accounts = app.store.accounts(Some(tenant)).await?;
    let suspensions = app.store.suspensions(tenant).await?;
    let circuits = app.store.circuits(Some(tenant)).await?;
    let view = |account: &Account| {
        let scope = SuspensionScope::Account(account.id.clone());
        let circuit = circuits.iter().find(|circuit| circuit.key.account == account.id);
        AccountView::new(account, suspensions.iter().any(|one| one.scope == scope))
            .with_circuit(circuit.cloned())
    };
    Ok(AccountList { data: accounts.iter().map(view).collect(), next_cursor: None })
}

/// Show an account
///
/// The account with its current state: whether it is suspended, whether and why its circuit is open, and the
/// use of its limits.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}",
    operation_id = "getAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 200, description = "The account, without its secret", body = AccountView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedAccount(id): NamedAccount,
) -> Result<Json<AccountView>, ApiError> {
    let account = find(&app, &caller.tenant, &id).await?;
    AccountView::with_standing(&app, &account).await.map(Json)
}

/// Delete an account
///
/// 409 while mail waits for it, while it is its tenant's default, while another account falls back to it, or,
/// unless `force` is set, while a rule forwards through it or a route names it.
#[utoipa::path(
    delete,
    path = "/v1/accounts/{id}",
    operation_id = "deleteAccount",
    tag = "accounts",
    params(
        ("id" = String, Path, description = "The account"),
        ("force" = Option<bool>, Query, description = "Delete it even if rules forward through it, whose mail then fails, or routes name it, which then pass it over"),
    ),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
    uri: Uri,
) -> Result<StatusCode, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let force = query.parse("force", flag).unwrap_or(false);
    query.finish()?;
    if !force {
        unused_by_rules(&app, &caller.tenant, &id).await?;
        unused_by_routes(&app, &caller.tenant, &id).await?;
    }
    remove(&app, &caller, &request_id, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses if a rule forwards through this account: its mail would fail from then on, unnoticed.
async fn unused_by_rules(app: &AppState, tenant: &TenantId, id: &AccountId) -> Result<(), ApiError> {
    let forwards_by =
        |action: &RuleAction| matches!(action, RuleAction::Forward(it) if it.account.as_ref() == Some(id));
    let rules = app.store.rules(tenant, None).await?;
    let users: Vec<_> = rules
        .iter()
        .filter(|rule| rule.content.actions.iter().any(forwards_by))
        .take(RULES_NAMED_MAX)
        .map(|rule| format!("`{}`", rule.id))
        .collect();
    match users.is_empty() {
        true => Ok(()),
        false => Err(ApiError::conflict(format!(
            "rules forward by the account `{id}`: {}. Change them first, or delete it with ?force=true",
            users.join(", ")
        ))),
    }
}

/// Refuses if a route names this account: its mail would leave by another from then on, unnoticed.
async fn unused_by_routes(app: &AppState, tenant: &TenantId, id: &AccountId) -> Result<(), ApiError> {
    let routes = app.store.routes(tenant).await?;
    let users: Vec<_> = routes
        .iter()
        .filter(|route| route.content.accounts.iter().any(|target| target.account == *id))
        .take(RULES_NAMED_MAX)
        .map(|route| format!("`{}`", route.id))
        .collect();
    match users.is_empty() {
        true => Ok(()),
        false => Err(ApiError::conflict(format!(
            "routes name the account `{id}`: {}. Change them first, or delete it with ?force=true",
            users.join(", ")
        ))),
    }
}

/// Deletes an account that nothing needs.
pub(crate) async fn remove(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    id: &AccountId,
) -> Result<(), ApiError> {
    let tenant = &caller.tenant;
    let accounts = app.store.accounts(Some(tenant)).await?;
    if let Some(other) = accounts.iter().find(|account| account.settings.fallback.as_ref() == Some(id)) {
        let message = format!("the account `{}` falls back to `{id}`: change that first", other.id);
        return Err(ApiError::conflict(message));
    }
    let entry = app.audit(&caller.actor, Some(tenant), "account.delete", id.as_str(), request_id, None);
    let key = AccountKey { tenant: tenant.clone(), account: id.clone() };
    match app.store.change(DirectoryChange::DeleteAccount(key), Some(entry)).await? {
        ChangeResult::Done => {
            tracing::info!(%tenant, account = %id, "account deleted");
            Ok(())
        }
        ChangeResult::Missing | ChangeResult::Already | ChangeResult::Exists | ChangeResult::Stale => {
            Err(no_account(id.as_str()))
        }
        ChangeResult::InUse => Err(ApiError::conflict(format!(
            "the account `{id}` is in use: mail waits for it, or it is its tenant's default"
        ))),
    }
}
