//! `GET /v1/emails/{id}` and `GET /v1/emails`: the log of a mail, with its events.

use axum::{Json, extract::State, http::Uri};
use postway_domain::{MessageState as Stands, RecipientKind, reference::sense};
use postway_store::record::{MessageFilter, MessageSummary, external_label};
use serde_json::{Value, json};

use super::{event, status};
use crate::{
    auth::Reader,
    compat::lookup::{self, MessageWithStatus},
    http::{error::ApiError, pagination::PageRequest, query::QueryParameters},
    message::MessagePathId,
    state::SharedState,
};

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let entry = MessageWithStatus::find(&app, &caller.tenant, &id).await?;
    let (events, state) = (&entry.record.events, entry.record.summary.state);
    let uid = entry.record.summary.uid;
    let shown = |(at, one)| event::view(uid, one, sense(events, at, state));
    let events: Vec<Value> = events.iter().enumerate().filter_map(shown).collect();
    let mut answer = view(&entry);
    answer["events"] = json!(events);
    Ok(Json(answer))
}

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let wanted = query.parse("status", |text| match status::states(text) {
        Some(states) => Ok((text.to_owned(), states)),
        None => {
            Err("is no status: use RECEIVED, VALIDATED, VALIDATION_FAILED, SENT_ATTEMPT, SENT, FAILED or \
                     RETRY_SCHEDULED")
        }
    });
    let external_id = query.take("externalId");
    let filter = MessageFilter {
        tag: external_id.as_deref().map(external_label),
        request_id: query.take("requestId"),
        provider_message_id: query.take("sesMessageId"),
        ..MessageFilter::default()
    };
    let number = query.parse("page", page_number).unwrap_or(1);
    let page_size = lookup::page_size(&mut query, "pageSize");
    let paging = PageRequest::take(&mut query);
    let size = page_size.unwrap_or(paging.limit);
    query.finish()?;
    let (wanted, states) = wanted.unzip();
    let states = states.unwrap_or_default();
    let is_wanted = |message: &MessageSummary| {
        wanted.as_ref().is_none_or(|wanted: &String| wanted == status::status(message))
            && external_id.as_ref().is_none_or(|wanted| Some(wanted) == message.external_id.as_ref())
    };
    let page = match (number, &paging.cursor) {
        (1, _) => {
            let paging = PageRequest { limit: size, ..paging };
            lookup::page_where(&app, &caller.tenant, filter, &states, paging, is_wanted).await?
        }
        (_, Some(_)) => return Err(ApiError::field("page", "says the same as cursor: give one of them")),
        (number, None) => {
            lookup::page_numbered(&app, &caller.tenant, filter, &states, (number, size), is_wanted).await?
        }
    };
    let data: Vec<Value> = page.messages.iter().map(view).collect();
    Ok(Json(json!({"data": data, "nextCursor": page.next_cursor})))
}

fn page_number(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("must be a number, and the first page is 1")
}

/// A mail as this API shows it.
fn view(entry: &MessageWithStatus) -> Value {
    let message = &entry.record.summary;
    let named = |kind| {
        let those = entry.record.recipients.iter().filter(move |recipient| recipient.kind == kind);
        those.map(|recipient| recipient.address.as_str()).collect::<Vec<_>>()
    };
    let to = named(RecipientKind::To);
    let to = if let [only] = to.as_slice() { json!(only) } else { json!(to) };
    let failure = entry.failure();
    // A message that was ended by an operator has no failure.
    let ended_unsent = message.state.status().is_final() && message.state != Stands::Sent;
    let ended_at = message.sent_at.or(message.failed_at);
    let failed_at = message.failed_at.or_else(|| ended_unsent.then_some(message.updated_at));
    json!({
        "id": message.uid,
        "outboxId": message.uid,
        "jobId": message.uid,
        "companyId": message.lane.tenant,
        "recipientId": entry.record.recipient.map(|id| id.to_string()),
        "externalId": message.external_id,
        "to": to,
        "cc": named(RecipientKind::Cc),
        "bcc": named(RecipientKind::Bcc),
        "subject": entry.subject(),
        "tags": message.tags,
        "status": status::status(message),
        "sesMessageId": message.provider_message_id,
        "errorCode": failure.as_ref().and_then(|failure| failure.code()),
        "errorReason": entry.reason(),
        "attempts": message.attempt,
        "durationMs": ended_at.map(|at| at.since(message.created_at).as_millis() as u64),
        "requestId": message.request_id,
        "createdAt": message.created_at,
        "sentAt": message.sent_at,
        "failedAt": failed_at,
    })
}
