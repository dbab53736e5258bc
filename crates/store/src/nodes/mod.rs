//! Nodes: the register of the processes that share a database, their liveness, and the placement of accounts.

pub mod liveness;
pub(crate) mod placement;
pub(crate) mod registry;
pub(crate) mod server_silence;
pub(crate) mod single;
