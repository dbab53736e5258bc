//! Authentication: who calls, for which tenant, and what the caller may do.
//!
//! A key comes as `Authorization: Bearer KEY` or `X-API-Key`; a browser has a session cookie instead
//! (`session/`). The admin key may do everything, for the tenant that `X-Tenant` names, `default` when
//! absent. A tenant's key works for its own tenant, whatever `X-Tenant` says, within its scopes and from the
//! networks it allows. Only digests of keys are stored; the admin key's is compared in constant time.
//!
//! An address that sends many wrong keys must wait (`wrong_keys.rs`).
//!
//! A person signs in (`session/`), and has the rights of its role in its tenants (`person/`). Like the admin
//! key, a user of several tenants names one with `X-Tenant`; one that is not its own does not exist for it.
//!
//! A handler declares what it needs by the extractor it takes: a [`Sender`], a [`Reader`], a
//! [`ContentReader`], a [`Manager`], a [`TenantAdmin`] or the [`Admin`]. A request without a valid key or
//! session is answered 401, one whose key or role is not sufficient 403.

mod caller;
mod key_cache;
mod key_check;
mod long_request;
pub(crate) mod person;
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
    ApiKey, KeyScope, TenantId, User, UserName, UserRole, UserTenants,
    scram::{ScramVerifier, salt_of},
    secret::SecretKey,
};

pub(crate) use self::caller::Caller;
pub(crate) use self::key_cache::{KeyCache, KeyLookupError};
pub use self::key_check::{KeyCheck, KeyDenied};
pub(crate) use self::long_request::LongRequest;
use self::person::SignedInUser;
pub use self::person::provider::{AwayFailure, AwaySignIn, ProviderSignIn, SignInProvider};
use crate::{
    http::{error::ApiError, origin::RequestOrigin},
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

/// Who acts, as the audit log names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallerActor {
    /// The admin key.
    Admin,
    /// A tenant's key, by its id.
    Key(String),
    /// A person.
    User {
        /// The user's name.
        name: UserName,
        /// Whether the user may do everything that the admin key may.
        is_admin: bool,
    },
}

impl CallerActor {
    /// The actor that this user is.
    pub(crate) fn of_user(user: &User) -> Self {
        Self::User { name: user.name.clone(), is_admin: user.is_full_admin() }
    }

    /// Whether this is the admin key, or a user who may do as much.
    pub(crate) fn is_admin(&self) -> bool {
        match self {
            CallerActor::Admin => true,
            CallerActor::Key(_) => false,
            CallerActor::User { is_admin, .. } => *is_admin,
        }
    }
}

impl fmt::Display for CallerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallerActor::Admin => f.write_str("admin"),
            CallerActor::Key(id) => write!(f, "key:{id}"),
            CallerActor::User { name, .. } => write!(f, "user:{name}"),
        }
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

/// A caller who may read messages with their bodies: scope `read`, and `read:content` where the tenant says
/// that this is a right of its own.
#[derive(Clone, Debug)]
pub(crate) struct ContentReader(pub(crate) Caller);

impl Deref for ContentReader {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl FromRequestParts<SharedState> for ContentReader {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        let caller = Caller::with_scope(KeyScope::Read, parts, app).await?;
        caller.check_content(app).await?;
        Ok(Self(caller))
    }
}

/// A caller who manages users and keys: the admin key, or a user whose role is `admin`, for its tenants.
#[derive(Clone, Debug)]
pub(crate) struct TenantAdmin {
    /// Who acts, as the audit log names it.
    pub(crate) actor: CallerActor,
    /// The tenants that it is the admin of.
    pub(crate) tenants: UserTenants,
}

impl TenantAdmin {
    /// Refuses a tenant of which the caller is not the admin.
    pub(crate) fn check_tenant(&self, tenant: &TenantId) -> Result<(), ApiError> {
        if self.tenants.has(tenant) { Ok(()) } else { Err(needs_admin()) }
    }
}

impl FromRequestParts<SharedState> for TenantAdmin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        match authenticate(parts, app).await? {
            AuthenticatedKey::Admin => Ok(Self { actor: CallerActor::Admin, tenants: UserTenants::All }),
            AuthenticatedKey::User(signed_in) if signed_in.user.role == UserRole::Admin => {
                let user = &signed_in.user;
                Ok(Self { actor: CallerActor::of_user(user), tenants: user.tenants.clone() })
            }
            AuthenticatedKey::Key(_) | AuthenticatedKey::User(_) => Err(needs_admin()),
        }
    }
}

/// Checks who may call anything at or below `/v1/tenants`, whether it exists or not: admins of everything,
/// and admins of a tenant for that tenant's keys. So nobody else learns which tenants exist.
pub(crate) async fn check_tenants_path(parts: &mut Parts, app: &SharedState) -> Result<(), ApiError> {
    let admin = TenantAdmin::from_request_parts(parts, app).await?;
    if admin.tenants == UserTenants::All {
        return Ok(());
    }
    let mut steps = parts.uri.path().split('/').skip("/v1/tenants".split('/').count());
    match (steps.next().map(str::parse::<TenantId>), steps.next()) {
        (Some(Ok(tenant)), Some("keys")) => admin.check_tenant(&tenant),
        _ => Err(needs_admin()),
    }
}

fn needs_admin() -> ApiError {
    ApiError::forbidden("this call needs the admin key, or a user with the role `admin` for it")
}

/// A caller with the admin key, or a user who may do as much, for resources that belong to no tenant. Anybody
/// else is answered 403, whatever the path.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    /// Who acts, as the audit log names it.
    pub(crate) actor: CallerActor,
}

impl FromRequestParts<SharedState> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, ApiError> {
        match authenticate(parts, app).await? {
            AuthenticatedKey::Admin => Ok(Self { actor: CallerActor::Admin }),
            AuthenticatedKey::User(signed_in) if signed_in.user.is_full_admin() => {
                Ok(Self { actor: CallerActor::of_user(&signed_in.user) })
            }
            AuthenticatedKey::Key(_) | AuthenticatedKey::User(_) => {
                Err(ApiError::forbidden("this call needs the admin key, or an admin of all tenants"))
            }
        }
    }
}

/// The key that a request presents or signed in with, or the user who signed in.
pub(crate) enum AuthenticatedKey {
    /// The admin key.
    Admin,
    /// A tenant's key, valid now and used from an allowed network.
    Key(Arc<ApiKey>),
    /// A person, signed in.
    User(Arc<SignedInUser>),
}

/// The key of a request. A key in a header takes precedence over a session.
pub(crate) async fn authenticate(parts: &Parts, app: &AppState) -> Result<AuthenticatedKey, ApiError> {
    match presented_key(&parts.headers) {
        Some(presented) => authenticate_key(presented, parts, app).await,
        None => match session::authenticated_key(parts, app).await? {
            Some(who) => check_network(who, parts),
            None if app.opens_to_this_machine && is_of_this_machine(parts) => Ok(AuthenticatedKey::Admin),
            None => Err(ApiError::unauthorized()),
        },
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
        AuthenticatedKey::Admin | AuthenticatedKey::User(_) => Ok(who),
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

/// Whether a request comes from a program of this machine, or from the page of this server. A page of another
/// site that a browser shows names its site or its origin, and one whose name was made to resolve to this
/// machine names that.
fn is_of_this_machine(parts: &Parts) -> bool {
    let headers = &parts.headers;
    let is_local = RequestOrigin::from_parts(parts).is_some_and(|origin| origin.address.is_loopback());
    let from_own_page = match headers.get("sec-fetch-site").map(|value| value.as_bytes()) {
        None | Some(b"same-origin" | b"none") => true,
        Some(_) => false,
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let own_origin = headers.get(header::ORIGIN).is_none_or(|origin| {
        origin.to_str().ok().and_then(|origin| origin.split_once("://")).is_some_and(|(_, of)| of == host)
    });
    is_local && is_loopback_host(headers) && from_own_page && own_origin
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
    fn other_sites_are_not_of_this_machine() {
        let request = |from: &str, headers: &[(&'static str, &'static str)]| {
            let mut request = axum::http::Request::builder().uri("/v1/messages");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let mut parts = request.body(()).unwrap().into_parts().0;
            parts.extensions.insert(RequestOrigin::direct(from.parse().unwrap()));
            is_of_this_machine(&parts)
        };
        let host = ("host", "127.0.0.1:8025");
        assert!(request("127.0.0.1", &[host]));
        assert!(request("::1", &[("host", "localhost:8025"), ("origin", "http://localhost:8025")]));
        assert!(request("127.0.0.1", &[host, ("sec-fetch-site", "same-origin")]));
        for (from, headers) in [
            ("192.0.2.1", vec![host]),
            ("127.0.0.1", vec![("host", "evil.example:8025")]),
            ("127.0.0.1", vec![]),
            ("127.0.0.1", vec![host, ("origin", "https://evil.example")]),
            ("127.0.0.1", vec![host, ("origin", "null")]),
            ("127.0.0.1", vec![host, ("sec-fetch-site", "cross-site")]),
            ("127.0.0.1", vec![host, ("sec-fetch-site", "same-site")]),
        ] {
            assert!(!request(from, &headers), "{from} {headers:?}");
        }
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
