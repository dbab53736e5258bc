//! `PATCH` and `PUT /v1/accounts/{id}`.
//!
//! `PATCH` changes the fields given. `PUT` replaces the settings: what is not given takes its default, but for the
//! secret, which nobody can read back and which stays unless one is given; where it would be sent elsewhere, or less
//! protected, it must be ([`Way`]). What `GET` shows may be put back as it is. Changed settings deserve a new chance: an open circuit closes.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Account, AccountId};
use postway_store::record::{Changed, DirectoryChange};
use serde_json::{Map, Value, json};

use super::{
    AccountView, NamedAccount, check_fallback, check_target,
    edit::{self, Edited, Secret},
    find, key_of,
    schema::AccountRequest,
    seal,
    view::is_suspended,
};
use crate::{
    auth::{Caller, Manager},
    http::{body, error::ApiError, request_id::RequestId},
    setting::secret_destination::Way,
    state::{App, Shared},
};

/// How often a change is made anew when another one was faster.
const TRIES_MAX: u32 = 5;

/// Change an account
///
/// Changes the fields given and leaves the rest. Another host, port, region, endpoint or base_url, and less protection on the way,
/// need the password or key again. With `version`, only if it still is that one; 409 otherwise.
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
/// Fields that are not given take their defaults; the password or secret key stays unless one is given, or the mail goes
/// elsewhere. With `version`, only if it still is that one; 409 otherwise.
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
    Manager(caller): Manager,
    request_id: RequestId,
    NamedAccount(id): NamedAccount,
    request: Request,
) -> Result<Json<AccountView>, ApiError> {
    let body = body::json_object(request).await?;
    update(&app, &caller, &request_id, &id, &body, true).await.map(Json)
}

/// Changes the fields that `body` has, or replaces all.
pub(crate) async fn update(
    app: &App,
    caller: &Caller,
    request_id: &RequestId,
    id: &AccountId,
    body: &Map<String, Value>,
    replace: bool,
) -> Result<AccountView, ApiError> {
    let tenant = &caller.tenant;
    for _ in 0..TRIES_MAX {
        let current = find(app, tenant, id).await?;
        if let Some(expected) = body.get("version").and_then(Value::as_i64)
            && expected != current.version
        {
            let message =
                format!("the account is at version {} by now; read it and try again", current.version);
            return Err(ApiError::conflict(message));
        }
        let now = app.clock.now();
        let base = match replace {
            // Who named the target is no setting, and stays until the target changes.
            true => postway_domain::AccountSettings {
                by_tenant: current.settings.by_tenant,
                ..edit::defaults(body, Some(current.settings.kind))
            },
            false => current.settings.clone(),
        };
        let shown = AccountView::new(&current, is_suspended(app, &current).await?);
        let shown = serde_json::to_value(shown).map_err(ApiError::internal)?;
        let Edited { mut settings, secret, grant } =
            edit::edit(base, body, Some(&shown), now).map_err(ApiError::invalid)?;
        check_target(app, &caller.actor, Some(&current.settings), &mut settings)?;
        let kept = match &current.settings.oauth {
            // A grant's secrets go with it.
            Some(_) if settings.oauth.is_none() => None,
            Some(before) => grant.kept_of(before),
            None if settings.oauth.is_some() || secret != Secret::Keep => None,
            None => Some(settings.kind.secret().field()),
        };
        if let Some(name) = kept.filter(|_| current.secret.is_some()) {
            let (before, after) = (Way::of_account(&current.settings), Way::of_account(&settings));
            Way::check(&before, &after, name).map_err(|wrong| ApiError::invalid(vec![wrong]))?;
        }
        check_fallback(app, tenant, id, &settings).await?;
        let expected_version = current.version;
        let secret = seal(app, tenant, id, (&mut settings, secret, grant), Some(&current))?;
        let version = expected_version + 1;
        let account = Account { settings, secret, version, updated_at: now, ..current };
        let fields: Vec<&String> = body.keys().collect();
        let detail = Some(json!({"fields": fields, "version": version}));
        let entry = app.audit(&caller.actor, Some(tenant), "account.change", id.as_str(), request_id, detail);
        let change = DirectoryChange::UpdateAccount(account.clone(), expected_version);
        if app.store.change(change, Some(entry)).await? == Changed::Done {
            app.store.change(DirectoryChange::CloseCircuit(key_of(&account)), None).await?;
            tracing::info!(%tenant, account = %id, version, "account changed");
            return AccountView::with_standing(app, &account).await;
        }
    }
    Err(ApiError::conflict("the account is being changed by others; read it and try again"))
}
