//! `PATCH` and `PUT /v1/accounts/{id}`.
//!
//! `PATCH` changes the given fields. `PUT` replaces the settings: absent fields take their defaults, except
//! the secret, which cannot be read back and is kept unless a new one is given. If the secret would be sent
//! to another destination, or with less protection, it must be given ([`SecretDestination`]). A client may
//! send back what `GET` showed. After a change of settings an open circuit is closed.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Account, AccountId};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::{Map, Value, json};

use super::{
    AccountView, NamedAccount, check_fallback, check_target,
    edit::{self, AccountEdit, AccountSecretEdit},
    egress, find, key_of,
    schema::AccountRequest,
    seal,
    view::is_suspended,
};
use crate::{
    auth::{Caller, Manager},
    http::{
        body,
        error::ApiError,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    setting::secret_destination::SecretDestination,
    state::{AppState, SharedState},
};

/// Change an account
///
/// Changes the given fields and leaves the others. A change of host, port, region, endpoint, base_url or
/// proxy, and any reduction of TLS protection, requires the password or key again. With `version`, the change
/// is made only if the account still has that version; 409 otherwise.
#[utoipa::path(
    patch,
    path = "/v1/accounts/{id}",
    operation_id = "changeAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    request_body = AccountRequest,
    responses((status = 200, description = "The account after the change", body = AccountView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
    request: Request,
) -> Result<Json<AccountView>, ApiError> {
    let body = body::json_object(request).await?;
    update(&app, &caller, &request_id, &id, &body, false).await.map(Json)
}

/// Replace an account's settings
///
/// Absent fields take their defaults; the password or secret key is kept unless a new one is given or the
/// destination changes. With `version`, the change is made only if the account still has that version; 409
/// otherwise.
#[utoipa::path(
    put,
    path = "/v1/accounts/{id}",
    operation_id = "replaceAccount",
    tag = "accounts",
    params(("id" = String, Path, description = "The account")),
    request_body = AccountRequest,
    responses((status = 200, description = "The account after the change", body = AccountView))
)]
pub(crate) async fn put(
    State(app): State<SharedState>,
    Manager(caller): Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
    request: Request,
) -> Result<Json<AccountView>, ApiError> {
    let body = body::json_object(request).await?;
    update(&app, &caller, &request_id, &id, &body, true).await.map(Json)
}

/// Changes the fields in `body`, or replaces all settings.
pub(crate) async fn update(
    app: &AppState,
    caller: &Caller,
    request_id: &RequestId,
    id: &AccountId,
    body: &Map<String, Value>,
    replace: bool,
) -> Result<AccountView, ApiError> {
    let tenant = &caller.tenant;
    change_versioned("account", || async {
        let current = find(app, tenant, id).await?;
        check_version("account", body.get("version").and_then(Value::as_i64), current.version)?;
        let now = app.clock.now();
        let base = match replace {
            // Whether a tenant's key named the host is not a setting, and stays until the host changes.
            true => postway_domain::AccountSettings {
                by_tenant: current.settings.by_tenant,
                ..edit::defaults(body, Some(current.settings.kind))
            },
            false => current.settings.clone(),
        };
        let shown = AccountView::new(&current, is_suspended(app, &current).await?);
        let shown = serde_json::to_value(shown).map_err(ApiError::internal)?;
        let AccountEdit { mut settings, secret, grant, proxy } =
            edit::edit(base, body, Some(&shown), now).map_err(ApiError::invalid)?;
        check_target(app, &caller.actor, Some(&current.settings), &mut settings)?;
        let is_named = !replace || body.contains_key("source_address");
        egress::check_source(&caller.actor, Some(&current.settings), &mut settings, is_named)?;
        let kept = match &current.settings.oauth {
            // The secrets of a grant are removed with it.
            Some(_) if settings.oauth.is_none() => None,
            Some(before) => grant.kept_of(before),
            None if settings.oauth.is_some() || secret != AccountSecretEdit::Keep => None,
            None => Some(settings.kind.secret().field()),
        };
        if let Some(name) = kept.filter(|_| current.secret.is_some()) {
            let (before, after) =
                (SecretDestination::of_account(&current.settings), SecretDestination::of_account(&settings));
            SecretDestination::check(&before, &after, name)
                .map_err(|wrong| ApiError::invalid(vec![wrong]))?;
        }
        check_fallback(app, tenant, id, &settings).await?;
        let expected_version = current.version;
        egress::seal_password(app, (tenant, id), &mut settings, proxy, Some(&current))?;
        let secret = seal(app, tenant, id, (&mut settings, secret, grant), Some(&current))?;
        let version = expected_version + 1;
        let account = Account { settings, secret, version, updated_at: now, ..current };
        let fields: Vec<&String> = body.keys().collect();
        let detail = Some(json!({"fields": fields, "version": version}));
        let entry = app.audit(&caller.actor, Some(tenant), "account.change", id.as_str(), request_id, detail);
        let change = DirectoryChange::UpdateAccount(account.clone(), expected_version);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            app.store.change(DirectoryChange::CloseCircuit(key_of(&account)), None).await?;
            tracing::info!(%tenant, account = %id, version, "account changed");
            return AccountView::with_standing(app, &account).await.map(Some);
        }
        Ok::<_, ApiError>(None)
    })
    .await
}
