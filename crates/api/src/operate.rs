//! An operator's word on a message: asks the state machine, and writes what it says under a fence.
//!
//! Somebody else may move the message between our reading and our writing; then the fence does not hold, nothing is
//! written, and the whole is decided anew from what is there now. What the state machine does not allow is a 409 that
//! names the state.

use postway_domain::{
    RecipientStatus, State, TenantId, Time,
    message::{Effects, Input, InvalidTransition, Resolution, transition},
};
use postway_store::record::{Change, Fence, MessageRecord, NewEvent, RecipientChange};
use serde_json::json;

use crate::{
    error::ApiError,
    message::{find, gate, view::Summary},
    request_id::RequestId,
    state::App,
};

/// How often a decision is made anew before we say that the message is busy.
const TRIES_MAX: u32 = 5;

/// Does `input` to the message that `id` names; what it is then.
pub(crate) async fn operate(
    app: &App,
    tenant: &TenantId,
    id: &str,
    input: Input,
    request_id: &RequestId,
) -> Result<Summary, ApiError> {
    move_on(app, tenant, id, input, None, request_id, |_| true).await
}

/// Gives a message that waits for its time another one; a time that has passed is now.
pub(crate) async fn reschedule(
    app: &App,
    tenant: &TenantId,
    id: &str,
    send_at: Time,
    request_id: &RequestId,
) -> Result<Summary, ApiError> {
    let ahead_max = app.door.limits().send_at_ahead_max;
    if send_at.since(app.clock.now()) > ahead_max {
        let days = ahead_max.as_secs() / (24 * 60 * 60);
        return Err(ApiError::field("send_at", format!("must be at most {days} days ahead")));
    }
    let expires_at = find(app, tenant, id).await?.summary.expires_at;
    if expires_at.is_some_and(|expires_at| expires_at <= send_at) {
        return Err(ApiError::field("send_at", "must be before the message's expires_at"));
    }
    move_on(app, tenant, id, Input::Reschedule, Some(send_at), request_id, |_| true).await
}

/// Puts a dead letter back in the queue. Any other message is left as it is.
pub(crate) async fn replay(
    app: &App,
    tenant: &TenantId,
    id: &str,
    request_id: &RequestId,
) -> Result<Summary, ApiError> {
    move_on(app, tenant, id, Input::Replay, None, request_id, |state| state == State::Failed).await
}

async fn move_on(
    app: &App,
    tenant: &TenantId,
    id: &str,
    input: Input,
    send_at: Option<Time>,
    request_id: &RequestId,
    concerns: impl Fn(State) -> bool,
) -> Result<Summary, ApiError> {
    for _ in 0..TRIES_MAX {
        let record = find(app, tenant, id).await?;
        let state = record.summary.state;
        if !concerns(state) {
            let status = state.status().as_str();
            return Err(ApiError::conflict(format!(
                "the message is {status}; only a failed one is replayed"
            )));
        }
        let (to, effects) = transition(state, input).map_err(refuse)?;
        let change = change(&record, input, send_at, to, effects, app.clock.now(), request_id);
        let uid = record.summary.uid;
        if app.store.apply(vec![change]).await?.first() == Some(&true) {
            if to != state {
                count(to);
            }
            let now_is = to.status().as_str();
            tracing::info!(%uid, %tenant, state = now_is, request_id = request_id.as_str(), "operator moved it");
            let moved = find(app, tenant, &uid.to_string()).await?.summary;
            let suspensions = gate::suspensions(app, tenant, std::iter::once(&moved)).await?;
            return Ok(Summary::new(moved, &suspensions));
        }
    }
    Err(ApiError::conflict("the message is moving too fast to be changed; try again"))
}

fn change(
    record: &MessageRecord,
    input: Input,
    send_at: Option<Time>,
    to: State,
    effects: Effects,
    now: Time,
    request_id: &RequestId,
) -> Change {
    let goes_again = matches!(input, Input::Replay | Input::Resolve(Resolution::Resend));
    let data = match input {
        Input::Resolve(resolution) => {
            json!({"by": "operator", "request_id": request_id.as_str(), "outcome": word(resolution)})
        }
        Input::Reschedule => {
            json!({"by": "operator", "request_id": request_id.as_str(), "send_at": send_at})
        }
        _ => json!({"by": "operator", "request_id": request_id.as_str()}),
    };
    let event = effects.event.map(|kind| NewEvent { kind, data: Some(data.to_string()) });
    Change {
        uid: record.summary.uid,
        fence: Fence {
            status: record.summary.state.status(),
            token: None,
            version: Some(record.summary.version),
        },
        to,
        at: now,
        due_at: send_at.map(|at| at.max(now)).or(goes_again.then_some(now)),
        keep_token: false,
        retries: goes_again.then_some(0),
        doubts: None,
        lost_leases: goes_again.then_some(0),
        exhausted: false,
        error: failure(record, input),
        events: event.into_iter().collect(),
        recipients: recipients(record, input),
        ends_open_recipients: effects.ends_open_recipients,
        attempt: None,
        refund: None,
        preparation: None,
        erases_bodies: to == State::Sent && record.summary.sensitive,
        awaits_receipt: None,
    }
}

/// The recipients that the operator's word is about. Those that a relay took are never touched.
fn recipients(record: &MessageRecord, input: Input) -> Vec<RecipientChange> {
    let (from, to) = match input {
        Input::Replay if record.summary.state == State::Failed => {
            (RecipientStatus::Failed, RecipientStatus::Pending)
        }
        Input::Resolve(Resolution::Sent) => (RecipientStatus::InDoubt, RecipientStatus::Sent),
        Input::Resolve(Resolution::Failed) => (RecipientStatus::InDoubt, RecipientStatus::Failed),
        _ => return Vec::new(),
    };
    let moved = record.recipients.iter().zip(0..).filter(|(recipient, _)| recipient.status == from);
    moved.map(|(_, position)| RecipientChange { position, status: to, reply: None }).collect()
}

/// The failure to show from now on: a withdrawn message keeps its last one, a settled or renewed one begins afresh.
fn failure(record: &MessageRecord, input: Input) -> Option<String> {
    match input {
        Input::Cancel => record.summary.error.clone(),
        Input::Resolve(Resolution::Failed) => Some(
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
        Input::Cancel => format!("the message is {status}; only one that still waits can be cancelled"),
        Input::Replay if state == State::InDoubt => {
            format!("the message is {status}; settle it with POST /v1/messages/{{id}}/resolve")
        }
        Input::Replay => {
            format!(
                "the message is {status}; only one that failed, or waits for its time or its next attempt, can be sent now"
            )
        }
        Input::Reschedule => {
            format!("the message is {status}; only one that waits for the time it was given can have another")
        }
        Input::Resolve(_) => format!("the message is {status}; only one in_doubt can be resolved"),
        _ => format!("the message is {status}; this cannot be done to it"),
    })
}

fn count(to: State) {
    let status = to.status();
    metrics::counter!("postway_state_transitions_total", "state" => status.as_str()).increment(1);
    if status.is_final() {
        metrics::counter!("postway_final_states_total", "state" => status.as_str()).increment(1);
    }
}
