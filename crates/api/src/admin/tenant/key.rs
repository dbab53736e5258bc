//! `/v1/tenants/{id}/keys`: a tenant's API keys. A key is shown once, when it is created; only its digest is
//! stored, and what SCRAM verifies it against over SMTP.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRequestParts, Path, Request, State},
    http::{StatusCode, request::Parts},
};
use postway_domain::{
    ApiKey, KeyDigest, KeyScope, TenantId, Time,
    address_pattern::AddressPattern,
    key::{IpNetwork, KeyRestrictions},
    scram::{ScramVerifier, salt_of},
};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{NamedTenant, find, no_tenant, schema::ApiKeyRequest};
use crate::{
    auth::{CallerActor, TenantAdmin},
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::JsonFieldReader,
        pagination::ListPart,
        request_id::RequestId,
    },
    state::{AppState, SharedState},
};

const NAME_CHARS_MAX: usize = 200;
const NETWORKS_MAX: usize = 100;
/// The most keys of a tenant that are not revoked.
const KEYS_MAX: usize = 1_000;
/// How often another id is tried if one is taken.
const TRIES_MAX: u32 = 5;

/// An API key, without the key itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub(crate) struct ApiKeyView {
    /// The id: the public part of the key.
    #[schema(example = "Zm9vYmFy")]
    id: String,
    /// The first characters of the key.
    #[schema(example = "pw_Zm9vYmFy_…")]
    prefix: String,
    /// The display name.
    name: String,
    /// What it may do: `send`, `read`, `manage`, `read:content`.
    #[schema(value_type = Vec<String>, example = json!(["send", "read"]))]
    scopes: Vec<KeyScope>,
    /// The networks it may be used from; any when empty.
    #[schema(value_type = Vec<String>, example = json!(["10.0.0.0/8"]))]
    allow_ips: Vec<IpNetwork>,
    /// The senders its mail may have: addresses, domains, patterns; those of its tenant when empty.
    #[schema(value_type = Vec<String>, example = json!(["shop@example.com", "*.example.com"]))]
    allowed_senders: Vec<AddressPattern>,
    /// The recipients its mail may have; any when empty.
    #[schema(value_type = Vec<String>, example = json!(["test.example.com"]))]
    allowed_recipients: Vec<AddressPattern>,
    /// Who made it: `admin`, or `user:` and a name; absent for keys of older versions.
    #[schema(example = "user:ada")]
    created_by: Option<String>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    /// When it was last used, to the minute.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Time>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Time>,
}

/// A key that was just created.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NewKeyView)]
pub(crate) struct NewApiKeyView {
    #[serde(flatten)]
    view: ApiKeyView,
    /// The key itself, shown only once.
    #[schema(example = "pw_Zm9vYmFy_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHM")]
    pub(crate) key: String,
}

/// A tenant's keys.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeyList)]
pub(crate) struct ApiKeyList {
    /// The keys, the oldest first, including revoked ones.
    data: Vec<ApiKeyView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

impl From<&ApiKey> for ApiKeyView {
    fn from(key: &ApiKey) -> Self {
        Self {
            id: key.id.clone(),
            prefix: format!("{}{}_…", ApiKey::PREFIX, key.id),
            name: key.name.clone(),
            scopes: key.scopes.clone(),
            allow_ips: key.networks.clone(),
            allowed_senders: key.restrictions.as_ref().map(|bound| bound.senders.clone()).unwrap_or_default(),
            allowed_recipients: key
                .restrictions
                .as_ref()
                .map(|bound| bound.recipients.clone())
                .unwrap_or_default(),
            created_by: key.created_by.clone(),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// Create a key
///
/// The answer contains the key, which is shown only once.
#[utoipa::path(
    post,
    path = "/v1/tenants/{id}/keys",
    operation_id = "createKey",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    request_body = ApiKeyRequest,
    responses((status = 201, description = "Created", body = NewApiKeyView))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    request_id: RequestId,
    NamedTenant(tenant): NamedTenant,
    request: Request,
) -> Result<(StatusCode, Json<NewApiKeyView>), ApiError> {
    admin.check_tenant(&tenant)?;
    let body = body::json_object(request).await?;
    let made = make(&app, &admin.actor, &request_id, &tenant, body).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Creates the key that `body` describes.
pub(crate) async fn make(
    app: &AppState,
    actor: &CallerActor,
    request_id: &RequestId,
    tenant: &TenantId,
    body: Map<String, Value>,
) -> Result<NewApiKeyView, ApiError> {
    find(app, tenant).await?;
    let now = app.clock.now();
    let wanted = read(body, now).map_err(ApiError::invalid)?;
    let in_use = app.store.keys(tenant).await?.iter().filter(|key| key.revoked_at.is_none()).count();
    if in_use >= KEYS_MAX {
        return Err(ApiError::conflict(format!("the tenant has {KEYS_MAX} keys, the most: revoke some")));
    }
    for _ in 0..TRIES_MAX {
        let (id, text) = ApiKey::make(&mut rand::rng());
        let key = ApiKey {
            id: id.clone(),
            tenant: tenant.clone(),
            name: wanted.name.clone(),
            digest: KeyDigest::of(text.as_bytes()),
            scopes: wanted.scopes.clone(),
            networks: wanted.networks.clone(),
            restrictions: wanted.restrictions.clone(),
            created_at: now,
            expires_at: wanted.expires_at,
            last_used_at: None,
            revoked_at: None,
            scram: Some(ScramVerifier::of(&text, salt_of(&app.secret_key))),
            created_by: Some(actor.to_string()),
        };
        let view = ApiKeyView::from(&key);
        let detail = json!({
            "name": &key.name, "scopes": &key.scopes, "allow_ips": &key.networks, "expires_at": key.expires_at,
            "restrictions": key.restrictions.as_deref(),
        });
        let entry = app.audit(actor, Some(tenant), "key.create", id.as_str(), request_id, Some(detail));
        if app.store.change(DirectoryChange::CreateKey(key), Some(entry)).await? == ChangeResult::Done {
            tracing::info!(%tenant, key = %id, "key created");
            return Ok(NewApiKeyView { view, key: text });
        }
    }
    Err(ApiError::conflict("no free id was found for the key; try again"))
}

/// The key to create.
struct ApiKeyDraft {
    name: String,
    scopes: Vec<KeyScope>,
    networks: Vec<IpNetwork>,
    restrictions: Option<Arc<KeyRestrictions>>,
    expires_at: Option<Time>,
}

fn read(body: Map<String, Value>, now: Time) -> Result<ApiKeyDraft, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let name = fields.text("name", NAME_CHARS_MAX).unwrap_or_default();
    let form = "must be a list of send, read, manage, read:content";
    let mut scopes: Vec<KeyScope> = match fields.has("scopes") {
        true => fields.read("scopes", form).unwrap_or_default(),
        false => KeyScope::DEFAULT.to_vec(),
    };
    scopes.sort();
    scopes.dedup();
    let expires_at = fields.read("expires_at", "must be a time: RFC 3339 or Unix seconds");
    let networks: Vec<IpNetwork> = fields
        .read("allow_ips", "must be a list of IP addresses and networks such as 10.0.0.0/8")
        .unwrap_or_default();
    if networks.len() > NETWORKS_MAX {
        fields.refuse("allow_ips", format!("must have at most {NETWORKS_MAX} entries"));
    }
    let restrictions = KeyRestrictions {
        senders: patterns(&mut fields, "allowed_senders"),
        recipients: patterns(&mut fields, "allowed_recipients"),
    };
    let restrictions = (!restrictions.is_empty()).then(|| Arc::new(restrictions));
    if expires_at.is_some_and(|at: Time| at <= now) {
        fields.refuse("expires_at", "is in the past");
    }
    fields.finish("is not a field of a key");
    if scopes.is_empty() && !wrong.iter().any(|wrong| wrong.field == "scopes") {
        wrong.push(FieldError::new("scopes", "must name at least one of send, read, manage, read:content"));
    }
    if wrong.is_empty() {
        Ok(ApiKeyDraft { name, scopes, networks, restrictions, expires_at })
    } else {
        Err(wrong)
    }
}

/// A list of address patterns, of a key or of a tenant.
pub(super) fn patterns(fields: &mut JsonFieldReader<'_>, name: &str) -> Vec<AddressPattern> {
    let form = "must be a list of addresses, domains and patterns such as *.example.com";
    let list: Vec<AddressPattern> = fields.read(name, form).unwrap_or_default();
    if list.len() > AddressPattern::LIST_MAX {
        fields.refuse(name, format!("must have at most {} entries", AddressPattern::LIST_MAX));
    }
    list
}

/// List keys
///
/// Without the keys themselves.
#[utoipa::path(
    get,
    path = "/v1/tenants/{id}/keys",
    operation_id = "listKeys",
    tag = "tenants",
    params(
        ("id" = String, Path, description = "The tenant"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The oldest first", body = ApiKeyList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    NamedTenant(tenant): NamedTenant,
    part: ListPart,
) -> Result<Json<ApiKeyList>, ApiError> {
    admin.check_tenant(&tenant)?;
    find(&app, &tenant).await?;
    let keys = app.store.keys(&tenant).await?;
    let (keys, next_cursor) = part.select(keys, |key| (key.created_at.as_millis(), key.id.clone()))?;
    Ok(Json(ApiKeyList { data: keys.iter().map(ApiKeyView::from).collect(), next_cursor }))
}

/// The key that `{id}` and `{key_id}` in the path name.
pub(crate) struct ApiKeyPath(TenantId, String);

impl<S: Send + Sync> FromRequestParts<S> for ApiKeyPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((tenant, key)) = read.map_err(|_| {
            ApiError::malformed("the ids in the path cannot be read: use percent-encoded UTF-8")
        })?;
        tenant.parse().map(|tenant| Self(tenant, key)).map_err(|_| no_tenant(&tenant))
    }
}

/// Revoke a key
///
/// It stops working: here at once, on other nodes within five seconds.
#[utoipa::path(
    delete,
    path = "/v1/tenants/{id}/keys/{key_id}",
    operation_id = "revokeKey",
    tag = "tenants",
    params(
        ("id" = String, Path, description = "The tenant"),
        ("key_id" = String, Path, description = "The key's id"),
    ),
    responses((status = 204, description = "It is revoked"))
)]
pub(crate) async fn revoke(
    State(app): State<SharedState>,
    admin: TenantAdmin,
    request_id: RequestId,
    ApiKeyPath(tenant, key): ApiKeyPath,
) -> Result<StatusCode, ApiError> {
    admin.check_tenant(&tenant)?;
    find(&app, &tenant).await?;
    let shown: String = key.chars().take(64).collect();
    let entry = app.audit(&admin.actor, Some(&tenant), "key.revoke", shown.as_str(), &request_id, None);
    let change = DirectoryChange::RevokeKey(tenant.clone(), key.clone(), app.clock.now());
    if app.store.change(change, Some(entry)).await? != ChangeResult::Done {
        let message = format!("the tenant `{tenant}` has no key `{shown}`, or it is revoked already");
        return Err(ApiError::not_found(message));
    }
    app.key_cache.forget(&tenant, Some(&key));
    tracing::info!(%tenant, key = %shown, "key revoked");
    Ok(StatusCode::NO_CONTENT)
}
