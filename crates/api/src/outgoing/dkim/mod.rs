//! `/v1/dkim`: keys that sign the mail of a domain.
//!
//! A key is made here, sealed before it is stored, and never shown; what comes out is the record to publish. Every active
//! key of the author's domain signs, so a new key works beside the old one until receivers have the new record.

pub(crate) mod create;
pub(crate) mod pause;

use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, Uri, request::Parts},
};
use postway_domain::{
    DkimKey, TenantId, Time,
    address::{domain_to_ascii, domain_to_unicode},
};
use postway_intake::signing;
use postway_store::record::{Changed, DirectoryChange};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::{Manager, Reader},
    http::{error::ApiError, pagination::Part, query::Parameters, request_id::RequestId},
    state::{App, Shared},
};

/// A signing key, without its secret half.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningKey)]
pub(crate) struct KeyView {
    /// The domain it signs for; one outside ASCII as A-labels (`xn--…`).
    #[schema(example = "example.com")]
    domain: String,
    /// The domain as people write it, where that is another spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "exämple.com")]
    domain_unicode: Option<String>,
    /// The name by which receivers find the public half.
    #[schema(example = "pw202611")]
    selector: String,
    /// `rsa` or `ed25519`.
    #[schema(example = "rsa")]
    algorithm: &'static str,
    /// Whether it signs.
    active: bool,
    /// Where to publish the record.
    #[schema(example = "pw202611._domainkey.example.com")]
    dns_name: String,
    /// The TXT record to publish there.
    #[schema(example = "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0B…")]
    dns_record: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<&DkimKey> for KeyView {
    fn from(key: &DkimKey) -> Self {
        Self {
            domain: key.domain.clone(),
            domain_unicode: domain_to_unicode(&key.domain),
            selector: key.selector.clone(),
            algorithm: key.algorithm.as_str(),
            active: key.active,
            dns_name: signing::dns_name(key),
            dns_record: signing::dns_record(key),
            created_at: key.created_at,
        }
    }
}

/// A tenant's signing keys.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningKeyList)]
pub(crate) struct KeyList {
    /// By domain and selector.
    data: Vec<KeyView>,
    /// Give this as `cursor` for the next; null at the end.
    next_cursor: Option<String>,
}

/// `{domain}/{selector}` in a path, in the form that is stored.
pub(crate) struct NamedKey {
    domain: String,
    selector: String,
}

impl NamedKey {
    /// As the audit log names it.
    fn target(&self) -> String {
        format!("{}/{}", self.domain, self.selector)
    }

    fn missing(&self) -> ApiError {
        let shown: String = self.target().chars().take(320).collect();
        ApiError::not_found(format!("there is no signing key `{shown}`"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NamedKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path((domain, selector)) =
            Path::<(String, String)>::from_request_parts(parts, state).await.map_err(|_| {
                ApiError::malformed("the names in the path cannot be read: use percent-encoded UTF-8")
            })?;
        Ok(Self { domain: normal_domain(&domain), selector: normal(&selector) })
    }
}

/// A name of DNS in the form that is stored.
fn normal(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// A domain in the form that is stored; what is none stays as it is, and is refused or not found.
fn normal_domain(domain: &str) -> String {
    let domain = normal(domain);
    domain_to_ascii(&domain).unwrap_or(domain)
}

async fn find(app: &App, tenant: &TenantId, named: &NamedKey) -> Result<DkimKey, ApiError> {
    let keys = app.store.dkim_keys(Some(tenant), Some(&named.domain)).await?;
    let found = keys.into_iter().find(|key| key.domain == named.domain && key.selector == named.selector);
    found.ok_or_else(|| named.missing())
}

/// List signing keys
///
/// All keys of your tenant, each with the DNS record to publish. Private halves are never shown.
#[utoipa::path(
    get,
    path = "/v1/dkim",
    operation_id = "listSigningKeys",
    tag = "signing keys",
    params(
        ("domain" = Option<String>, Query, description = "Only those of this domain"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "By domain and selector", body = KeyList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<KeyList>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let domain = query.take("domain").map(|domain| normal_domain(&domain));
    let part = Part::take(&mut query);
    query.finish()?;
    let keys = app.store.dkim_keys(Some(&caller.tenant), domain.as_deref()).await?;
    let (keys, next_cursor) = part.of(keys, |key| (key.domain.clone(), key.selector.clone()))?;
    Ok(Json(KeyList { data: keys.iter().map(KeyView::from).collect(), next_cursor }))
}

/// Show a signing key
///
/// One key with the DNS record to publish. Its private half is never shown.
#[utoipa::path(
    get,
    path = "/v1/dkim/{domain}/{selector}",
    operation_id = "getSigningKey",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("selector" = String, Path, description = "The selector"),
    ),
    responses((status = 200, description = "The key, without its secret half", body = KeyView))
)]
pub(crate) async fn show(
    State(app): State<Shared>,
    caller: Reader,
    named: NamedKey,
) -> Result<Json<KeyView>, ApiError> {
    find(&app, &caller.tenant, &named).await.map(|key| Json(KeyView::from(&key)))
}

/// Delete a signing key
///
/// It cannot be had back. Leave its record published until the mail it signed has arrived, a few days.
#[utoipa::path(
    delete,
    path = "/v1/dkim/{domain}/{selector}",
    operation_id = "deleteSigningKey",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("selector" = String, Path, description = "The selector"),
    ),
    responses((status = 204, description = "It is gone"))
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    named: NamedKey,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "dkim.delete", named.target(), &request_id, None);
    let change = DirectoryChange::DeleteDkimKey(tenant.clone(), named.domain.clone(), named.selector.clone());
    match app.store.change(change, Some(entry)).await? {
        Changed::Done => {
            tracing::info!(%tenant, domain = named.domain, selector = named.selector, "signing key deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        _ => Err(named.missing()),
    }
}
