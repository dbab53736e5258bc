//! `GET /messages`: messages in its words, newest first, page by page.

use std::collections::HashSet;

use axum::{Json, extract::State, http::request::Parts};
use futures::{StreamExt, TryStreamExt};
use postway_domain::{AccountId, Event, Scope, TenantId, id::BatchCode};
use postway_store::record::{Body, Filter, Kept};
use serde_json::{Map, Value, json};

use super::{caller, request, word};
use crate::{
    compat::read::{self, ACTIVE, Whole},
    error::ApiError,
    query::{Parameters, flag},
    state::{App, Shared},
};

/// Requests read at once for a page.
const TOGETHER: usize = 16;
/// The most bytes of requests that one page shows.
const REQUEST_BYTES_MAX: u64 = 8 * 1024 * 1024;

pub(super) async fn list(State(app): State<Shared>, parts: Parts) -> Result<Json<Value>, ApiError> {
    let mut query = Parameters::of(&parts.uri)?;
    let named = query.take("tenant_id");
    let active_only = query.parse("active_only", flag).unwrap_or(false);
    let include_history = query.parse("include_history", flag).unwrap_or(false);
    let filter = Filter {
        batch: query.parse("batch_code", str::parse::<BatchCode>).map(|code| code.to_string()),
        account: query.parse("account_id", str::parse::<AccountId>),
        ..Filter::default()
    };
    let paging = read::long_page(&mut query);
    query.finish()?;
    let tenant = caller(&app, &parts, Scope::Read, named.as_deref()).await?.tenant;
    let statuses = if active_only { ACTIVE } else { &[] };
    let page = read::page(&app, &tenant, filter, statuses, paging).await?;
    let tenant_name = app.store.tenant(&tenant).await?.map(|tenant| tenant.name);
    let accounts = app.store.accounts(Some(&tenant)).await?.into_iter();
    let certified: HashSet<AccountId> =
        accounts.filter(|account| account.settings.pec).map(|account| account.id).collect();
    let now = app.clock.now();
    let mut messages = Vec::with_capacity(page.messages.len());
    for (whole, asked) in page.messages.iter().zip(asked_for(&app, &tenant, &page.messages).await?) {
        let mut shown = word::view(whole, now);
        shown["pk"] = json!(whole.record.summary.uid);
        shown["tenant_name"] = json!(tenant_name);
        shown["is_pec"] = json!(certified.contains(&whole.record.summary.lane.account));
        if let Some(message) = shown["message"].as_object_mut() {
            message.extend(asked.map(request::in_its_words).unwrap_or_default());
        }
        if include_history {
            shown["history"] = whole.record.events.iter().map(happened).collect();
        }
        messages.push(shown);
    }
    Ok(Json(json!({"ok": true, "messages": messages, "next_cursor": page.next_cursor})))
}

/// The request that brought each message, as it is kept. There is none for a sensitive message, for one whose request is
/// no JSON or too large for its row, and where the page has shown enough.
async fn asked_for(
    app: &App,
    tenant: &TenantId,
    messages: &[Whole],
) -> Result<Vec<Option<Map<String, Value>>>, ApiError> {
    let mut left = REQUEST_BYTES_MAX;
    let mut is_shown = |whole: &Whole| match whole.record.payload {
        Kept::Inline(bytes) if !whole.record.summary.sensitive && bytes <= left => {
            left -= bytes;
            true
        }
        _ => false,
    };
    let uids: Vec<_> =
        messages.iter().map(|whole| is_shown(whole).then_some(whole.record.summary.uid)).collect();
    let read = |uid| async move {
        let Some(uid) = uid else { return Ok(None) };
        Ok(match app.store.payload(tenant, uid).await? {
            Some(Body::Inline(bytes)) => serde_json::from_slice(&bytes).ok(),
            Some(Body::Blob(_)) | None => None,
        })
    };
    futures::stream::iter(uids).map(read).buffered(TOGETHER).try_collect().await
}

/// One event of a message's history. Its number is its place in it.
fn happened(event: &Event) -> Value {
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
