//! Reads for people and monitors: search, the state of the queue, and what blocks waiting messages.

pub mod blocked_by;
pub(crate) mod queue_stats;
pub(crate) mod search;
