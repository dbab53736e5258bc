//! The messages in flight in this process.
//!
//! A lease can be durable without this process knowing: if the database connection breaks, the answer to the
//! commit is lost. Housekeeping compares leases with this set to find those that no courier works on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::MessageUid;

/// Messages from their claim until their outcome is durable. Clones share one set.
#[derive(Clone, Default)]
pub struct InFlightMessages(Arc<Mutex<HashMap<MessageUid, u32>>>);

impl InFlightMessages {
    fn lock(&self) -> MutexGuard<'_, HashMap<MessageUid, u32>> {
        // Every critical section leaves the map consistent, so a poisoned lock can still be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the message is in flight in this process.
    pub fn contains(&self, uid: MessageUid) -> bool {
        self.lock().contains_key(&uid)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn add(&self, uid: MessageUid) {
        *self.lock().entry(uid).or_default() += 1;
    }

    /// Counted, because a message that was returned may be claimed again before its first holder removes it.
    pub(crate) fn remove(&self, uid: MessageUid) {
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(&uid) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_added_again_before_it_was_removed_stays_in_flight() {
        let (in_flight, uid) = (InFlightMessages::default(), MessageUid::from_bytes([7; 16]));
        in_flight.add(uid);
        in_flight.add(uid);
        in_flight.remove(uid);
        assert!(in_flight.contains(uid));
        in_flight.remove(uid);
        assert!(!in_flight.contains(uid));
        in_flight.remove(uid);
        assert!(in_flight.lock().is_empty());
    }
}
