//! What is fetched, and from where.

use std::{path::PathBuf, time::Duration};

/// Bounds and places of fetching. The defaults are those of the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchConfig {
    /// The folders that attachments by path may come from: none.
    pub folders: Vec<PathBuf>,
    /// The largest file, in bytes: 25 MiB.
    pub file_bytes_max: usize,
    /// The most that a message's files may have together, in bytes: 50 MiB.
    pub message_bytes_max: usize,
    /// The most of both where large files are linked to instead of mailed, in bytes: 200 MiB.
    pub linked_bytes_max: usize,
    /// How many are fetched at once for one message: 3.
    pub at_once: usize,
    /// How long one file may take: 60 s.
    pub timeout: Duration,
    /// How long its source may be silent: 30 s.
    pub idle_timeout: Duration,
    /// How long all files of a message may take: 180 s.
    pub message_timeout: Duration,
    /// How many bytes of fetched files stay in memory: 32 MiB. A file larger than an eighth of it is kept on disk alone.
    pub memory_bytes_max: u64,
    /// The folder that fetched files are kept in, for postway alone: none, so that they stay in memory.
    pub cache_folder: Option<PathBuf>,
    /// How many bytes of them stay there: 1 GiB. A file larger than a quarter of it is not kept.
    pub cache_bytes_max: u64,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            folders: Vec::new(),
            file_bytes_max: 25 * 1024 * 1024,
            message_bytes_max: 50 * 1024 * 1024,
            linked_bytes_max: 200 * 1024 * 1024,
            at_once: 3,
            timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
            message_timeout: Duration::from_secs(180),
            memory_bytes_max: 32 * 1024 * 1024,
            cache_folder: None,
            cache_bytes_max: 1024 * 1024 * 1024,
        }
    }
}
