//! `/v1/accounts/{id}/hook`: the address to which an account's provider reports what happened to its mail.
//!
//! The token in the URL is a secret of its own: shown once, stored as a digest, and replaceable. Secrets that
//! prove calls are encrypted and never shown, except a password that is made here.

pub(crate) mod events;
mod settings;
mod view;

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use postway_domain::{
    AccountId, HookProvider, KeyDigest, ProviderHook, TenantId, hook::HookProof, secret::SealedSecret,
};
use postway_store::record::{AccountKey, ChangeResult, DirectoryChange};
use rand::Rng;
use serde_json::json;

use self::{
    settings::{ProviderHookEdit, ProviderHookRequest},
    view::{ProviderHookView, ProviderHookWithToken},
};
use super::{NamedAccount, find};
use crate::{
    auth::{Manager, Reader},
    http::{
        body,
        error::ApiError,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    setting::callback_url,
    state::{AppState, SharedState},
};

fn key(tenant: &TenantId, account: &AccountId) -> AccountKey {
    AccountKey { tenant: tenant.clone(), account: account.clone() }
}

async fn find_hook(app: &AppState, tenant: &TenantId, id: &AccountId) -> Result<ProviderHook, ApiError> {
    let found = app.store.provider_hook(&key(tenant, id)).await?;
    match found {
        Some(hook) => Ok(hook),
        None => {
            find(app, tenant, id).await?;
            Err(ApiError::not_found(format!("the account `{id}` has no hook: PUT one")))
        }
    }
}

/// A token, and the URL to give to the provider.
fn url_of(app: &AppState, provider: HookProvider, token: &str) -> String {
    let base = app.door.public_url().unwrap_or_default();
    format!("{}/hooks/{}/{token}", base.trim_end_matches('/'), provider.as_str())
}

/// Create or change an account's hook
///
/// The address to which the account's provider reports deliveries, bounces, complaints, opens and clicks. A
/// new hook is answered with its `url`, which is shown only once; a change keeps it, unless the provider is
/// another. Secrets that are left out stay.
#[utoipa::path(
    put,
    path = "/v1/accounts/{id}/hook",
    operation_id = "putAccountHook",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    request_body = ProviderHookRequest,
    responses(
        (status = 201, description = "Created: the hook with its URL", body = ProviderHookWithToken),
        (status = 200, description = "Changed", body = ProviderHookView),
    )
)]
pub(crate) async fn put(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::json_object(request).await?;
    let tenant = &caller.tenant;
    let account = find(&app, tenant, &id).await?;
    change_versioned("hook", || async {
        let current = app.store.provider_hook(&key(tenant, &id)).await?;
        let fallback = current.as_ref().map(|hook| hook.provider);
        let fallback = fallback.or_else(|| HookProvider::of_account(account.settings.kind));
        let ProviderHookEdit { provider, mut settings, secret, version } =
            settings::read(body.clone(), fallback, current.as_ref()).map_err(ApiError::invalid)?;
        if let Some(endpoint) = &settings.sns_endpoint {
            callback_url::check(&app, "sns_endpoint", endpoint)
                .map_err(|wrong| ApiError::invalid(vec![wrong]))?;
        }
        // What proves calls of one provider proves none of another.
        let kept =
            current.as_ref().filter(|hook| hook.provider == provider).and_then(|hook| hook.secret.clone());
        let made = (secret.is_none() && kept.is_none()).then(|| make_secret(provider)).flatten();
        if provider.proof() == HookProof::Password && settings.username.is_none() {
            settings.username = Some("postway".to_owned());
        }
        let sealed = match secret.as_ref().or(made.as_ref()) {
            Some(secret) => Some(seal(&app, tenant, &id, secret)?),
            None => kept,
        };
        if sealed.is_none() && settings::needs_secret(provider) {
            return Err(ApiError::field("secret", settings::secret_hint(provider)));
        }
        let now = app.clock.now();
        // The URL names the provider, so that another provider needs another one.
        let kept_token = current.as_ref().filter(|hook| hook.provider == provider).map(|hook| hook.token);
        let new_token = ProviderHook::make_token(&mut rand::rng());
        let digest = kept_token.unwrap_or_else(|| KeyDigest::of(new_token.as_bytes()));
        let expected = current.as_ref().map(|hook| hook.version);
        check_version("hook", version, expected.unwrap_or(0))?;
        let hook = ProviderHook {
            tenant: tenant.clone(),
            account: id.clone(),
            provider,
            token: digest,
            settings,
            secret: sealed,
            version: expected.unwrap_or(0) + 1,
            created_at: current.as_ref().map_or(now, |hook| hook.created_at),
            updated_at: now,
        };
        let view = ProviderHookView::new(&hook);
        let detail = Some(json!({"provider": provider.as_str()}));
        let entry = app.audit(&caller.actor, Some(tenant), "account.hook", id.as_str(), &request_id, detail);
        let change = DirectoryChange::PutProviderHook(hook, expected);
        match app.store.change(change, Some(entry)).await? {
            ChangeResult::Done => {}
            ChangeResult::Missing => return Err(super::no_account(id.as_str())),
            ChangeResult::Already | ChangeResult::Exists | ChangeResult::Stale | ChangeResult::InUse => {
                return Ok(None);
            }
        }
        tracing::info!(%tenant, account = %id, provider = provider.as_str(), "hook written");
        Ok(Some(match kept_token {
            None => {
                let url = url_of(&app, provider, &new_token);
                let hook = ProviderHookWithToken { hook: view, url, secret: made };
                (StatusCode::CREATED, Json(hook)).into_response()
            }
            Some(_) => Json(view).into_response(),
        }))
    })
    .await
}

/// A password or a signing secret, where the provider gets ours.
fn make_secret(provider: HookProvider) -> Option<String> {
    use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
    let random = rand::rng().random::<[u8; 32]>();
    match provider {
        HookProvider::Postmark => Some(BASE64_URL_SAFE_NO_PAD.encode(random)),
        HookProvider::Http => Some(format!("whsec_{}", BASE64_STANDARD.encode(random))),
        HookProvider::Ses | HookProvider::Sendgrid | HookProvider::Mailgun | HookProvider::Resend => None,
    }
}

fn seal(
    app: &AppState,
    tenant: &TenantId,
    account: &AccountId,
    secret: &str,
) -> Result<SealedSecret, ApiError> {
    let place = ProviderHook::sealing_context(tenant, account);
    app.secret_key.seal(&place, secret).map_err(ApiError::internal)
}

/// Show an account's hook
///
/// Without its token and its secret.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}/hook",
    operation_id = "getAccountHook",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 200, description = "The hook", body = ProviderHookView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedAccount(id): NamedAccount,
) -> Result<Json<ProviderHookView>, ApiError> {
    find_hook(&app, &caller.tenant, &id).await.map(|hook| Json(ProviderHookView::new(&hook)))
}

/// Replace a hook's URL
///
/// The new `url` is shown only once. The earlier one stops within a second on every node: give the new one to
/// the provider at once, which repeats what was refused meanwhile.
#[utoipa::path(
    post,
    path = "/v1/accounts/{id}/hook/rotate",
    operation_id = "rotateAccountHook",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 200, description = "The hook with its new URL", body = ProviderHookWithToken))
)]
pub(crate) async fn rotate(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
) -> Result<Json<ProviderHookWithToken>, ApiError> {
    let tenant = &caller.tenant;
    change_versioned("hook", || async {
        let current = find_hook(&app, tenant, &id).await?;
        let (expected, provider) = (current.version, current.provider);
        let token = ProviderHook::make_token(&mut rand::rng());
        let hook = ProviderHook {
            token: KeyDigest::of(token.as_bytes()),
            version: expected + 1,
            updated_at: app.clock.now(),
            ..current
        };
        let view = ProviderHookView::new(&hook);
        let entry =
            app.audit(&caller.actor, Some(tenant), "account.hook.rotate", id.as_str(), &request_id, None);
        let change = DirectoryChange::PutProviderHook(hook, Some(expected));
        if app.store.change(change, Some(entry)).await? != ChangeResult::Done {
            return Ok(None);
        }
        tracing::info!(%tenant, account = %id, "hook has a new token");
        let url = url_of(&app, provider, &token);
        Ok::<_, ApiError>(Some(Json(ProviderHookWithToken { hook: view, url, secret: None })))
    })
    .await
}

/// Delete an account's hook
///
/// What it reported and was not processed yet is not processed any more.
#[utoipa::path(
    delete,
    path = "/v1/accounts/{id}/hook",
    operation_id = "deleteAccountHook",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    find_hook(&app, tenant, &id).await?;
    let entry = app.audit(&caller.actor, Some(tenant), "account.hook.delete", id.as_str(), &request_id, None);
    app.store.change(DirectoryChange::DeleteProviderHook(key(tenant, &id)), Some(entry)).await?;
    tracing::info!(%tenant, account = %id, "hook deleted");
    Ok(StatusCode::NO_CONTENT)
}
