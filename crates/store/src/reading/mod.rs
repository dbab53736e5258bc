//! Reads for people and monitors: search, the state of the queue, and what blocks messages that wait.

pub mod blocked_by;
pub(crate) mod queue_stats;
pub(crate) mod search;
