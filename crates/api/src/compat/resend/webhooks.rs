//! `/webhooks`: webhooks in Resend's format.
//!
//! Only webhooks of this format are visible here: those created here, and those to which `/v1/webhooks` gave
//! the format. As there, a secret is shown when it is created and never again. Events that do not happen
//! here, such as clicks, may be requested beside others.

use axum::{
    Json,
    extract::{Request, State},
};
use postway_domain::{Subscriber, TenantId, WebhookForm, id::SubscriberId};
use serde_json::{Map, Value, json};

use super::{
    error::{as_request_fault, missing},
    list::{ResendPageQuery, answer},
};
use crate::{
    auth::{Manager, Reader},
    http::{
        body,
        error::{ApiError, FieldError},
        request_id::RequestId,
    },
    message::MessagePathId,
    state::{AppState, SharedState},
    webhook::{self, NamedWebhook, WebhookView, change, create, secret},
};

const FORM: WebhookForm = WebhookForm::Resend;
/// Events of Resend that never happen here.
const NEVER: [&str; 6] = [
    "contact.created",
    "contact.updated",
    "contact.deleted",
    "domain.created",
    "domain.updated",
    "domain.deleted",
];
/// The most events of a request.
const EVENTS_MAX: usize = 100;

pub(super) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let asked = body::json_object(request).await?;
    let absent =
        ["endpoint", "events"].into_iter().filter(|name| asked.get(*name).is_none_or(Value::is_null));
    let absent: Vec<FieldError> = absent.map(missing).collect();
    if !absent.is_empty() {
        return Err(ApiError::invalid(absent));
    }
    let mut ours = translate_row(asked)?;
    ours.insert("form".to_owned(), FORM.as_str().into());
    let made = create::make(&app, &caller, &request_id, ours).await.map_err(theirs)?;
    Ok(Json(json!({"object": "webhook", "id": made.webhook.id, "signing_secret": made.secret})))
}

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let asked = ResendPageQuery::read(request.uri())?;
    let mut found = app.store.subscribers(Some(&caller.tenant)).await?;
    found.retain(is_in_form);
    // Ids increase with time, and lists here go from new to old.
    found.reverse();
    let views = found.into_iter().map(WebhookView::from).collect();
    let (page, has_more) = asked.page_of(views, |view| &view.id)?;
    Ok(answer(page.iter().map(shown).collect(), has_more))
}

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let NamedWebhook(id) = NamedWebhook::parse(&id)?;
    let mut view = shown(&find(&app, &caller.tenant, &id).await?.into());
    view["object"] = "webhook".into();
    view["signing_secret"] = Value::Null;
    Ok(Json(view))
}

pub(super) async fn update(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let NamedWebhook(id) = NamedWebhook::parse(&id)?;
    let ours = translate_row(body::json_object(request).await?)?;
    find(&app, &caller.tenant, &id).await?;
    let changed = change::change(&app, &caller, &request_id, &id, ours).await.map_err(theirs)?;
    Ok(Json(json!({"object": "webhook", "id": changed.id})))
}

pub(super) async fn rotate(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let NamedWebhook(id) = NamedWebhook::parse(&id)?;
    find(&app, &caller.tenant, &id).await?;
    let Json(made) =
        secret::rotate(State(app), caller, request_id, NamedWebhook(id)).await.map_err(theirs)?;
    Ok(Json(json!({"object": "webhook", "id": made.webhook.id, "signing_secret": made.secret})))
}

pub(super) async fn remove(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let NamedWebhook(id) = NamedWebhook::parse(&id)?;
    find(&app, &caller.tenant, &id).await?;
    webhook::delete(State(app), caller, request_id, NamedWebhook(id.clone())).await?;
    Ok(Json(json!({"object": "webhook", "id": id, "deleted": true})))
}

fn is_in_form(webhook: &Subscriber) -> bool {
    webhook.kind.form() == Some(FORM)
}

async fn find(app: &AppState, tenant: &TenantId, id: &SubscriberId) -> Result<Subscriber, ApiError> {
    let found = webhook::find(app, tenant, id).await?;
    match is_in_form(&found) {
        true => Ok(found),
        false => Err(ApiError::not_found(format!(
            "the webhook `{id}` is not in the form of Resend: change it at /v1/webhooks"
        ))),
    }
}

/// A webhook as in lists.
fn shown(view: &WebhookView) -> Value {
    let mut events: Vec<&str> = match view.events.iter().any(|name| name == "*") {
        true => FORM.names(),
        false => view.events.iter().filter_map(|ours| FORM.theirs(ours)).collect(),
    };
    events.sort_unstable();
    events.dedup();
    json!({
        "id": view.id,
        "created_at": view.created_at,
        "status": if view.active { "enabled" } else { "disabled" },
        "endpoint": view.url,
        "events": events,
    })
}

/// The body for our API. Unknown fields are ignored, as there.
fn translate_row(mut asked: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    let (mut ours, mut wrong) = (Map::new(), Vec::new());
    if let Some(endpoint) = asked.remove("endpoint").filter(|value| !value.is_null()) {
        ours.insert("url".to_owned(), endpoint);
    }
    match asked.remove("status") {
        None | Some(Value::Null) => {}
        Some(status) => match status.as_str() {
            Some(word @ ("enabled" | "disabled")) => {
                ours.insert("active".to_owned(), (word == "enabled").into());
            }
            _ => wrong.push(FieldError::new("status", "must be enabled or disabled")),
        },
    }
    match asked.remove("events") {
        None | Some(Value::Null) => {}
        Some(Value::Array(names)) if (1..=EVENTS_MAX).contains(&names.len()) => {
            ours.insert("events".to_owned(), own_events(&names, &mut wrong).into());
        }
        Some(_) => {
            wrong.push(FieldError::new("events", format!("must be a list of 1 to {EVENTS_MAX} events")))
        }
    }
    if wrong.is_empty() { Ok(ours) } else { Err(ApiError::invalid(wrong)) }
}

fn own_events(names: &[Value], wrong: &mut Vec<FieldError>) -> Vec<&'static str> {
    let mut own = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        let before = own.len();
        own.extend(FORM.ours(name));
        if own.len() == before && !NEVER.contains(&name) {
            let known = FORM.names().join(", ");
            let message = format!("is not an event here; there are {known}");
            wrong.push(FieldError::new(format!("events[{place}]"), message));
        }
    }
    if own.is_empty() && wrong.is_empty() {
        wrong.push(FieldError::new("events", "none of these happens here"));
    }
    own
}

/// The same error, with our fields under their names.
fn theirs(error: ApiError) -> ApiError {
    as_request_fault(
        error.renamed(|path| if path == "url" { "endpoint".to_owned() } else { path.to_owned() }),
    )
}
