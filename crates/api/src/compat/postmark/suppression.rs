//! `/message-streams/{id}/suppressions`: who gets no mail.
//!
//! The list is the tenant's, for all its streams: whichever stream is named, it is the same.

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    http::{Uri, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt};
use postway_domain::{EmailAddress, TenantId, Time};
use postway_store::record::{DirectoryChange, Suppression, SuppressionReason};
use serde_json::{Value, json};

use super::{error::Fault, query::PostmarkQuery, stream::batch_of};
use crate::{
    auth::{Manager, Reader},
    body,
    erase::digest,
    error::ApiError,
    message::GivenId,
    page,
    request_id::RequestId,
    state::{App, Shared},
};

/// The most addresses of one call.
const ADDRESSES_MAX: usize = 1_000;
/// Suppressions that are read for a part of the answer, and that are looked up at once.
const LOOK: u32 = 500;
const TOGETHER: usize = 16;

/// Which of them are asked for.
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
    fn is(&self, one: &Suppression) -> bool {
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

/// Why somebody gets no mail, and who wanted it so.
fn words(reason: SuppressionReason) -> (&'static str, &'static str) {
    match reason {
        SuppressionReason::HardBounce => ("HardBounce", "Recipient"),
        SuppressionReason::Complaint => ("SpamComplaint", "Recipient"),
        SuppressionReason::Manual => ("ManualSuppression", "Customer"),
    }
}

fn shown(one: &Suppression) -> Value {
    let (reason, origin) = words(one.reason);
    json!({"EmailAddress": one.address, "SuppressionReason": reason, "Origin": origin, "CreatedAt": one.created_at})
}

/// All of them, written as they are read.
pub(super) async fn dump(
    State(app): State<Shared>,
    caller: Reader,
    GivenId(id): GivenId,
    uri: Uri,
) -> Result<Response, ApiError> {
    batch_of(&id)?;
    let asked = PostmarkQuery::of(&uri)?;
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
            let found = app.store.suppression(&tenant, address).await?.filter(|one| wanted.is(one));
            Body::from(json!({"Suppressions": found.iter().map(shown).collect::<Vec<_>>()}).to_string())
        }
        None => {
            let part = move |(after, is_first): (Option<String>, bool)| {
                part(app.clone(), tenant.clone(), wanted.clone(), after, is_first)
            };
            page::streamed((None, true), part).await?
        }
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

type Position = (Option<String>, bool);

/// The next part of the answer, and where to go on: behind which address, and whether none was written yet.
async fn part(
    app: Shared,
    tenant: TenantId,
    wanted: SuppressionFilter,
    after: Option<String>,
    mut is_first: bool,
) -> Result<(Vec<u8>, Option<Position>), ApiError> {
    let mut text = String::new();
    if after.is_none() {
        text.push_str("{\"Suppressions\":[");
    }
    let found = app.store.suppressions(&tenant, after.as_deref(), LOOK).await?;
    for one in found.iter().filter(|one| wanted.is(one)) {
        if !std::mem::take(&mut is_first) {
            text.push(',');
        }
        text.push_str(&shown(one).to_string());
    }
    let next = found.last().filter(|_| found.len() == LOOK as usize).map(|last| last.address.clone());
    if next.is_none() {
        text.push_str("]}");
    }
    Ok((text.into_bytes(), next.map(|next| (Some(next), is_first))))
}

/// The addresses of a body as they were given, each with the form that is stored or why it is none.
async fn addresses(request: Request) -> Result<Vec<(String, Result<String, String>)>, ApiError> {
    let body = body::json_object(request).await?;
    let list = body.get("Suppressions").and_then(Value::as_array).filter(|list| list.len() <= ADDRESSES_MAX);
    let list = list.ok_or_else(|| {
        Fault::Shape.error("Suppressions", format!("must be a list of at most {ADDRESSES_MAX} entries"))
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

/// Suppresses them by hand. One that is suppressed already stays as it is: a bounce says more than a wish.
pub(super) async fn create(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    batch_of(&id)?;
    let addresses = addresses(request).await?;
    let (tenant, now) = (&caller.tenant, app.clock.now());
    let wanted: Vec<String> = addresses.iter().filter_map(|(_, address)| address.clone().ok()).collect();
    let held: Vec<Option<Suppression>> = futures::stream::iter(wanted.clone())
        .map(|address| {
            let app = &app;
            async move { app.store.suppression(tenant, &address).await }
        })
        .buffered(TOGETHER)
        .try_collect()
        .await?;
    let holds =
        |held: Option<Suppression>| held.is_some_and(|one| one.expires_at.is_none_or(|until| until > now));
    let is_new = wanted.into_iter().zip(held).filter_map(|(address, held)| (!holds(held)).then_some(address));
    let list: Vec<Suppression> = is_new
        .map(|address| Suppression {
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
        app.store.change(DirectoryChange::Suppress(list), Some(entry)).await?;
    }
    Ok(answer(addresses, "Suppressed"))
}

/// Lets them have mail again. That one is not suppressed is what was asked for.
pub(super) async fn delete(
    State(app): State<Shared>,
    caller: Manager,
    request_id: RequestId,
    GivenId(id): GivenId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    batch_of(&id)?;
    let addresses = addresses(request).await?;
    let list: Vec<String> = addresses.iter().filter_map(|(_, address)| address.clone().ok()).collect();
    if !list.is_empty() {
        let target = target(&app, &caller.tenant, list.iter().map(String::as_str));
        let tenant = &caller.tenant;
        let entry = app.audit(&caller.actor, Some(tenant), "suppression.delete", target, &request_id, None);
        app.store.change(DirectoryChange::Unsuppress(tenant.clone(), list), Some(entry)).await?;
    }
    Ok(answer(addresses, "Deleted"))
}

/// As the audit log names addresses: one by its digest, since the log outlives what is erased, and many by their number.
fn target<'a>(app: &App, tenant: &TenantId, mut addresses: impl ExactSizeIterator<Item = &'a str>) -> String {
    match (addresses.len(), addresses.next()) {
        (1, Some(address)) => digest(&app.secret_key, tenant, address),
        (count, _) => format!("{count} addresses"),
    }
}
