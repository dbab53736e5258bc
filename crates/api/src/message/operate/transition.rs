//! Applies an operator's action to a message: asks the state machine, and writes the result under a fence.
//!
//! If the message changes between our read and our write, the fence does not match, nothing is written, and
//! the decision is made again from the new state. An action that the state machine does not allow is a 409
//! that names the state.

use postway_domain::{
    RecipientStatus, State, TenantId, Time,
    message::{Input, InvalidTransition, Resolution, Rest},
};
use postway_store::record::{Change, Fence, MessageRecord, Preparation, RecipientChange};
use serde_json::json;

use crate::{
    http::{error::ApiError, request_id::RequestId},
    message::{find, read::summaries::summaries, view::MessageSummaryView},
    state::AppState,
};

/// How often the decision is repeated before the message is reported as busy.
const TRIES_MAX: u32 = 5;

/// An operator's action on a message. Its result also depends on the recipients, so the state machine's input
/// is made of both.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// Do not send to the recipients that it was not sent to yet.
    Cancel,
    /// Send it now.
    Replay,
    /// Send it at this time.
    Reschedule(Time),
    /// Declare the recipients in doubt sent or failed, or send to them again.
    Resolve(Resolution),
}

impl Asked {
    fn input(self, record: &MessageRecord) -> Input {
        let stand = record.recipients.iter().map(|one| one.status);
        match self {
            Asked::Cancel => Input::Cancel(Rest::beside_open(stand)),
            Asked::Replay => Input::Replay,
            Asked::Reschedule(_) => Input::Reschedule,
            Asked::Resolve(resolution) => Input::Resolve(resolution, Rest::beside_doubtful(stand)),
        }
    }
}

/// Applies an action to the message that `id` names, and returns the message after it.
pub(crate) async fn operate(
    app: &AppState,
    tenant: &TenantId,
    id: &str,
    asked: Asked,
    request_id: &RequestId,
) -> Result<MessageSummaryView, ApiError> {
    move_on(app, tenant, id, asked, request_id, |_| true).await
}

/// Gives a waiting message another time; a time in the past means now.
pub(crate) async fn reschedule(
    app: &AppState,
    tenant: &TenantId,
    id: &str,
    send_at: Time,
    request_id: &RequestId,
) -> Result<MessageSummaryView, ApiError> {
    let ahead_max = app.door.limits().send_at_ahead_max;
    if send_at.since(app.clock.now()) > ahead_max {
        let days = ahead_max.as_secs() / (24 * 60 * 60);
        return Err(ApiError::field("send_at", format!("must be at most {days} days ahead")));
    }
    let expires_at = find(app, tenant, id).await?.summary.expires_at;
    if expires_at.is_some_and(|expires_at| expires_at <= send_at) {
        return Err(ApiError::field("send_at", "must be before the message's expires_at"));
    }
    move_on(app, tenant, id, Asked::Reschedule(send_at), request_id, |_| true).await
}

/// Puts a dead letter back in the queue. Any other message is left unchanged.
pub(crate) async fn replay(
    app: &AppState,
    tenant: &TenantId,
    id: &str,
    request_id: &RequestId,
) -> Result<MessageSummaryView, ApiError> {
    move_on(app, tenant, id, Asked::Replay, request_id, |state| state == State::Failed).await
}

async fn move_on(
    app: &AppState,
    tenant: &TenantId,
    id: &str,
    asked: Asked,
    request_id: &RequestId,
    concerns: impl Fn(State) -> bool,
) -> Result<MessageSummaryView, ApiError> {
    for _ in 0..TRIES_MAX {
        let record = find(app, tenant, id).await?;
        let state = record.summary.state;
        if !concerns(state) {
            let status = state.status().as_str();
            return Err(ApiError::conflict(format!(
                "the message is {status}; only a failed one is replayed"
            )));
        }
        let change = change(&record, asked, app.clock.now(), request_id.as_str()).map_err(refuse)?;
        let (uid, to) = (record.summary.uid, change.to);
        if app.store.apply(vec![change]).await?.first() == Some(&true) {
            if to != state {
                count_transition(to);
            }
            let now_is = to.status().as_str();
            tracing::info!(%uid, %tenant, state = now_is, request_id = request_id.as_str(), "operator moved it");
            let moved = find(app, tenant, &uid.to_string()).await?.summary;
            let moved = summaries(app, tenant, vec![moved]).await?.pop();
            return moved.ok_or_else(|| ApiError::internal("a message that was moved has no view"));
        }
    }
    Err(ApiError::conflict("the message is moving too fast to be changed; try again"))
}

/// The store's change that applies this action to this message.
pub fn change(
    record: &MessageRecord,
    asked: Asked,
    now: Time,
    request_id: &str,
) -> Result<Change, InvalidTransition> {
    let summary = &record.summary;
    let fence = Fence { status: summary.state.status(), token: None, version: Some(summary.version) };
    let input = asked.input(record);
    let step = Change::step(summary.uid, fence, summary.state, input, now)?;
    let mut data = json!({"by": "operator", "request_id": request_id});
    match asked {
        Asked::Resolve(resolution) => data["outcome"] = json!(word(resolution)),
        Asked::Reschedule(send_at) => data["send_at"] = json!(send_at),
        Asked::Cancel | Asked::Replay => {}
    }
    let starts_afresh = matches!(asked, Asked::Replay | Asked::Resolve(Resolution::Resend));
    let to = step.to;
    let due_at = match asked {
        Asked::Reschedule(send_at) => Some(send_at.max(now)),
        // Recipients that were not in doubt have waited for the decision.
        Asked::Replay | Asked::Resolve(_) => matches!(to, State::Ready | State::Scheduled(_)).then_some(now),
        Asked::Cancel => None,
    };
    Ok(Change {
        due_at,
        retries: starts_afresh.then_some(0),
        lost_leases: starts_afresh.then_some(0),
        error: step.error.clone().or_else(|| failure(record, asked, to)),
        recipients: recipients(record, input),
        // Only a message that was never composed was refused by a check.
        preparation: (to == State::Accepted).then_some(Preparation::Again(now)),
        erases_bodies: to == State::Sent && summary.sensitive,
        ..step.telling(&data)
    })
}

/// The recipients that the action applies to. Those that a relay accepted are never changed.
fn recipients(record: &MessageRecord, input: Input) -> Vec<RecipientChange> {
    let (from, to) = match input {
        Input::Replay if matches!(record.summary.state, State::Failed | State::Invalid) => {
            (RecipientStatus::Failed, RecipientStatus::Pending)
        }
        Input::Resolve(Resolution::Sent, _) => (RecipientStatus::InDoubt, RecipientStatus::Sent),
        Input::Resolve(Resolution::Failed, _) => (RecipientStatus::InDoubt, RecipientStatus::Failed),
        // An attempt is for open recipients, and for those in doubt only if none is open: so that all are
        // sent to, all become open.
        Input::Resolve(Resolution::Resend, Rest::Open) => {
            (RecipientStatus::InDoubt, RecipientStatus::Pending)
        }
        _ => return Vec::new(),
    };
    let moved = record.recipients.iter().zip(0..).filter(|(recipient, _)| recipient.status == from);
    moved.map(|(_, position)| RecipientChange { position, status: to, reply: None }).collect()
}

/// The failure to show from now on: a cancelled message keeps its last one, a resolved or replayed one starts
/// without.
fn failure(record: &MessageRecord, asked: Asked, to: State) -> Option<String> {
    match (asked, to) {
        (Asked::Cancel, State::Cancelled) => record.summary.error.clone(),
        (Asked::Resolve(Resolution::Failed), State::Failed) => Some(
            json!({
                "code": "resolved_failed",
                "category": "unknown",
                "phase": "dot",
                "message": "an operator settled the doubt: it was not sent",
            })
            .to_string(),
        ),
        _ => None,
    }
}

fn word(resolution: Resolution) -> &'static str {
    match resolution {
        Resolution::Sent => "sent",
        Resolution::Failed => "failed",
        Resolution::Resend => "resend",
    }
}

fn refuse(InvalidTransition { state, input }: InvalidTransition) -> ApiError {
    let status = state.status().as_str();
    ApiError::conflict(match input {
        Input::Cancel(_) => format!("the message is {status}; only one that still waits can be cancelled"),
        Input::Replay if state == State::InDoubt => {
            format!("the message is {status}; settle it with POST /v1/messages/{{id}}/resolve")
        }
        Input::Replay => {
            format!(
                "the message is {status}; only one that failed, is invalid, or waits for its time or its next attempt can \
                 be sent now"
            )
        }
        Input::Reschedule => {
            format!("the message is {status}; only one that waits for the time it was given can have another")
        }
        Input::Resolve(..) => format!("the message is {status}; only one in_doubt can be resolved"),
        _ => format!("the message is {status}; this cannot be done to it"),
    })
}

fn count_transition(to: State) {
    let status = to.status();
    metrics::counter!("postway_state_transitions_total", "state" => status.as_str()).increment(1);
    if status.is_final() {
        metrics::counter!("postway_final_states_total", "state" => status.as_str()).increment(1);
    }
}
