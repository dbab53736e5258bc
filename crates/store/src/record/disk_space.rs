//! The disk space that a database uses.

use std::time::Duration;

/// The disk space that a database file uses, and how much of it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSpace {
    /// The size of the database file.
    pub file_bytes: u64,
    /// The part of the file in which nothing is stored.
    pub free_bytes: u64,
    /// The size of its write-ahead log.
    pub log_bytes: u64,
    /// For how long a reader has kept a large log from being checkpointed.
    pub log_held_for: Option<Duration>,
    /// Whether more space can be returned to the disk right away.
    pub more: bool,
}
