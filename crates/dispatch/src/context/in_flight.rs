//! Which messages this process has in its hands.
//!
//! A lease can be durable without anybody here knowing: when the database goes away, the answer to its commit may be lost
//! for good. This tells such a lease from one that is being worked on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::MessageUid;

/// Messages from their claim until their outcome is written. Clones see the same.
#[derive(Clone, Default)]
pub struct InHand(Arc<Mutex<HashMap<MessageUid, u32>>>);

impl InHand {
    fn lock(&self) -> MutexGuard<'_, HashMap<MessageUid, u32>> {
        // Every critical section leaves the map whole, so a poisoned lock is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this message is being worked on here.
    pub fn contains(&self, uid: MessageUid) -> bool {
        self.lock().contains_key(&uid)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn take(&self, uid: MessageUid) {
        *self.lock().entry(uid).or_default() += 1;
    }

    /// Counted, because a message may be claimed again before the one who gave it back has put it down.
    pub(crate) fn put_down(&self, uid: MessageUid) {
        let mut held = self.lock();
        if let Some(count) = held.get_mut(&uid) {
            *count -= 1;
            if *count == 0 {
                held.remove(&uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_taken_again_before_it_was_put_down_stays_in_hand() {
        let (in_hand, uid) = (InHand::default(), MessageUid::from_bytes([7; 16]));
        in_hand.take(uid);
        in_hand.take(uid);
        in_hand.put_down(uid);
        assert!(in_hand.contains(uid));
        in_hand.put_down(uid);
        assert!(!in_hand.contains(uid));
        in_hand.put_down(uid);
        assert!(in_hand.lock().is_empty());
    }
}
