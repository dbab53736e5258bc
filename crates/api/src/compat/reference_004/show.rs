//! `GET /v1/emails/{id}` and `GET /v1/emails`: its log of a mail, with its events.

use axum::{Json, extract::State, http::Uri};
use postway_domain::{
    RecipientKind,
    reference::{sense, status_004},
};
use postway_store::record::Filter;
use serde_json::{Value, json};

use super::{event, word};
use crate::{
    auth::Reader,
    compat::read::{self, Whole},
    error::ApiError,
    message::GivenId,
    page::Paging,
    query::Parameters,
    state::Shared,
};

/// The most mails of a page, as for `limit`.
const PAGE_SIZE_MAX: u32 = 500;

pub(super) async fn show(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let whole = Whole::find(&app, &caller.tenant, &id).await?;
    let (events, state) = (&whole.record.events, whole.record.summary.state);
    let uid = whole.record.summary.uid;
    let shown = |(at, one)| event::view(uid, one, sense(events, at, state));
    let events: Vec<Value> = events.iter().enumerate().filter_map(shown).collect();
    let mut answer = view(&whole);
    answer["events"] = json!(events);
    Ok(Json(answer))
}

pub(super) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let wanted = query.parse("status", |text| match word::states(text) {
        Some(states) => Ok((text.to_owned(), states)),
        None => {
            Err("is no status: use RECEIVED, VALIDATED, VALIDATION_FAILED, SENT_ATTEMPT, SENT, FAILED or \
                     RETRY_SCHEDULED")
        }
    });
    let filter = Filter {
        request_id: query.take("requestId"),
        provider_message_id: query.take("sesMessageId"),
        ..Filter::default()
    };
    let paging = paging(&mut query);
    query.parse("externalId", |_| Err::<(), _>("lists do not go by it: keep the outboxId that the 202 gave"));
    query.finish()?;
    let (wanted, states) = wanted.unzip();
    let page = read::page(&app, &caller.tenant, filter, &states.unwrap_or_default(), paging).await?;
    let is_wanted = |whole: &&Whole| {
        let word = status_004(whole.record.summary.state);
        wanted.as_ref().is_none_or(|wanted: &String| wanted == word)
    };
    let data: Vec<Value> = page.messages.iter().filter(is_wanted).map(view).collect();
    Ok(Json(json!({"data": data, "nextCursor": page.next_cursor})))
}

/// `limit` and `cursor`, or the first page under its own names. Later pages go by the cursor: a number would have to be
/// counted up to.
fn paging(query: &mut Parameters) -> Paging {
    query.parse("page", |text| match text.parse() {
        Ok(1_u32) => Ok(()),
        _ => Err("pages are not numbered: go on with `cursor`, the nextCursor of the page before"),
    });
    let page_size = query.parse("pageSize", |text| match text.parse() {
        Ok(size @ 1..=PAGE_SIZE_MAX) => Ok(size),
        _ => Err(format!("must be a number from 1 to {PAGE_SIZE_MAX}")),
    });
    let paging = Paging::take(query);
    Paging { limit: page_size.unwrap_or(paging.limit), ..paging }
}

/// A mail in its words.
fn view(whole: &Whole) -> Value {
    let message = &whole.record.summary;
    let named = |kind| {
        let those = whole.record.recipients.iter().filter(move |recipient| recipient.kind == kind);
        those.map(|recipient| recipient.address.as_str()).collect::<Vec<_>>()
    };
    let to = named(RecipientKind::To);
    let to = if let [only] = to.as_slice() { json!(only) } else { json!(to) };
    let failure = whole.failure();
    json!({
        "id": message.uid,
        "outboxId": message.uid,
        "jobId": message.uid,
        "companyId": message.lane.tenant,
        "recipientId": whole.record.recipient.map(|id| id.to_string()),
        "externalId": message.external_id,
        "to": to,
        "cc": named(RecipientKind::Cc),
        "bcc": named(RecipientKind::Bcc),
        "subject": whole.subject(),
        "tags": message.tags,
        "status": status_004(message.state),
        "sesMessageId": message.provider_message_id,
        "errorCode": failure.as_ref().and_then(|failure| failure.code()),
        "errorReason": whole.reason(),
        "attempts": message.attempt,
        "durationMs": whole.record.attempts.last().map(|attempt| attempt.duration_ms),
        "requestId": message.request_id,
        "createdAt": message.created_at,
        "sentAt": message.sent_at,
        "failedAt": message.failed_at,
    })
}
