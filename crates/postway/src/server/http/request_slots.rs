//! The slots of requests over HTTP/2.
//!
//! One connection may carry many requests at once, each with its head and the beginning of its body in
//! memory. So they are counted beside the connections, within the same bounds: for a client, and in all. A
//! request without a slot is refused, and its connection goes on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::client::ClientAddress;

use super::connection_limit::SlotRefusal;

/// The slots, and who has them.
pub struct RequestSlots {
    taken: Mutex<TakenRequests>,
    requests_max: usize,
    per_client_max: usize,
}

#[derive(Default)]
struct TakenRequests {
    all: usize,
    by_client: HashMap<ClientAddress, usize>,
}

/// The slot of a request. It is free again when this is dropped.
pub struct RequestSlot {
    slots: Arc<RequestSlots>,
    client: Option<ClientAddress>,
}

impl RequestSlots {
    pub fn new(requests_max: usize, per_client_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: Mutex::default(), requests_max, per_client_max })
    }

    /// Takes a slot for a request of this client; with `None`, no client is counted.
    pub fn take(self: &Arc<Self>, client: Option<ClientAddress>) -> Result<RequestSlot, SlotRefusal> {
        let mut taken = self.taken();
        if taken.all >= self.requests_max {
            return Err(SlotRefusal::ForAnybody);
        }
        if let Some(client) = client {
            let own = taken.by_client.get(&client).copied().unwrap_or_default();
            if own >= self.per_client_max {
                return Err(SlotRefusal::ForClient);
            }
            taken.by_client.insert(client, own + 1);
        }
        taken.all += 1;
        Ok(RequestSlot { slots: self.clone(), client })
    }

    fn taken(&self) -> MutexGuard<'_, TakenRequests> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.all -= 1;
        let Some(client) = self.client else { return };
        if let Some(own) = taken.by_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                taken.by_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_bounded_for_a_client_and_in_all_and_given_back() {
        let slots = RequestSlots::new(4, 2);
        let client = |text: &str| Some(ClientAddress::of(text.parse().unwrap()));
        let mut held: Vec<RequestSlot> = (0..2).map(|_| slots.take(client("192.0.2.1")).unwrap()).collect();
        assert_eq!(slots.take(client("192.0.2.1")).err(), Some(SlotRefusal::ForClient));
        held.push(slots.take(client("192.0.2.2")).unwrap());
        held.push(slots.take(None).unwrap());
        for who in [client("192.0.2.3"), client("192.0.2.2"), None] {
            assert_eq!(slots.take(who).err(), Some(SlotRefusal::ForAnybody));
        }
        held.remove(0);
        held.push(slots.take(client("192.0.2.1")).unwrap());
        held.clear();
        let taken = slots.taken();
        assert!(taken.all == 0 && taken.by_client.is_empty(), "who has no request is forgotten");
    }
}
