//! This process among the nodes that share its database: its heartbeat, its clock, the duties that one node
//! has at a time, and the check that all nodes share their storage.

pub mod clock;
pub mod duties;
pub mod membership;
pub mod shared_storage_check;
