//! `/v1/tenants/{id}/keys`: what a tenant's programs show to be let in. A key is shown once, when it is made; only its
//! digest is stored, and what it is proven against over SMTP.

use std::sync::Arc;

use axum::{
    Json,
    extract::{FromRequestParts, Path, Request, State},
    http::{StatusCode, request::Parts},
};
use postway_domain::{
    ApiKey, KeyDigest, Scope, TenantId, Time,
    address_pattern::AddressPattern,
    key::{KeyRestrictions, Network},
    scram::{ScramVerifier, salt_of},
};
use postway_store::record::{Changed, DirectoryChange};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{NamedTenant, find, no_tenant, schema::KeyRequest};
use crate::{
    auth::Admin,
    http::{
        body,
        error::{ApiError, FieldError},
        json_fields::Fields,
        pagination::Part,
        request_id::RequestId,
    },
    state::{App, Shared},
};

const NAME_CHARS_MAX: usize = 200;
const NETWORKS_MAX: usize = 100;
/// The most keys of a tenant that are not revoked.
const KEYS_MAX: usize = 1_000;
/// How often another id is tried where one is taken.
const TRIES_MAX: u32 = 5;

/// An API key, without itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub(crate) struct KeyView {
    /// Its id: the part of it that may be known.
    #[schema(example = "Zm9vYmFy")]
    id: String,
    /// What it begins with.
    #[schema(example = "pw_Zm9vYmFy_…")]
    prefix: String,
    /// Its name for people.
    name: String,
    /// What it may do: `send`, `read`, `manage`.
    #[schema(value_type = Vec<String>, example = json!(["send", "read"]))]
    scopes: Vec<Scope>,
    /// From where it may be used; anywhere when empty.
    #[schema(value_type = Vec<String>, example = json!(["10.0.0.0/8"]))]
    allow_ips: Vec<Network>,
    /// Whom its mail may be from: addresses, domains, patterns; whoever its tenant may be when empty.
    #[schema(value_type = Vec<String>, example = json!(["shop@example.com", "*.example.com"]))]
    allowed_senders: Vec<AddressPattern>,
    /// Whom its mail may be to; anybody when empty.
    #[schema(value_type = Vec<String>, example = json!(["test.example.com"]))]
    allowed_recipients: Vec<AddressPattern>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// After which it does not open any more.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    /// When it was last used, to the minute.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Time>,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Time>,
}

/// A key that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NewKeyView {
    #[serde(flatten)]
    view: KeyView,
    /// The key itself: shown this once.
    #[schema(example = "pw_Zm9vYmFy_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHM")]
    pub(crate) key: String,
}

/// A tenant's keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyList {
    /// The oldest first, the revoked among them.
    data: Vec<KeyView>,
    /// Give this as `cursor` for the next; null at the end.
    next_cursor: Option<String>,
}

impl From<&ApiKey> for KeyView {
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
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// Make a key
///
/// The answer holds the key, this once.
#[utoipa::path(
    post,
    path = "/v1/tenants/{id}/keys",
    operation_id = "createKey",
    tag = "tenants",
    params(("id" = String, Path, description = "The tenant")),
    request_body = KeyRequest,
    responses((status = 201, description = "It is made", body = NewKeyView))
)]
pub(crate) async fn create(
    State(app): State<Shared>,
    admin: Admin,
    request_id: RequestId,
    NamedTenant(tenant): NamedTenant,
    request: Request,
) -> Result<(StatusCode, Json<NewKeyView>), ApiError> {
    let body = body::json_object(request).await?;
    let made = make(&app, &admin, &request_id, &tenant, body).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Makes the key that `body` describes.
pub(crate) async fn make(
    app: &App,
    admin: &Admin,
    request_id: &RequestId,
    tenant: &TenantId,
    body: Map<String, Value>,
) -> Result<NewKeyView, ApiError> {
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
        };
        let view = KeyView::from(&key);
        let detail = json!({
            "name": &key.name, "scopes": &key.scopes, "allow_ips": &key.networks, "expires_at": key.expires_at,
            "restrictions": key.restrictions.as_deref(),
        });
        let entry =
            app.audit(&admin.actor, Some(tenant), "key.create", id.as_str(), request_id, Some(detail));
        if app.store.change(DirectoryChange::CreateKey(key), Some(entry)).await? == Changed::Done {
            tracing::info!(%tenant, key = %id, "key created");
            return Ok(NewKeyView { view, key: text });
        }
    }
    Err(ApiError::conflict("no free id was found for the key; try again"))
}

/// What a key shall be.
struct Wanted {
    name: String,
    scopes: Vec<Scope>,
    networks: Vec<Network>,
    restrictions: Option<Arc<KeyRestrictions>>,
    expires_at: Option<Time>,
}

fn read(body: Map<String, Value>, now: Time) -> Result<Wanted, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut fields = Fields::of(body, &mut wrong);
    let name = fields.text("name", NAME_CHARS_MAX).unwrap_or_default();
    let form = "must be a list of send, read, manage";
    let mut scopes: Vec<Scope> = match fields.has("scopes") {
        true => fields.read("scopes", form).unwrap_or_default(),
        false => Scope::ALL.to_vec(),
    };
    scopes.sort();
    scopes.dedup();
    let expires_at = fields.read("expires_at", "must be a time: RFC 3339 or Unix seconds");
    let networks: Vec<Network> = fields
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
        wrong.push(FieldError::new("scopes", "must name at least one of send, read, manage"));
    }
    if wrong.is_empty() {
        Ok(Wanted { name, scopes, networks, restrictions, expires_at })
    } else {
        Err(wrong)
    }
}

/// A list of patterns of addresses, of a key or of a tenant.
pub(super) fn patterns(fields: &mut Fields<'_>, name: &str) -> Vec<AddressPattern> {
    let form = "must be a list of addresses, domains and patterns such as *.example.com";
    let list: Vec<AddressPattern> = fields.read(name, form).unwrap_or_default();
    if list.len() > AddressPattern::LIST_MAX {
        fields.refuse(name, format!("must have at most {} entries", AddressPattern::LIST_MAX));
    }
    list
}

/// List keys
///
/// Never the keys themselves.
#[utoipa::path(
    get,
    path = "/v1/tenants/{id}/keys",
    operation_id = "listKeys",
    tag = "tenants",
    params(
        ("id" = String, Path, description = "The tenant"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to go on: the `next_cursor` of the page before"),
    ),
    responses((status = 200, description = "The oldest first", body = KeyList))
)]
pub(crate) async fn list(
    State(app): State<Shared>,
    _: Admin,
    NamedTenant(tenant): NamedTenant,
    part: Part,
) -> Result<Json<KeyList>, ApiError> {
    find(&app, &tenant).await?;
    let keys = app.store.keys(&tenant).await?;
    let (keys, next_cursor) = part.of(keys, |key| (key.created_at.as_millis(), key.id.clone()))?;
    Ok(Json(KeyList { data: keys.iter().map(KeyView::from).collect(), next_cursor }))
}

/// `{id}` and `{key_id}` in a path.
pub(crate) struct NamedKey(TenantId, String);

impl<S: Send + Sync> FromRequestParts<S> for NamedKey {
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
/// It opens nothing any more: here at once, on other nodes within five seconds.
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
    State(app): State<Shared>,
    admin: Admin,
    request_id: RequestId,
    NamedKey(tenant, key): NamedKey,
) -> Result<StatusCode, ApiError> {
    find(&app, &tenant).await?;
    let shown: String = key.chars().take(64).collect();
    let entry = app.audit(&admin.actor, Some(&tenant), "key.revoke", shown.as_str(), &request_id, None);
    let change = DirectoryChange::RevokeKey(tenant.clone(), key.clone(), app.clock.now());
    if app.store.change(change, Some(entry)).await? != Changed::Done {
        let message = format!("the tenant `{tenant}` has no key `{shown}`, or it is revoked already");
        return Err(ApiError::not_found(message));
    }
    app.keys.forget(&tenant, Some(&key));
    tracing::info!(%tenant, key = %shown, "key revoked");
    Ok(StatusCode::NO_CONTENT)
}
