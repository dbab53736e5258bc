//! Which addresses may be connected to when somebody else names the target.
//!
//! A tenant's relay, endpoint or webhook must not reach into the network that the gateway stands in: loopback, private
//! and link-local addresses, those of cloud metadata services, and whatever else is not on the public internet are
//! refused, unless the operator has allowed their network. The check is made on the addresses that are connected to,
//! after the name was resolved, so that a name cannot answer one thing to the check and another to the connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Lets through public addresses, and private ones that were allowed.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allowed: Vec<(IpAddr, u8)>,
}

impl Guard {
    /// A guard that also lets through these networks: an address and how many of its leading bits count.
    pub fn new(allowed: Vec<(IpAddr, u8)>) -> Self {
        Self { allowed }
    }

    /// Whether this address may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.allowed.iter().any(|(network, bits)| contains(*network, *bits, address))
    }
}

fn contains(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    let same = |one: u128, other: u128, width: u8| {
        let shift = u32::from(width.saturating_sub(bits));
        one.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
    };
    match (network.to_canonical(), address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => same(u32::from(one).into(), u32::from(other).into(), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => same(one.into(), other.into(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The special-purpose networks of RFC 6890 and its updates are not public.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        // This network, private, loopback, multicast and reserved.
        (0 | 10 | 127 | 224.., ..) => true,
        // Shared by carriers (RFC 6598).
        (100, 64..128, _) => true,
        // Link-local, where clouds keep their metadata.
        (169, 254, _) => true,
        (172, 16..32, _) => true,
        // Protocol assignments, documentation, 6to4 relays, private.
        (192, 0, 0 | 2) | (192, 88, 99) | (192, 168, _) => true,
        // Benchmarking, documentation.
        (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => true,
        _ => false,
    };
    !is_special
}

/// Only global unicast is public, without the parts of it that stand for something else.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_global = a & 0xe000 == 0x2000;
    // Teredo, ORCHID, benchmarking, documentation, and 6to4, which carries any IPv4 address inside.
    let is_special =
        (a == 0x2001 && (b < 0x0200 || b == 0x0db8)) || a == 0x2002 || (a == 0x3fff && b < 0x1000);
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_pass_and_others_do_not() {
        let guard = Guard::default();
        for public in
            ["8.8.8.8", "100.63.0.1", "172.32.0.1", "192.0.1.1", "2606:4700::1111", "::ffff:8.8.8.8"]
        {
            assert!(guard.allows(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.2.1",
            "198.18.0.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2001::1",
        ] {
            assert!(!guard.allows(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn an_allowed_network_passes_and_its_neighbour_does_not() {
        let guard = Guard::new(vec![("10.1.0.0".parse().unwrap(), 16), ("::1".parse().unwrap(), 128)]);
        assert!(guard.allows("10.1.255.1".parse().unwrap()));
        assert!(guard.allows("::ffff:10.1.0.9".parse().unwrap()));
        assert!(guard.allows("::1".parse().unwrap()));
        assert!(!guard.allows("10.2.0.1".parse().unwrap()));
        assert!(!guard.allows("127.0.0.1".parse().unwrap()));
        assert!(Guard::new(vec![("0.0.0.0".parse().unwrap(), 0)]).allows("127.0.0.1".parse().unwrap()));
    }
}
