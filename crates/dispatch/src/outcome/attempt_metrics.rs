//! The log line and the metrics of an attempt, written once its outcome is durable.

use postway_domain::{MessageStatus, message::AttemptOutcome};
use postway_store::record::ClaimedMessage;

use super::AttemptVerdict;

/// Counts a message that entered `state`.
pub(crate) fn count_entered(state: MessageStatus) {
    metrics::counter!("postway_state_transitions_total", "state" => state.as_str()).increment(1);
    if state.is_final() {
        metrics::counter!("postway_final_states_total", "state" => state.as_str()).increment(1);
    }
}

/// Logs one line and records the metrics of an attempt. The line has the number of recipients and never an
/// address.
pub(crate) fn record_attempt(job: &ClaimedMessage, verdict: &AttemptVerdict) {
    let word = super::outcome_word(verdict.outcome);
    let state = verdict.then.as_ref().unwrap_or(&verdict.change).to.status();
    let duration_ms = verdict.duration.as_millis() as u64;
    let queued_ms = job.claimed_at.since(job.created_at).as_millis() as u64;
    match &verdict.failure {
        // Returned without an attempt: at a higher level these lines would drown the others.
        _ if verdict.change.attempt.is_none() && state == MessageStatus::Ready => {
            let code = verdict.failure.as_ref().map(|failure| failure.code.as_ref());
            tracing::debug!(code, "returned unsent");
        }
        None => tracing::info!(
            state = state.as_str(),
            outcome = word,
            duration_ms,
            queued_ms,
            recipients = job.recipients.len(),
            provider_id = verdict.provider_message_id.as_deref(),
            "attempt ended"
        ),
        Some(failure) => tracing::warn!(
            state = state.as_str(), outcome = word, duration_ms, queued_ms, recipients = job.recipients.len(),
            code = %failure.code, category = %failure.category, phase = %failure.phase, "attempt ended"
        ),
    }
    count_entered(state);
    metrics::histogram!("postway_processing_seconds", "state" => "sending").record(verdict.duration);
    if job.attempt == 1 {
        let queued = job.claimed_at.since(job.created_at);
        metrics::histogram!("postway_processing_seconds", "state" => "ready").record(queued);
    }
    match verdict.outcome {
        AttemptOutcome::Sent | AttemptOutcome::SentEarlier => {
            let took = verdict.change.at.since(job.created_at);
            metrics::histogram!("postway_send_seconds").record(took);
        }
        AttemptOutcome::Retry => {
            let category =
                verdict.failure.as_ref().map_or("unknown".into(), |failure| failure.category.to_string());
            metrics::counter!("postway_retries_total", "category" => category).increment(1);
        }
        AttemptOutcome::InDoubt | AttemptOutcome::InDoubtEarlier if verdict.change.doubts.is_some() => {
            metrics::counter!("postway_in_doubt_total").increment(1);
        }
        AttemptOutcome::InDoubt
        | AttemptOutcome::InDoubtEarlier
        | AttemptOutcome::Captured
        | AttemptOutcome::Failed
        | AttemptOutcome::Exhausted
        | AttemptOutcome::Returned
        | AttemptOutcome::Quarantined => {}
    }
}
