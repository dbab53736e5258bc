//! `GET /messages/outbound`: messages that match, newest first.
//!
//! The store searches what it can; metadata and `status` are compared message by message, and `fromemail` in
//! the mails themselves, so only the newest 500 are compared with it.

use axum::{Json, extract::State, http::Uri};
use futures::{StreamExt, TryStreamExt};
use postway_domain::{
    EmailAddress, MessageState, MessageStatus, MessageUid, NamedAddress, RecipientKind, TenantId,
    id::BatchCode,
};
use postway_store::record::{MessageBrief, MessageFilter, MessageKey, MessageSummary, RecipientRecord};
use serde_json::{Value, json};

use super::{
    error::PostmarkFault,
    message::STREAM,
    query::{LIST_MAX, PostmarkQuery},
    status,
};
use crate::{
    auth::Reader,
    compat::shown_content::ShownContent,
    http::error::ApiError,
    message::view::HIDDEN,
    state::{AppState, SharedState},
};

/// Messages per read of the store, and the most reads for a list.
const LOOK: u32 = 500;
pub(super) const LOOKS_MAX: usize = 40;
/// The most mails that are parsed to find their sender.
const FROM_LOOKED_MAX: usize = 500;
/// Mails that are parsed at once.
const TOGETHER: usize = 8;

pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let asked = PostmarkQuery::from_uri(&uri)?;
    let (window, tenant) = (asked.window()?, &caller.tenant);
    let from = asked.text("fromemail")?.map(str::to_lowercase);
    let Some(wanted) = PostmarkMessageFilter::read(&asked)? else {
        return Ok(Json(json!({"TotalCount": 0, "Messages": []})));
    };
    let most = if from.is_some() { FROM_LOOKED_MAX } else { LIST_MAX };
    let may_see = caller.may_see_content(&app).await?;
    let mut found = walk(&app, tenant, &wanted, most).await?;
    if let Some(from) = from {
        found = sent_by(&app, tenant, found, &from, may_see).await?;
    }
    let total = found.len();
    let shown = window.slice(found);
    let people = people_of(&app, tenant, &shown).await?;
    let listed: Vec<Value> = futures::stream::iter(shown.into_iter().zip(people))
        .map(|(message, people)| {
            let app = &app;
            async move {
                let content = ShownContent::read_summary(app, tenant, &message, may_see).await?;
                Ok::<_, ApiError>(listed(&message, &people, &content))
            }
        })
        .buffered(TOGETHER)
        .try_collect()
        .await?;
    Ok(Json(json!({"TotalCount": total, "Messages": listed})))
}

/// `GET /messages/outbound/opens`: always empty, because opens are not tracked.
pub(super) async fn no_opens(_caller: Reader) -> Json<Value> {
    Json(json!({"TotalCount": 0, "Opens": []}))
}

/// `GET /messages/outbound/clicks`: always empty, because links are not tracked.
pub(super) async fn no_clicks(_caller: Reader) -> Json<Value> {
    Json(json!({"TotalCount": 0, "Clicks": []}))
}

/// The filter of a list.
#[derive(Default)]
pub(super) struct PostmarkMessageFilter {
    pub(super) filter: MessageFilter,
    /// Whether only messages of the default stream match, which is not a batch.
    default_stream: bool,
    status: Option<&'static str>,
    metadata: Vec<(String, String)>,
}

impl PostmarkMessageFilter {
    /// The requested filter; `None` if nothing can match.
    pub(super) fn read(asked: &PostmarkQuery) -> Result<Option<Self>, ApiError> {
        let mut wanted = Self {
            filter: MessageFilter {
                tag: asked.text("tag")?.map(str::to_owned),
                subject: asked.text("subject")?.map(str::to_owned),
                since: asked.since()?,
                until: asked.until()?,
                ..MessageFilter::default()
            },
            metadata: asked
                .beginning("metadata_")
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            ..Self::default()
        };
        if let Some(recipient) = asked.text("recipient")? {
            let Ok(address) = recipient.parse::<EmailAddress>() else { return Ok(None) };
            wanted.filter.recipient = Some(address.to_string());
        }
        match asked.text("messagestream")? {
            Some(STREAM) => wanted.default_stream = true,
            Some(stream) => match stream.parse::<BatchCode>() {
                Ok(code) => wanted.filter.batch = Some(code.to_string()),
                Err(_) => return Ok(None),
            },
            None => {}
        }
        match asked.text("status")?.map(str::to_ascii_lowercase).as_deref() {
            None => {}
            Some("sent") => wanted.filter.status = Some(MessageStatus::Sent),
            Some("queued") => wanted.status = Some("Queued"),
            Some("processed") => wanted.status = Some("Processed"),
            Some(_) => return Err(PostmarkFault::Query.error("status", "must be queued, sent or processed")),
        }
        Ok(Some(wanted))
    }

    pub(super) fn is(&self, message: &MessageSummary) -> bool {
        (!self.default_stream || message.lane.batch.is_none())
            && self.status.is_none_or(|status| status::status(message.state) == status)
            && self.has_metadata(message)
    }

    /// Metadata is compared in lower case, because parameter names are read in lower case.
    fn has_metadata(&self, message: &MessageSummary) -> bool {
        if self.metadata.is_empty() {
            return true;
        }
        let json = message.metadata.as_deref().filter(|_| !message.sensitive);
        let Some(Value::Object(given)) = json.and_then(|json| serde_json::from_str(json).ok()) else {
            return false;
        };
        self.metadata.iter().all(|(name, value)| {
            given.iter().any(|(other, given)| {
                other.eq_ignore_ascii_case(name)
                    && match given.as_str() {
                        Some(given) => given == value,
                        None => serde_json::to_string(given).is_ok_and(|given| given == *value),
                    }
            })
        })
    }
}

/// The newest messages that match the filter, up to a limit.
pub(super) async fn walk(
    app: &AppState,
    tenant: &TenantId,
    wanted: &PostmarkMessageFilter,
    most: usize,
) -> Result<Vec<MessageSummary>, ApiError> {
    let (mut found, mut before) = (Vec::new(), None);
    for _ in 0..LOOKS_MAX {
        let page = app.store.search(tenant, &wanted.filter, before, LOOK).await?;
        found.extend(page.messages.into_iter().filter(|message| wanted.is(message)));
        before = page.next;
        if found.len() >= most || before.is_none() {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}

/// The messages among them that are from this address.
async fn sent_by(
    app: &AppState,
    tenant: &TenantId,
    found: Vec<MessageSummary>,
    from: &str,
    may_see: bool,
) -> Result<Vec<MessageSummary>, ApiError> {
    let looked: Vec<_> = futures::stream::iter(found)
        .map(|message| async move {
            let content = ShownContent::read_summary(app, tenant, &message, may_see).await?;
            let sender = content.from.as_deref().and_then(|from| from.parse::<NamedAddress>().ok());
            let is_from = sender.is_some_and(|sender| sender.address().as_str().to_lowercase() == from);
            Ok::<_, ApiError>(is_from.then_some(message))
        })
        .buffered(TOGETHER)
        .try_collect()
        .await?;
    Ok(looked.into_iter().flatten().collect())
}

/// The recipients of each of these messages, read together.
async fn people_of(
    app: &AppState,
    tenant: &TenantId,
    messages: &[MessageSummary],
) -> Result<Vec<Vec<RecipientRecord>>, ApiError> {
    let uids: Vec<MessageUid> = messages.iter().map(|message| message.uid).collect();
    let mut briefs = briefs(app, tenant, &uids).await?;
    let of = |uid: &MessageUid| {
        let at = briefs.iter().position(|brief| brief.summary.uid == *uid);
        at.map(|at| briefs.swap_remove(at).recipients).unwrap_or_default()
    };
    Ok(uids.iter().map(of).collect())
}

/// These messages with their recipients, in no order, including those with many recipients.
pub(super) async fn briefs(
    app: &AppState,
    tenant: &TenantId,
    uids: &[MessageUid],
) -> Result<Vec<MessageBrief>, ApiError> {
    if uids.is_empty() {
        return Ok(Vec::new());
    }
    let mut briefs = app.store.briefs(tenant, uids).await?;
    let there: std::collections::HashSet<MessageUid> = briefs.iter().map(|brief| brief.summary.uid).collect();
    for uid in uids.iter().filter(|uid| !there.contains(uid)) {
        briefs.extend(app.store.message(tenant, &MessageKey::Uid(*uid)).await?.map(MessageBrief::from));
    }
    Ok(briefs)
}

/// A message as in lists.
pub(super) fn listed(message: &MessageSummary, people: &[RecipientRecord], content: &ShownContent) -> Value {
    let of_kind = |kind: RecipientKind| -> Vec<Value> {
        let of_kind = people.iter().filter(|recipient| recipient.kind == kind);
        of_kind.map(|recipient| json!({"Email": recipient.address, "Name": null})).collect()
    };
    let metadata = message.metadata.as_deref().filter(|_| !message.sensitive);
    json!({
        "MessageID": message.uid,
        "MessageStream": stream_of(message),
        "To": of_kind(RecipientKind::To),
        "Cc": of_kind(RecipientKind::Cc),
        "Bcc": of_kind(RecipientKind::Bcc),
        "Recipients": people.iter().map(|recipient| &recipient.address).collect::<Vec<_>>(),
        "ReceivedAt": message.created_at,
        "From": content.from.as_deref().unwrap_or_default(),
        "Subject": subject_of(message),
        "Tag": message.tags.first(),
        "Attachments": content.files,
        "Status": status::status(message.state),
        "TrackOpens": false,
        "TrackLinks": "None",
        "Metadata": metadata.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_else(|| json!({})),
        "Sandboxed": message.state == MessageState::Captured,
    })
}

/// The stream of a message.
pub(super) fn stream_of(message: &MessageSummary) -> &str {
    message.lane.batch.as_ref().map_or(STREAM, |batch| batch.as_str())
}

/// The subject, unless it is sensitive.
pub(super) fn subject_of(message: &MessageSummary) -> &str {
    if message.sensitive { HIDDEN } else { &message.subject }
}
