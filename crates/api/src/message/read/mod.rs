//! Calls that find messages and show them, with the reason why each of them waits.

pub(crate) mod blocked_filter;
pub(crate) mod blockers;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod list;
pub(crate) mod search_text;
pub(crate) mod show;
pub(crate) mod summaries;
