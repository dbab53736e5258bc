//! Storing: hands composed messages to the store.

pub(crate) mod dedup;
pub(crate) mod state_metrics;
