//! Nodes: the register of those that share a database, who of them is alive, and what writers know of the others.

pub mod liveness;
pub(crate) mod placement;
pub(crate) mod registry;
pub(crate) mod server_silence;
pub(crate) mod single;
