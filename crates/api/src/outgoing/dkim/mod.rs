//! `/v1/dkim`: keys that sign the mail of a domain.
//!
//! A key is generated here, encrypted before it is stored, and never shown; callers get the record to
//! publish. Every active key of the author's domain signs, so a new key works beside the old one until
//! receivers have the new record.

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
use postway_store::record::{ChangeResult, DirectoryChange};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::{Manager, Reader},
    http::{error::ApiError, pagination::ListPart, query::QueryParameters, request_id::RequestId},
    state::{AppState, SharedState},
};

/// A signing key, without its secret half.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SigningKey)]
pub(crate) struct SigningKeyView {
    /// The domain it signs for; a domain outside ASCII as A-labels (`xn--…`).
    #[schema(example = "example.com")]
    domain: String,
    /// The domain in Unicode, if that differs.
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
    /// The DNS name to publish the record at.
    #[schema(example = "pw202611._domainkey.example.com")]
    dns_name: String,
    /// The TXT record to publish there.
    #[schema(example = "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0B…")]
    dns_record: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
}

impl From<&DkimKey> for SigningKeyView {
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
pub(crate) struct SigningKeyList {
    /// The keys, by domain and selector.
    data: Vec<SigningKeyView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// The key that `{domain}/{selector}` in the path names, in the stored form.
pub(crate) struct SigningKeyPath {
    domain: String,
    selector: String,
}

impl SigningKeyPath {
    /// The key's name in the audit log.
    fn target(&self) -> String {
        format!("{}/{}", self.domain, self.selector)
    }

    fn missing(&self) -> ApiError {
        let shown: String = self.target().chars().take(320).collect();
        ApiError::not_found(format!("there is no signing key `{shown}`"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SigningKeyPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path((domain, selector)) =
            Path::<(String, String)>::from_request_parts(parts, state).await.map_err(|_| {
                ApiError::malformed("the names in the path cannot be read: use percent-encoded UTF-8")
            })?;
        Ok(Self { domain: normal_domain(&domain), selector: normal(&selector) })
    }
}

/// A DNS name in the stored form.
fn normal(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// A domain in the stored form. A text that is not a domain stays unchanged, and is refused or not found
/// later.
fn normal_domain(domain: &str) -> String {
    let domain = normal(domain);
    domain_to_ascii(&domain).unwrap_or(domain)
}

async fn find(app: &AppState, tenant: &TenantId, named: &SigningKeyPath) -> Result<DkimKey, ApiError> {
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
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "By domain and selector", body = SigningKeyList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<SigningKeyList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let domain = query.take("domain").map(|domain| normal_domain(&domain));
    let part = ListPart::take(&mut query);
    query.finish()?;
    let keys = app.store.dkim_keys(Some(&caller.tenant), domain.as_deref()).await?;
    let (keys, next_cursor) = part.select(keys, |key| (key.domain.clone(), key.selector.clone()))?;
    Ok(Json(SigningKeyList { data: keys.iter().map(SigningKeyView::from).collect(), next_cursor }))
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
    responses((status = 200, description = "The key, without its secret half", body = SigningKeyView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    named: SigningKeyPath,
) -> Result<Json<SigningKeyView>, ApiError> {
    find(&app, &caller.tenant, &named).await.map(|key| Json(SigningKeyView::from(&key)))
}

/// Delete a signing key
///
/// This cannot be undone. Leave its record published for a few days, until the mail it signed has arrived.
#[utoipa::path(
    delete,
    path = "/v1/dkim/{domain}/{selector}",
    operation_id = "deleteSigningKey",
    tag = "signing keys",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("selector" = String, Path, description = "The selector"),
    ),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    named: SigningKeyPath,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "dkim.delete", named.target(), &request_id, None);
    let change = DirectoryChange::DeleteDkimKey(tenant.clone(), named.domain.clone(), named.selector.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => {
            tracing::info!(%tenant, domain = named.domain, selector = named.selector, "signing key deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        _ => Err(named.missing()),
    }
}
