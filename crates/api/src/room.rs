//! The memory that bodies of requests may take, of all requests together.
//!
//! Each body has its bound, and so has their sum: whoever hands over many large mails at once does not take the memory of the
//! others. Beyond it a request is 503, and may come again in a moment. Small bodies are not counted; the number of
//! connections bounds them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// What there is at least.
const BYTES_MIN: usize = 512 * 1024 * 1024;
/// So many of the largest bodies have room.
const LARGEST_MIN: usize = 8;
/// How much a body takes at a time, and how much of it is not counted.
const STEP_BYTES: usize = 64 * 1024;

/// What there is, and what is taken of it.
#[derive(Debug)]
pub(crate) struct Room {
    taken: AtomicUsize,
    bytes_max: usize,
}

impl Room {
    /// Enough for bodies of at most so many bytes each.
    pub(crate) fn for_bodies_of(bytes_max: usize) -> Arc<Self> {
        Self::of(BYTES_MIN.max(bytes_max.saturating_mul(LARGEST_MIN)))
    }

    /// Of this size.
    pub(crate) fn of(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), bytes_max })
    }

    /// Nothing of it yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share(Arc::new(Part { room: self.clone(), bytes: AtomicUsize::new(0) }))
    }

    fn take(&self, bytes: usize) -> bool {
        let add = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

/// One request's part, given back when the last handle on it is dropped. It is read by one task: no two make it larger.
#[derive(Clone, Debug)]
pub(crate) struct Share(Arc<Part>);

#[derive(Debug)]
struct Part {
    room: Arc<Room>,
    bytes: AtomicUsize,
}

impl Share {
    /// Makes it large enough for so many bytes; false where there is no room.
    pub(crate) fn cover(&self, bytes: usize) -> bool {
        let has = self.0.bytes.load(Ordering::Relaxed);
        let wanted = bytes.saturating_sub(STEP_BYTES).next_multiple_of(STEP_BYTES);
        if wanted <= has {
            return true;
        }
        let taken = self.0.room.take(wanted - has);
        if taken {
            self.0.bytes.store(wanted, Ordering::Relaxed);
        }
        taken
    }

    /// Gives all of it back.
    pub(crate) fn release(&self) {
        let bytes = self.0.bytes.swap(0, Ordering::Relaxed);
        self.0.room.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_and_no_more_is_given_than_there_is() {
        let room = Room::of(2 * STEP_BYTES);
        let (first, second) = (room.share(), room.share());
        assert!(first.cover(STEP_BYTES), "what is small is not counted");
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
        assert!(first.cover(2 * STEP_BYTES) && second.cover(STEP_BYTES + 1));
        assert!(!first.cover(2 * STEP_BYTES + 1));
        second.release();
        assert!(first.cover(3 * STEP_BYTES) && !second.cover(2 * STEP_BYTES));
        let handle = first.clone();
        drop(first);
        assert!(!second.cover(2 * STEP_BYTES), "it is still held");
        drop(handle);
        assert!(second.cover(2 * STEP_BYTES));
        drop(second);
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
    }
}
