//! How much each file of one message may take, and all of them together, shared by the fetches that run for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::Fault;

pub(super) struct Room {
    pub(super) file_bytes_max: usize,
    bytes_max: usize,
    left: AtomicUsize,
}

impl Room {
    pub(super) fn new(file_bytes_max: usize, bytes_max: usize) -> Self {
        Self { file_bytes_max, bytes_max, left: AtomicUsize::new(bytes_max) }
    }

    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes so many bytes, or none at all where there are not so many left.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Fault> {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| Fault::no_room(self.bytes_max))
    }
}
