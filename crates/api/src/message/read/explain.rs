//! `GET /v1/messages/{id}/explain`: what a message waits for, and when it will be sent.

use axum::{Json, extract::State};
use postway_domain::{
    EventKind, MessageEvent, MessageState as Stands, MessageStatus, Time, message::ScheduleReason,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    auth::Reader,
    http::error::ApiError,
    message::{
        MessagePathId, find,
        read::blockers::{BlockerFacts, MessageBlocker},
        view::{FailureView, MessageRouteView, reason},
    },
    state::SharedState,
};

/// Why a message is where it is.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct MessageExplanation {
    /// The message's status.
    #[schema(value_type = String, example = "scheduled")]
    status: MessageStatus,
    /// What happens to it now, or why it ended, if it waits for no gate.
    #[schema(example = json!(null))]
    reason: Option<String>,
    /// What it waits for; empty if nothing blocks it.
    gates: Vec<MessageBlocker>,
    /// When it will be sent, if that is known.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
    /// How routes chose its account; null if it named one, or no route matched.
    #[schema(example = json!(null))]
    route: Option<MessageRouteView>,
    /// What an operator last did to it, if one did something.
    acted: Option<OperatorActView>,
}

/// What an operator last did to a message.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = OperatorAct)]
pub(crate) struct OperatorActView {
    /// Who: `admin`, `user:` and a name, or `key:` and an id; absent where an older version did not note it.
    #[schema(example = "user:ada")]
    actor: Option<String>,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// What happened to the message.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "cancelled")]
    kind: EventKind,
}

/// Explain what a message waits for
///
/// Every gate that is closed for it now: a suspension of its tenant, batch or account, a used-up limit, an
/// open circuit, a busy destination, its schedule, its next retry, a doubt, an isolated node, its turn.
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/explain",
    operation_id = "explainMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of the message, or its uid")),
    responses((status = 200, description = "What it waits for", body = MessageExplanation))
)]
pub(crate) async fn explain(
    State(app): State<SharedState>,
    caller: Reader,
    MessagePathId(id): MessagePathId,
) -> Result<Json<MessageExplanation>, ApiError> {
    let record = find(&app, &caller.tenant, &id).await?;
    let (route, acted) = (MessageRouteView::of(&record.events), last_act(&record.events));
    let message = record.summary;
    let (status, now) = (message.state.status(), app.clock.now());
    // While it is being transmitted, or after its end, nothing blocks it. The end has its reason.
    if status.is_final() || status == MessageStatus::Sending {
        let error = message.error.as_deref().map(FailureView::read);
        let reason = reason(message.state, error.as_ref());
        return Ok(Json(MessageExplanation {
            status,
            reason,
            gates: Vec::new(),
            next_at: None,
            route,
            acted,
        }));
    }
    let gates = BlockerFacts::about(&app, &message, now).await?.gates(&message, now);
    let next_at = next_at(&gates, message.due_at);
    Ok(Json(MessageExplanation {
        status,
        reason: progress(message.state).map(str::to_owned),
        gates,
        next_at,
        route,
        acted,
    }))
}

/// The data of an event that an operator caused.
#[derive(Deserialize)]
struct OperatorEventData {
    by: String,
    #[serde(default)]
    actor: Option<String>,
}

fn last_act(events: &[MessageEvent]) -> Option<OperatorActView> {
    events.iter().rev().find_map(|event| {
        let data: OperatorEventData = serde_json::from_str(event.data.as_deref()?).ok()?;
        (data.by == "operator").then_some(OperatorActView {
            actor: data.actor,
            at: event.at,
            kind: event.kind,
        })
    })
}

/// What happens to a message that is not composed yet.
fn progress(state: Stands) -> Option<&'static str> {
    match state {
        Stands::Accepted => Some(
            "it is being prepared: it waits for its turn to have its attachments fetched and be composed",
        ),
        Stands::Validating => {
            Some("it is being prepared: its attachments are being fetched and its content checked")
        }
        Stands::Scheduled(ScheduleReason::Fetch) => {
            Some("it is being prepared: something it needs could not be had yet")
        }
        _ => None,
    }
}

/// When the last of the gates opens; unknown if one of them waits for a person.
fn next_at(gates: &[MessageBlocker], due_at: Option<Time>) -> Option<Time> {
    match gates {
        [] => due_at,
        gates => {
            gates.iter().map(|gate| gate.until).min()?.and(gates.iter().filter_map(|gate| gate.until).max())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(until: Option<i64>) -> MessageBlocker {
        MessageBlocker { gate: "limit", reason: String::new(), until: until.map(Time::from_millis) }
    }

    #[test]
    fn who_acted_last_is_told() {
        let event = |seq, kind, data: &str| MessageEvent {
            seq,
            at: Time::from_millis(seq),
            kind,
            data: Some(data.to_owned()),
        };
        let events = [
            event(1, EventKind::Replayed, r#"{"by":"operator","actor":"user:ada"}"#),
            event(2, EventKind::Sending, r#"{"account":"relay"}"#),
        ];
        let act = last_act(&events).unwrap();
        assert_eq!((act.actor.as_deref(), act.kind), (Some("user:ada"), EventKind::Replayed));
        let older = [event(1, EventKind::Cancelled, r#"{"by":"operator","request_id":"r"}"#)];
        assert_eq!(last_act(&older).unwrap().actor, None);
        assert_eq!(last_act(&events[1..]), None);
    }

    #[test]
    fn it_goes_when_the_last_gate_opens() {
        let due = Some(Time::from_millis(5));
        assert_eq!(next_at(&[], due), due);
        assert_eq!(next_at(&[gate(Some(7)), gate(Some(9)), gate(Some(8))], due), Some(Time::from_millis(9)));
        assert_eq!(next_at(&[gate(Some(7)), gate(None)], due), None, "somebody must act");
    }
}
