//! `/v1/bulk-actions`: one action on all messages of a filter or a selection, done by the server.
//!
//! A request writes a row and nothing else; [`work`] does it in slices, on one node at a time, and a crash
//! loses nothing of it. A dry run says beforehand what would be done.

mod slice;
mod task;
mod view;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt};
use postway_domain::{MessageUid, TenantId, id::BulkActionId};
use postway_store::record::{BulkAction, BulkActionState, ChangeResult, DirectoryChange, MessageFilter};
use serde_json::json;

pub use self::work::BulkWorker;
use self::{
    slice::{BulkSlice, decide},
    task::{BulkRequest, BulkTask},
    view::{BulkActionRequest, BulkStatusCount},
};
pub(crate) use self::{
    task::IDS_MAX,
    view::{BulkActionList, BulkActionView, BulkPlanView},
};
use crate::{
    auth::{Manager, Reader, Sender},
    http::{
        body,
        error::{ApiError, FieldError},
        pagination::{self, PageRequest},
        query::{self, QueryParameters},
        request_id::RequestId,
        resource::path_parameter,
    },
    message::{
        find,
        read::list::{COUNTED_MAX, one_by_key},
    },
    state::{AppState, SharedState},
};

/// How many ids are looked up at once.
const LOOKUPS_AT_ONCE: usize = 32;
/// How long a dry run looks at messages.
const PLAN_S_MAX: u64 = 5;
/// How many messages a dry run looks at together.
const PLAN_PAGE: u32 = 500;

/// The bulk action that `{id}` in the path names. A text that cannot be an id is 404.
pub(crate) struct NamedBulkAction(BulkActionId);

path_parameter!(NamedBulkAction, "id", |given| given
    .parse()
    .map(NamedBulkAction)
    .map_err(|_| no_bulk_action(given)));

fn no_bulk_action(given: &str) -> ApiError {
    let shown: String = given.chars().take(64).collect();
    ApiError::not_found(format!("there is no bulk action `{shown}`; one that ended is kept for 30 days"))
}

async fn find_action(app: &AppState, tenant: &TenantId, id: BulkActionId) -> Result<BulkAction, ApiError> {
    app.store.bulk_action(tenant, id).await?.ok_or_else(|| no_bulk_action(&id.to_string()))
}

/// The messages of a request.
enum MeantMessages {
    /// These, from the newest to the oldest.
    Selected(Vec<MessageUid>),
    /// All that match.
    Matching(Box<MessageFilter>),
}

/// Act on many messages
///
/// Cancels, retries, reschedules, resolves or suppresses all messages of a filter or a list of ids. The
/// answer comes at once; the server then does it step by step, from the newest message to the oldest, each
/// message at most once, also across a restart. Messages accepted after the request are not touched. A
/// message whose state does not admit the action is left as it is and counted in `skipped`.
///
/// With `dry_run=true` nothing is done: the answer says how many messages match, and how many of them would
/// change.
#[utoipa::path(
    post,
    path = "/v1/bulk-actions",
    operation_id = "createBulkAction",
    tag = "messages",
    params(("dry_run" = Option<bool>, Query, description = "Whether only to say what would be done")),
    request_body = BulkActionRequest,
    responses(
        (status = 202, description = "It is running", body = BulkActionView),
        (status = 200, description = "With `dry_run`: what it would come to", body = BulkPlanView)
    )
)]
pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Sender,
    manager: Result<Manager, ApiError>,
    request_id: RequestId,
    uri: Uri,
    request: Request,
) -> Result<Response, ApiError> {
    let is_dry = query::dry_run(&uri)?;
    let asked = task::read(body::json_object(request).await?, request_id.as_str());
    let BulkRequest { task, ids, at_most } = asked.map_err(ApiError::invalid)?;
    // How many messages match is something to read.
    if !caller.may_read {
        return Err(ApiError::forbidden("a bulk action needs a key with the scopes `send` and `read`"));
    }
    if task.action == "suppress" {
        manager?;
    }
    check_time(&app, &task)?;
    let tenant = &caller.tenant;
    let meant = meant_by(&app, tenant, &task, ids).await?;
    let now = app.clock.now();
    let action = BulkAction {
        tenant: tenant.clone(),
        id: BulkActionId::new(now, &mut rand::rng()),
        state: BulkActionState::Running,
        task: serde_json::to_string(&task).map_err(ApiError::internal)?,
        selected: Vec::new(),
        actor: caller.actor.to_string(),
        reached: None,
        again: Vec::new(),
        expected: 0,
        expected_more: false,
        changed: 0,
        skipped: 0,
        version: 1,
        created_at: now,
        updated_at: now,
        ended_at: None,
    };
    if is_dry {
        return Ok(Json(plan(&app, &action, &task, meant).await?).into_response());
    }
    if task.is_for_all() && at_most.is_none() {
        let why =
            "is required with the filter `{}`, which means all messages: give the `matching` of a dry run";
        return Err(ApiError::field("at_most", why));
    }
    let action = expecting(&app, action, meant).await?;
    if at_most.is_some_and(|most| action.expected > i64::from(most) || action.expected_more) {
        let found = format!("{}{}", action.expected, if action.expected_more { " or more" } else { "" });
        return Err(ApiError::conflict(format!("{found} messages match by now; look at them and try again")));
    }
    let detail = json!({"action": task.action, "filter": task.filter, "expected": action.expected});
    let entry = app.audit(
        &caller.actor,
        Some(tenant),
        "bulk_action.create",
        action.id.to_string(),
        &request_id,
        Some(detail),
    );
    match app.store.change(DirectoryChange::CreateBulkAction(action.clone()), Some(entry)).await? {
        ChangeResult::Done => Ok((StatusCode::ACCEPTED, Json(BulkActionView::from(action))).into_response()),
        ChangeResult::InUse => Err(ApiError::conflict(format!(
            "{} bulk actions are running already; wait for one of them, or stop it",
            BulkAction::RUNNING_MAX
        ))),
        _ => Err(ApiError::internal("the id of a new bulk action is taken")),
    }
}

/// A new time has the bounds that it has for a single message.
fn check_time(app: &AppState, task: &BulkTask) -> Result<(), ApiError> {
    let ahead_max = app.door.limits().send_at_ahead_max;
    if task.send_at.is_some_and(|send_at| send_at.since(app.clock.now()) > ahead_max) {
        let days = ahead_max.as_secs() / (24 * 60 * 60);
        return Err(ApiError::field("send_at", format!("must be at most {days} days ahead")));
    }
    Ok(())
}

/// The messages that a task is for. An id that names no message is a fault of its field.
async fn meant_by(
    app: &AppState,
    tenant: &TenantId,
    task: &BulkTask,
    ids: Vec<String>,
) -> Result<MeantMessages, ApiError> {
    if let Some(asked) = task.asked_filter() {
        let asked = asked.map_err(ApiError::invalid)?;
        let read = asked.search_in(&*app.store, tenant, app.clock.now()).await?;
        let one = one_by_key(&*app.store, tenant, read.key, read.maybe_id).await?;
        return Ok(match one {
            Some(found) => MeantMessages::Selected(found.into_iter().map(|summary| summary.uid).collect()),
            None => MeantMessages::Matching(Box::new(read.filter)),
        });
    }
    let found: Vec<Result<MessageUid, usize>> = futures::stream::iter(ids.into_iter().enumerate())
        .map(|(index, id)| async move {
            match find(app, tenant, &id).await {
                Ok(record) => Ok(Ok(record.summary.uid)),
                Err(error) if error.status() == StatusCode::NOT_FOUND => Ok(Err(index)),
                Err(error) => Err(error),
            }
        })
        .buffered(LOOKUPS_AT_ONCE)
        .try_collect()
        .await?;
    let unknown = |index: &usize| FieldError::new(format!("ids[{index}]"), "names no message");
    let wrong: Vec<FieldError> =
        found.iter().filter_map(|one| one.as_ref().err()).map(unknown).take(100).collect();
    if !wrong.is_empty() {
        return Err(ApiError::invalid(wrong));
    }
    let uids: BTreeSet<MessageUid> = found.into_iter().flatten().collect();
    Ok(MeantMessages::Selected(uids.into_iter().rev().collect()))
}

/// The action with the messages that it is for, counted as far as counting goes.
async fn expecting(app: &AppState, action: BulkAction, meant: MeantMessages) -> Result<BulkAction, ApiError> {
    Ok(match meant {
        MeantMessages::Selected(uids) => {
            BulkAction { expected: uids.len() as i64, selected: uids, ..without_filter(action)? }
        }
        MeantMessages::Matching(filter) => {
            let count = app.store.count(&action.tenant, &filter, COUNTED_MAX).await?;
            let expected = i64::try_from(count.messages).unwrap_or(i64::MAX);
            BulkAction { expected, expected_more: count.is_more, ..action }
        }
    })
}

/// A search that names one message is a selection.
fn without_filter(action: BulkAction) -> Result<BulkAction, ApiError> {
    let task: BulkTask = serde_json::from_str(&action.task).map_err(ApiError::internal)?;
    let task = serde_json::to_string(&BulkTask { filter: None, ..task }).map_err(ApiError::internal)?;
    Ok(BulkAction { task, ..action })
}

/// What the action would come to, for as long as a request may look.
async fn plan(
    app: &AppState,
    action: &BulkAction,
    task: &BulkTask,
    meant: MeantMessages,
) -> Result<BulkPlanView, ApiError> {
    let deadline = Instant::now() + Duration::from_secs(PLAN_S_MAX);
    let (mut plan, mut reached) = (BulkPlanView::default(), None);
    let mut by_status: BTreeMap<(&'static str, bool), u64> = BTreeMap::new();
    loop {
        let slice = match &meant {
            MeantMessages::Selected(uids) => BulkSlice::of_selected(uids, reached),
            MeantMessages::Matching(filter) => {
                BulkSlice::of_filter(&*app.store, &action.tenant, filter, reached, PLAN_PAGE).await?
            }
        };
        let effects = decide(&*app.store, action, task, &slice.uids, action.created_at).await?;
        plan.matching += slice.uids.len() as u64;
        plan.skipped += effects.skipped.unsigned_abs();
        for (place, messages) in effects.by_status {
            *by_status.entry(place).or_default() += messages;
        }
        reached = slice.next;
        plan.or_more = reached.is_some();
        if reached.is_none() || Instant::now() >= deadline {
            break;
        }
    }
    plan.changed = plan.matching - plan.skipped;
    let counted = by_status.into_iter().map(|((status, is_left), messages)| BulkStatusCount {
        status,
        changed: !is_left,
        messages,
    });
    plan.by_status = counted.collect();
    Ok(plan)
}

/// List bulk actions
///
/// The latest first: those that are running, and those that ended in the last 30 days.
#[utoipa::path(
    get,
    path = "/v1/bulk-actions",
    operation_id = "listBulkActions",
    tag = "messages",
    params(
        ("limit" = Option<u32>, Query, description = "How many, 1 to 500; 50 when absent"),
        ("cursor" = Option<String>, Query, description = "Where to continue: the `next_cursor` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = BulkActionList))
)]
pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Reader,
    uri: Uri,
) -> Result<Json<BulkActionList>, ApiError> {
    let mut query = QueryParameters::from_uri(&uri)?;
    let PageRequest { limit, cursor } = PageRequest::take(&mut query);
    query.finish()?;
    let before: Option<BulkActionId> = cursor.as_deref().map(pagination::read_cursor).transpose()?;
    // One item more than requested shows whether there is a next page.
    let mut found = app.store.bulk_actions(&caller.tenant, before, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|last| pagination::write_cursor(&last.id));
    Ok(Json(BulkActionList { data: found.into_iter().map(BulkActionView::from).collect(), next_cursor }))
}

/// Show a bulk action
///
/// How far it is.
#[utoipa::path(
    get,
    path = "/v1/bulk-actions/{id}",
    operation_id = "getBulkAction",
    tag = "messages",
    params(("id" = String, Path, description = "The bulk action")),
    responses((status = 200, description = "The bulk action", body = BulkActionView))
)]
pub(crate) async fn show(
    State(app): State<SharedState>,
    caller: Reader,
    NamedBulkAction(id): NamedBulkAction,
) -> Result<Json<BulkActionView>, ApiError> {
    find_action(&app, &caller.tenant, id).await.map(|action| Json(action.into()))
}

/// Stop a bulk action
///
/// Nothing more is done from now on; what was done stays. 409 if it has ended.
#[utoipa::path(
    post,
    path = "/v1/bulk-actions/{id}/stop",
    operation_id = "stopBulkAction",
    tag = "messages",
    params(("id" = String, Path, description = "The bulk action")),
    responses((status = 200, description = "It is stopped", body = BulkActionView))
)]
pub(crate) async fn stop(
    State(app): State<SharedState>,
    caller: Sender,
    request_id: RequestId,
    NamedBulkAction(id): NamedBulkAction,
) -> Result<Json<BulkActionView>, ApiError> {
    if !caller.may_read {
        return Err(ApiError::forbidden("a bulk action needs a key with the scopes `send` and `read`"));
    }
    let tenant = &caller.tenant;
    let entry = app.audit(&caller.actor, Some(tenant), "bulk_action.stop", id.to_string(), &request_id, None);
    let change = DirectoryChange::StopBulkAction(tenant.clone(), id, app.clock.now());
    match app.store.change(change, Some(entry)).await? {
        ChangeResult::Done => find_action(&app, tenant, id).await.map(|action| Json(action.into())),
        ChangeResult::Already => Err(ApiError::conflict("the bulk action has ended already")),
        _ => Err(no_bulk_action(&id.to_string())),
    }
}
