//! The queue: accepting, leasing and changing messages, the same for every SQL database.

pub(crate) mod bulk_step;
pub(crate) mod claim;
pub(crate) mod clock_rollback;
pub(crate) mod collapse;
pub(crate) mod dedup;
pub(crate) mod dialogue;
pub mod hand_over;
pub(crate) mod lane_memory;
#[cfg(test)]
mod lane_tests;
pub(crate) mod lane_upkeep;
pub(crate) mod lease_conditions;
pub(crate) mod new_message_row;
pub(crate) mod packing;
pub(crate) mod preparation;
pub(crate) mod queue_state;
pub(crate) mod rate_limit;
pub(crate) mod transaction;
