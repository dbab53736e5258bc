//! The caller of a request: for which tenant, and with which rights.
//!
//! A tenant's key is of one tenant. The admin key and users of several tenants name one; a user's own are the
//! only ones that exist for it.

use std::sync::Arc;

use axum::http::request::Parts;
use postway_domain::{KeyScope, TenantId, User, UserTenants, key::KeyRestrictions};
use postway_store::StoreError;

use super::{AuthenticatedKey, CallerActor, DEFAULT_TENANT, authenticate, session};
use crate::{
    http::{body_budget::RequestShare, error::ApiError},
    state::{AppState, SharedState},
};

/// The caller: every read and write of the request is confined to this tenant.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The tenant.
    pub(crate) tenant: TenantId,
    /// Who acts, as the audit log names it.
    pub(crate) actor: CallerActor,
    /// Whether the caller has the right `read`, whatever else it was needed for: answers show no more than
    /// that.
    pub(crate) may_read: bool,
    /// Whether the caller may read bodies where the tenant says that this is a right of its own.
    may_read_content: bool,
    /// The senders and recipients that the key is restricted to, if any.
    pub(crate) restrictions: Option<Arc<KeyRestrictions>>,
}

impl Caller {
    /// The caller of this request, if its key has `scope`.
    pub(super) async fn with_scope(
        scope: KeyScope,
        parts: &Parts,
        app: &SharedState,
    ) -> Result<Self, ApiError> {
        Self::for_tenant(authenticate(parts, app).await?, scope, None, parts, app).await
    }

    /// The caller with this key, for a tenant that the request names in its own way. A tenant's key may name
    /// only its own tenant, or none.
    pub(crate) async fn for_tenant(
        who: AuthenticatedKey,
        scope: KeyScope,
        tenant: Option<&str>,
        parts: &Parts,
        app: &AppState,
    ) -> Result<Self, ApiError> {
        let caller = Self::of_shown(who, scope, tenant, parts, app).await?;
        // The request's share of the body budget counts as its tenant's.
        if let Some(share) = parts.extensions.get::<RequestShare>() {
            share.assign_to(&caller.tenant);
        }
        Ok(caller)
    }

    async fn of_shown(
        who: AuthenticatedKey,
        scope: KeyScope,
        tenant: Option<&str>,
        parts: &Parts,
        app: &AppState,
    ) -> Result<Self, ApiError> {
        let key = match who {
            AuthenticatedKey::Key(key) if tenant.is_some_and(|tenant| tenant != key.tenant.as_str()) => {
                return Err(ApiError::forbidden("this key is of another tenant than the one named"));
            }
            AuthenticatedKey::Key(key) => key,
            AuthenticatedKey::User(signed_in) => {
                return Self::of_user(&signed_in.user, scope, tenant, parts, app).await;
            }
            AuthenticatedKey::Admin => {
                let tenant = match tenant {
                    None => named_tenant(parts)?,
                    Some(name) => name.parse().map_err(|_| no_tenant(name))?,
                };
                return match app.knows_tenant(&tenant).await? {
                    true => Ok(Self {
                        tenant,
                        actor: CallerActor::Admin,
                        may_read: true,
                        may_read_content: true,
                        restrictions: None,
                    }),
                    false => Err(no_tenant(tenant.as_str())),
                };
            }
        };
        if !key.scopes.contains(&scope) {
            let message = format!("this key lacks the scope `{0}`: use one that has it", scope.as_str());
            return Err(ApiError::forbidden(message));
        }
        let may_read = key.scopes.contains(&KeyScope::Read);
        let may_read_content = key.scopes.contains(&KeyScope::ReadContent);
        let (tenant, actor) = (key.tenant.clone(), CallerActor::Key(key.id.clone()));
        Ok(Self { tenant, actor, may_read, may_read_content, restrictions: key.restrictions.clone() })
    }

    /// The caller that this user is, for a tenant of its own.
    async fn of_user(
        user: &User,
        scope: KeyScope,
        tenant: Option<&str>,
        parts: &Parts,
        app: &AppState,
    ) -> Result<Self, ApiError> {
        let tenant = match tenant {
            Some(name) => own_tenant(user, name)?,
            None => users_tenant(user, parts)?,
        };
        if !app.knows_tenant(&tenant).await? {
            return Err(no_tenant(tenant.as_str()));
        }
        if !user.may(scope) {
            return Err(ApiError::forbidden(format!(
                "your role `{}` lacks the right `{}`: ask an admin",
                user.role.as_str(),
                scope.as_str()
            )));
        }
        Ok(Self {
            tenant,
            actor: CallerActor::of_user(user),
            may_read: user.may(KeyScope::Read),
            may_read_content: user.may(KeyScope::ReadContent),
            restrictions: None,
        })
    }

    /// Whether the caller, who may read the tenant's messages, may read their bodies as well.
    pub(crate) async fn may_see_content(&self, app: &AppState) -> Result<bool, StoreError> {
        if self.may_read_content {
            return Ok(true);
        }
        let tenant = app.store.tenant(&self.tenant).await?;
        Ok(tenant.is_some_and(|tenant| !tenant.settings.guard_content))
    }

    /// Refuses a caller who may not read bodies.
    pub(super) async fn check_content(&self, app: &AppState) -> Result<(), ApiError> {
        match self.may_see_content(app).await? {
            true => Ok(()),
            false => Err(ApiError::forbidden(
                "reading bodies takes the right `read:content` in this tenant (its guard_content)",
            )),
        }
    }
}

/// A tenant that the user may name. One that is not its own does not exist for it.
fn own_tenant(user: &User, name: &str) -> Result<TenantId, ApiError> {
    let tenant: TenantId = name.parse().map_err(|_| no_tenant(name))?;
    if user.tenants.has(&tenant) { Ok(tenant) } else { Err(no_tenant(name)) }
}

/// The tenant of a user's request: the one that a header names; else the one that its page shows, `default`
/// or the first, whichever is its own.
fn users_tenant(user: &User, parts: &Parts) -> Result<TenantId, ApiError> {
    if let Some(value) = parts.headers.get("x-tenant") {
        let name = value.to_str().map_err(|_| no_tenant("(unreadable)"))?.trim();
        return own_tenant(user, name);
    }
    let shown = session::shown_tenant(parts).into_iter().chain([DEFAULT_TENANT]);
    let first = match &user.tenants {
        UserTenants::All => None,
        UserTenants::Named(named) => named.first().cloned(),
    };
    let own = shown.filter_map(|name| own_tenant(user, name).ok()).next().or(first);
    own.ok_or_else(|| ApiError::forbidden("you have no tenant: ask an admin for one"))
}

fn named_tenant(parts: &Parts) -> Result<TenantId, ApiError> {
    let name = match parts.headers.get("x-tenant") {
        None => session::shown_tenant(parts).unwrap_or(DEFAULT_TENANT),
        Some(value) => value.to_str().map_err(|_| no_tenant("(unreadable)"))?.trim(),
    };
    name.parse().map_err(|_| no_tenant(name))
}

fn no_tenant(name: &str) -> ApiError {
    let shown: String = name.chars().take(TenantId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no tenant `{shown}`; name one that exists (X-Tenant)"))
}
