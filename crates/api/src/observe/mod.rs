//! What monitoring reads: health, metrics, the queue's figures, an account's history, and the overview of the
//! page.

pub(crate) mod account_history;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod overview;
pub(crate) mod queue_stats;
pub(crate) mod stream_history;
