//! How many connections there are, and of whom.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The bits of an IPv6 address that name a client: whoever has one address has all of its /64.
const CLIENT_BITS: u128 = !0 << 64;

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
    by_client: HashMap<IpAddr, usize>,
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
    client: IpAddr,
}

impl Seats {
    pub(super) fn new(max: usize, per_client_max: usize) -> Arc<Self> {
        Arc::new(Self { taken: Mutex::default(), max, per_client_max })
    }

    /// A place for a connection from this address.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<Seat, Full> {
        let client = client(peer);
        let mut taken = self.taken();
        if taken.all >= self.max {
            return Err(Full::ForAll);
        }
        let own = taken.by_client.entry(client).or_default();
        if *own >= self.per_client_max {
            return Err(Full::ForClient);
        }
        *own += 1;
        taken.all += 1;
        metrics::gauge!("postway_smtp_sessions").set(taken.all as f64);
        Ok(Seat { seats: self.clone(), client })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
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

fn client(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & CLIENT_BITS).into(),
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
        let (one, _two) =
            (seats.take(peer("192.0.2.1")).unwrap(), seats.take(peer("::ffff:192.0.2.1")).unwrap());
        assert_eq!(seats.take(peer("192.0.2.1")).unwrap_err(), Full::ForClient);
        let other = seats.take(peer("2001:db8::1")).unwrap();
        assert_eq!(seats.take(peer("192.0.2.9")).unwrap_err(), Full::ForAll);
        drop((one, other));
        let _three = seats.take(peer("192.0.2.1")).unwrap();
        assert_eq!(seats.taken().by_client.len(), 1, "who has no connection is forgotten");
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let seats = Seats::new(9, 1);
        let _seat = seats.take(peer("2001:db8::1")).unwrap();
        assert_eq!(seats.take(peer("2001:db8::ffff:1")).unwrap_err(), Full::ForClient);
        assert!(seats.take(peer("2001:db8:0:1::1")).is_ok());
    }
}
