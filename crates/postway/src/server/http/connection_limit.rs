//! The slots of HTTP connections: how many there are, who has them, and which may be closed for another
//! connection.
//!
//! One client may have a part of the slots, so that it cannot take all. Programs on this machine and trusted
//! proxies connect for many clients and are not bounded this way. When all slots are taken, the connection
//! that has been idle for longest is closed: one without a request in progress, whether it was never used or
//! waits for its next. Only if every connection is busy is a new one refused.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use postway_domain::client::ClientAddress;
use tokio_util::sync::CancellationToken;

/// Connections beyond the bound that may still be on their way out.
const LEAVING_MAX: usize = 64;
/// A request is in progress.
const BUSY: u64 = u64::MAX;
/// Its answer was made, but is not written out yet.
const ANSWERED: u64 = u64::MAX - 1;

/// The slots of a listener.
pub struct ConnectionSlots {
    open: Mutex<OpenConnections>,
    connections_max: usize,
    per_client_max: usize,
    /// Rises with each connection that becomes idle: the lower, the longer ago.
    idle_count: Arc<AtomicU64>,
}

#[derive(Default)]
struct OpenConnections {
    last_number: u64,
    by_number: BTreeMap<u64, Arc<ConnectionActivity>>,
    by_client: HashMap<ClientAddress, usize>,
    /// Connections that were asked to close and have not closed yet.
    leaving: usize,
}

/// Why there is no free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotRefusal {
    /// This client has all the connections it may have.
    ForClient,
    /// All are taken, and none of them is idle.
    ForAnybody,
}

impl SlotRefusal {
    /// The label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ForClient => "client",
            Self::ForAnybody => "full",
        }
    }
}

/// The activity of a connection.
pub struct ConnectionActivity {
    /// [`BUSY`], [`ANSWERED`], or since when it is idle.
    state: AtomicU64,
    /// Requests that were begun.
    begun: AtomicU64,
    idle_count: Arc<AtomicU64>,
    wanted: CancellationToken,
}

impl ConnectionActivity {
    /// Whether neither a request is in progress nor an answer being written.
    pub fn is_idle(&self) -> bool {
        self.state.load(Ordering::Acquire) < ANSWERED
    }

    /// How many requests were begun.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// Notes that everything has been written.
    pub fn flushed(&self) {
        let idle = self.idle_count.fetch_add(1, Ordering::Relaxed);
        let _ = self.state.compare_exchange(ANSWERED, idle, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Pends until the slot is needed for another connection.
    pub async fn wanted(&self) {
        self.wanted.cancelled().await;
    }
}

/// A request in progress; over when it is dropped.
pub struct RequestInProgress(Arc<ConnectionActivity>);

impl RequestInProgress {
    pub fn begin(occupancy: &Arc<ConnectionActivity>) -> Self {
        occupancy.state.store(BUSY, Ordering::Release);
        occupancy.begun.fetch_add(1, Ordering::AcqRel);
        Self(occupancy.clone())
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.state.store(ANSWERED, Ordering::Release);
    }
}

/// The slot of a connection. It is free again when this is dropped.
pub struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    client: Option<ClientAddress>,
    /// The activity of its connection.
    pub occupancy: Arc<ConnectionActivity>,
}

impl ConnectionSlots {
    pub fn new(connections_max: usize, per_client_max: usize) -> Arc<Self> {
        let (open, idle_count) = (Mutex::default(), Arc::default());
        Arc::new(Self { open, connections_max, per_client_max, idle_count })
    }

    /// Takes a slot for a connection of this client; with `None`, no client is counted.
    pub fn take(self: &Arc<Self>, client: Option<ClientAddress>) -> Result<ConnectionSlot, SlotRefusal> {
        let mut open = self.open();
        let own = client.and_then(|client| open.by_client.get(&client)).copied().unwrap_or_default();
        if own >= self.per_client_max {
            return Err(SlotRefusal::ForClient);
        }
        if open.leaving >= LEAVING_MAX {
            return Err(SlotRefusal::ForAnybody);
        }
        if open.by_number.len() - open.leaving >= self.connections_max {
            close_longest_idle(&mut open)?;
        }
        if let Some(client) = client {
            open.by_client.insert(client, own + 1);
        }
        let occupancy = Arc::new(ConnectionActivity {
            state: AtomicU64::new(self.idle_count.fetch_add(1, Ordering::Relaxed)),
            begun: AtomicU64::new(0),
            idle_count: self.idle_count.clone(),
            wanted: CancellationToken::new(),
        });
        open.last_number += 1;
        let number = open.last_number;
        open.by_number.insert(number, occupancy.clone());
        metrics::gauge!("postway_http_connections").set(open.by_number.len() as f64);
        Ok(ConnectionSlot { slots: self.clone(), number, client, occupancy })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the connection that has been idle for longest to close.
fn close_longest_idle(open: &mut OpenConnections) -> Result<(), SlotRefusal> {
    let idle = open.by_number.values().filter(|one| one.is_idle() && !one.wanted.is_cancelled());
    let oldest = idle.min_by_key(|one| one.state.load(Ordering::Acquire));
    oldest.ok_or(SlotRefusal::ForAnybody)?.wanted.cancel();
    open.leaving += 1;
    Ok(())
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.slots.open();
        open.by_number.remove(&self.number);
        if self.occupancy.wanted.is_cancelled() {
            open.leaving -= 1;
        }
        metrics::gauge!("postway_http_connections").set(open.by_number.len() as f64);
        let Some(client) = self.client else { return };
        if let Some(own) = open.by_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                open.by_client.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Option<ClientAddress> {
        Some(ClientAddress::of(text.parse().unwrap()))
    }

    #[test]
    fn a_client_has_its_share_and_a_proxy_has_none() {
        let slots = ConnectionSlots::new(100, 2);
        let mut held: Vec<ConnectionSlot> =
            (0..2).map(|_| slots.take(client("2001:db8::1")).unwrap()).collect();
        assert_eq!(
            slots.take(client("2001:db8::2")).err(),
            Some(SlotRefusal::ForClient),
            "a /64 is one client"
        );
        held.push(slots.take(client("192.0.2.1")).unwrap());
        held.extend((0..50).map(|_| slots.take(None).unwrap()));
        held.remove(0);
        assert!(slots.take(client("2001:db8::3")).is_ok());
        held.clear();
        assert!(slots.open().by_client.is_empty(), "who has no connection is forgotten");
    }

    #[test]
    fn when_all_is_full_the_longest_idle_makes_room_and_the_busy_stay() {
        let slots = ConnectionSlots::new(3, 3);
        let [first, second, third] = [(); 3].map(|()| slots.take(client("192.0.2.1")).unwrap());
        let request = RequestInProgress::begin(&first.occupancy);
        let fourth = slots.take(client("192.0.2.2")).unwrap();
        assert!(
            second.occupancy.wanted.is_cancelled(),
            "the first is busy, the second is the oldest idle one"
        );
        assert!(!first.occupancy.wanted.is_cancelled() && !third.occupancy.wanted.is_cancelled());
        let fifth = slots.take(client("192.0.2.2")).unwrap();
        assert!(
            third.occupancy.wanted.is_cancelled(),
            "one that is leaving does not count, and does not go twice"
        );
        drop((second, third));
        assert_eq!(slots.open().leaving, 0);
        let requests = [&fourth, &fifth].map(|slot| RequestInProgress::begin(&slot.occupancy));
        assert_eq!(slots.take(client("192.0.2.3")).err(), Some(SlotRefusal::ForAnybody));
        drop((request, requests));
        assert_eq!(
            slots.take(client("192.0.2.3")).err(),
            Some(SlotRefusal::ForAnybody),
            "answers are still on their way"
        );
        fourth.occupancy.flushed();
        first.occupancy.flushed();
        let _sixth = slots.take(client("192.0.2.3")).unwrap();
        assert!(fourth.occupancy.wanted.is_cancelled(), "it became idle before the first");
    }
}
