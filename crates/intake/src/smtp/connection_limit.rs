//! The limit on connections, in total and for each client.
//!
//! When all slots are in use, the connection that has waited longest without a valid key is closed for a new
//! one: idle strangers cannot keep out clients that have a key.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use postway_domain::client::ClientAddress;
use tokio_util::sync::CancellationToken;

/// The most connections beyond the limit that may still be closing.
const LEAVING_MAX: usize = 16;

/// The open connections and their limits.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    open: Mutex<OpenSmtpConnections>,
    max: usize,
    per_client_max: usize,
}

#[derive(Debug, Default)]
struct OpenSmtpConnections {
    all: usize,
    by_client: HashMap<ClientAddress, usize>,
    last_number: u64,
    /// Connections without a valid key, the oldest first, and the tokens that close them.
    strangers: BTreeMap<u64, CancellationToken>,
    /// Connections that were asked to close and have not closed yet.
    leaving: usize,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitReached {
    /// The limit for all clients.
    ForAll,
    /// The limit for this client.
    ForClient,
}

/// The slot of a connection. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct SmtpConnectionSlot {
    limit: Arc<ConnectionLimit>,
    client: ClientAddress,
    number: u64,
    wanted: CancellationToken,
}

impl ConnectionLimit {
    pub(super) fn new(max: usize, per_client_max: usize) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), max, per_client_max })
    }

    /// Takes a slot for a connection from this address.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<SmtpConnectionSlot, LimitReached> {
        let client = ClientAddress::of(peer);
        let mut open = self.open();
        let own = open.by_client.get(&client).copied().unwrap_or_default();
        if own >= self.per_client_max {
            return Err(LimitReached::ForClient);
        }
        if open.leaving >= LEAVING_MAX {
            return Err(LimitReached::ForAll);
        }
        if open.all - open.leaving >= self.max {
            let (_, oldest) = open.strangers.pop_first().ok_or(LimitReached::ForAll)?;
            oldest.cancel();
            open.leaving += 1;
        }
        open.by_client.insert(client, own + 1);
        open.all += 1;
        open.last_number += 1;
        let (number, wanted) = (open.last_number, CancellationToken::new());
        open.strangers.insert(number, wanted.clone());
        metrics::gauge!("postway_smtp_sessions").set(open.all as f64);
        Ok(SmtpConnectionSlot { limit: self.clone(), client, number, wanted })
    }

    fn open(&self) -> MutexGuard<'_, OpenSmtpConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SmtpConnectionSlot {
    /// Records that the client showed a valid key: the connection is no longer closed for another, unless it
    /// was already asked to close.
    pub(super) fn admit(&self) {
        self.limit.open().strangers.remove(&self.number);
    }

    /// Waits until the slot is needed for another connection.
    pub(super) async fn wanted(&self) {
        self.wanted.cancelled().await;
    }
}

impl Drop for SmtpConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.limit.open();
        open.strangers.remove(&self.number);
        if self.wanted.is_cancelled() {
            open.leaving -= 1;
        }
        open.all -= 1;
        metrics::gauge!("postway_smtp_sessions").set(open.all as f64);
        if let Some(own) = open.by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                open.by_client.remove(&self.client);
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
        let connections = ConnectionLimit::new(3, 2);
        let (one, two) = (
            connections.take(peer("192.0.2.1")).unwrap(),
            connections.take(peer("::ffff:192.0.2.1")).unwrap(),
        );
        assert_eq!(connections.take(peer("192.0.2.1")).unwrap_err(), LimitReached::ForClient);
        let other = connections.take(peer("2001:db8::1")).unwrap();
        for slot in [&one, &two, &other] {
            slot.admit();
        }
        assert_eq!(connections.take(peer("192.0.2.9")).unwrap_err(), LimitReached::ForAll);
        drop((one, other));
        let _three = connections.take(peer("192.0.2.1")).unwrap();
        assert_eq!(connections.open().by_client.len(), 1, "who has no connection is forgotten");
    }

    #[test]
    fn the_oldest_without_a_key_makes_room() {
        let connections = ConnectionLimit::new(2, 2);
        let (known, stranger) =
            (connections.take(peer("192.0.2.1")).unwrap(), connections.take(peer("192.0.2.2")).unwrap());
        known.admit();
        let newer = connections.take(peer("192.0.2.3")).unwrap();
        assert!(stranger.wanted.is_cancelled() && !known.wanted.is_cancelled());
        newer.admit();
        assert_eq!(
            connections.take(peer("192.0.2.4")).unwrap_err(),
            LimitReached::ForAll,
            "nobody goes twice"
        );
        drop(stranger);
        assert_eq!(connections.take(peer("192.0.2.4")).unwrap_err(), LimitReached::ForAll);
        drop((known, newer));
        assert!(connections.open().strangers.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let connections = ConnectionLimit::new(9, 1);
        let _seat = connections.take(peer("2001:db8::1")).unwrap();
        assert_eq!(connections.take(peer("2001:db8::ffff:1")).unwrap_err(), LimitReached::ForClient);
        assert!(connections.take(peer("2001:db8:0:1::1")).is_ok());
    }
}
