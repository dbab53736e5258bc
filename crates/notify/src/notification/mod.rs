//! A notification while this process has it: what it is, whom it goes to, and what its call came to. No I/O but for the
//! reads of [`message_state`] and [`target`].

pub(crate) mod message_state;
pub(crate) mod outcome;
pub(crate) mod retry_schedule;
pub(crate) mod target;
