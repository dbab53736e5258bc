//! Who calls, and for which tenant.
//!
//! A key comes as `Authorization: Bearer KEY` or `X-API-Key`. The admin key names its tenant with `X-Tenant`,
//! `default` when absent. Only a digest of the key is kept, and it is compared in constant time.
//!
//! There is only the admin key so far. A tenant's key will make a [`Caller`] of its own tenant, whatever `X-Tenant`
//! says; handlers see no difference.

use std::fmt;

use aws_lc_rs::{constant_time, digest};
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use postway_domain::TenantId;

use crate::{error::ApiError, state::Shared};

/// The tenant that there always is.
const DEFAULT_TENANT: &str = "default";

/// The key that may do everything, as its digest. The key is long and random, so one round is enough.
#[derive(Clone)]
pub struct AdminKey([u8; digest::SHA256_OUTPUT_LEN]);

impl AdminKey {
    /// Keeps the digest of `key` and forgets the key.
    pub fn new(key: &str) -> Self {
        Self(sha256(key.as_bytes()))
    }

    /// Whether this is the key.
    pub fn opens(&self, presented: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(&self.0, &sha256(presented)).is_ok()
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

/// Who calls: every read and write of the request is confined to this tenant. A handler that takes a `Caller` answers
/// 401 without a key.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// For whom.
    pub(crate) tenant: TenantId,
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, ApiError> {
        let key = presented_key(&parts.headers).ok_or_else(ApiError::unauthorized)?;
        if !app.admin_key.opens(key) {
            return Err(ApiError::unauthorized());
        }
        let tenant = named_tenant(&parts.headers)?;
        match app.knows_tenant(&tenant).await? {
            true => Ok(Self { tenant }),
            false => Err(no_tenant(tenant.as_str())),
        }
    }
}

/// Somebody with the admin key, for what is nobody's in particular. Anybody else is answered 403.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admin;

impl FromRequestParts<Shared> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, ApiError> {
        let key = presented_key(&parts.headers).ok_or_else(ApiError::unauthorized)?;
        if app.admin_key.opens(key) { Ok(Self) } else { Err(ApiError::unauthorized()) }
    }
}

fn presented_key(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then(|| key.trim_ascii())
    });
    bearer.or_else(|| headers.get("x-api-key").map(|value| value.as_bytes().trim_ascii()))
}

fn named_tenant(headers: &HeaderMap) -> Result<TenantId, ApiError> {
    let name = match headers.get("x-tenant") {
        None => DEFAULT_TENANT,
        Some(value) => value.to_str().map_err(|_| no_tenant("(unreadable)"))?.trim(),
    };
    name.parse().map_err(|_| no_tenant(name))
}

fn no_tenant(name: &str) -> ApiError {
    let shown: String = name.chars().take(TenantId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no tenant `{shown}`; X-Tenant must name one that exists"))
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
