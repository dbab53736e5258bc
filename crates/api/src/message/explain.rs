//! `GET /v1/messages/{id}/explain`: what holds a message, and when it goes.

use axum::{Json, extract::State};
use postway_domain::{State as Stands, Status, Time, message::Wait};
use postway_store::record::MessageSummary;
use serde::Serialize;
use utoipa::ToSchema;

use super::{GivenId, find, view::FailureView};
use crate::{auth::Caller, error::ApiError, state::Shared};

/// What holds a message.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// Where it stands.
    #[schema(value_type = String, example = "scheduled")]
    status: Status,
    /// What it waits for; empty when nothing holds it.
    gates: Vec<Gate>,
    /// When it goes, as far as is known.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
}

/// One thing that holds a message.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Gate {
    /// `tenant`, `batch`, `account`, `limit`, `circuit`, `destination`, `schedule`, `retry` or `doubt`.
    #[schema(example = "retry")]
    gate: &'static str,
    /// Why, for people.
    reason: String,
    /// Until when; null when somebody must act.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Time>,
}

/// Explain what holds a message
#[utoipa::path(
    get,
    path = "/v1/messages/{id}/explain",
    operation_id = "explainMessage",
    tag = "messages",
    params(("id" = String, Path, description = "Your id of it, or its uid")),
    responses((status = 200, description = "What it waits for", body = Explanation))
)]
pub(crate) async fn explain(
    State(app): State<Shared>,
    caller: Caller,
    GivenId(id): GivenId,
) -> Result<Json<Explanation>, ApiError> {
    let message = find(&app, &caller.tenant, &id).await?.summary;
    let goes_on = !message.state.status().is_final();
    let has_account = !goes_on || app.store.account(&caller.tenant, &message.lane.account).await?.is_some();
    Ok(Json(explanation(&message, has_account, app.clock.now())))
}

fn explanation(message: &MessageSummary, has_account: bool, now: Time) -> Explanation {
    let mut gates = Vec::new();
    if !has_account {
        let reason =
            format!("there is no account `{}`: create it, or cancel the message", message.lane.account);
        gates.push(Gate { gate: "account", reason, until: None });
    }
    // What is due already is held by nothing but its turn.
    let until = message.due_at.filter(|due| *due > now);
    match message.state {
        Stands::Scheduled(Wait::SendAt) if until.is_some() => {
            gates.push(Gate { gate: "schedule", reason: "its send_at has not come yet".to_owned(), until });
        }
        Stands::Scheduled(Wait::Retry | Wait::Fetch) if until.is_some() => {
            gates.push(Gate { gate: "retry", reason: last_failure(message), until });
        }
        // Ready mail with a failure behind it was given back because its account was at fault.
        Stands::Ready if message.error.is_some() => {
            gates.push(Gate { gate: "circuit", reason: last_failure(message), until });
        }
        Stands::InDoubt => gates.push(doubt(message)),
        Stands::Accepted
        | Stands::Validating
        | Stands::Ready
        | Stands::Scheduled(_)
        | Stands::Sending { .. }
        | Stands::Sent
        | Stands::Failed
        | Stands::Invalid
        | Stands::Suppressed
        | Stands::Cancelled
        | Stands::Expired => {}
    }
    let next_at = message.due_at.filter(|_| has_account && !message.state.status().is_final());
    Explanation { status: message.state.status(), gates, next_at }
}

fn last_failure(message: &MessageSummary) -> String {
    let failure = message.error.as_deref().map(FailureView::read);
    match failure.as_ref().and_then(FailureView::words) {
        Some(words) => format!("attempt {} failed: {words}", message.attempt),
        None => format!("attempt {} failed", message.attempt),
    }
}

fn doubt(message: &MessageSummary) -> Gate {
    let reason = match message.due_at {
        Some(_) => {
            "the relay's answer to the last attempt was lost; it is sent again under the same Message-ID"
        }
        None => {
            "the relay's answer to the last attempt was lost; it is held until someone settles it with \
             POST /v1/messages/{id}/resolve"
        }
    };
    Gate { gate: "doubt", reason: reason.to_owned(), until: message.due_at }
}
