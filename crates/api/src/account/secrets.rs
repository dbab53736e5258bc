//! `POST /v1/secrets/rotate`: seals every stored secret with the key of now.
//!
//! The key before it must still be configured, or what it sealed cannot be opened. Once this has gone through it may be
//! forgotten. Doing it again does nothing.

use axum::{Json, extract::State};
use postway_domain::{Account, Tenant, TenantId, secret::Sealed};
use postway_store::record::{Changed, DirectoryChange};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{auth::Admin, error::ApiError, request_id::RequestId, state::Shared};

/// Tenants read at a time.
const PAGE: u32 = 500;

/// What a rotation did.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Rotation)]
pub(crate) struct RotationView {
    /// Accounts whose secret was sealed anew.
    accounts: u64,
    /// Tenants whose secrets were sealed anew.
    tenants: u64,
    /// What opens with neither key: its secret must be set again.
    #[schema(example = json!(["account/default/relay-1"]))]
    unreadable: Vec<String>,
    /// What somebody changed at the same moment: run it once more.
    busy: Vec<String>,
}

impl RotationView {
    /// Seals anew what needs it; `None` where there is nothing to write.
    fn renew(&mut self, app: &Shared, place: &str, secret: Option<&Sealed>) -> Option<Sealed> {
        match secret.map(|sealed| app.secret_key.renew(place, sealed)) {
            Some(Ok(renewed)) => renewed,
            Some(Err(_)) => {
                self.unreadable.push(place.to_owned());
                None
            }
            None => None,
        }
    }
}

/// Seal stored secrets anew
///
/// For the admin key. After `POSTWAY_SECRET_KEY` was changed, with the old key in `POSTWAY_SECRET_KEY_PREVIOUS`, on every
/// node. Once nothing is `unreadable` or `busy`, the previous key can go.
#[utoipa::path(
    post,
    path = "/v1/secrets/rotate",
    operation_id = "rotateSecrets",
    tag = "operations",
    responses((status = 200, description = "What was done", body = RotationView))
)]
pub(crate) async fn rotate(
    State(app): State<Shared>,
    admin: Admin,
    request_id: RequestId,
) -> Result<Json<RotationView>, ApiError> {
    let mut done = RotationView::default();
    let audit = |tenant: &TenantId, target: &str| {
        app.audit(&admin.actor, Some(tenant), "secret.rotate", target, &request_id, None)
    };
    for account in app.store.accounts(None).await? {
        let place = Account::secret_place(&account.tenant, &account.id);
        let Some(secret) = done.renew(&app, &place, account.secret.as_ref()) else { continue };
        let (expected, entry) = (account.version, audit(&account.tenant, &place));
        let account =
            Account { secret: Some(secret), version: expected + 1, updated_at: app.clock.now(), ..account };
        match app.store.change(DirectoryChange::UpdateAccount(account, expected), Some(entry)).await? {
            Changed::Done => done.accounts += 1,
            _ => done.busy.push(place),
        }
    }
    let mut after = None;
    loop {
        let page = app.store.tenants(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        for tenant in page.into_iter().filter(|tenant| tenant.deleted_at.is_none()) {
            let place = Tenant::secret_place(&tenant.id);
            let Some(secret) = done.renew(&app, &place, tenant.secret.as_ref()) else { continue };
            let (expected, entry) = (tenant.version, audit(&tenant.id, &place));
            let tenant =
                Tenant { secret: Some(secret), version: expected + 1, updated_at: app.clock.now(), ..tenant };
            match app.store.change(DirectoryChange::UpdateTenant(tenant, expected), Some(entry)).await? {
                Changed::Done => done.tenants += 1,
                _ => done.busy.push(place),
            }
        }
    }
    tracing::info!(accounts = done.accounts, tenants = done.tenants, "stored secrets were sealed anew");
    Ok(Json(done))
}
