//! The allowance of one message's files: the size of each, their size together, and their share of the memory
//! budget for all messages. The fetches that run for the message share it.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use super::error::FetchFault;
use crate::budget::FairShare;

/// The memory is taken from the common budget in steps of this size.
const STEP_BYTES: usize = 256 * 1024;

pub(super) struct FetchAllowance {
    pub(super) file_bytes_max: usize,
    bytes_max: usize,
    left: AtomicUsize,
    memory: Mutex<FairShare>,
}

impl FetchAllowance {
    pub(super) fn new(file_bytes_max: usize, bytes_max: usize, memory: FairShare) -> Self {
        Self { file_bytes_max, bytes_max, left: AtomicUsize::new(bytes_max), memory: Mutex::new(memory) }
    }

    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes `bytes` from the allowance, or nothing if that many are not left.
    pub(super) fn take(&self, bytes: usize) -> Result<(), FetchFault> {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        let left = taken.map_err(|_| FetchFault::too_large_together(self.bytes_max))? - bytes;
        let wanted = (self.bytes_max - left).next_multiple_of(STEP_BYTES).min(self.bytes_max);
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.grow_to(wanted) { Ok(()) } else { Err(FetchFault::no_memory()) }
    }
}
