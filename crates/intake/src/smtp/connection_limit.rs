//! How many connections there are, and of whom.
//!
//! When all places are taken, the connection that has waited for longest without a key makes room for a new one: strangers who
//! say nothing cannot keep out those who have a key.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::client::ClientAddress;
use tokio_util::sync::CancellationToken;

/// Connections beyond the bound that may still be on their way out.
const LEAVING_MAX: usize = 16;

/// The places for connections.
#[derive(Debug)]
pub(super) struct Seats {
    taken: Mutex<Taken>,
    max: usize,
    per_client_max: usize,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_client: HashMap<ClientAddress, usize>,
    last_number: u64,
    /// Those who have shown no key that opens, the oldest first, and what tells them to go.
    strangers: BTreeMap<u64, CancellationToken>,
    /// Those that were told to go and have not gone yet.
    leaving: usize,
}

/// For whom there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// For anybody.
    ForAll,
    /// For this client.
    ForClient,
}

/// A connection's place. Free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    client: ClientAddress,
    number: u64,
    wanted: CancellationToken,
}

impl Seats {
    pub(super) fn new(max: usize, per_client_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: Mutex::default(), max, per_client_max })
    }

    /// A place for a connection from this address.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<Seat, Full> {
        let client = ClientAddress::of(peer);
        let mut taken = self.taken();
        let own = taken.by_client.get(&client).copied().unwrap_or_default();
        if own >= self.per_client_max {
            return Err(Full::ForClient);
        }
        if taken.leaving >= LEAVING_MAX {
            return Err(Full::ForAll);
        }
        if taken.all - taken.leaving >= self.max {
            let (_, oldest) = taken.strangers.pop_first().ok_or(Full::ForAll)?;
            oldest.cancel();
            taken.leaving += 1;
        }
        taken.by_client.insert(client, own + 1);
        taken.all += 1;
        taken.last_number += 1;
        let (number, wanted) = (taken.last_number, CancellationToken::new());
        taken.strangers.insert(number, wanted.clone());
        metrics::gauge!("postway_smtp_sessions").set(taken.all as f64);
        Ok(Seat { seats: self.clone(), client, number, wanted })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Says that a key has opened: it is nobody's to take any more, unless it was wanted before.
    pub(super) fn admit(&self) {
        self.seats.taken().strangers.remove(&self.number);
    }

    /// Pends until the place is wanted for another connection.
    pub(super) async fn wanted(&self) {
        self.wanted.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        taken.strangers.remove(&self.number);
        if self.wanted.is_cancelled() {
            taken.leaving -= 1;
        }
        taken.all -= 1;
        metrics::gauge!("postway_smtp_sessions").set(taken.all as f64);
        if let Some(own) = taken.by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_has_its_share_and_all_together_theirs() {
        let seats = Seats::new(3, 2);
        let (one, two) =
            (seats.take(peer("192.0.2.1")).unwrap(), seats.take(peer("::ffff:192.0.2.1")).unwrap());
        assert_eq!(seats.take(peer("192.0.2.1")).unwrap_err(), Full::ForClient);
        let other = seats.take(peer("2001:db8::1")).unwrap();
        for seat in [&one, &two, &other] {
            seat.admit();
        }
        assert_eq!(seats.take(peer("192.0.2.9")).unwrap_err(), Full::ForAll);
        drop((one, other));
        let _three = seats.take(peer("192.0.2.1")).unwrap();
        assert_eq!(seats.taken().by_client.len(), 1, "who has no connection is forgotten");
    }

    #[test]
    fn the_oldest_without_a_key_makes_room() {
        let seats = Seats::new(2, 2);
        let (known, stranger) =
            (seats.take(peer("192.0.2.1")).unwrap(), seats.take(peer("192.0.2.2")).unwrap());
        known.admit();
        let newer = seats.take(peer("192.0.2.3")).unwrap();
        assert!(stranger.wanted.is_cancelled() && !known.wanted.is_cancelled());
        newer.admit();
        assert_eq!(seats.take(peer("192.0.2.4")).unwrap_err(), Full::ForAll, "nobody goes twice");
        drop(stranger);
        assert_eq!(seats.take(peer("192.0.2.4")).unwrap_err(), Full::ForAll);
        drop((known, newer));
        assert!(seats.taken().strangers.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let seats = Seats::new(9, 1);
        let _seat = seats.take(peer("2001:db8::1")).unwrap();
        assert_eq!(seats.take(peer("2001:db8::ffff:1")).unwrap_err(), Full::ForClient);
        assert!(seats.take(peer("2001:db8:0:1::1")).is_ok());
    }
}
