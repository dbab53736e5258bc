//! Calls that change a message's state on an operator's behalf, one message or many.

pub(crate) mod actions;
pub(crate) mod dead_letter;
pub(crate) mod transition;
