//! `POST /v1/routes/order`: gives all routes a new order at once.

use std::collections::BTreeSet;

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{MailRoute, id::RouteId};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::json;

use super::{RouteList, RouteView, existing, view::RouteOrderRequest};
use crate::{
    auth::Manager,
    http::{body, error::ApiError, json_fields::JsonFieldReader, request_id::RequestId},
    state::SharedState,
};

/// Order routes
///
/// Gives the routes the positions 1, 2, … in this order. 409 if they are not all of your tenant's routes:
/// read them again, because others changed them.
#[utoipa::path(
    post,
    path = "/v1/routes/order",
    operation_id = "orderRoutes",
    tag = "routes",
    request_body = RouteOrderRequest,
    responses((status = 200, description = "In their new order", body = RouteList))
)]
pub(crate) async fn order(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<RouteList>, ApiError> {
    let body = body::json_object(request).await?;
    let mut wrong = Vec::new();
    let mut fields = JsonFieldReader::new(body, &mut wrong);
    let ids: Option<Vec<String>> = fields.read("ids", "must be a list of ids");
    let ids: Vec<RouteId> = match ids {
        Some(ids) if ids.len() <= MailRoute::PER_TENANT_MAX => {
            ids.iter().filter_map(|id| id.parse().ok()).collect()
        }
        Some(_) => {
            fields.refuse("ids", format!("must be at most {}", MailRoute::PER_TENANT_MAX));
            Vec::new()
        }
        None => {
            fields.refuse("ids", "are needed: the ids of all routes, in their new order");
            Vec::new()
        }
    };
    if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
        fields.refuse("ids", "name a route twice");
    }
    fields.finish("is not a field of this call");
    wrong.dedup_by(|later, first| later.field == first.field);
    if !wrong.is_empty() {
        return Err(ApiError::invalid(wrong));
    }
    let (tenant, now) = (&caller.tenant, app.clock.now());
    let detail = Some(json!({"order": ids.iter().map(RouteId::as_str).collect::<Vec<_>>()}));
    let entry = app.audit(&caller.actor, Some(tenant), "route.order", "*", &request_id, detail);
    let change = DirectoryChange::OrderRoutes(tenant.clone(), ids, now);
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done | ChangeResult::Already => {}
        ChangeResult::Stale | ChangeResult::Missing | ChangeResult::Exists | ChangeResult::InUse => {
            return Err(ApiError::conflict(
                "these are not all of the routes: read them again with GET /v1/routes, and name each once",
            ));
        }
    }
    tracing::info!(%tenant, "routes ordered");
    let existing = existing(&app, tenant).await?;
    let routes = app.store.routes(tenant).await?.into_iter();
    let data = routes.map(|route| RouteView::new(route, &existing)).collect();
    Ok(Json(RouteList { data, next_cursor: None }))
}
