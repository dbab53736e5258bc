//! `/v1/suppressions`: addresses that get no mail. A suppressed recipient is recorded, not sent to.
//!
//! Addresses are compared without regard to case, so they are stored in lower case. Adding an existing one
//! renews it. Expired entries count as absent.

mod csv;
pub(crate) mod export;
pub(crate) mod import;
mod read;
mod schema;
pub(crate) mod scoped;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, Uri},
};
use postway_domain::{TenantId, Time};
use postway_store::record::{ChangeResult, DirectoryChange, SuppressionRecord};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use self::schema::{SuppressionChange, SuppressionRequest};
use crate::{
    admin::erase::digest,
    auth::{Manager, Reader},
    http::{
        address_spelling, body,
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The most addresses of one call.
const ADDRESSES_MAX: usize = 1_000;

/// An address that gets no mail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suppression)]
pub(crate) struct SuppressionView {
    /// The address, in lower case; a domain outside ASCII as A-labels (`xn--…`).
    #[schema(example = "ada@example.net")]
    address: String,
    /// The address in Unicode, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "ada@exämple.net")]
    address_unicode: Option<String>,
    /// `hard_bounce`, `complaint`, `manual` or `unsubscribe`.
    #[schema(example = "manual")]
    reason: &'static str,
    /// A note.
    note: Option<String>,
    /// When it was suppressed.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it expires; null means never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
}

impl From<SuppressionRecord> for SuppressionView {
    fn from(one: SuppressionRecord) -> Self {
        let address = address_spelling::ascii(one.address);
        Self {
            address_unicode: address_spelling::unicode(&address),
            address,
            reason: one.reason.as_str(),
            note: one.note,
            created_at: one.created_at,
            expires_at: one.expires_at,
        }
    }
}

/// A page of suppressed addresses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuppressionList {
    /// The entries, by address.
    data: Vec<SuppressionView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// The address that `{address}` in the path names, in the stored form.
pub(crate) struct NamedAddress(String);

path_parameter!(NamedAddress, "address", |given| read::address(given)
    .map(NamedAddress)
    .map_err(|message| ApiError::field("address", message)));

fn not_suppressed(address: &str) -> ApiError {
    ApiError::not_found(format!("`{address}` is not suppressed"))
}

/// Whether the suppression has not expired.
fn holds(one: &SuppressionRecord, now: Time) -> bool {
    one.expires_at.is_none_or(|at| at > now)
}

/// The answer: the one entry for `address`, or the entries for `addresses`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Suppressed)]
pub(crate) enum SuppressedAnswer {
    One(SuppressionView),
    Many(SuppressionList),
}

/// Suppress addresses
///
/// One as `address`, answered with its entry, or up to 1,000 as `addresses`, answered with a list. An address
/// that is already suppressed is renewed.
#[utoipa::path(
    post,
    path = "/v1/suppressions",
    operation_id = "createSuppression",
    tag = "suppressions",
    request_body = SuppressionRequest,
    responses((status = 201, description = "Suppressed from now on", body = SuppressedAnswer))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<(StatusCode, Json<SuppressedAnswer>), ApiError> {
    let body = body::json_object(request).await?;
    let is_one = body.get("address").is_some_and(|address| !address.is_null());
    let list = read::body(body, &caller.tenant, app.clock.now()).map_err(ApiError::invalid)?;
    let mut views: Vec<SuppressionView> = list.iter().cloned().map(SuppressionView::from).collect();
    add(&app, &caller, list, "suppression.create", &request_id).await?;
    let one = if is_one { views.pop() } else { None };
    let suppressed = match one {
        Some(view) => SuppressedAnswer::One(view),
        None => SuppressedAnswer::Many(SuppressionList { data: views, next_cursor: None }),
    };
    Ok((StatusCode::CREATED, Json(suppressed)))
}

/// Adds entries to the list, with a record in the audit log: of one address its digest, because the log
/// outlives erasure; of many, their number.
async fn add(
    app: &AppState,
    caller: &Manager,
    list: Vec<SuppressionRecord>,
    action: &str,
    request_id: &RequestId,
) -> Result<(), ApiError> {
    let (target, detail) = match list.as_slice() {
        [] => return Ok(()),
        [one] => {
            let detail = json!({"reason": one.reason.as_str(), "expires_at": one.expires_at});
            (digest(&app.secret_key, &caller.tenant, &one.address), detail)
        }
        [first, ..] => (format!("{} addresses", list.len()), json!({"reason": first.reason.as_str()})),
    };
    let entry = app.audit(&caller.actor, Some(&caller.tenant), action, target, request_id, Some(detail));
    app.store.change(DirectoryChange::Suppress(list), Some(entry)).await?;
    Ok(())
}

/// List suppressed addresses
///
/// Addresses that get no mail of your tenant, in alphabetical order, without expired entries.
#[utoipa::path(
    get,
    path = "/v1/suppressions",
    operation_id = "listSuppressions",
    tag = "suppressions",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page, by address", body = SuppressionList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<SuppressionList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let after: Option<String> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let (found, next) = page_of(&app, &caller.tenant, after, limit).await?;
    let data = found.into_iter().map(SuppressionView::from).collect();
    Ok(Json(SuppressionList { data, next_cursor: next.as_ref().map(pagination::write_cursor) }))
}

/// The entries after this one that have not expired, and where the next page begins.
async fn page_of(
    app: &AppState,
    tenant: &TenantId,
    after: Option<String>,
    limit: u32,
) -> Result<(Vec<SuppressionRecord>, Option<String>), ApiError> {
    let now = app.clock.now();
    let read = |after: Option<String>, limit| async move {
        app.store.suppressions(tenant, after.as_deref(), limit).await
    };
    Ok(pagination::filled(after, limit, read, |one| one.address.clone(), |one| holds(one, now)).await?)
}

/// The suppression of an address, unless it has expired.
async fn find(app: &AppState, tenant: &TenantId, address: &str) -> Result<SuppressionRecord, ApiError> {
    let found = app.store.suppression(tenant, address).await?.filter(|one| holds(one, app.clock.now()));
    found.ok_or_else(|| not_suppressed(address))
}

/// Check an address
///
/// 200 with the entry if it is suppressed, 404 if it is not.
#[utoipa::path(
    get,
    path = "/v1/suppressions/{address}",
    operation_id = "getSuppression",
    tag = "suppressions",
    params(("address" = String, Path, description = "The address, in any case")),
    responses((status = 200, description = "It is suppressed", body = SuppressionView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedAddress(address): NamedAddress,
) -> Result<Json<SuppressionView>, ApiError> {
    find(&app, &caller.tenant, &address).await.map(|one| Json(one.into()))
}

/// Change a suppression
///
/// Changes `reason`, `note` and `expires_at` as given; `null` removes note and expiry.
#[utoipa::path(
    patch,
    path = "/v1/suppressions/{address}",
    operation_id = "changeSuppression",
    tag = "suppressions",
    params(("address" = String, Path, description = "The address, in any case")),
    request_body = SuppressionChange,
    responses((status = 200, description = "After the change", body = SuppressionView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAddress(address): NamedAddress,
    request: Request,
) -> Result<Json<SuppressionView>, ApiError> {
    let body = body::json_object(request).await?;
    let current = find(&app, &caller.tenant, &address).await?;
    let changed = read::patch(body, current, app.clock.now()).map_err(ApiError::invalid)?;
    add(&app, &caller, vec![changed.clone()], "suppression.update", &request_id).await?;
    Ok(Json(changed.into()))
}

/// Stop suppressing an address
///
/// Mail to it is sent again from now on. 404 if it is not on the list.
#[utoipa::path(
    delete,
    path = "/v1/suppressions/{address}",
    operation_id = "deleteSuppression",
    tag = "suppressions",
    params(("address" = String, Path, description = "The address, in any case")),
    responses((status = 204, description = "The address is no longer suppressed"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedAddress(address): NamedAddress,
) -> Result<StatusCode, ApiError> {
    let action = "suppression.delete";
    let target = digest(&app.secret_key, &caller.tenant, &address);
    let entry = app.audit(&caller.actor, Some(&caller.tenant), action, target, &request_id, None);
    let change = DirectoryChange::Unsuppress(caller.tenant.clone(), vec![address.clone()], app.clock.now());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(not_suppressed(&address)),
    }
}
