//! `GET /emails…`: lists of mails. Stuck mails come in two forms: as a page, and as a bare list, as its users
//! know it.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Uri},
};
use postway_domain::{MessageStatus, TenantId, message::ScheduleReason};
use postway_store::record::{MessageFilter, MessageSummary};
use serde_json::{Value, json};

use super::status;
use crate::{
    auth::Reader,
    compat::lookup::{self, ACTIVE, CompatMessagePage, MessageWithStatus},
    http::{error::ApiError, pagination::PageRequest, query::QueryParameters},
    message::MessagePathId,
    state::{AppState, SharedState},
};

/// The default age at which an unfinished mail counts as stale.
pub(super) const STALE_S: u64 = 900;
/// The header with the cursor of a bare list.
const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// `GET /emails/{id}`: one mail with its history.
pub(super) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<Value>, ApiError> {
    let entry = MessageWithStatus::find(&app, &caller.tenant, &id).await?;
    let history = status::history(&entry.record.events, entry.record.summary.state).map(|(word, event)| {
        let data: Option<Value> = event.data.as_deref().and_then(|data| serde_json::from_str(data).ok());
        let said = |name: &&str| data.as_ref()?.get(name).filter(|value| !value.is_null()).cloned();
        let reason = ["message", "reason", "code"].iter().find_map(said);
        json!({"status": word, "reason": reason, "created_at": event.at})
    });
    let mut answer = view(&entry);
    answer["history"] = history.collect();
    Ok(Json(answer))
}

/// `GET /emails?status=`: newest first. Mails whose callback or preparation is in another state are left out
/// of a page, so it may be short; `next_cursor` says whether there is more.
pub(super) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let wanted = query.parse("status", |text| match status::states(text) {
        Some(states) => Ok((text.to_owned(), states)),
        None => {
            Err("is no status: use one of those that GET /emails shows, such as READY or SENT-ACKNOWLEDGED")
        }
    });
    let paging = PageRequest::take(&mut query);
    query.finish()?;
    let (wanted, states) = wanted.unzip();
    let states = states.unwrap_or_default();
    let page = lookup::page(&app, &caller.tenant, MessageFilter::default(), &states, paging).await?;
    Ok(answer(page, |entry| wanted.as_ref().is_none_or(|wanted: &String| wanted == status_word(entry))))
}

/// `GET /emails/stale?older_than_seconds=`: mails that have not ended and have not changed for that long.
/// Scheduled ones are left out, so a page may be short.
pub(super) async fn stale(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    Ok(answer(stale_page(&app, &caller.tenant, &uri, PageRequest::take).await?, |_| true))
}

/// `GET /emails/invalid`: mails that were accepted and then failed their checks.
pub(super) async fn invalid(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    Ok(answer(invalid_page(&app, &caller.tenant, &uri, PageRequest::take).await?, |_| true))
}

/// `GET /stale-emails`: the stale mails as a bare list.
pub(super) async fn bare_stale(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<(HeaderMap, Json<Vec<Value>>), ApiError> {
    bare(&stale_page(&app, &caller.tenant, &uri, lookup::long_page).await?)
}

/// `GET /invalid-emails`: the invalid mails as a bare list.
pub(super) async fn bare_invalid(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<(HeaderMap, Json<Vec<Value>>), ApiError> {
    bare(&invalid_page(&app, &caller.tenant, &uri, lookup::long_page).await?)
}

async fn stale_page(
    app: &AppState,
    tenant: &TenantId,
    uri: &Uri,
    paging: fn(&mut QueryParameters) -> PageRequest,
) -> Result<CompatMessagePage, ApiError> {
    let mut query = QueryParameters::from_uri(uri)?;
    let older_than = query.parse("older_than_seconds", str::parse).unwrap_or(STALE_S);
    let paging = paging(&mut query);
    query.finish()?;
    find_stale(app, tenant, older_than, paging).await
}

async fn invalid_page(
    app: &AppState,
    tenant: &TenantId,
    uri: &Uri,
    paging: fn(&mut QueryParameters) -> PageRequest,
) -> Result<CompatMessagePage, ApiError> {
    let mut query = QueryParameters::from_uri(uri)?;
    let paging = paging(&mut query);
    query.finish()?;
    lookup::page(app, tenant, MessageFilter::default(), &[MessageStatus::Invalid], paging).await
}

/// A page of mails that have not ended and have not changed for `older_than_s` seconds although they were
/// due: a mail that waits for a time set by its sender or a retry is not stuck.
pub(super) async fn find_stale(
    app: &AppState,
    tenant: &TenantId,
    older_than_s: u64,
    paging: PageRequest,
) -> Result<CompatMessagePage, ApiError> {
    let moved_before = app.clock.now().minus(Duration::from_secs(older_than_s));
    // A message that was accepted later has changed later.
    let filter = MessageFilter { until: Some(moved_before), ..MessageFilter::default() };
    let is_stale = |message: &MessageSummary| {
        let could_move_at = message.due_at.map_or(message.updated_at, |due| due.max(message.updated_at));
        // Only the preparer knows when a file is fetched again, and it cannot be hurried.
        message.state.wait() != Some(ScheduleReason::Fetch) && could_move_at < moved_before
    };
    lookup::page_where(app, tenant, filter, ACTIVE, paging, is_stale).await
}

fn answer(page: CompatMessagePage, is_wanted: impl Fn(&MessageWithStatus) -> bool) -> Json<Value> {
    let data: Vec<Value> = page.messages.iter().filter(|entry| is_wanted(entry)).map(view).collect();
    Json(json!({"data": data, "next_cursor": page.next_cursor}))
}

/// A page as a bare list; the cursor is in a header.
fn bare(page: &CompatMessagePage) -> Result<(HeaderMap, Json<Vec<Value>>), ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(cursor) = &page.next_cursor {
        headers.insert(NEXT_CURSOR, HeaderValue::from_str(cursor).map_err(ApiError::internal)?);
    }
    Ok((headers, Json(page.messages.iter().map(view).collect())))
}

/// A mail's status in this API's terms.
pub(super) fn status_word(entry: &MessageWithStatus) -> &'static str {
    status::word(entry)
}

/// A mail as this API shows it.
fn view(entry: &MessageWithStatus) -> Value {
    let record = &entry.record;
    let (version, updated_at) = status::changed(record);
    json!({
        "id": entry.id(),
        "status": status_word(entry),
        "eml_file_path": status::file(&record.raw),
        "payload_file_path": status::file(&record.payload),
        "reason": entry.reason(),
        "version": version,
        "created_at": record.summary.created_at,
        "updated_at": updated_at,
    })
}
