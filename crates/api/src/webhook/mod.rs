//! `/v1/webhooks`: URLs that are called for events.
//!
//! A webhook's secret is generated here, shown once, and encrypted before it is stored. A tenant's own
//! `client_sync` is in the list under that id, so that its deliveries can be examined; it is created, changed
//! and removed with the tenant's settings, and only activated here.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod delivery;
mod edit;
pub(crate) mod probe;
pub(crate) mod resend;
pub(crate) mod secret;
mod view;

use axum::{Json, extract::State, http::StatusCode};
use postway_domain::{Subscriber, TenantId, id::SubscriberId};
use postway_store::record::{ChangeResult, DirectoryChange};

pub(crate) use self::view::{WebhookList, WebhookView};
use crate::{
    auth::{Manager, Reader},
    http::{error::ApiError, pagination::ListPart, request_id::RequestId, resource::path_parameter},
    state::{AppState, SharedState},
};

/// The webhook that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedWebhook(pub(crate) SubscriberId);

path_parameter!(NamedWebhook, "id", NamedWebhook::parse);

impl NamedWebhook {
    /// Parses the id.
    pub(crate) fn parse(given: &str) -> Result<Self, ApiError> {
        given.parse().map(Self).map_err(|_| no_webhook(given))
    }
}

fn no_webhook(given: &str) -> ApiError {
    let shown: String = given.chars().take(SubscriberId::BYTES_MAX).collect();
    ApiError::not_found(format!("there is no webhook `{shown}`"))
}

pub(crate) async fn find(
    app: &AppState,
    tenant: &TenantId,
    id: &SubscriberId,
) -> Result<Subscriber, ApiError> {
    let found = app.store.subscriber(tenant, id).await?.filter(|found| !is_archive(&found.id));
    found.ok_or_else(|| no_webhook(id.as_str()))
}

/// Whether it is the queue of a tenant's archive, which takes no calls.
pub(crate) fn is_archive(id: &SubscriberId) -> bool {
    id.as_str() == Subscriber::ARCHIVE
}

/// Whether it belongs to its tenant's settings.
pub(crate) fn is_client(id: &SubscriberId) -> bool {
    id.as_str() == Subscriber::CLIENT
}

/// Refuses an operation that `client_sync` does not support.
fn refuse_client(id: &SubscriberId, to_do: &str) -> Result<(), ApiError> {
    match is_client(id) {
        true => Err(ApiError::conflict(format!(
            "`{id}` is a setting of the tenant: {to_do} with PATCH /v1/tenants/{{id}}"
        ))),
        false => Ok(()),
    }
}

/// Refuses to repeat deliveries of a subscriber that is not active.
fn refuse_inactive(webhook: &Subscriber) -> Result<(), ApiError> {
    match webhook.active {
        true => Ok(()),
        false => Err(ApiError::conflict(format!(
            "the webhook `{}` is switched off: PATCH it to active first",
            webhook.id
        ))),
    }
}

/// List webhooks
///
/// The tenant's own `client_sync` is among them, if it has one.
#[utoipa::path(
    get,
    path = "/v1/webhooks",
    operation_id = "listWebhooks",
    tag = "webhooks",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; all of them when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The oldest first", body = WebhookList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    part: ListPart,
) -> Result<Json<WebhookList>, ApiError> {
    let mut found = app.store.subscribers(Some(&caller.tenant)).await?;
    found.retain(|subscriber| !is_archive(&subscriber.id));
    let (found, next_cursor) = part.select(found, |webhook| webhook.id.to_string())?;
    Ok(Json(WebhookList { data: found.into_iter().map(WebhookView::from).collect(), next_cursor }))
}

/// Show a webhook
///
/// One webhook, without its secrets.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}",
    operation_id = "getWebhook",
    tag = "webhooks",
    params(("id" = String, Path, description = "The webhook")),
    responses((status = 200, description = "The webhook, without its secret", body = WebhookView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedWebhook(id): NamedWebhook,
) -> Result<Json<WebhookView>, ApiError> {
    find(&app, &caller.tenant, &id).await.map(|webhook| Json(webhook.into()))
}

/// Delete a webhook
///
/// With its pending notifications.
#[utoipa::path(
    delete,
    path = "/v1/webhooks/{id}",
    operation_id = "deleteWebhook",
    tag = "webhooks",
    params(("id" = String, Path, description = "The webhook")),
    responses((status = 204, description = "Deleted"))
)]
pub(crate) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedWebhook(id): NamedWebhook,
) -> Result<StatusCode, ApiError> {
    let tenant = &caller.tenant;
    find(&app, tenant, &id).await?;
    refuse_client(&id, "take `client_sync` away")?;
    let entry = app.audit(&caller.actor, Some(tenant), "webhook.delete", id.as_str(), &request_id, None);
    let change = DirectoryChange::DeleteSubscriber(tenant.clone(), id.clone());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => {
            tracing::info!(%tenant, webhook = %id, "webhook deleted");
            Ok(StatusCode::NO_CONTENT)
        }
        _ => Err(no_webhook(id.as_str())),
    }
}
