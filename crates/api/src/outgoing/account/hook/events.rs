//! `GET /v1/accounts/{id}/hook/events`: what the provider reported, and what came of it.

use axum::{Json, extract::State, http::Uri};
use postway_domain::{MessageUid, ProviderEventState, Time};
use postway_store::record::{ProviderEventFilter, ProviderEventView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{NamedAccount, find, key};
use crate::{
    auth::Reader,
    http::{
        error::ApiError,
        pagination::{self, PageRequest},
        query::QueryParameters,
    },
    state::SharedState,
};

/// An event that a provider reported.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportedEvent)]
pub(crate) struct ReportedEventView {
    /// Its id; a message's event has it as `provider_event`.
    id: String,
    /// The provider.
    #[schema(example = "sendgrid")]
    provider: &'static str,
    /// `waiting` and `leased` while its message is searched for; then `applied`, `ignored` (it says nothing
    /// that is recorded), `unmatched` (no message of this account within an hour) or `dead`.
    #[schema(example = "applied")]
    status: &'static str,
    /// What it says, in the word of a message's event.
    #[schema(example = "bounced")]
    kind: Option<String>,
    /// The message that it is about.
    message: Option<String>,
    /// Why it was not applied.
    reason: Option<String>,
    /// How often its message was searched for in vain.
    tries: i64,
    /// When it is tried again.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// When it came.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was settled.
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Time>,
    /// The event as the provider wrote it; null if it is longer than 16 KiB.
    #[schema(value_type = Object)]
    event: Option<Box<RawValue>>,
}

impl From<ProviderEventView> for ReportedEventView {
    fn from(event: ProviderEventView) -> Self {
        let raw = String::from_utf8(event.raw).ok();
        Self {
            id: event.uid.to_string(),
            provider: event.provider.as_str(),
            status: event.state.as_str(),
            kind: event.kind,
            message: event.message.map(|uid| uid.to_string()),
            reason: event.error,
            tries: event.tries,
            due_at: event.due_at,
            created_at: event.created_at,
            settled_at: event.settled_at,
            // The store leaves out what is longer.
            event: raw.and_then(|raw| RawValue::from_string(raw).ok()),
        }
    }
}

/// Events that a provider reported.
#[derive(Serialize, ToSchema)]
#[schema(as = ReportedEventList)]
pub(crate) struct ReportedEventList {
    /// The events, the newest first.
    data: Vec<ReportedEventView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// List what a provider reported
///
/// The newest first, kept for at least a week: which message each event was about, and why one was not
/// applied.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}/hook/events",
    operation_id = "listAccountHookEvents",
    tag = "accounts",
    params(
        ("id" = String, Path, description = "The account"),
        ("status" = Option<String>, Query, description = "Only those in this status"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "The newest first", body = ReportedEventList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    NamedAccount(id): NamedAccount,
    uri: Uri,
) -> Result<Json<ReportedEventList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let words = ProviderEventState::ALL.map(ProviderEventState::as_str).join(", ");
    let state = query.parse("status", |text| {
        ProviderEventState::from_word(text).ok_or_else(|| format!("must be one of {words}"))
    });
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    find(&app, &caller.tenant, &id).await?;
    let before: Option<MessageUid> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    let filter = ProviderEventFilter { key: key(&caller.tenant, &id), state };
    // One event more than requested shows whether there is a next page.
    let mut found = app.store.provider_events(&filter, before, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.uid));
    Ok(Json(ReportedEventList {
        data: found.into_iter().map(ReportedEventView::from).collect(),
        next_cursor,
    }))
}
