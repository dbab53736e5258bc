//! The other commands: suspending, activating, removing, and status.

use std::time::Duration;

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, Uri, request::Parts},
};
use futures::StreamExt;
use postway_domain::{KeyScope, MessageStatus, Subscriber, TenantId, Time, id::BatchCode};
use postway_store::record::{
    DueSubscriber, MessageFilter, MessageSummary, SuspensionRecord, SuspensionScope,
};
use serde_json::{Map, Value, json};

use super::{caller, named_caller, reason};
use crate::{
    admin::{cleanup, tenant::pause},
    auth::Admin,
    http::{
        body,
        error::{ApiError, FieldError},
        query::QueryParameters,
        request_id::RequestId,
    },
    message::operate::transition::{OperatorAction, operate},
    outgoing::batch,
    state::{AppState, SharedState},
};

/// The most messages of one deletion.
const IDS_MAX: usize = 1_000;
/// How many are cancelled at once; together they share a commit.
const TOGETHER: usize = 64;
/// Blocked messages that a status examines, and how many of them at once.
const HELD_MAX: usize = 10_000;
const HELD_AT_ONCE: u32 = 500;
/// Reports that are made due in one write, and by one call.
const HASTENED_AT_ONCE: u32 = 1_000;
const HASTENED_MAX: u32 = 100_000;
/// The statuses of messages that wait.
const PENDING: &[MessageStatus] = &[MessageStatus::Accepted, MessageStatus::Validating, MessageStatus::Ready];

/// `POST /commands/suspend?tenant_id=&batch_code=`: suspends a batch, or without one the complete tenant.
pub(super) async fn suspend(
    State(app): State<SharedState>,
    request_id: RequestId,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    pause(&app, &request_id, &parts, true).await
}

/// `POST /commands/activate?tenant_id=&batch_code=`.
pub(super) async fn activate(
    State(app): State<SharedState>,
    request_id: RequestId,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    pause(&app, &request_id, &parts, false).await
}

async fn pause(
    app: &AppState,
    request_id: &RequestId,
    parts: &Parts,
    hold: bool,
) -> Result<Json<Value>, ApiError> {
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let named = query.take("tenant_id");
    let code = query.parse("batch_code", str::parse::<BatchCode>);
    query.finish()?;
    let caller = named_caller(app, parts, KeyScope::Manage, named.as_deref()).await?;
    let tenant = caller.tenant.clone();
    match &code {
        Some(code) if hold => batch::suspend_batch(app, &caller, request_id, code).await?,
        Some(code) => batch::activate_batch(app, &caller, request_id, code).await?,
        // A tenant that the operator suspended must not activate itself.
        None if !caller.actor.is_admin() => {
            return Err(ApiError::forbidden("a entry tenant needs the admin token; name a batch_code"));
        }
        None => {
            let admin = Admin { actor: caller.actor };
            let tenant = tenant.clone();
            match hold {
                true => drop(pause::suspend_tenant(app, &admin, request_id, tenant).await?),
                false => drop(pause::activate_tenant(app, &admin, request_id, tenant).await?),
            }
        }
    }
    let pending = match &code {
        Some(code) => batch::waiting(app, &tenant, code).await?,
        None => {
            let by_status = app.store.stats(Some(&tenant), app.clock.now()).await?.by_status;
            let waits = PENDING.iter().chain(&[MessageStatus::Scheduled]);
            waits.filter_map(|status| by_status.get(status)).sum()
        }
    };
    Ok(Json(json!({
        "ok": true,
        "tenant_id": tenant,
        "batch_code": code.map(|code| code.to_string()),
        "suspended_batches": suspended(app, &tenant).await?,
        "pending_messages": pending,
    })))
}

/// The codes of a tenant's suspended batches; `*` if the complete tenant is suspended.
async fn suspended(app: &AppState, tenant: &TenantId) -> Result<Vec<String>, ApiError> {
    let held = app.store.suspensions(tenant).await?.into_iter();
    let code = |scope| match scope {
        SuspensionScope::Tenant => Some("*".to_owned()),
        SuspensionScope::Batch(code) => Some(code.to_string()),
        SuspensionScope::Account(_) => None,
    };
    Ok(held.filter_map(|one| code(one.scope)).collect())
}

/// `POST /commands/cleanup-messages?tenant_id=&older_than_seconds=`.
pub(super) async fn clean_up(
    State(app): State<SharedState>,
    request_id: RequestId,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let named = query.take("tenant_id");
    let older_than = query.parse("older_than_seconds", str::parse).map(Duration::from_secs);
    query.finish()?;
    let caller = named_caller(&app, &parts, KeyScope::Manage, named.as_deref()).await?;
    let done = cleanup::remove(&app, &caller, &request_id, older_than).await?;
    Ok(Json(json!({"ok": true, "removed": done.deleted, "more": done.more})))
}

/// `POST /commands/run-now`: makes all reports due that wait for their next try. Mail needs no such command:
/// it is sent the moment it is due, and deferred mail waits for its time, there as here.
pub(super) async fn run_now(State(app): State<SharedState>, parts: Parts) -> Result<Json<Value>, ApiError> {
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let named = query.take("tenant_id");
    query.finish()?;
    let tenant = caller(&app, &parts, KeyScope::Send, named.as_deref()).await?.tenant;
    let subscriber = Subscriber::CLIENT.parse().map_err(ApiError::internal)?;
    let who = DueSubscriber { tenant, subscriber };
    let (now, mut reports) = (app.clock.now(), 0);
    loop {
        let hastened = app.store.hasten_notifications(&who, now, HASTENED_AT_ONCE).await?;
        reports += hastened;
        if hastened < HASTENED_AT_ONCE || reports >= HASTENED_MAX {
            return Ok(Json(json!({"ok": true, "reports": reports})));
        }
    }
}

/// `POST /commands/delete-messages {"ids":[…]}`: cancels waiting messages. Messages that have ended stay
/// until cleanup.
pub(super) async fn delete(
    State(app): State<SharedState>,
    request_id: RequestId,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let (parts, body) = request.into_parts();
    let mut query = QueryParameters::from_uri(&parts.uri)?;
    let in_query = query.take("tenant_id");
    query.finish()?;
    caller(&app, &parts, KeyScope::Send, in_query.as_deref()).await?;
    let (ids, in_body) = read_ids(body::json_of(&parts, body).await?)?;
    let named = in_query.or(in_body);
    let caller = caller(&app, &parts, KeyScope::Send, named.as_deref()).await?;
    let (app, caller, request_id) = (&app, &caller, &request_id);
    let each = futures::stream::iter(ids).map(|id| async move {
        let outcome = operate(app, caller, &id, OperatorAction::Cancel, request_id).await;
        (id, outcome)
    });
    let outcomes: Vec<_> = each.buffered(TOGETHER).collect().await;
    let (mut removed, mut not_found, mut kept) = (0, Vec::new(), Vec::new());
    for (id, outcome) in outcomes {
        match outcome {
            Ok(_) => removed += 1,
            Err(error) if error.status() == StatusCode::NOT_FOUND => not_found.push(id),
            Err(error) if error.status() == StatusCode::CONFLICT => {
                kept.push(json!({"id": id, "reason": reason(&error)}));
            }
            // Cancelled messages stay cancelled; a repeated call lists them among the others.
            Err(error) => return Err(error),
        }
    }
    Ok(Json(json!({"ok": true, "removed": removed, "not_found": not_found, "kept": kept})))
}

fn read_ids(mut body: Map<String, Value>) -> Result<(Vec<String>, Option<String>), ApiError> {
    let mut wrong = Vec::new();
    let ids = match body.remove("ids") {
        Some(Value::Array(ids)) if (1..=IDS_MAX).contains(&ids.len()) => ids,
        _ => {
            wrong.push(FieldError::new("ids", format!("must be a list of 1 to {IDS_MAX} ids")));
            Vec::new()
        }
    };
    let tenant = match body.remove("tenant_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(tenant)) => Some(tenant).filter(|tenant| !tenant.trim().is_empty()),
        Some(_) => {
            wrong.push(FieldError::new("tenant_id", "must be a text"));
            None
        }
    };
    wrong.extend(body.keys().map(|name| FieldError::new(name, "is no field of this call")));
    let mut read = Vec::with_capacity(ids.len());
    for (index, id) in ids.into_iter().enumerate() {
        match id {
            Value::String(id) => read.push(id),
            _ => wrong.push(FieldError::new(format!("ids[{index}]"), "must be a text")),
        }
    }
    if wrong.is_empty() { Ok((read, tenant)) } else { Err(ApiError::invalid(wrong)) }
}

/// `GET /status`: whether the tenant's mail is sent, and how many messages are in each state.
pub(super) async fn status(
    State(app): State<SharedState>,
    uri: Uri,
    parts: Parts,
) -> Result<Json<Value>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let named = query.take("tenant_id");
    query.finish()?;
    let caller = caller(&app, &parts, KeyScope::Read, named.as_deref()).await?;
    let suspensions = app.store.suspensions(&caller.tenant).await?;
    let active = !suspensions.iter().any(|one| one.scope == SuspensionScope::Tenant);
    let now = app.clock.now();
    let by_status = app.store.stats(Some(&caller.tenant), now).await?.by_status;
    let held = held_past_their_time(&app, &caller.tenant, &suspensions, now).await?;
    let count =
        |statuses: &[MessageStatus]| -> i64 { statuses.iter().filter_map(|one| by_status.get(one)).sum() };
    Ok(Json(json!({
        "ok": true,
        "active": active,
        "tenant_id": caller.tenant,
        "pending": count(PENDING) + held,
        "deferred": (count(&[MessageStatus::Scheduled]) - held).max(0),
        "sending": count(&[MessageStatus::Sending, MessageStatus::InDoubt]),
        "sent": count(&[MessageStatus::Sent]),
        "captured": count(&[MessageStatus::Captured]),
        "error": count(&[
            MessageStatus::Failed,
            MessageStatus::Invalid,
            MessageStatus::Suppressed,
            MessageStatus::Cancelled,
            MessageStatus::Expired,
        ]),
    })))
}

/// How many messages are suspended although their scheduled time has passed, among the newest [`HELD_MAX`]:
/// they are pending there, and scheduled here.
async fn held_past_their_time(
    app: &AppState,
    tenant: &TenantId,
    suspensions: &[SuspensionRecord],
    now: Time,
) -> Result<i64, ApiError> {
    let batch_of = |scope: &SuspensionScope| match scope {
        SuspensionScope::Batch(code) => Some(Some(code.to_string())),
        SuspensionScope::Tenant => Some(None),
        SuspensionScope::Account(_) => None,
    };
    let mut batches: Vec<Option<String>> =
        suspensions.iter().filter_map(|one| batch_of(&one.scope)).collect();
    if batches.contains(&None) {
        batches = vec![None];
    }
    let (mut looked_at, mut held) = (0, 0);
    for batch in batches {
        let filter =
            MessageFilter { status: Some(MessageStatus::Scheduled), batch, ..MessageFilter::default() };
        let mut before = None;
        while looked_at < HELD_MAX {
            let page = app.store.search(tenant, &filter, before, HELD_AT_ONCE).await?;
            let is_due = |one: &&MessageSummary| one.due_at.is_some_and(|due_at| due_at <= now);
            held += page.messages.iter().filter(is_due).count() as i64;
            looked_at += page.messages.len();
            before = page.next;
            if before.is_none() {
                break;
            }
        }
    }
    Ok(held)
}
