//! How many recipients a client may name in a minute: one address (an IPv6 /64), and its network (/24 or /48),
//! which may name four times as many. What is beyond waits, with 450.
//!
//! The memory is bounded: when too many clients are known, those of earlier minutes are forgotten, and if that
//! is not enough, everything is.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Mutex, PoisonError},
};

use postway_domain::Time;

/// The most clients and networks that are remembered.
const CLIENTS_MAX: usize = 20_000;
/// How much more a network may name than an address.
const NETWORK_FACTOR: u32 = 4;

/// An address or a network, by its first bits.
type ClientPrefix = (u128, u8);

/// The counts of the current minute.
pub(super) struct ClientRate {
    per_minute_max: u32,
    counts: Mutex<HashMap<ClientPrefix, (i64, u32)>>,
}

impl ClientRate {
    pub(super) fn new(per_minute_max: u32) -> Self {
        Self { per_minute_max, counts: Mutex::default() }
    }

    /// Counts a recipient of this client; `false` if it is one too many.
    pub(super) fn takes(&self, peer: IpAddr, now: Time) -> bool {
        let minute = now.as_seconds().div_euclid(60);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= CLIENTS_MAX {
            counts.retain(|_, (at, _)| *at == minute);
            if counts.len() >= CLIENTS_MAX {
                counts.clear();
            }
        }
        let (client, network) = prefixes(peer);
        let limits =
            [(client, self.per_minute_max), (network, self.per_minute_max.saturating_mul(NETWORK_FACTOR))];
        let mut takes = true;
        for (prefix, max) in limits {
            let (at, count) = counts.entry(prefix).or_insert((minute, 0));
            if *at != minute {
                (*at, *count) = (minute, 0);
            }
            *count = count.saturating_add(1);
            takes &= *count <= max;
        }
        takes
    }
}

fn prefixes(peer: IpAddr) -> (ClientPrefix, ClientPrefix) {
    match peer.to_canonical() {
        IpAddr::V4(v4) => {
            let bits = u128::from(v4.to_bits());
            let network = u128::from((v4 & Ipv4Addr::new(255, 255, 255, 0)).to_bits());
            ((bits, 32), (network, 24))
        }
        IpAddr::V6(v6) => {
            let first = |bits: u32| (v6 & Ipv6Addr::from_bits(u128::MAX << (128 - bits))).to_bits();
            ((first(64), 64), (first(48), 48))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_a_network_and_a_minute_have_their_measure() {
        let rate = ClientRate::new(2);
        let at = |seconds: i64| Time::from_millis(seconds * 1_000);
        let takes = |peer: &str, seconds: i64| rate.takes(peer.parse().unwrap(), at(seconds));
        assert!(takes("192.0.2.1", 0) && takes("::ffff:192.0.2.1", 59));
        assert!(!takes("192.0.2.1", 59), "the third in a minute");
        assert!(takes("192.0.2.1", 60), "the next minute begins anew");
        assert!(takes("192.0.2.2", 60) && takes("192.0.2.3", 60) && takes("192.0.2.4", 60));
        for nth in 5..9 {
            takes(&format!("192.0.2.{nth}"), 60);
        }
        assert!(!takes("192.0.2.9", 60), "its network has used up its part");
        assert!(takes("198.51.100.1", 60));
        assert!(takes("2001:db8::1", 60) && takes("2001:db8::2", 60) && !takes("2001:db8::3", 60));
    }

    #[test]
    fn the_clients_that_are_remembered_are_bounded() {
        let rate = ClientRate::new(1);
        for nth in 0..2 * CLIENTS_MAX as u32 {
            rate.takes(Ipv4Addr::from_bits(nth << 8).into(), Time::from_millis(0));
        }
        assert!(rate.counts.lock().unwrap().len() <= CLIENTS_MAX + 1);
    }
}
