//! `GET /emails…`: mails in its words. Those that are stuck come in two forms: as a page, and as its users know them, bare.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Uri},
};
use postway_domain::{Status, TenantId, message::Wait};
use postway_store::record::{Filter, MessageSummary};
use serde_json::{Value, json};

use super::status;
use crate::{
    auth::Reader,
    compat::lookup::{self, ACTIVE, Page, Whole},
    http::{error::ApiError, pagination::Paging, query::Parameters},
    message::GivenId,
    state::{App, Shared},
};

/// How long a mail may stand where it is before it counts as stale, where nothing is said.
pub(super) const STALE_S: u64 = 900;
/// Where to go on after a bare list.
const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// `GET /emails/{id}`: one mail with its history.
pub(super) async fn show(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
) -> Result<Json<Value>, ApiError> {
    let whole = Whole::find(&app, &caller.tenant, &id).await?;
    let history = status::history(&whole.record.events, whole.record.summary.state).map(|(word, event)| {
        let data: Option<Value> = event.data.as_deref().and_then(|data| serde_json::from_str(data).ok());
        let said = |name: &&str| data.as_ref()?.get(name).filter(|value| !value.is_null()).cloned();
        let reason = ["message", "reason", "code"].iter().find_map(said);
        json!({"status": word, "reason": reason, "created_at": event.at})
    });
    let mut answer = view(&whole);
    answer["history"] = history.collect();
    Ok(Json(answer))
}

/// `GET /emails?status=`: newest first. Of one page, those whose callback or preparation stands otherwise are left out, so it may be
/// short; `next_cursor` says whether there is more.
pub(super) async fn list(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    let mut query = Parameters::of(&uri)?;
    let wanted = query.parse("status", |text| match status::states(text) {
        Some(states) => Ok((text.to_owned(), states)),
        None => {
            Err("is no status: use one of those that GET /emails shows, such as READY or SENT-ACKNOWLEDGED")
        }
    });
    let paging = Paging::take(&mut query);
    query.finish()?;
    let (wanted, states) = wanted.unzip();
    let states = states.unwrap_or_default();
    let page = lookup::page(&app, &caller.tenant, Filter::default(), &states, paging).await?;
    Ok(answer(page, |whole| wanted.as_ref().is_none_or(|wanted: &String| wanted == of(whole))))
}

/// `GET /emails/stale?older_than_seconds=`: those that have not ended and have not moved for so long. Those that wait for
/// their time are left out, so a page may be short.
pub(super) async fn stale(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    Ok(answer(stale_page(&app, &caller.tenant, &uri, Paging::take).await?, |_| true))
}

/// `GET /emails/invalid`: those that were accepted and then failed their checks.
pub(super) async fn invalid(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<Value>, ApiError> {
    Ok(answer(invalid_page(&app, &caller.tenant, &uri, Paging::take).await?, |_| true))
}

/// `GET /stale-emails`: the same as a bare list.
pub(super) async fn bare_stale(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<(HeaderMap, Json<Vec<Value>>), ApiError> {
    bare(&stale_page(&app, &caller.tenant, &uri, lookup::long_page).await?)
}

/// `GET /invalid-emails`: the same as a bare list.
pub(super) async fn bare_invalid(
    State(app): State<Shared>,
    caller: Reader,
    uri: Uri,
) -> Result<(HeaderMap, Json<Vec<Value>>), ApiError> {
    bare(&invalid_page(&app, &caller.tenant, &uri, lookup::long_page).await?)
}

async fn stale_page(
    app: &App,
    tenant: &TenantId,
    uri: &Uri,
    paging: fn(&mut Parameters) -> Paging,
) -> Result<Page, ApiError> {
    let mut query = Parameters::of(uri)?;
    let older_than = query.parse("older_than_seconds", str::parse).unwrap_or(STALE_S);
    let paging = paging(&mut query);
    query.finish()?;
    find_stale(app, tenant, older_than, paging).await
}

async fn invalid_page(
    app: &App,
    tenant: &TenantId,
    uri: &Uri,
    paging: fn(&mut Parameters) -> Paging,
) -> Result<Page, ApiError> {
    let mut query = Parameters::of(uri)?;
    let paging = paging(&mut query);
    query.finish()?;
    lookup::page(app, tenant, Filter::default(), &[Status::Invalid], paging).await
}

/// A page of what has not ended and has not moved for so many seconds, though its time has come: what waits for a time of
/// its own, given by its sender or by a retry, is not stuck.
pub(super) async fn find_stale(
    app: &App,
    tenant: &TenantId,
    older_than_s: u64,
    paging: Paging,
) -> Result<Page, ApiError> {
    let moved_before = app.clock.now().minus(Duration::from_secs(older_than_s));
    // What was accepted later has moved later.
    let filter = Filter { until: Some(moved_before), ..Filter::default() };
    let is_stale = |message: &MessageSummary| {
        let could_move_at = message.due_at.map_or(message.updated_at, |due| due.max(message.updated_at));
        // When a file is fetched again is known to the preparer alone, and nobody can hurry it.
        message.state.wait() != Some(Wait::Fetch) && could_move_at < moved_before
    };
    lookup::page_where(app, tenant, filter, ACTIVE, paging, is_stale).await
}

fn answer(page: Page, is_wanted: impl Fn(&Whole) -> bool) -> Json<Value> {
    let data: Vec<Value> = page.messages.iter().filter(|whole| is_wanted(whole)).map(view).collect();
    Json(json!({"data": data, "next_cursor": page.next_cursor}))
}

/// A page as a list alone; where to go on is in a header.
fn bare(page: &Page) -> Result<(HeaderMap, Json<Vec<Value>>), ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(cursor) = &page.next_cursor {
        headers.insert(NEXT_CURSOR, HeaderValue::from_str(cursor).map_err(ApiError::internal)?);
    }
    Ok((headers, Json(page.messages.iter().map(view).collect())))
}

/// A mail's state in its words.
pub(super) fn of(whole: &Whole) -> &'static str {
    status::word(whole)
}

/// A mail in its words.
fn view(whole: &Whole) -> Value {
    let record = &whole.record;
    let (version, updated_at) = status::changed(record);
    json!({
        "id": whole.id(),
        "status": of(whole),
        "eml_file_path": status::file(&record.raw),
        "payload_file_path": status::file(&record.payload),
        "reason": whole.reason(),
        "version": version,
        "created_at": record.summary.created_at,
        "updated_at": updated_at,
    })
}
