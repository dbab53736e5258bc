//! An operator's word on a message: asks the state machine, and writes what it says under a fence.
//!
//! Somebody else may move the message between our reading and our writing; then the fence does not hold, nothing is
//! written, and the whole is decided anew from what is there now. What the state machine does not allow is a 409 that
//! names the state.

use postway_domain::{
    RecipientStatus, State, TenantId, Time,
    message::{Input, InvalidTransition, Resolution, Rest},
};
use postway_store::record::{Change, Fence, MessageRecord, Preparation, RecipientChange};
use serde_json::json;

use crate::{
    http::{error::ApiError, request_id::RequestId},
    message::{find, read::summaries::summaries, view::Summary},
    state::App,
};

/// How often a decision is made anew before we say that the message is busy.
const TRIES_MAX: u32 = 5;

/// What is asked of a message. Where it goes is a matter of its recipients, too, so the state machine's input is made
/// of both.
#[derive(Clone, Copy, Debug)]
pub enum Asked {
    /// Not to be sent to those it was not sent to yet.
    Cancel,
    /// To be sent now.
    Replay,
    /// To be sent at this time.
    Reschedule(Time),
    /// To be taken for sent, for failed, or sent again, as far as it is in doubt.
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

/// Does what is asked to the message that `id` names; what it is then.
pub(crate) async fn operate(
    app: &App,
    tenant: &TenantId,
    id: &str,
    asked: Asked,
    request_id: &RequestId,
) -> Result<Summary, ApiError> {
    move_on(app, tenant, id, asked, request_id, |_| true).await
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
    move_on(app, tenant, id, Asked::Reschedule(send_at), request_id, |_| true).await
}

/// Puts a dead letter back in the queue. Any other message is left as it is.
pub(crate) async fn replay(
    app: &App,
    tenant: &TenantId,
    id: &str,
    request_id: &RequestId,
) -> Result<Summary, ApiError> {
    move_on(app, tenant, id, Asked::Replay, request_id, |state| state == State::Failed).await
}

async fn move_on(
    app: &App,
    tenant: &TenantId,
    id: &str,
    asked: Asked,
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
        let change = change(&record, asked, app.clock.now(), request_id.as_str()).map_err(refuse)?;
        let (uid, to) = (record.summary.uid, change.to);
        if app.store.apply(vec![change]).await?.first() == Some(&true) {
            if to != state {
                count(to);
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

/// What is asked of this message, as the change that does it.
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
        // Those that the doubt was not about have waited for it.
        Asked::Replay | Asked::Resolve(_) => matches!(to, State::Ready | State::Scheduled(_)).then_some(now),
        Asked::Cancel => None,
    };
    Ok(Change {
        due_at,
        retries: starts_afresh.then_some(0),
        lost_leases: starts_afresh.then_some(0),
        error: step.error.clone().or_else(|| failure(record, asked, to)),
        recipients: recipients(record, input),
        // Only one that was never composed was refused by a check.
        preparation: (to == State::Accepted).then_some(Preparation::Again(now)),
        erases_bodies: to == State::Sent && summary.sensitive,
        ..step.telling(&data)
    })
}

/// The recipients that the operator's word is about. Those that a relay took are never touched.
fn recipients(record: &MessageRecord, input: Input) -> Vec<RecipientChange> {
    let (from, to) = match input {
        Input::Replay if matches!(record.summary.state, State::Failed | State::Invalid) => {
            (RecipientStatus::Failed, RecipientStatus::Pending)
        }
        Input::Resolve(Resolution::Sent, _) => (RecipientStatus::InDoubt, RecipientStatus::Sent),
        Input::Resolve(Resolution::Failed, _) => (RecipientStatus::InDoubt, RecipientStatus::Failed),
        // An attempt is for the open, and for those in doubt only where nobody is: so that all go, all are open.
        Input::Resolve(Resolution::Resend, Rest::Open) => {
            (RecipientStatus::InDoubt, RecipientStatus::Pending)
        }
        _ => return Vec::new(),
    };
    let moved = record.recipients.iter().zip(0..).filter(|(recipient, _)| recipient.status == from);
    moved.map(|(_, position)| RecipientChange { position, status: to, reply: None }).collect()
}

/// The failure to show from now on: a withdrawn message keeps its last one, a settled or renewed one begins afresh.
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

fn count(to: State) {
    let status = to.status();
    metrics::counter!("postway_state_transitions_total", "state" => status.as_str()).increment(1);
    if status.is_final() {
        metrics::counter!("postway_final_states_total", "state" => status.as_str()).increment(1);
    }
}
