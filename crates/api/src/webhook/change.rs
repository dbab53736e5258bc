//! `PATCH /v1/webhooks/{id}`: changes the given fields.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Subscriber, Time, id::SubscriberId};
use postway_store::record::{ChangeResult, DirectoryChange};
use serde_json::{Map, Value, json};

use super::{
    NamedWebhook, WebhookView,
    edit::{self, WebhookEdit, WebhookRequest},
    find, refuse_client,
};
use crate::{
    auth::Manager,
    http::{
        body,
        error::ApiError,
        request_id::RequestId,
        resource::{change_versioned, check_version},
    },
    setting::callback_url,
    state::{AppState, SharedState},
};

/// Change a webhook
///
/// Changes the given fields and leaves the others. With `version`, the change is made only if the webhook
/// still has that version; 409 otherwise. Activating it clears `disabled_reason`, and pending notifications
/// are delivered.
#[utoipa::path(
    patch,
    path = "/v1/webhooks/{id}",
    operation_id = "changeWebhook",
    tag = "webhooks",
    params(("id" = String, Path, description = "The webhook")),
    request_body = WebhookRequest,
    responses((status = 200, description = "The webhook after the change", body = WebhookView))
)]
pub(crate) async fn patch(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    NamedWebhook(id): NamedWebhook,
    request: Request,
) -> Result<Json<WebhookView>, ApiError> {
    let body = body::json_object(request).await?;
    change(&app, &caller, &request_id, &id, body).await.map(Json)
}

/// Changes a webhook by a body, for any call.
pub(crate) async fn change(
    app: &AppState,
    caller: &Manager,
    request_id: &RequestId,
    id: &SubscriberId,
    body: Map<String, Value>,
) -> Result<WebhookView, ApiError> {
    let given = edit::read(body).map_err(ApiError::invalid)?;
    let tenant = &caller.tenant;
    change_versioned("webhook", || async {
        let current = find(app, tenant, id).await?;
        let changes_form = given.form.is_some() && given.form != current.kind.form();
        if given.url.is_some() || given.events.is_some() || changes_form {
            refuse_client(id, "change it")?;
        }
        let expected = current.version;
        check_version("webhook", given.version, expected)?;
        // A URL that is sent back unchanged is no new target.
        if let Some(url) = given.url.as_ref().filter(|url| **url != current.url) {
            callback_url::check(app, "url", url).map_err(|wrong| ApiError::invalid(vec![wrong]))?;
        }
        let webhook = changed(current, &given, app.clock.now());
        let view = WebhookView::from(webhook.clone());
        let detail = Some(json!({"fields": given.fields, "version": webhook.version}));
        let entry = app.audit(&caller.actor, Some(tenant), "webhook.change", id.as_str(), request_id, detail);
        let change = DirectoryChange::UpdateSubscriber(webhook, expected);
        if app.store.change(change, Some(entry)).await? == ChangeResult::Done {
            tracing::info!(%tenant, webhook = %id, version = expected + 1, "webhook changed");
            return Ok(Some(view));
        }
        Ok::<_, ApiError>(None)
    })
    .await
}

fn changed(mut webhook: Subscriber, given: &WebhookEdit, now: Time) -> Subscriber {
    if let Some(url) = &given.url {
        webhook.url.clone_from(url);
    }
    if let Some(events) = &given.events {
        webhook.events.clone_from(events);
    }
    if let Some(form) = given.form.filter(|form| webhook.kind.form() != Some(*form)) {
        webhook.kind = form.kind();
    }
    if let Some(description) = &given.description {
        webhook.description.clone_from(description);
    }
    if let Some(active) = given.active {
        webhook.active = active;
        webhook.disabled_reason = None;
    }
    webhook.version += 1;
    webhook.updated_at = now;
    webhook
}
