//! `GET /messages/outbound/{id}/details` and `/dump`.

use axum::{Json, extract::State};
use postway_domain::{TenantId, Time};
use postway_store::record::{MessageRecord, RecipientRecord};
use serde_json::{Value, json};

use super::{bounce_id::PostmarkBounceId, error::PostmarkFault, search::listed, status};
use crate::{
    auth::Reader,
    compat::shown_content::ShownContent,
    http::error::ApiError,
    message::{MessagePathId, find, view::of_message},
    state::{AppState, SharedState},
};

pub(super) async fn details(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let record = named(&app, &caller.tenant, &id).await?;
    let may_see = caller.may_see_content(&app).await?;
    let content = ShownContent::read(&app, &caller.tenant, &record, may_see).await?;
    let mut shown = listed(&record.summary, &record.recipients, &content);
    let places = record.recipients.iter().enumerate();
    let events: Vec<Value> =
        places.filter_map(|(place, recipient)| event(&record, place, recipient)).collect();
    let source = content.source.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    for (name, value) in [
        ("TextBody", json!(content.text)),
        ("HtmlBody", json!(content.html)),
        ("Body", json!(source)),
        ("MessageEvents", json!(events)),
    ] {
        shown[name] = value;
    }
    Ok(Json(shown))
}

pub(super) async fn dump(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let record = named(&app, &caller.tenant, &id).await?;
    let may_see = caller.may_see_content(&app).await?;
    let content = ShownContent::read(&app, &caller.tenant, &record, may_see).await?;
    Ok(Json(json!({"Body": content.source.as_deref().map(String::from_utf8_lossy).unwrap_or_default()})))
}

async fn named(app: &AppState, tenant: &TenantId, id: &str) -> Result<MessageRecord, ApiError> {
    find(app, tenant, id).await.map_err(|error| match error.code() {
        "not_found" => {
            PostmarkFault::NoMessage.error("", format!("The message was not found: {}", error.message()))
        }
        _ => error,
    })
}

/// The outcome of a recipient as an event. For bounces the time is known; otherwise the message's last change
/// is the best approximation.
fn event(record: &MessageRecord, place: usize, recipient: &RecipientRecord) -> Option<Value> {
    let kind = status::event(recipient.outcome?)?;
    let (_, bounce) = of_message(std::slice::from_ref(recipient), None);
    let said = recipient.reply.as_ref().map_or("", |reply| reply.text.as_str());
    let (at, details): (Option<Time>, Value) = match bounce {
        Some(bounce) if kind == "Bounced" => {
            let id = PostmarkBounceId::new(record.summary.created_at, record.summary.uid, place).number();
            (bounce.at, json!({"Summary": bounce.reason.unwrap_or_default(), "BounceID": id.to_string()}))
        }
        _ => (None, json!({"DeliveryMessage": said, "DestinationServer": null, "DestinationIP": null})),
    };
    let at = at.unwrap_or(record.summary.updated_at);
    Some(json!({"Recipient": recipient.address, "Type": kind, "ReceivedAt": at, "Details": details}))
}
