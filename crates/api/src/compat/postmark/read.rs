//! `GET /messages/outbound/{id}/details` and `/dump`.

use axum::{Json, extract::State};
use postway_domain::{RecipientKind, TenantId, Time};
use postway_store::record::{MessageRecord, RecipientView};
use serde_json::{Value, json};

use super::{error::Fault, message::STREAM, word};
use crate::{
    auth::Reader,
    compat::letter::{Letter, addresses},
    error::ApiError,
    message::{
        GivenId, find,
        view::{HIDDEN, of_message},
    },
    state::{App, Shared},
};

pub(super) async fn details(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let record = named(&app, &caller.tenant, &id).await?;
    let letter = Letter::read(&app, &caller.tenant, &record).await?;
    let message = &record.summary;
    let metadata = message.metadata.as_deref().filter(|_| !message.sensitive);
    Ok(Json(json!({
        "MessageID": message.uid,
        "MessageStream": message.lane.batch.as_ref().map_or(STREAM, |batch| batch.as_str()),
        "To": people(&record, RecipientKind::To),
        "Cc": people(&record, RecipientKind::Cc),
        "Bcc": people(&record, RecipientKind::Bcc),
        "Recipients": record.recipients.iter().map(|recipient| &recipient.address).collect::<Vec<_>>(),
        "ReceivedAt": message.created_at,
        "From": letter.from.unwrap_or_default(),
        "Subject": if message.sensitive { HIDDEN } else { &message.subject },
        "Tag": message.tags.first(),
        "Attachments": letter.files,
        "Status": word::status(message.state),
        "TrackOpens": false,
        "TrackLinks": "None",
        "Metadata": metadata.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_else(|| json!({})),
        "Sandboxed": false,
        "TextBody": letter.text,
        "HtmlBody": letter.html,
        "Body": letter.source.as_deref().map(String::from_utf8_lossy).unwrap_or_default(),
        "MessageEvents": record.recipients.iter().filter_map(|recipient| event(&record, recipient)).collect::<Vec<_>>(),
    })))
}

pub(super) async fn dump(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let record = named(&app, &caller.tenant, &id).await?;
    let letter = Letter::read(&app, &caller.tenant, &record).await?;
    Ok(Json(json!({"Body": letter.source.as_deref().map(String::from_utf8_lossy).unwrap_or_default()})))
}

async fn named(app: &App, tenant: &TenantId, id: &str) -> Result<MessageRecord, ApiError> {
    find(app, tenant, id).await.map_err(|error| match error.code() {
        "not_found" => Fault::NoMessage.error("", error.message()),
        _ => error,
    })
}

fn people(record: &MessageRecord, kind: RecipientKind) -> Vec<Value> {
    addresses(record, kind).into_iter().map(|address| json!({"Email": address, "Name": null})).collect()
}

/// What became of a recipient; when is known of bounces, and otherwise the message's last change is the best there is.
fn event(record: &MessageRecord, recipient: &RecipientView) -> Option<Value> {
    let kind = word::event(recipient.outcome?)?;
    let (_, bounce) = of_message(std::slice::from_ref(recipient), None);
    let said = recipient.reply.as_ref().map_or("", |reply| reply.text.as_str());
    let (at, details): (Option<Time>, Value) = match bounce {
        Some(bounce) if kind == "Bounced" => {
            (bounce.at, json!({"Summary": bounce.reason.unwrap_or_default(), "BounceID": null}))
        }
        _ => (None, json!({"DeliveryMessage": said, "DestinationServer": null, "DestinationIP": null})),
    };
    let at = at.unwrap_or(record.summary.updated_at);
    Some(json!({"Recipient": recipient.address, "Type": kind, "ReceivedAt": at, "Details": details}))
}
