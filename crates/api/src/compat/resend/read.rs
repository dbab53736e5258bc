//! `GET /emails/{id}` and `GET /emails`.

use axum::{Json, extract::State, http::Uri};
use postway_domain::{Mailbox, MessageUid, RecipientKind, TenantId, message::Wait};
use postway_store::record::{Filter, MessageKey, MessageRecord};
use serde_json::{Map, Value, json};

use super::{email, word::last_event};
use crate::{
    auth::Reader,
    compat::letter::{Letter, addresses},
    error::ApiError,
    message::{
        GivenId, find,
        view::{HIDDEN, of_message},
    },
    query::Parameters,
    state::{App, Shared},
};

/// How many emails a page has, unless asked for another number, and at most.
const PAGE: u32 = 20;
const PAGE_MAX: u32 = 100;

pub(super) async fn show(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    let letter = Letter::read(&app, &caller.tenant, &record).await?;
    let mut email = listed(&record, &letter);
    email.insert("object".to_owned(), "email".into());
    email.insert("html".to_owned(), letter.html.into());
    email.insert("text".to_owned(), letter.text.into());
    let tags = record.summary.tags.iter().map(|label| email::tag(label)).collect::<Vec<_>>();
    email.insert("tags".to_owned(), tags.into());
    Ok(Json(Value::Object(email)))
}

pub(super) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let limit = query.parse("limit", |text| match text.parse() {
        Ok(limit @ 1..=PAGE_MAX) => Ok(limit),
        _ => Err(format!("must be a number from 1 to {PAGE_MAX}")),
    });
    let limit = limit.unwrap_or(PAGE);
    let after = query.parse("after", |text| {
        text.parse::<MessageUid>().map_err(|_| "must be the id of an email of the page before")
    });
    query.parse("before", |_| Err::<(), _>("pages go from new to old only: use after"));
    query.finish()?;
    // One more than asked for tells whether there is a next page.
    let mut found = app.store.messages(&caller.tenant, &Filter::default(), after, limit + 1).await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let mut data = Vec::with_capacity(found.len());
    for message in found {
        // One that was removed meanwhile is not shown.
        data.extend(one(&app, &caller.tenant, message.uid).await?.map(Value::Object));
    }
    Ok(Json(json!({"object": "list", "has_more": has_more, "data": data})))
}

async fn one(app: &App, tenant: &TenantId, uid: MessageUid) -> Result<Option<Map<String, Value>>, ApiError> {
    let Some(record) = app.store.message(tenant, &MessageKey::Uid(uid)).await? else { return Ok(None) };
    let letter = Letter::read(app, tenant, &record).await?;
    Ok(Some(listed(&record, &letter)))
}

/// An address as people write it: a mail has every name in quotes.
fn as_written(address: &str) -> String {
    address.parse::<Mailbox>().map_or_else(|_| address.to_owned(), |mailbox| mailbox.to_string())
}

/// An email as in lists.
fn listed(record: &MessageRecord, letter: &Letter) -> Map<String, Value> {
    let message = &record.summary;
    let (outcome, _) = of_message(&record.recipients, None);
    let subject = if message.sensitive { HIDDEN } else { &message.subject };
    let scheduled_at = message.due_at.filter(|_| message.state.wait() == Some(Wait::SendAt));
    let fields = [
        ("id", json!(message.uid)),
        ("message_id", json!(format!("<{}>", message.message_id))),
        ("from", json!(letter.from.as_deref().map(as_written).unwrap_or_default())),
        ("to", json!(addresses(record, RecipientKind::To))),
        ("cc", json!(addresses(record, RecipientKind::Cc))),
        ("bcc", json!(addresses(record, RecipientKind::Bcc))),
        ("reply_to", letter.reply_to.iter().map(|one| as_written(one)).collect()),
        ("subject", json!(subject)),
        ("created_at", json!(message.created_at)),
        ("scheduled_at", json!(scheduled_at)),
        ("last_event", json!(last_event(message.state, outcome))),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
