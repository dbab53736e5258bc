//! One folder for each database, and one for a store in memory.

#[cfg(any(test, feature = "conformance"))]
pub mod memory;
pub mod mysql;
pub mod postgres;
#[cfg(test)]
mod silent_server;
pub mod sqlite;
