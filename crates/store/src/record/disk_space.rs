//! What a database takes of the disk.

use std::time::Duration;

/// What a database that is a file takes of the disk, and what of it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSpace {
    /// The database itself.
    pub file_bytes: u64,
    /// Of it, what nothing is stored in.
    pub free_bytes: u64,
    /// Its write-ahead log.
    pub log_bytes: u64,
    /// For how long a reader keeps a large log from being folded back.
    pub log_held_for: Option<Duration>,
    /// Whether there is more to give back at once.
    pub more: bool,
}
