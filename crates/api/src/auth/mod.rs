//! Who calls, for which tenant, and what they may do.
//!
//! A key comes as `Authorization: Bearer KEY` or `X-API-Key`; a browser's session stands for one (`session.rs`). The admin key may do everything, for the tenant that
//! `X-Tenant` names, `default` when absent. A tenant's key works for its own tenant, whatever `X-Tenant` says, within its
//! scopes and from the networks it allows. Only digests of keys are kept; the admin key's is compared in constant time.
//!
//! Whoever shows many keys that open nothing is asked to wait (`wrong_keys.rs`).
//!
//! A handler says what it needs by what it takes: a [`Sender`], a [`Reader`], a [`Manager`] or the [`Admin`]. Refusals
//! are 401 where no valid key came, 403 where the key is valid and not enough.

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
    ApiKey, Scope, TenantId,
    key::KeyRestrictions,
    scram::{ScramVerifier, salt_of},
    secret::SecretKey,
};

pub(crate) use self::key_cache::{KeyRing, KeyUnread};
pub use self::key_check::{KeyCheck, KeyDenied};
use crate::{
    http::{body_budget::RequestShare, error::ApiError, origin::RequestOrigin},
    state::{App, Shared},
};

/// The tenant that there always is.
pub(crate) const DEFAULT_TENANT: &str = "default";

/// The key that may do everything, as its digest. The key is long and random, so one round is enough.
#[derive(Clone)]
pub struct AdminKey {
    digest: [u8; digest::SHA256_OUTPUT_LEN],
    scram: Option<ScramVerifier>,
}

impl AdminKey {
    /// Keeps the digest of `key` and forgets the key.
    pub fn new(key: &str) -> Self {
        Self { digest: sha256(key.as_bytes()), scram: None }
    }

    /// Keeps what `key` is proven against by SCRAM, too.
    pub fn with_scram(key: &str, secret_key: &SecretKey) -> Self {
        Self { scram: Some(ScramVerifier::of(key, salt_of(secret_key))), ..Self::new(key) }
    }

    /// The digest.
    pub(crate) fn digest(&self) -> &[u8] {
        &self.digest
    }

    /// Whether this is the key.
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

/// Whose key it is, as the audit log names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// The admin key.
    Admin,
    /// A tenant's key, by its id.
    Key(String),
}

impl Actor {
    /// Whether it is the admin key.
    pub(crate) fn is_admin(&self) -> bool {
        *self == Actor::Admin
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Admin => f.write_str("admin"),
            Actor::Key(id) => write!(f, "key:{id}"),
        }
    }
}

/// Who calls: every read and write of the request is confined to this tenant.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// For whom.
    pub(crate) tenant: TenantId,
    /// With which key.
    pub(crate) actor: Actor,
    /// Whether the key may read, whatever else it was needed for: an answer shows no more than that.
    pub(crate) may_read: bool,
    /// Whom the key may send from and to, where it is bound.
    pub(crate) restrictions: Option<Arc<KeyRestrictions>>,
}

impl Caller {
    /// Who sent this request, if they may do what is within `scope`.
    async fn with(scope: Scope, parts: &Parts, app: &Shared) -> Result<Self, ApiError> {
        Self::named(shown(parts, app).await?, scope, None, parts, app).await
    }

    /// Who shows this key, for the tenant that the request names in a way of its own. A tenant's key names its own, or none.
    pub(crate) async fn named(
        who: Shown,
        scope: Scope,
        tenant: Option<&str>,
        parts: &Parts,
        app: &App,
    ) -> Result<Self, ApiError> {
        let caller = Self::of_shown(who, scope, tenant, parts, app).await?;
        // What the request takes of the common memory is its tenant's.
        if let Some(share) = parts.extensions.get::<RequestShare>() {
            share.belong_to(&caller.tenant);
        }
        Ok(caller)
    }

    async fn of_shown(
        who: Shown,
        scope: Scope,
        tenant: Option<&str>,
        parts: &Parts,
        app: &App,
    ) -> Result<Self, ApiError> {
        let key = match who {
            Shown::Key(key) if tenant.is_some_and(|tenant| tenant != key.tenant.as_str()) => {
                return Err(ApiError::forbidden("this key is of another tenant than the one named"));
            }
            Shown::Key(key) => key,
            Shown::Admin => {
                let tenant = match tenant {
                    None => named_tenant(parts)?,
                    Some(name) => name.parse().map_err(|_| no_tenant(name))?,
                };
                return match app.knows_tenant(&tenant).await? {
                    true => Ok(Self { tenant, actor: Actor::Admin, may_read: true, restrictions: None }),
                    false => Err(no_tenant(tenant.as_str())),
                };
            }
        };
        if !key.scopes.contains(&scope) {
            let message = format!("this key lacks the scope `{0}`: use one that has it", scope.as_str());
            return Err(ApiError::forbidden(message));
        }
        let may_read = key.scopes.contains(&Scope::Read);
        let (tenant, actor) = (key.tenant.clone(), Actor::Key(key.id.clone()));
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

        impl FromRequestParts<Shared> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, ApiError> {
                Caller::with($scope, parts, app).await.map(Self)
            }
        }
    };
}

with_scope!(
    /// Somebody who may hand over mail, and cancel or retry it: scope `send`.
    Sender, Scope::Send
);
with_scope!(
    /// Somebody who may read messages, counts and lists: scope `read`.
    Reader, Scope::Read
);
with_scope!(
    /// Somebody who may change accounts, batches, suppressions, templates, recipients, signing keys, webhooks,
    /// mailboxes, rules and contacts, and remove messages: scope `manage`.
    Manager, Scope::Manage
);

/// Somebody with the admin key, for what is nobody's in particular. A tenant's key is answered 403, whatever the path.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    /// As the audit log names them.
    pub(crate) actor: Actor,
}

impl FromRequestParts<Shared> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, ApiError> {
        match shown(parts, app).await? {
            Shown::Admin => Ok(Self { actor: Actor::Admin }),
            Shown::Key(_) => Err(ApiError::forbidden("this call needs the admin key")),
        }
    }
}

/// Whose key a request shows, or signed in with.
pub(crate) enum Shown {
    /// The admin key.
    Admin,
    /// A tenant's, valid now and used from where it may be.
    Key(Arc<ApiKey>),
}

/// A key in a header goes before a session: whoever sends one means it.
pub(crate) async fn shown(parts: &Parts, app: &App) -> Result<Shown, ApiError> {
    match presented_key(&parts.headers) {
        Some(presented) => opened(presented, parts, app).await,
        None => {
            let who = session::of(parts, app).await?.ok_or_else(ApiError::unauthorized)?;
            allowed(who, parts)
        }
    }
}

/// Whose key this is, if it opens now and may be used from where the request came.
pub(crate) async fn opened(presented: &[u8], parts: &Parts, app: &App) -> Result<Shown, ApiError> {
    if app.admin_key.opens(presented) {
        return Ok(Shown::Admin);
    }
    let client = RequestOrigin::of(parts).and_then(|origin| origin.client());
    let key = app.keys.valid(presented, client, app).await?.ok_or_else(ApiError::unauthorized)?;
    allowed(Shown::Key(key), parts)
}

/// The same, unless the key is bound to other networks.
fn allowed(who: Shown, parts: &Parts) -> Result<Shown, ApiError> {
    let from = RequestOrigin::of(parts).map(|origin| origin.address);
    match who {
        Shown::Key(key) if !key.allows(from) => {
            Err(ApiError::forbidden("this key may not be used from your address (its allow_ips)"))
        }
        who => Ok(who),
    }
}

impl From<KeyUnread> for ApiError {
    fn from(unread: KeyUnread) -> Self {
        match unread {
            KeyUnread::TooManyWrong(wait) => Self::too_many_wrong_keys(wait),
            KeyUnread::Unavailable(error) => error.into(),
        }
    }
}

/// Whether a request was made to this very machine, by name or address.
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
