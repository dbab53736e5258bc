//! The memory that unfinished mail may take, of all sessions together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How much a mail takes at a time: small mails take one step.
const STEP_BYTES: usize = 64 * 1024;

/// What there is, and what is taken of it.
#[derive(Debug)]
pub(super) struct Budget {
    taken: AtomicUsize,
    bytes_max: usize,
}

impl Budget {
    pub(super) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), bytes_max })
    }

    /// Nothing of it yet.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    fn take(&self, bytes: usize) -> bool {
        let add = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

/// One mail's part. Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Makes it at least this large; false where there is no room.
    pub(super) fn cover(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let wanted = bytes.next_multiple_of(STEP_BYTES);
        let taken = self.budget.take(wanted - self.bytes);
        if taken {
            self.bytes = wanted;
        }
        taken
    }

    /// An empty share of the same budget.
    pub(super) fn emptied(&self) -> Self {
        self.budget.share()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_and_no_more_is_given_than_there_is() {
        let budget = Budget::new(2 * STEP_BYTES);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.cover(1) && first.cover(STEP_BYTES) && second.cover(STEP_BYTES));
        assert!(!first.cover(STEP_BYTES + 1));
        drop(second);
        assert!(first.cover(2 * STEP_BYTES));
        drop(first);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }
}
