//! Authentication: who calls, for which tenant, and what the caller may do.
//!
//! A key comes as `Authorization: Bearer KEY` or `X-API-Key`; a browser has a session cookie instead
//! (`session/`). The admin key may do everything, for the tenant that `X-Tenant` names, `default` when
//! absent. A tenant's key works for its own tenant, whatever `X-Tenant` says, within its scopes and from the
//! networks it allows. Only digests of keys are stored; the admin key's is compared in constant time.
//!
//! An address that sends many wrong keys must wait (`wrong_keys.rs`).
//!
//! A handler declares what it needs by the extractor it takes: a [`Sender`], a [`Reader`], a [`Manager`] or
//! the [`Admin`]. A request without a valid key is answered 401, one whose key is not sufficient 403.

mod key_cache;
mod key_check;
mod scram;
pub(crate) mod session;
mod wrong_keys;

use std::{fmt, net::IpAddr, ops::Deref, sync::Arc};

use aws_lc_rs::{constant_time, digest};
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use postway_domain::{
    ApiKey, KeyScope, TenantId,
    key::KeyRestrictions,
    scram::{ScramVerifier, salt_of},
    secret::SecretKey,
};

pub(crate) use self::key_cache::{KeyCache, KeyLookupError};
pub use self::key_check::{KeyCheck, KeyDenied};
use crate::{
    http::{body_budget::RequestShare, error::ApiError, origin::RequestOrigin},
    limit,
    state::{AppState, SharedState},
};

/// The tenant that always exists.
pub(crate) const DEFAULT_TENANT: &str = "default";

/// The key that may do everything, as its digest. The key is long and random, so one round of hashing is
/// enough.
#[derive(Clone)]
pub struct AdminKey {
    digest: [u8; digest::SHA256_OUTPUT_LEN],
    scram: Option<ScramVerifier>,
}

impl AdminKey {
    /// Stores the digest of `key`, not the key.
    pub fn new(key: &str) -> Self {
        Self { digest: sha256(key.as_bytes()), scram: None }
    }

    /// Also stores what SCRAM verifies `key` against.
    pub fn with_scram(key: &str, secret_key: &SecretKey) -> Self {
        Self { scram: Some(ScramVerifier::of(key, salt_of(secret_key))), ..Self::new(key) }
    }

    /// The digest.
    pub(crate) fn digest(&self) -> &[u8] {
        &self.digest
    }

    /// Whether `presented` is this key.
    pub fn opens(&self, presented: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(&self.digest, &sha256(presented)).is_ok()
    }
}

impl fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminKey(***)")
    }
}

fn sha256(bytes: &[u8]) -> [u8; digest::SHA256_OUTPUT_LEN] {
    let mut out = [0; digest::SHA256_OUTPUT_LEN];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

/// The owner of a key, as the audit log names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallerActor {
    /// The admin key.
    Admin,
    /// A tenant's key, by its id.
    Key(String),
}

impl CallerActor {
    /// Whether this is the admin key.
    pub(crate) fn is_admin(&self) -> bool {
        *self == CallerActor::Admin
    }
}

impl fmt::Display for CallerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallerActor::Admin => f.write_str("admin"),
            CallerActor::Key(id) => write!(f, "key:{id}"),
        }
    }
}

/// The caller: every read and write of the request is confined to this tenant.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The tenant.
    pub(crate) tenant: TenantId,
    /// The key's owner.
    pub(crate) actor: CallerActor,
    /// Whether the key has the scope `read`, whatever else it was needed for: answers show no more than that.
    pub(crate) may_read: bool,
    /// The senders and recipients that the key is restricted to, if any.
    pub(crate) restrictions: Option<Arc<KeyRestrictions>>,
}

impl Caller {
    /// The caller of this request, if its key has `scope`.
    async fn with_scope(scope: KeyScope, parts: &Parts, app: &SharedState) -> Result<Self, ApiError> {
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
            AuthenticatedKey::Admin => {
                let tenant = match tenant {
                    None => named_tenant(parts)?,
                    Some(name) => name.parse().map_err(|_| no_tenant(name))?,
                };
                return match app.knows_tenant(&tenant).await? {
                    true => {
                        Ok(Self { tenant, actor: CallerActor::Admin, may_read: true, restrictions: None })
                    }
                    false => Err(no_tenant(tenant.as_str())),
                };
            }
        };
        if !key.scopes.contains(&scope) {
            let message = format!("this key lacks the scope `{0}`: use one that has it", scope.as_str());
            return Err(ApiError::forbidden(message));
        }
        let may_read = key.scopes.contains(&KeyScope::Read);
        let (tenant, actor) = (key.tenant.clone(), CallerActor::Key(key.id.clone()));
        Ok(Self { tenant, actor, may_read, restrictions: key.restrictions.clone() })
    }
}

macro_rules! with_scope {
    ($(#[$doc:meta])* $name:ident, $scope:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name(pub(crate) Caller);

        impl Deref for $name {
            type Target = Caller;

            fn deref(&self) -> &Caller {
                &self.0
            }
        }

        impl FromRequestParts<SharedState> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
                Caller::with_scope($scope, parts, app).await.map(Self)
            }
        }
    };
}

with_scope!(
    /// A caller who may hand over mail, and cancel or retry it: scope `send`.
    Sender, KeyScope::Send
);
with_scope!(
    /// A caller who may read messages, counts and lists: scope `read`.
    Reader, KeyScope::Read
);
with_scope!(
    /// A caller who may change accounts, batches, suppressions, templates, recipients, signing keys,
    /// webhooks, mailboxes, rules and contacts, and remove messages: scope `manage`.
    Manager, KeyScope::Manage
);

/// A caller with the admin key, for resources that belong to no tenant. A tenant's key is answered 403,
/// whatever the path.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    /// The owner of the key, as the audit log names it.
    pub(crate) actor: CallerActor,
}

impl FromRequestParts<SharedState> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        match authenticate(parts, app).await? {
            AuthenticatedKey::Admin => Ok(Self { actor: CallerActor::Admin }),
            AuthenticatedKey::Key(_) => Err(ApiError::forbidden("this call needs the admin key")),
        }
    }
}

/// The key that a request presents, or signed in with.
pub(crate) enum AuthenticatedKey {
    /// The admin key.
    Admin,
    /// A tenant's key, valid now and used from an allowed network.
    Key(Arc<ApiKey>),
}

/// The key of a request. A key in a header takes precedence over a session.
pub(crate) async fn authenticate(parts: &Parts, app: &AppState) -> Result<AuthenticatedKey, ApiError> {
    match presented_key(&parts.headers) {
        Some(presented) => authenticate_key(presented, parts, app).await,
        None => {
            let who = session::authenticated_key(parts, app).await?.ok_or_else(ApiError::unauthorized)?;
            check_network(who, parts)
        }
    }
}

/// The owner of this key, if it is valid now and may be used from the request's origin.
pub(crate) async fn authenticate_key(
    presented: &[u8],
    parts: &Parts,
    app: &AppState,
) -> Result<AuthenticatedKey, ApiError> {
    if app.admin_key.opens(presented) {
        return Ok(AuthenticatedKey::Admin);
    }
    let client = RequestOrigin::from_parts(parts).and_then(|origin| origin.client());
    let key = app.key_cache.valid_key(presented, client, app).await?.ok_or_else(ApiError::unauthorized)?;
    check_network(AuthenticatedKey::Key(key), parts)
}

/// Refuses a key that is bound to other networks.
fn check_network(who: AuthenticatedKey, parts: &Parts) -> Result<AuthenticatedKey, ApiError> {
    let from = RequestOrigin::from_parts(parts).map(|origin| origin.address);
    match who {
        AuthenticatedKey::Key(key) if !key.allows(from) => {
            Err(ApiError::forbidden("this key may not be used from your address (its allow_ips)"))
        }
        AuthenticatedKey::Key(key) => {
            limit::count_key(parts, &key.id)?;
            Ok(AuthenticatedKey::Key(key))
        }
        AuthenticatedKey::Admin => Ok(AuthenticatedKey::Admin),
    }
}

impl From<KeyLookupError> for ApiError {
    fn from(unread: KeyLookupError) -> Self {
        match unread {
            KeyLookupError::TooManyWrong(wait) => Self::too_many_wrong_keys(wait),
            KeyLookupError::Unavailable(error) => error.into(),
        }
    }
}

/// Whether a request was made to this machine, by name or address.
pub(crate) fn is_loopback_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The key in a request's headers, if there is one.
pub(crate) fn presented_key(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
    });
    bearer.or_else(|| headers.get("x-api-key").map(|value| value.as_bytes().trim_ascii()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_key_opens_and_nobody_sees_it() {
        let key = AdminKey::new("0123456789abcdef0123456789abcdef");
        assert!(key.opens(b"0123456789abcdef0123456789abcdef"));
        for wrong in ["", "0123456789abcdef0123456789abcdeF", "0123456789abcdef0123456789abcdef "] {
            assert!(!key.opens(wrong.as_bytes()), "{wrong:?}");
        }
        assert_eq!(format!("{key:?}"), "AdminKey(***)");
    }

    #[test]
    fn either_header_carries_the_key() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(
                header::HeaderName::from_static(name),
                header::HeaderValue::from_static(value),
            )])
        };
        assert_eq!(presented_key(&headers("authorization", "Bearer abc")), Some(&b"abc"[..]));
        assert_eq!(presented_key(&headers("authorization", "bearer abc")), Some(&b"abc"[..]));
        assert_eq!(presented_key(&headers("x-api-key", "abc")), Some(&b"abc"[..]));
        assert_eq!(presented_key(&headers("authorization", "Basic abc")), None);
        assert_eq!(presented_key(&HeaderMap::new()), None);
    }
}
