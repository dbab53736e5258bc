//! `/v1/routes`: the rules that choose the account of a message that names none.
//!
//! Accounts that a route names must exist when it is created or changed. An account is not deleted while a
//! route names it, unless `force` is set; such a route shows it as missing.

mod edit;
pub(crate) mod order;
pub(crate) mod trial;
mod view;
pub(crate) mod write;

use std::collections::BTreeSet;

use axum::{Json, extract::State, http::StatusCode};
use postway_domain::{AccountId, MailRoute, TenantId, id::RouteId};
use postway_store::record::{ChangeResult, DirectoryChange};

pub(crate) use self::view::{RouteList, RouteView};
use crate::{
    auth::{Manager, Reader},
    http::{
        error::{ApiError, FieldError},
        pagination::ListPart,
        request_id::RequestId,
        resource::path_parameter,
    },
    state::{AppState, SharedState},
};

/// The route that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedRoute(RouteId);

path_parameter!(NamedRoute, "id", |given| given.parse().map(NamedRoute).map_err(|_| no_route(given)));

fn no_route(given: &str) -> ApiError {
    let shown: String = given.chars().take(RouteId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no route `{shown}`; create it with POST /v1/routes"))
}

async fn find(app: &AppState, tenant: &TenantId, id: &RouteId) -> Result<MailRoute, ApiError> {
    app.store.route(tenant, id).await?.ok_or_else(|| no_route(id.as_str()))
}

/// The accounts of a tenant.
async fn existing(app: &AppState, tenant: &TenantId) -> Result<BTreeSet<AccountId>, ApiError> {
    Ok(app.store.accounts(Some(tenant)).await?.into_iter().map(|account| account.id).collect())
}

/// Refuses a route to accounts that do not exist.
fn check_accounts(route: &MailRoute, existing: &BTreeSet<AccountId>) -> Result<(), ApiError> {
    let targets = route.content.accounts.iter().enumerate();
    let missing = targets.filter(|(_, target)| !existing.contains(&target.account));
    let wrong: Vec<FieldError> = missing
        .map(|(place, target)| {
            let message = format!("there is no account `{}`", target.account);
            FieldError::new(format!("accounts[{place}].account"), message)
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::invalid(wrong)) }
}

/// List routes
///
/// The routes of your tenant in the order in which they apply: by position, then by id.
#[utoipa::path(
    get,
    path = "/v1/routes",
    operation_id = "listRoutes",
    tag = "routes",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "In their order", body = RouteList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    part: ListPart,
) -> Result<Json<RouteList>, ApiError> {
    let existing = existing(&app, &caller.tenant).await?;
    let routes = app.store.routes(&caller.tenant).await?.into_iter();
    let data = routes.map(|route| RouteView::new(route, &existing)).collect();
    let (data, next_cursor) = part.select(data, RouteView::place)?;
    Ok(Json(RouteList { data, next_cursor }))
}

/// Show a route
///
/// Its conditions, and the accounts it chooses from.
#[utoipa::path(
    get,
    path = "/v1/routes/{id}",
    operation_id = "getRoute",
    tag = "routes",
    params(("id" = String, Path, description = "The route")),
    responses((status = 200, description = "The route", body = RouteView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedRoute(id): NamedRoute,
) -> Result<Json<RouteView>, ApiError> {
    let route = find(&app, &caller.tenant, &id).await?;
    Ok(Json(RouteView::new(route, &existing(&app, &caller.tenant).await?)))
}

/// Delete a route
///
/// Its mail is then routed by the routes after it, or sent by the default account. Mail that was accepted
/// before keeps its account.
#[utoipa::path(
    delete,
    path = "/v1/routes/{id}",
    operation_id = "deleteRoute",
    tag = "routes",
    params(("id" = String, Path, description = "The route")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedRoute(id): NamedRoute,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "route.delete", id.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteRoute(tenant.clone(), id.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => Ok(StatusCode::NO_CONTENT),
        _ => Err(no_route(id.as_str())),
    }
}
