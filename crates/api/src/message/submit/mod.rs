//! Calls that hand over mail: one message, a ready-made mail, or a batch.

pub(crate) mod accept;
pub(crate) mod accept_raw;
pub(crate) mod batch;
pub(crate) mod request_schema;
