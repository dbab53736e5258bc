//! The memory budget for unfinished mail of all sessions.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// A mail takes memory in steps of this size; small mails take one step.
const STEP_BYTES: usize = 64 * 1024;

/// The total, and how much of it is taken.
#[derive(Debug)]
pub(super) struct MailMemoryBudget {
    taken: AtomicUsize,
    bytes_max: usize,
}

impl MailMemoryBudget {
    pub(super) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), bytes_max })
    }

    /// A new, empty share.
    pub(super) fn share(self: &Arc<Self>) -> MailMemoryShare {
        MailMemoryShare { budget: self.clone(), bytes: 0 }
    }

    fn take(&self, bytes: usize) -> bool {
        let add = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

/// The share of one mail. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct MailMemoryShare {
    budget: Arc<MailMemoryBudget>,
    bytes: usize,
}

impl MailMemoryShare {
    /// Grows the share to at least `bytes`; `false` if the budget has not enough left.
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
    pub(super) fn new_empty(&self) -> Self {
        self.budget.share()
    }
}

impl Drop for MailMemoryShare {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_and_no_more_is_given_than_there_is() {
        let budget = MailMemoryBudget::new(2 * STEP_BYTES);
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.cover(1) && first.cover(STEP_BYTES) && second.cover(STEP_BYTES));
        assert!(!first.cover(STEP_BYTES + 1));
        drop(second);
        assert!(first.cover(2 * STEP_BYTES));
        drop(first);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }
}
