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
    time::Duration,
};

use postway_domain::client::ClientAddress;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::request_slots::RequestSlot;

/// Connections beyond the bound that may still be on their way out.
const LEAVING_MAX: usize = 64;

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

/// The activity of a connection. Over HTTP/2 several requests may be in progress at once.
pub struct ConnectionActivity {
    state: Mutex<ActivityState>,
    idle_count: Arc<AtomicU64>,
    wanted: CancellationToken,
}

struct ActivityState {
    /// Requests whose answers are not complete yet.
    in_progress: usize,
    /// Whether an answer was made that is not written out yet.
    is_unwritten: bool,
    /// Since when the connection is idle, if it is: in the order of all connections, and by the clock.
    idle_rank: u64,
    idle_since: Instant,
    /// Requests that were begun.
    begun: u64,
    /// Since when the client has not taken a piece of an answer, by the number of the request.
    untaken: BTreeMap<u64, Instant>,
}

impl ConnectionActivity {
    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether neither a request is in progress nor an answer being written.
    pub fn is_idle(&self) -> bool {
        self.state().is_idle()
    }

    /// How long the connection has been idle; zero if it is not.
    pub fn idle_for(&self, now: Instant) -> Duration {
        let state = self.state();
        if state.is_idle() { now.saturating_duration_since(state.idle_since) } else { Duration::ZERO }
    }

    /// Whether the client has left a piece of an answer for this long.
    pub fn is_stalled(&self, now: Instant, patience: Duration) -> bool {
        self.state().untaken.values().any(|since| now.saturating_duration_since(*since) >= patience)
    }

    /// How many requests were begun.
    pub fn begun(&self) -> u64 {
        self.state().begun
    }

    /// Notes that everything has been written.
    pub fn flushed(&self) {
        let mut state = self.state();
        if state.in_progress == 0 && state.is_unwritten {
            state.is_unwritten = false;
            state.idle_rank = self.idle_count.fetch_add(1, Ordering::Relaxed);
            state.idle_since = Instant::now();
        }
    }

    /// Pends until the slot is needed for another connection.
    pub async fn wanted(&self) {
        self.wanted.cancelled().await;
    }
}

impl ActivityState {
    fn is_idle(&self) -> bool {
        self.in_progress == 0 && !self.is_unwritten
    }
}

/// A request in progress; over when it is dropped.
pub struct RequestInProgress {
    occupancy: Arc<ConnectionActivity>,
    number: u64,
    /// Its own slot, over HTTP/2.
    slot: Option<RequestSlot>,
}

impl RequestInProgress {
    pub fn begin(occupancy: &Arc<ConnectionActivity>) -> Self {
        let mut state = occupancy.state();
        state.in_progress += 1;
        state.begun += 1;
        Self { number: state.begun, occupancy: occupancy.clone(), slot: None }
    }

    /// Keeps this slot for as long as the request is in progress.
    pub fn hold(&mut self, slot: RequestSlot) {
        self.slot = Some(slot);
    }

    /// Notes that a piece of the answer waits for the client, or that none does.
    pub fn note_piece(&self, waits: bool) {
        let mut state = self.occupancy.state();
        match waits {
            true => state.untaken.insert(self.number, Instant::now()),
            false => state.untaken.remove(&self.number),
        };
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        let mut state = self.occupancy.state();
        state.in_progress -= 1;
        state.is_unwritten = true;
        state.untaken.remove(&self.number);
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
            state: Mutex::new(ActivityState {
                in_progress: 0,
                is_unwritten: false,
                idle_rank: self.idle_count.fetch_add(1, Ordering::Relaxed),
                idle_since: Instant::now(),
                begun: 0,
                untaken: BTreeMap::new(),
            }),
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
    let idle = open.by_number.values().filter(|one| !one.wanted.is_cancelled()).filter_map(|one| {
        let state = one.state();
        state.is_idle().then_some((state.idle_rank, one))
    });
    let oldest = idle.min_by_key(|(rank, _)| *rank).map(|(_, one)| one);
    oldest.ok_or(SlotRefusal::ForAnybody)?.wanted.cancel();
    open.leaving += 1;
    Ok(())
}

impl ConnectionSlot {
    /// The client that the connection counts for.
    pub fn client(&self) -> Option<ClientAddress> {
        self.client
    }

    /// Counts the connection for the client that a proxy names, within the bound of a client.
    pub fn assign_to(&mut self, client: Option<ClientAddress>) -> Result<(), SlotRefusal> {
        let mut open = self.slots.open();
        if let Some(client) = client {
            let own = open.by_client.get(&client).copied().unwrap_or_default();
            if own >= self.slots.per_client_max {
                return Err(SlotRefusal::ForClient);
            }
            open.by_client.insert(client, own + 1);
        }
        open.release(self.client);
        self.client = client;
        Ok(())
    }
}

impl OpenConnections {
    fn release(&mut self, client: Option<ClientAddress>) {
        let Some(client) = client else { return };
        if let Some(own) = self.by_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                self.by_client.remove(&client);
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.slots.open();
        open.by_number.remove(&self.number);
        if self.occupancy.wanted.is_cancelled() {
            open.leaving -= 1;
        }
        metrics::gauge!("postway_http_connections").set(open.by_number.len() as f64);
        open.release(self.client);
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
    fn a_client_that_a_proxy_names_has_its_share_too() {
        let slots = ConnectionSlots::new(100, 2);
        let through = |text: &str| -> Result<ConnectionSlot, SlotRefusal> {
            let mut slot = slots.take(None)?;
            slot.assign_to(client(text)).map(|()| slot)
        };
        let held = [through("192.0.2.1").unwrap(), slots.take(client("192.0.2.1")).unwrap()];
        assert_eq!(through("192.0.2.1").err(), Some(SlotRefusal::ForClient));
        assert!(through("192.0.2.2").is_ok());
        drop(held);
        assert!(slots.open().by_client.is_empty() && slots.open().by_number.is_empty());
    }

    #[test]
    fn a_connection_is_busy_until_the_last_of_its_requests_is_answered() {
        let slots = ConnectionSlots::new(1, 1);
        let slot = slots.take(None).unwrap();
        let [first, second] = [(); 2].map(|()| RequestInProgress::begin(&slot.occupancy));
        drop(first);
        slot.occupancy.flushed();
        assert!(!slot.occupancy.is_idle(), "one of two is answered");
        let now = Instant::now();
        second.note_piece(true);
        assert!(slot.occupancy.is_stalled(now + Duration::from_secs(9), Duration::from_secs(5)));
        assert!(!slot.occupancy.is_stalled(now, Duration::from_secs(5)));
        second.note_piece(false);
        assert!(!slot.occupancy.is_stalled(now + Duration::from_secs(9), Duration::from_secs(5)));
        drop(second);
        assert!(!slot.occupancy.is_idle(), "it is not written yet");
        slot.occupancy.flushed();
        assert!(slot.occupancy.is_idle());
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
