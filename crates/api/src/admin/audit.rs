//! The audit log: who changed what, when, by which request. `GET /v1/audit` shows it.
//!
//! A management call builds its [`AuditEntry`] here and hands it to the store together with the change, so
//! that neither exists without the other. The detail is what the caller may see anyway; never a key, a
//! password or a token.

use std::sync::{Mutex, PoisonError};

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, Uri, header},
    response::{IntoResponse, Response},
};
use postway_domain::{TenantId, Time, id::AuditId};
use postway_store::{
    StoreError,
    record::{AuditEntry, DirectoryChange},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;

use crate::{
    auth::{Admin, CallerActor},
    http::{
        body,
        error::ApiError,
        pagination::{self, PageRequest},
        query::{QueryParameters, bounded_text},
        request_id::RequestId,
    },
    state::{AppState, SharedState},
};

/// Entries read at a time for an export.
const EXPORT_PAGE: u32 = 500;
/// The most entries that are examined for a page of those that an actor, an action or a target narrows.
const EXAMINED_MAX: usize = 5_000;
/// A clock that steps back by less than this keeps the order of entries.
const MS_BACK_MAX: u128 = 60_000;

/// Generates increasing ids, also within a millisecond: the log is read in their order.
#[derive(Default)]
pub(crate) struct AuditIdSource(Mutex<u128>);

impl AuditIdSource {
    fn next(&self, at: Time) -> AuditId {
        let fresh = u128::from_be_bytes(*AuditId::new(at, &mut rand::rng()).as_bytes());
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back must not disturb the order for long: an id follows the last one only if
        // they are about as old.
        let follows = fresh <= *last && (*last >> 80) - (fresh >> 80) < MS_BACK_MAX;
        *last = if follows { *last + 1 } else { fresh };
        AuditId::from_bytes(last.to_be_bytes())
    }
}

impl AppState {
    /// The record of a management call, to be stored with its change. `action` is like `account.create`;
    /// `detail` is a JSON object without secrets.
    pub(crate) fn audit(
        &self,
        actor: &CallerActor,
        tenant: Option<&TenantId>,
        action: &str,
        target: impl Into<String>,
        request_id: &RequestId,
        detail: Option<Value>,
    ) -> AuditEntry {
        let at = self.clock.now();
        // Where it came from, as the listener knows it: behind a trusted proxy, the client.
        let detail = match request_id.client() {
            None => detail,
            Some(client) => {
                let mut detail = detail.unwrap_or_else(|| json!({}));
                if let Value::Object(fields) = &mut detail {
                    fields.insert("client".to_owned(), json!(client.to_string()));
                }
                Some(detail)
            }
        };
        AuditEntry {
            id: self.audit_ids.next(at),
            at,
            actor: actor.to_string(),
            tenant: tenant.cloned(),
            action: action.to_owned(),
            target: target.into(),
            request_id: Some(request_id.as_str().to_owned()),
            detail: detail.map(|detail| detail.to_string()),
            salt: Some(rand::random()),
        }
    }
}

impl AppState {
    /// Writes the record of something that is not a directory change.
    pub(crate) async fn record(&self, entry: AuditEntry) -> Result<(), StoreError> {
        // An entry is written with a change. Removing expired rows is a change that may be made at any time.
        self.store.change(DirectoryChange::Forget(entry.at), Some(entry)).await.map(drop)
    }
}

/// A management call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditView {
    /// The entry's id.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// Who: `admin`, `user:` and a name, or `key:` and the id of a key.
    #[schema(example = "user:ada")]
    actor: String,
    /// The tenant concerned.
    tenant: Option<String>,
    /// What was done.
    #[schema(example = "tenant.create")]
    action: String,
    /// The resource concerned.
    target: String,
    /// The id of the request.
    request_id: Option<String>,
    /// Further data, and as `client` the address that the request came from; never a secret.
    #[schema(value_type = Option<Object>)]
    detail: Option<Box<RawValue>>,
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            at: entry.at,
            actor: entry.actor,
            tenant: entry.tenant.map(|tenant| tenant.to_string()),
            action: entry.action,
            target: entry.target,
            request_id: entry.request_id,
            detail: entry.detail.and_then(|text| RawValue::from_string(text).ok()),
        }
    }
}

/// A page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// The entries, newest first.
    data: Vec<AuditView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    next_cursor: Option<String>,
}

/// Read the audit log
///
/// For the admin key and admins of all tenants. Every call that changed a tenant, user, key, account, batch,
/// suppression, template, recipient, signing key, webhook, mailbox, rule or contact, or removed messages,
/// newest first. A page with `actor`, `action` or `target` examines some thousands of entries: as long as there is
/// a `next_cursor`, continue with it, even after a page with fewer entries than requested, or none. With `format=jsonl`, or `Accept: application/x-ndjson`, the complete log is returned as JSON
/// lines.
#[utoipa::path(
    get,
    path = "/v1/audit",
    operation_id = "listAudit",
    tag = "operations",
    params(
        ("tenant" = Option<String>, Query, description = "Only changes to this tenant"),
        ("actor" = Option<String>, Query, description = "Only what this one did: `admin`, `user:ada`, `key:…`"),
        ("action" = Option<String>, Query, description = "Only these actions: one, such as `account.change`, or all that begin so, such as `account.`"),
        ("target" = Option<String>, Query, description = "Only changes of this resource"),
        ("format" = Option<String>, Query, description = "`json` (default), or `jsonl` for the complete log, one entry per line"),
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((
        status = 200,
        description = "One page, or all of it as lines",
        content((AuditList = "application/json"), (String = "application/x-ndjson")),
    ))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    _: Admin,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let tenant = query.parse("tenant", str::parse::<TenantId>);
    let wanted = AuditFilter::take(&mut query);
    let lines = query.parse("format", |text| match text {
        "json" => Ok(false),
        "jsonl" => Ok(true),
        _ => Err("must be json or jsonl"),
    });
    if lines.unwrap_or_else(|| wants_lines(&headers)) {
        query.finish()?;
        return export(app, tenant).await;
    }
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let before = cursor.as_deref().map(pagination::read_cursor::<AuditId>).transpose()?;
    let (found, next) = wanted.page(&app, tenant.as_ref(), before, limit).await?;
    let next_cursor = next.map(|last| pagination::write_cursor(&last));
    Ok(Json(AuditList { data: found.into_iter().map(AuditView::from).collect(), next_cursor })
        .into_response())
}

/// Which entries are wanted, besides those of a tenant.
#[derive(Debug, Default)]
struct AuditFilter {
    actor: Option<String>,
    /// An action, or how actions begin.
    action: Option<String>,
    target: Option<String>,
}

impl AuditFilter {
    fn take(query: &mut QueryParameters) -> Self {
        let mut text = |name| query.parse(name, bounded_text);
        Self { actor: text("actor"), action: text("action"), target: text("target") }
    }

    fn takes(&self, entry: &AuditEntry) -> bool {
        let is_same =
            |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let is_action = |wanted: &String| match wanted.ends_with('.') {
            true => entry.action.starts_with(wanted),
            false => entry.action == *wanted,
        };
        is_same(&self.actor, &entry.actor)
            && is_same(&self.target, &entry.target)
            && self.action.as_ref().is_none_or(is_action)
    }

    /// A page of wanted entries, and the entry after which the next begins. It examines as many entries as
    /// [`EXAMINED_MAX`] says.
    async fn page(
        &self,
        app: &AppState,
        tenant: Option<&TenantId>,
        mut before: Option<AuditId>,
        limit: u32,
    ) -> Result<(Vec<AuditEntry>, Option<AuditId>), StoreError> {
        let is_narrow = self.actor.is_some() || self.action.is_some() || self.target.is_some();
        let at_once = if is_narrow { EXPORT_PAGE } else { limit };
        let (mut found, mut examined) = (Vec::new(), 0);
        loop {
            // One more than is examined shows whether there is a next page.
            let mut entries = app.store.audit(tenant, before, at_once + 1).await?;
            let more = entries.len() > at_once as usize;
            entries.truncate(at_once as usize);
            examined += entries.len();
            let count = entries.len();
            for (place, entry) in entries.into_iter().enumerate() {
                before = Some(entry.id);
                if self.takes(&entry) {
                    found.push(entry);
                }
                if found.len() == limit as usize {
                    return Ok((found, before.filter(|_| more || place + 1 < count)));
                }
            }
            if !more || examined >= EXAMINED_MAX {
                return Ok((found, before.filter(|_| more)));
            }
        }
    }
}

pub(super) fn wants_lines(headers: &HeaderMap) -> bool {
    let accepts =
        headers.get_all(header::ACCEPT).iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
    accepts.map(body::essence).any(body::is_json_lines)
}

async fn export(app: SharedState, tenant: Option<TenantId>) -> Result<Response, ApiError> {
    let body = pagination::streamed(None, move |before: Option<AuditId>| {
        let (app, tenant) = (app.clone(), tenant.clone());
        async move {
            let found = app.store.audit(tenant.as_ref(), before, EXPORT_PAGE).await?;
            let next = found.last().filter(|_| found.len() == EXPORT_PAGE as usize).map(|last| Some(last.id));
            let mut lines = Vec::new();
            for entry in found {
                serde_json::to_writer(&mut lines, &AuditView::from(entry)).map_err(ApiError::internal)?;
                lines.push(b'\n');
            }
            Ok((lines, next))
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body.await?).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_entries_have_greater_ids() {
        let ids = AuditIdSource::default();
        let times = [1_000, 1_000, 1_000, 900, 1_001];
        let given: Vec<AuditId> = times.map(|ms| ids.next(Time::from_millis(ms))).to_vec();
        assert!(given.is_sorted() && given.windows(2).all(|two| two[0] != two[1]), "{given:?}");
        assert!(ids.next(Time::from_millis(500_000)) > given[4]);
        assert!(ids.next(Time::from_millis(1_000)) < given[4].max(ids.next(Time::from_millis(500_000))));
    }
}
