//! A notification while this process has it: its lease, its subscriber, and the outcome of its call. Only
//! [`message_state`] and [`target`] do I/O: they read from the store.

pub(crate) mod batch;
pub(crate) mod call_limits;
pub(crate) mod message_state;
pub(crate) mod outcome;
pub(crate) mod retry_schedule;
pub(crate) mod target;
