//! `/message-streams/{id}/suppressions`: suppressed addresses.
//!
//! `outbound` has the tenant's own list, which applies to all its mail. A stream has that list and its own
//! suppressions: adding adds to the stream's own, and deleting removes from both.

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{Uri, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt};
use postway_domain::{EmailAddress, MailStream, TenantId, Time, id::StreamId};
use postway_store::StoreError;
use postway_store::record::{
    DirectoryChange, ScopeFilter, ScopedSuppression, SuppressionReason, SuppressionRecord, SuppressionScope,
};
use serde_json::{Value, json};

use super::{error::PostmarkFault, query::PostmarkQuery, stream::batch_of};
use crate::{
    admin::erase::digest,
    auth::{Manager, Reader},
    http::{body, error::ApiError, pagination, request_id::RequestId},
    message::MessagePathId,
    state::{AppState, SharedState},
};

/// The most addresses of one call.
const ADDRESSES_MAX: usize = 1_000;
/// Suppressions per read, and how many are looked up at once.
const LOOK: u32 = 500;
const TOGETHER: usize = 16;

/// The requested suppressions.
#[derive(Clone)]
struct SuppressionFilter {
    address: Option<String>,
    reason: Option<String>,
    origin: Option<String>,
    since: Option<Time>,
    until: Option<Time>,
    now: Time,
}

impl SuppressionFilter {
    fn is(&self, one: &SuppressionRecord) -> bool {
        let (reason, origin) = words(one.reason);
        let is = |wanted: &Option<String>, word: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(word))
        };
        one.expires_at.is_none_or(|until| until > self.now)
            && is(&self.address, &one.address)
            && is(&self.reason, reason)
            && is(&self.origin, origin)
            && self.since.is_none_or(|since| one.created_at >= since)
            && self.until.is_none_or(|until| one.created_at < until)
    }
}

/// The reason and the origin of a suppression, in Postmark's terms.
fn words(reason: SuppressionReason) -> (&'static str, &'static str) {
    match reason {
        SuppressionReason::HardBounce => ("HardBounce", "Recipient"),
        SuppressionReason::Complaint => ("SpamComplaint", "Recipient"),
        SuppressionReason::Manual => ("ManualSuppression", "Customer"),
        SuppressionReason::Unsubscribe => ("ManualSuppression", "Recipient"),
    }
}

fn shown(one: &SuppressionRecord) -> Value {
    let (reason, origin) = words(one.reason);
    json!({"EmailAddress": one.address, "SuppressionReason": reason, "Origin": origin, "CreatedAt": one.created_at})
}

/// The complete list, streamed.
pub(super) async fn dump(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
    uri: Uri,
) -> Result<Response, ApiError> {
    let stream = stream_of(&id)?;
    let asked = PostmarkQuery::from_uri(&uri)?;
    let wanted = SuppressionFilter {
        address: asked.text("emailaddress")?.map(str::to_lowercase),
        reason: asked.text("suppressionreason")?.map(str::to_owned),
        origin: asked.text("origin")?.map(str::to_owned),
        since: asked.since()?,
        until: asked.until()?,
        now: app.clock.now(),
    };
    let tenant = caller.tenant.clone();
    let body = match &wanted.address {
        Some(address) => {
            let listed = app.store.suppression(&tenant, address).await?;
            let own = match &stream {
                Some(stream) => app.store.scoped_suppression(&scope(&tenant, stream, address)).await?,
                None => None,
            };
            let found = listed.into_iter().chain(own.map(|one| as_listed(one, &tenant)));
            let found: Vec<SuppressionRecord> = found.filter(|one| wanted.is(one)).take(1).collect();
            Body::from(json!({"Suppressions": found.iter().map(shown).collect::<Vec<_>>()}).to_string())
        }
        None => {
            let dump = SuppressionDump { tenant, stream, wanted };
            let part = move |position: DumpPosition| part(app.clone(), dump.clone(), position);
            pagination::streamed(DumpPosition::default(), part).await?
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// A list to dump: its tenant, its stream and its filter.
#[derive(Clone)]
struct SuppressionDump {
    tenant: TenantId,
    stream: Option<StreamId>,
    wanted: SuppressionFilter,
}

/// Where to continue.
#[derive(Default)]
struct DumpPosition {
    /// Whether the tenant's list is written, and the stream's own follows.
    is_own: bool,
    after: Option<String>,
    /// Whether anything was written.
    has_some: bool,
    has_begun: bool,
}

/// The next part of the answer, and where to continue.
async fn part(
    app: SharedState,
    dump: SuppressionDump,
    position: DumpPosition,
) -> Result<(Vec<u8>, Option<DumpPosition>), ApiError> {
    let DumpPosition { is_own, after, mut has_some, has_begun } = position;
    let mut text = String::new();
    if !has_begun {
        text.push_str("{\"Suppressions\":[");
    }
    let SuppressionDump { tenant, stream, wanted } = &dump;
    let found: Vec<SuppressionRecord> = match (is_own, stream) {
        (true, Some(stream)) => {
            let filter = ScopeFilter { tenant: Some(tenant.clone()), stream: Some(stream.clone()) };
            let after = after.map(|after| scope(tenant, stream, &after));
            let own = app.store.scoped_suppressions(&filter, after.as_ref(), LOOK).await?;
            own.into_iter().map(|one| as_listed(one, tenant)).collect()
        }
        _ => app.store.suppressions(tenant, after.as_deref(), LOOK).await?,
    };
    for one in found.iter().filter(|one| wanted.is(one)) {
        if std::mem::replace(&mut has_some, true) {
            text.push(',');
        }
        text.push_str(&shown(one).to_string());
    }
    let last = found.last().filter(|_| found.len() == LOOK as usize).map(|last| last.address.clone());
    let next = match last {
        Some(after) => Some(DumpPosition { is_own, after: Some(after), has_some, has_begun: true }),
        None if !is_own && stream.is_some() => {
            Some(DumpPosition { is_own: true, after: None, has_some, has_begun: true })
        }
        None => None,
    };
    if next.is_none() {
        text.push_str("]}");
    }
    Ok((text.into_bytes(), next))
}

/// The stream with its own suppressions; `None` for `outbound`.
fn stream_of(id: &str) -> Result<Option<StreamId>, ApiError> {
    Ok(batch_of(id)?.as_ref().and_then(MailStream::of_batch))
}

fn scope(tenant: &TenantId, stream: &StreamId, address: &str) -> SuppressionScope {
    SuppressionScope {
        tenant: Some(tenant.clone()),
        pattern: address.to_owned(),
        stream: Some(stream.clone()),
    }
}

/// A suppression of a stream in the form of the tenant's list.
fn as_listed(one: ScopedSuppression, tenant: &TenantId) -> SuppressionRecord {
    SuppressionRecord {
        tenant: tenant.clone(),
        address: one.scope.pattern,
        reason: one.reason,
        note: one.note,
        created_at: one.created_at,
        expires_at: one.expires_at,
    }
}

/// The addresses of a body, each with its stored form or its fault.
async fn addresses(request: Request) -> Result<Vec<(String, Result<String, String>)>, ApiError> {
    let body = body::json_object(request).await?;
    let list = body.get("Suppressions").and_then(Value::as_array).filter(|list| list.len() <= ADDRESSES_MAX);
    let list = list.ok_or_else(|| {
        PostmarkFault::Shape
            .error("Suppressions", format!("must be a list of at most {ADDRESSES_MAX} entries"))
    })?;
    let read = |entry: &Value| {
        let given = entry.get("EmailAddress").and_then(Value::as_str).unwrap_or_default();
        let address = given.trim().parse::<EmailAddress>().map_err(|error| error.to_string());
        let shown = given.chars().take(320).collect();
        (shown, address.map(|address| address.as_str().to_lowercase()))
    };
    Ok(list.iter().map(read).collect())
}

fn answer(addresses: Vec<(String, Result<String, String>)>, done: &str) -> Json<Value> {
    let statuses: Vec<Value> = addresses
        .into_iter()
        .map(|(given, address)| match address {
            Ok(_) => json!({"EmailAddress": given, "Status": done, "Message": null}),
            Err(problem) => json!({"EmailAddress": given, "Status": "Failed", "Message": problem}),
        })
        .collect();
    Json(json!({"Suppressions": statuses}))
}

/// Suppresses them manually. An existing suppression stays: a bounce is stronger than a manual entry.
pub(super) async fn create(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let stream = stream_of(&id)?;
    let addresses = addresses(request).await?;
    let (tenant, now) = (&caller.tenant, app.clock.now());
    let wanted: Vec<String> = addresses.iter().filter_map(|(_, address)| address.clone().ok()).collect();
    let held: Vec<Option<SuppressionRecord>> = futures::stream::iter(wanted.clone())
        .map(|address| {
            let (app, stream) = (&app, stream.as_ref());
            async move {
                let listed = app.store.suppression(tenant, &address).await?;
                match (listed, stream) {
                    (None, Some(stream)) => {
                        let own = app.store.scoped_suppression(&scope(tenant, stream, &address)).await?;
                        Ok(own.map(|one| as_listed(one, tenant)))
                    }
                    (listed, _) => Ok::<_, StoreError>(listed),
                }
            }
        })
        .buffered(TOGETHER)
        .try_collect()
        .await?;
    let holds = |held: Option<SuppressionRecord>| {
        held.is_some_and(|one| one.expires_at.is_none_or(|until| until > now))
    };
    let is_new = wanted.into_iter().zip(held).filter_map(|(address, held)| (!holds(held)).then_some(address));
    let list: Vec<SuppressionRecord> = is_new
        .map(|address| SuppressionRecord {
            tenant: tenant.clone(),
            address,
            reason: SuppressionReason::Manual,
            note: None,
            created_at: now,
            expires_at: None,
        })
        .collect();
    if !list.is_empty() {
        let target = target(&app, tenant, list.iter().map(|one| one.address.as_str()));
        let entry = app.audit(&caller.actor, Some(tenant), "suppression.create", target, &request_id, None);
        let change = match &stream {
            Some(stream) => {
                DirectoryChange::SuppressScoped(list.into_iter().map(|one| own(one, stream)).collect())
            }
            None => DirectoryChange::Suppress(list),
        };
        app.store.change(change, Some(entry)).await?;
    }
    Ok(answer(addresses, "Suppressed"))
}

/// Removes suppressions. If an address is not suppressed, that is the requested result.
pub(super) async fn delete(
    State(app): State<SharedState>,
    caller: Manager,
    request_id: RequestId,
    MessagePathId(id): MessagePathId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let stream = stream_of(&id)?;
    let addresses = addresses(request).await?;
    let list: Vec<String> = addresses.iter().filter_map(|(_, address)| address.clone().ok()).collect();
    let now = app.clock.now();
    if !list.is_empty() {
        let target = target(&app, &caller.tenant, list.iter().map(String::as_str));
        let tenant = &caller.tenant;
        let action = "suppression.delete";
        let entry = || app.audit(&caller.actor, Some(tenant), action, target.clone(), &request_id, None);
        if let Some(stream) = &stream {
            let scopes = list.iter().map(|address| scope(tenant, stream, address)).collect();
            app.store.change(DirectoryChange::UnsuppressScoped(scopes, now), Some(entry())).await?;
        }
        app.store.change(DirectoryChange::Unsuppress(tenant.clone(), list, now), Some(entry())).await?;
    }
    Ok(answer(addresses, "Deleted"))
}

/// The same suppression for one stream.
fn own(one: SuppressionRecord, stream: &StreamId) -> ScopedSuppression {
    ScopedSuppression {
        scope: scope(&one.tenant, stream, &one.address),
        reason: one.reason,
        note: one.note,
        created_at: one.created_at,
        expires_at: one.expires_at,
    }
}

/// The names of addresses in the audit log: one by its digest, because the log outlives erasure, and many by
/// their number.
fn target<'a>(
    app: &AppState,
    tenant: &TenantId,
    mut addresses: impl ExactSizeIterator<Item = &'a str>,
) -> String {
    match (addresses.len(), addresses.next()) {
        (1, Some(address)) => digest(&app.secret_key, tenant, address),
        (count, _) => format!("{count} addresses"),
    }
}
