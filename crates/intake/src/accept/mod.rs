//! The way of a message from a request to the store.

pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod compose;
pub(crate) mod crash_point;
pub(crate) mod door;
pub(crate) mod forward;
pub(crate) mod look_up;
pub(crate) mod parse;
pub(crate) mod raw;
pub(crate) mod refused_mail;
pub(crate) mod store;
