//! How much each file of one message may take, and all of them together, shared by the fetches that run for it; and the
//! memory that it takes of what there is for the files of all messages.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use super::error::Fault;
use crate::budget::FairShare;

/// How much is taken of the common memory at a time.
const STEP_BYTES: usize = 256 * 1024;

pub(super) struct Room {
    pub(super) file_bytes_max: usize,
    bytes_max: usize,
    left: AtomicUsize,
    memory: Mutex<FairShare>,
}

impl Room {
    pub(super) fn new(file_bytes_max: usize, bytes_max: usize, memory: FairShare) -> Self {
        Self { file_bytes_max, bytes_max, left: AtomicUsize::new(bytes_max), memory: Mutex::new(memory) }
    }

    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes so many bytes, or none at all where there are not so many left.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Fault> {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        let left = taken.map_err(|_| Fault::no_room(self.bytes_max))? - bytes;
        let wanted = (self.bytes_max - left).next_multiple_of(STEP_BYTES).min(self.bytes_max);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.grow_to(wanted) { Ok(()) } else { Err(Fault::no_memory()) }
    }
}
