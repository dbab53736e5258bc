//! Applies an operator's action to a message: asks the state machine, and writes the result under a fence.
//!
//! If the message changes between our read and our write, the fence does not match, nothing is written, and
//! the decision is made again from the new state. An action that the state machine does not allow is a 409
//! that names the state.

use postway_domain::{
    MessageState, RecipientStatus, Time,
    message::{DoubtResolution, InvalidTransition, OtherRecipients, TransitionInput},
};
use postway_store::record::{
    MessageChange, MessageRecord, MessageSummary, PreparationResult, RecipientChange, RecipientRecord,
    WriteFence,
};
use serde_json::{Value, json};

use crate::{
    auth::Caller,
    http::{error::ApiError, request_id::RequestId},
    message::{find, read::summaries::summaries, view::MessageSummaryView},
    state::AppState,
};

/// How often the decision is repeated before the message is reported as busy.
const TRIES_MAX: u32 = 5;

/// An operator's action on a message. Its result also depends on the recipients, so the state machine's input
/// is made of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorAction {
    /// Do not send to the recipients that it was not sent to yet.
    Cancel,
    /// Send it now.
    Replay,
    /// Send it at this time.
    Reschedule(Time),
    /// Declare the recipients in doubt sent or failed, or send to them again.
    Resolve(DoubtResolution),
}

impl OperatorAction {
    fn input(self, recipients: &[RecipientRecord]) -> TransitionInput {
        let stand = recipients.iter().map(|one| one.status);
        match self {
            OperatorAction::Cancel => TransitionInput::Cancel(OtherRecipients::beside_open(stand)),
            OperatorAction::Replay => TransitionInput::Replay,
            OperatorAction::Reschedule(_) => TransitionInput::Reschedule,
            OperatorAction::Resolve(resolution) => {
                TransitionInput::Resolve(resolution, OtherRecipients::beside_doubtful(stand))
            }
        }
    }
}

/// Applies an action to the message that `id` names, and returns the message after it.
pub(crate) async fn operate(
    app: &AppState,
    caller: &Caller,
    id: &str,
    asked: OperatorAction,
    request_id: &RequestId,
) -> Result<MessageSummaryView, ApiError> {
    move_on(app, caller, id, asked, request_id, |_| true).await
}

/// Gives a waiting message another time; a time in the past means now.
pub(crate) async fn reschedule(
    app: &AppState,
    caller: &Caller,
    id: &str,
    send_at: Time,
    request_id: &RequestId,
) -> Result<MessageSummaryView, ApiError> {
    let ahead_max = app.door.limits().send_at_ahead_max;
    if send_at.since(app.clock.now()) > ahead_max {
        let days = ahead_max.as_secs() / (24 * 60 * 60);
        return Err(ApiError::field("send_at", format!("must be at most {days} days ahead")));
    }
    let expires_at = find(app, &caller.tenant, id).await?.summary.expires_at;
    if expires_at.is_some_and(|expires_at| expires_at <= send_at) {
        return Err(ApiError::field("send_at", "must be before the message's expires_at"));
    }
    move_on(app, caller, id, OperatorAction::Reschedule(send_at), request_id, |_| true).await
}

/// Puts a dead letter back in the queue. Any other message is left unchanged.
pub(crate) async fn replay(
    app: &AppState,
    caller: &Caller,
    id: &str,
    request_id: &RequestId,
) -> Result<MessageSummaryView, ApiError> {
    move_on(app, caller, id, OperatorAction::Replay, request_id, |state| state == MessageState::Failed).await
}

async fn move_on(
    app: &AppState,
    caller: &Caller,
    id: &str,
    asked: OperatorAction,
    request_id: &RequestId,
    concerns: impl Fn(MessageState) -> bool,
) -> Result<MessageSummaryView, ApiError> {
    let (tenant, actor) = (&caller.tenant, caller.actor.to_string());
    for _ in 0..TRIES_MAX {
        let record = find(app, tenant, id).await?;
        let state = record.summary.state;
        if !concerns(state) {
            let status = state.status().as_str();
            return Err(ApiError::conflict(format!(
                "the message is {status}; only a failed one is replayed"
            )));
        }
        let now = app.clock.now();
        let change = change(&record, asked, now, request_id.as_str(), &actor).map_err(refuse)?;
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

/// The store's change that applies this action to this message. The event says who acted.
pub fn change(
    record: &MessageRecord,
    asked: OperatorAction,
    now: Time,
    request_id: &str,
    actor: &str,
) -> Result<MessageChange, InvalidTransition> {
    let data = json!({"by": "operator", "actor": actor, "request_id": request_id});
    change_of(&record.summary, &record.recipients, asked, now, data)
}

/// The same for a message of which less was read; `data` is what its event tells besides the action.
pub(crate) fn change_of(
    summary: &MessageSummary,
    stand: &[RecipientRecord],
    asked: OperatorAction,
    now: Time,
    mut data: Value,
) -> Result<MessageChange, InvalidTransition> {
    let fence = WriteFence { status: summary.state.status(), token: None, version: Some(summary.version) };
    let input = asked.input(stand);
    let step = MessageChange::step(summary.uid, fence, summary.state, input, now)?;
    match asked {
        OperatorAction::Resolve(resolution) => data["outcome"] = json!(word(resolution)),
        OperatorAction::Reschedule(send_at) => data["send_at"] = json!(send_at),
        OperatorAction::Cancel | OperatorAction::Replay => {}
    }
    let starts_afresh =
        matches!(asked, OperatorAction::Replay | OperatorAction::Resolve(DoubtResolution::Resend));
    let to = step.to;
    let due_at = match asked {
        OperatorAction::Reschedule(send_at) => Some(send_at.max(now)),
        // Recipients that were not in doubt have waited for the decision.
        OperatorAction::Replay | OperatorAction::Resolve(_) => {
            matches!(to, MessageState::Ready | MessageState::Scheduled(_)).then_some(now)
        }
        OperatorAction::Cancel => None,
    };
    Ok(MessageChange {
        due_at,
        retries: starts_afresh.then_some(0),
        lost_leases: starts_afresh.then_some(0),
        error: step.error.clone().or_else(|| failure(summary, asked, to)),
        recipients: recipients(summary.state, stand, input),
        // Only a message that was never composed was refused by a check.
        preparation: (to == MessageState::Accepted).then_some(PreparationResult::Again(now)),
        erases_bodies: to == MessageState::Sent && summary.sensitive,
        ..step.telling(&data)
    })
}

/// The recipients that the action applies to. Those that a relay accepted are never changed.
fn recipients(
    state: MessageState,
    stand: &[RecipientRecord],
    input: TransitionInput,
) -> Vec<RecipientChange> {
    let (from, to) = match input {
        TransitionInput::Replay if matches!(state, MessageState::Failed | MessageState::Invalid) => {
            (RecipientStatus::Failed, RecipientStatus::Pending)
        }
        TransitionInput::Resolve(DoubtResolution::Sent, _) => {
            (RecipientStatus::InDoubt, RecipientStatus::Sent)
        }
        TransitionInput::Resolve(DoubtResolution::Failed, _) => {
            (RecipientStatus::InDoubt, RecipientStatus::Failed)
        }
        // An attempt is for open recipients, and for those in doubt only if none is open: so that all are
        // sent to, all become open.
        TransitionInput::Resolve(DoubtResolution::Resend, OtherRecipients::Open) => {
            (RecipientStatus::InDoubt, RecipientStatus::Pending)
        }
        _ => return Vec::new(),
    };
    let moved = stand.iter().zip(0..).filter(|(recipient, _)| recipient.status == from);
    moved.map(|(_, position)| RecipientChange { position, status: to, reply: None }).collect()
}

/// The failure to show from now on: a cancelled message keeps its last one, a resolved or replayed one starts
/// without.
fn failure(summary: &MessageSummary, asked: OperatorAction, to: MessageState) -> Option<String> {
    match (asked, to) {
        (OperatorAction::Cancel, MessageState::Cancelled) => summary.error.clone(),
        (OperatorAction::Resolve(DoubtResolution::Failed), MessageState::Failed) => Some(
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

pub(crate) fn word(resolution: DoubtResolution) -> &'static str {
    match resolution {
        DoubtResolution::Sent => "sent",
        DoubtResolution::Failed => "failed",
        DoubtResolution::Resend => "resend",
    }
}

fn refuse(InvalidTransition { state, input }: InvalidTransition) -> ApiError {
    let status = state.status().as_str();
    ApiError::conflict(match input {
        TransitionInput::Cancel(_) => {
            format!("the message is {status}; only one that still waits can be cancelled")
        }
        TransitionInput::Replay if state == MessageState::InDoubt => {
            format!("the message is {status}; settle it with POST /v1/messages/{{id}}/resolve")
        }
        TransitionInput::Replay => {
            format!(
                "the message is {status}; only one that failed, is invalid, or waits for its time or its next attempt can \
                 be sent now"
            )
        }
        TransitionInput::Reschedule => {
            format!("the message is {status}; only one that waits for the time it was given can have another")
        }
        TransitionInput::Resolve(..) => format!("the message is {status}; only one in_doubt can be resolved"),
        _ => format!("the message is {status}; this cannot be done to it"),
    })
}

pub(crate) fn count_transition(to: MessageState) {
    let status = to.status();
    metrics::counter!("postway_state_transitions_total", "state" => status.as_str()).increment(1);
    if status.is_final() {
        metrics::counter!("postway_final_states_total", "state" => status.as_str()).increment(1);
    }
}
