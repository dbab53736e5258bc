//! `GET /emails/{id}`.

use axum::{Json, extract::State, http::StatusCode};
use postway_domain::{NamedAddress, RecipientKind, message::ScheduleReason};
use postway_store::record::MessageRecord;
use serde_json::{Map, Value, json};

use super::{email, status::last_event};
use crate::{
    auth::Reader,
    compat::shown_content::{ShownContent, addresses},
    http::error::ApiError,
    message::{
        MessagePathId, find,
        view::{HIDDEN, of_message},
    },
    state::SharedState,
};

/// Paths below `/emails` that are not emails there.
const ELSEWHERE: [&str; 2] = ["metrics", "receiving"];

pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await.map_err(|error| match error.status() {
        StatusCode::NOT_FOUND if ELSEWHERE.contains(&&*id) => ApiError::not_found(format!(
            "this compatibility API has no call `/emails/{id}`: see /v1 for a similar one"
        )),
        _ => error,
    })?;
    let may_see = caller.may_see_content(&app).await?;
    let content = ShownContent::read(&app, &caller.tenant, &record, may_see).await?;
    let mut email = listed(&record, &content);
    email.insert("object".to_owned(), "email".into());
    email.insert("html".to_owned(), content.html.map(as_given).into());
    email.insert("text".to_owned(), content.text.map(as_given).into());
    let tags = record.summary.tags.iter().map(|label| email::tag(label)).collect::<Vec<_>>();
    email.insert("tags".to_owned(), tags.into());
    Ok(Json(Value::Object(email)))
}

/// A text without its final line break, which every mail has.
fn as_given(mut text: String) -> String {
    let kept = text.strip_suffix('\n').map(|rest| rest.strip_suffix('\r').unwrap_or(rest).len());
    text.truncate(kept.unwrap_or(text.len()));
    text
}

/// An address without the quotes that a mail puts around every name.
fn as_written(address: &str) -> String {
    address.parse::<NamedAddress>().map_or_else(|_| address.to_owned(), |mailbox| mailbox.to_string())
}

/// An email as in lists.
pub(super) fn listed(record: &MessageRecord, content: &ShownContent) -> Map<String, Value> {
    let message = &record.summary;
    let (outcome, _) = of_message(&record.recipients, None);
    let subject = if message.sensitive { HIDDEN } else { &message.subject };
    let scheduled_at = message.due_at.filter(|_| message.state.wait() == Some(ScheduleReason::SendAt));
    let fields = [
        ("id", json!(message.uid)),
        ("message_id", json!(format!("<{}>", message.message_id))),
        ("from", json!(content.from.as_deref().map(as_written).unwrap_or_default())),
        ("to", json!(addresses(record, RecipientKind::To))),
        ("cc", json!(addresses(record, RecipientKind::Cc))),
        ("bcc", json!(addresses(record, RecipientKind::Bcc))),
        ("reply_to", content.reply_to.iter().map(|one| as_written(one)).collect()),
        ("subject", json!(subject)),
        ("created_at", json!(message.created_at)),
        ("scheduled_at", json!(scheduled_at)),
        ("last_event", json!(last_event(message.state, outcome))),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
