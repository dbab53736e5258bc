//! Metrics of states: each state that messages enter, and each final state.

use postway_domain::MessageStatus;

/// Counts messages that entered a state.
pub(crate) fn count_entered(status: MessageStatus, count: u64) {
    metrics::counter!("postway_state_transitions_total", "state" => status.as_str()).increment(count);
    if status.is_final() {
        metrics::counter!("postway_final_states_total", "state" => status.as_str()).increment(count);
    }
}
