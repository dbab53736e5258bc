//! Bulk actions as JSON, and their request bodies.

use std::collections::BTreeMap;

use postway_domain::Time;
use postway_store::record::{BulkAction, BulkActionState};
use serde::Serialize;
use utoipa::ToSchema;

use crate::message::bulk::task::BulkTask;

/// One action on many messages, done by the server step by step.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BulkAction)]
pub(crate) struct BulkActionView {
    /// The id.
    #[schema(example = "0192d3a4-5b6c-7d8e-9f01-23456789abcd")]
    id: String,
    /// `running`, `finished` or `stopped`.
    #[schema(example = "running")]
    state: &'static str,
    /// `cancel`, `retry`, `reschedule`, `resolve` or `suppress`.
    #[schema(example = "cancel")]
    action: String,
    /// The decision on messages in doubt: `sent`, `failed` or `resend`.
    outcome: Option<String>,
    /// The new time of rescheduled messages.
    #[schema(value_type = Option<String>, format = DateTime)]
    send_at: Option<Time>,
    /// The note of the suppressions.
    note: Option<String>,
    /// The filter, in the words of `GET /v1/messages`; null if messages were selected one by one.
    #[schema(value_type = Option<Object>, example = json!({"status": "ready"}))]
    filter: Option<BTreeMap<String, String>>,
    /// The number of messages that were selected one by one.
    selected: usize,
    /// The number of messages that matched at the beginning.
    expected: i64,
    /// Whether there may have been more: counting ends at 100,000.
    expected_or_more: bool,
    /// The number of messages that it was done to so far.
    changed: i64,
    /// The number of messages that stayed as they are, because their state does not admit the action.
    skipped: i64,
    /// Who asked for it: `admin`, or `key:` and the id of a key.
    #[schema(example = "admin")]
    actor: String,
    /// When it was asked for. Messages accepted later are not touched.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it got on last.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it was finished or stopped.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Time>,
}

impl From<BulkAction> for BulkActionView {
    fn from(action: BulkAction) -> Self {
        let task: Option<BulkTask> = serde_json::from_str(&action.task).ok();
        let (outcome, send_at, note, filter) = match task.clone() {
            Some(task) => (task.outcome, task.send_at, task.note, task.filter),
            None => (None, None, None, None),
        };
        Self {
            id: action.id.to_string(),
            state: action.state.as_str(),
            action: task.map_or_else(|| "unknown".to_owned(), |task| task.action),
            outcome,
            send_at,
            note,
            filter,
            selected: action.selected.len(),
            expected: action.expected,
            expected_or_more: action.expected_more,
            changed: action.changed,
            skipped: action.skipped,
            actor: action.actor,
            created_at: action.created_at,
            updated_at: action.updated_at,
            ended_at: action.ended_at,
        }
    }
}

impl BulkActionView {
    /// The words of `state`.
    pub(crate) fn states() -> impl Iterator<Item = &'static str> {
        BulkActionState::ALL.into_iter().map(BulkActionState::as_str)
    }
}

/// A page of bulk actions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkActionList {
    /// The latest first.
    pub(super) data: Vec<BulkActionView>,
    /// Pass this as `cursor` to read the next page; null on the last page.
    pub(super) next_cursor: Option<String>,
}

/// What a bulk action would come to now.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = BulkPlan)]
pub(crate) struct BulkPlanView {
    /// The number of messages that match.
    pub(super) matching: u64,
    /// The number of messages that it would be done to.
    pub(super) changed: u64,
    /// The number of messages that would stay as they are, because their state does not admit the action.
    pub(super) skipped: u64,
    /// Whether there may be more: looking ends after some seconds.
    pub(super) or_more: bool,
    /// The messages by state.
    pub(super) by_status: Vec<BulkStatusCount>,
}

/// The messages of a bulk action that are in one state.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkStatusCount {
    /// The state.
    #[schema(example = "ready")]
    pub(super) status: &'static str,
    /// Whether the action is done to them.
    pub(super) changed: bool,
    /// How many they are.
    pub(super) messages: u64,
}

/// A bulk action to begin. Give `filter` or `ids`; unknown fields are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkActionRequest {
    /// `cancel`: do not send to the recipients that have not got it yet. `retry`: send now, with all retries.
    /// `reschedule`: give another time. `resolve`: decide about messages in doubt. `suppress`: send
    /// their recipients no more mail.
    #[schema(example = "retry")]
    action: String,
    /// For `resolve`, required: `sent`, `failed` or `resend`.
    outcome: Option<String>,
    /// For `reschedule`, required: not before this time, at most 366 days ahead.
    #[schema(value_type = Option<String>, format = DateTime)]
    send_at: Option<Time>,
    /// For `suppress`: a note, at most 500 characters.
    note: Option<String>,
    /// The messages, in the words of `GET /v1/messages`: `status`, `outcome`, `held_by`, `q` and the others.
    /// With `outcome`, `suppress` applies only to the recipients that have it.
    #[schema(value_type = Option<Object>, example = json!({"status": "failed", "error_code": "smtp_550"}))]
    filter: Option<BTreeMap<String, String>>,
    /// The messages one by one: ids or uids, at most 1,000.
    ids: Option<Vec<String>>,
    /// Refuses the action if more messages match. Required with the filter `{}`, which means all messages.
    at_most: Option<u32>,
}
