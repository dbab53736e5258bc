//! What administrators do: tenants and their keys, the audit log, nodes, outbox sources, clean-up and
//! erasure.

pub(crate) mod audit;
pub(crate) mod audit_chain;
pub(crate) mod cleanup;
pub(crate) mod erase;
pub(crate) mod node;
pub(crate) mod outbox;
pub(crate) mod outbox_token;
pub(crate) mod tenant;
