//! `PATCH /v1/tenants/{id}`: a change is merged into the stored tenant.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Tenant, TenantId, Time};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::{Map, Value, json};

use super::{
    NamedTenant, TenantView, check_targets, edit, find, schema::TenantRequest, secret, suspended_since,
};
use crate::{
    auth::Admin,
    http::{
        body,
        error::ApiError,
        json_fields,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    state::{AppState, SharedState},
};

/// Change a tenant
///
/// Merges the given fields into the tenant: `null` resets a setting to its default; a token or password that
/// is not given stays. With `version`, the change is made only if the tenant still has that version; 409
/// otherwise.
#[utoipa::path(
    patch,
    path = "/v1/tenants/{id}",
    operation_id = "changeTenant",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    request_body = TenantRequest,
    responses((status = 200, description = "The tenant after the change", body = TenantView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    admin: Admin,
    request_id: RequestId,
    NamedTenant(id): NamedTenant,
    request: Request,
) -> Result<Json<TenantView>, ApiError> {
    let body = body::json_object(request).await?;
    update(&app, &admin, &request_id, &id, &body).await.map(Json)
}

/// Merges `body` into the tenant.
pub(crate) async fn update(
    app: &AppState,
    admin: &Admin,
    request_id: &RequestId,
    id: &TenantId,
    body: &Map<String, Value>,
) -> Result<TenantView, ApiError> {
    change_versioned("tenant", || async {
        let current = find(app, id).await?;
        let since = suspended_since(app, id).await?;
        check_version("tenant", body.get("version").and_then(Value::as_i64), current.version)?;
        let expected = current.version;
        let changed = changed(app, current, body.clone(), since).await?;
        let shown = TenantView::new(&changed, since);
        let detail = json!({"fields": body.keys().collect::<Vec<_>>(), "version": changed.version});
        let entry = app.audit(&admin.actor, Some(id), "tenant.update", id.as_str(), request_id, Some(detail));
        let change = DirectoryChange::UpdateTenant(changed, expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            tracing::info!(tenant = %id, version = expected + 1, "tenant changed");
            return Ok(Some(shown));
        }
        Ok::<_, ApiError>(None)
    })
    .await
}

/// The tenant with a patch merged into it.
async fn changed(
    app: &AppState,
    current: Tenant,
    mut patch: Map<String, Value>,
    suspended_since: Option<Time>,
) -> Result<Tenant, ApiError> {
    let mut whole =
        serde_json::to_value(TenantView::new(&current, suspended_since)).map_err(ApiError::internal)?;
    let mut wrong = edit::take_shown_only(&mut patch, Some(&whole));
    wrong.extend(edit::take_unknown_nulls(&mut patch, &whole));
    edit::spell_out(&mut patch);
    json_fields::merge(&mut whole, Value::Object(patch));
    let Value::Object(mut whole) = whole else {
        return Err(ApiError::internal("a tenant is not shown as an object"));
    };
    edit::take_shown_only(&mut whole, None);
    let edited = match edit::read(whole, &current.settings) {
        Ok(edited) if wrong.is_empty() => edited,
        edited => {
            wrong.extend(edited.err().into_iter().flatten());
            return Err(ApiError::invalid(wrong));
        }
    };
    if let Some(account) = &edited.default_account
        && edited.default_account != current.default_account
        && app.store.account(&current.id, account).await?.is_none()
    {
        let message = format!("the tenant has no account `{account}`: create it first");
        return Err(ApiError::field("default_account", message));
    }
    check_targets(app, &current.settings, &edited.settings)?;
    let secret =
        secret::reseal(app, &current.id, current.secret, edited.client_sync, edited.attachment_endpoint)?;
    Ok(Tenant {
        name: edited.name.unwrap_or_else(|| current.id.to_string()),
        default_account: edited.default_account,
        settings: edited.settings,
        secret,
        version: current.version + 1,
        updated_at: app.clock.now(),
        ..Tenant::new(current.id, "", current.created_at)
    })
}
