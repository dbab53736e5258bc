//! `GET /messages`: messages as this API shows them, newest first, page by page.

use std::collections::HashSet;

use axum::{
    extract::State,
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use postway_domain::{AccountId, KeyScope, MessageEvent, MessageUid, TenantId, id::BatchCode};
use postway_intake::{JsonBounds, read_object_except};
use postway_store::record::{BodyLocation, MessageFilter, StoredBody};
use serde_json::{Map, Value, json};

use super::{caller, request, status};
use crate::{
    compat::lookup::{self, ACTIVE, MessageWithStatus},
    http::{
        body_budget::AlreadyCounted,
        error::ApiError,
        query::{QueryParameters, flag},
    },
    state::{AppState, SharedState},
};

/// Requests read at once for a page.
const TOGETHER: usize = 16;
/// The most bytes of requests that one page shows.
const REQUEST_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The most JSON values of one request that is shown, and of all requests of a page. Template variables do
/// not count: they are not shown.
const REQUEST_VALUES_MAX: usize = 20_000;
const PAGE_VALUES_MAX: usize = 100_000;
/// The memory of a page for each byte of its requests: the requests, their parsed form, and the answer.
const MEMORY_PER_BYTE: usize = 4;

pub(super) async fn list(State(app): State<SharedState>, parts: Parts) -> Result<Response, ApiError> {
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let named = query.take("tenant_id");
    let active_only = query.parse("active_only", flag).unwrap_or(false);
    let include_history = query.parse("include_history", flag).unwrap_or(false);
    let filter = MessageFilter {
        batch: query.parse("batch_code", str::parse::<BatchCode>).map(|code| code.to_string()),
        account: query.parse("account_id", str::parse::<AccountId>),
        ..MessageFilter::default()
    };
    let paging = lookup::long_page(&mut query);
    query.finish()?;
    let caller = caller(&app, &parts, KeyScope::Read, named.as_deref()).await?;
    let may_see = caller.may_see_content(&app).await?;
    let tenant = caller.tenant;
    let statuses = if active_only { ACTIVE } else { &[] };
    let page = lookup::page(&app, &tenant, filter, statuses, paging).await?;
    let tenant_name = app.store.tenant(&tenant).await?.map(|tenant| tenant.name);
    let accounts = app.store.accounts(Some(&tenant)).await?.into_iter();
    let certified: HashSet<AccountId> =
        accounts.filter(|account| account.settings.pec).map(|account| account.id).collect();
    let now = app.clock.now();
    let mut messages = Vec::with_capacity(page.messages.len());
    let shown_requests = shown_requests(&page.messages, may_see);
    let bytes: usize = shown_requests.iter().flatten().map(|(_, bytes)| *bytes as usize).sum();
    let mut held = app.body_budget.reserve_answer(&tenant, bytes.saturating_mul(MEMORY_PER_BYTE))?;
    for (entry, asked) in page.messages.iter().zip(asked_for(&app, &tenant, shown_requests).await?) {
        let mut shown = status::view(entry, now);
        shown["pk"] = json!(entry.record.summary.uid);
        shown["tenant_name"] = json!(tenant_name);
        shown["is_pec"] = json!(certified.contains(&entry.record.summary.lane.account));
        if let Some(message) = shown["message"].as_object_mut() {
            message.extend(asked.map(request::in_its_words).unwrap_or_default());
        }
        if include_history {
            shown["history"] = entry.record.events.iter().map(happened).collect();
        }
        messages.push(shown);
    }
    let answer = json!({"ok": true, "messages": messages, "next_cursor": page.next_cursor});
    let json = serde_json::to_vec(&answer).map_err(ApiError::internal)?;
    held.cover(json.len())?;
    let headers = [(header::CONTENT_TYPE, "application/json")];
    Ok((AlreadyCounted, headers, held.attach_to(json.into())).into_response())
}

/// The messages that are shown with their requests, and the sizes of those. A sensitive message, a request
/// that is too large for its row, and requests beyond the page's bound are left out; for a caller who may not
/// see bodies, all are.
fn shown_requests(messages: &[MessageWithStatus], may_see: bool) -> Vec<Option<(MessageUid, u64)>> {
    let mut left = REQUEST_BYTES_MAX;
    let mut shown = |entry: &MessageWithStatus| match entry.record.payload {
        BodyLocation::Inline(bytes) if may_see && !entry.record.summary.sensitive && bytes <= left => {
            left -= bytes;
            Some((entry.record.summary.uid, bytes))
        }
        _ => None,
    };
    messages.iter().map(&mut shown).collect()
}

/// The stored request of each message; `None` if it is not JSON or has too many values.
async fn asked_for(
    app: &AppState,
    tenant: &TenantId,
    shown: Vec<Option<(MessageUid, u64)>>,
) -> Result<Vec<Option<Map<String, Value>>>, ApiError> {
    let read = |shown: Option<(MessageUid, u64)>| async move {
        let Some((uid, _)) = shown else { return Ok::<Option<Bytes>, ApiError>(None) };
        Ok(match app.store.payload(tenant, uid).await? {
            Some(StoredBody::Inline(bytes)) => Some(bytes),
            Some(StoredBody::Blob(_)) | None => None,
        })
    };
    let mut stored = futures::stream::iter(shown).map(read).buffered(TOGETHER);
    let (mut requests, mut left) = (Vec::new(), PAGE_VALUES_MAX);
    while let Some(bytes) = stored.try_next().await? {
        let values_max = left.min(REQUEST_VALUES_MAX);
        let bounds = JsonBounds { values_max, text_bytes_max: REQUEST_BYTES_MAX as usize };
        // The template is not shown, so its variables are not built.
        let request =
            bytes.and_then(|bytes| Some(read_object_except(&bytes, Some("template"), bounds).ok()?.0));
        left -= request.as_ref().map_or(0, count_values).min(left);
        requests.push(request);
    }
    Ok(requests)
}

/// How many values an object contains, nested ones included. Its depth is bounded, because it was parsed with
/// a bound.
fn count_values(object: &Map<String, Value>) -> usize {
    fn within(value: &Value) -> usize {
        match value {
            Value::Array(list) => list.iter().map(|one| 1 + within(one)).sum(),
            Value::Object(object) => count_values(object),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }
    object.values().map(|value| 1 + within(value)).sum()
}

/// One event of a message's history. Its number is its position.
fn happened(event: &MessageEvent) -> Value {
    let data: Map<String, Value> =
        event.data.as_deref().and_then(|data| serde_json::from_str(data).ok()).unwrap_or_default();
    let said = ["message", "diagnostic", "reason", "error_text", "error"];
    let said = said.into_iter().find_map(|name| data.get(name)?.as_str().filter(|text| !text.is_empty()));
    json!({
        "event_id": event.seq,
        "event_type": event.kind,
        "event_ts": event.at.as_millis().div_euclid(1_000),
        "description": said,
        "metadata": data,
    })
}
