//! `POST /v1/webhooks`.

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use postway_domain::{Subscriber, Time, WebhookForm, id::SubscriberId};
use postway_store::record::{ChangeResult, DirectoryChange};
use rand::Rng;
use serde_json::{Map, Value};

use super::{
    WebhookView,
    edit::{self, WebhookEdit, WebhookRequest},
    is_client, secret,
    view::WebhookWithSecret,
};
use crate::{
    auth::Manager,
    http::{body, error::ApiError, request_id::RequestId},
    setting::callback_url,
    state::{AppState, SharedState},
};

/// The most webhooks of one tenant.
const WEBHOOKS_MAX: usize = 100;

/// Create a webhook
///
/// The secret in the answer is shown only once: it verifies that a call is ours. 409 if there are 100
/// already.
#[utoipa::path(
    post,
    path = "/v1/webhooks",
    operation_id = "createWebhook",
    tag = "webhooks",
    request_body = WebhookRequest,
    responses((status = 201, description = "Created; it gets events from now on", body = WebhookWithSecret))
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Response, ApiError> {
    let view = make(&app, &caller, &request_id, body::json_object(request).await?).await?;
    let location = [(header::LOCATION, format!("/v1/webhooks/{}", view.webhook.id))];
    Ok((StatusCode::CREATED, location, Json(view)).into_response())
}

/// Creates a webhook from a body, for any call.
pub(crate) async fn make(
    app: &AppState,
    caller: &Manager,
    request_id: &RequestId,
    body: Map<String, Value>,
) -> Result<WebhookWithSecret, ApiError> {
    let WebhookEdit { url, events, form, description, active, .. } =
        edit::read(body).map_err(ApiError::invalid)?;
    let url = url.ok_or_else(|| ApiError::field("url", "is needed: where to call"))?;
    callback_url::check(app, "url", &url).map_err(|wrong| ApiError::invalid(vec![wrong]))?;
    let tenant = caller.tenant.clone();
    let others = app.store.subscribers(Some(&tenant)).await?;
    if others.iter().filter(|other| other.kind.form().is_some() && !is_client(&other.id)).count()
        >= WEBHOOKS_MAX
    {
        return Err(ApiError::conflict(format!("there are {WEBHOOKS_MAX} webhooks already; delete some")));
    }
    let now = app.clock.now();
    let id = new_id(now)?;
    let (secret, secrets) = secret::first(app, &tenant, &id)?;
    let webhook = Subscriber {
        tenant: tenant.clone(),
        id: id.clone(),
        kind: form.unwrap_or(WebhookForm::Postway).kind(),
        url,
        events: events.unwrap_or_default(),
        secrets: Some(secrets),
        active: active.unwrap_or(true),
        disabled_reason: None,
        description: description.flatten(),
        quiet_until: None,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let view = WebhookWithSecret { webhook: WebhookView::from(webhook.clone()), secret };
    let entry = app.audit(&caller.actor, Some(&tenant), "webhook.create", id.as_str(), request_id, None);
    match app.store.change(DirectoryChange::CreateSubscriber(webhook), Some(entry)).await? {
        ChangeResult::Done => {}
        _ => return Err(ApiError::internal("a new webhook's id was taken")),
    }
    tracing::info!(%tenant, webhook = %id, "webhook created");
    Ok(view)
}

/// A new id. Ids increase with time, so a list by id is a list by age.
fn new_id(now: Time) -> Result<SubscriberId, ApiError> {
    let ms = u64::try_from(now.as_millis()).unwrap_or(0);
    let uuid = uuid::Builder::from_unix_timestamp_millis(ms, &rand::rng().random()).into_uuid();
    format!("wh_{}", uuid.simple()).parse().map_err(ApiError::internal)
}
