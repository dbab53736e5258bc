//! Decides which addresses may be connected to.
//!
//! A relay, a mailbox, an endpoint or a webhook must not reach into the gateway's own network: loopback,
//! private and link-local addresses, those of cloud metadata services, this machine's own addresses and
//! everything else that is not on the public internet are refused, unless the operator has allowed their
//! network. This applies to hosts named by any API key. The check uses the resolved addresses that are
//! connected to, so a name cannot resolve to one address for the check and to another for the connection.
//!
//! It cannot know a public address that a router in front of this machine translates to it or to its
//! neighbours. Only a firewall can refuse those.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Azure's wire server, which gives a virtual machine its certificates and settings. It is the only known
/// metadata service with a public address.
const AZURE_WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
/// A port for [`is_own`], which sends nothing to it.
const DISCARD_PORT: u16 = 9;

/// Allows public addresses, and private ones that the operator has allowed.
#[derive(Clone, Debug, Default)]
pub struct AddressGuard {
    allowed: Vec<(IpAddr, u8)>,
    /// Every proxy may resolve names itself.
    proxies_resolve: bool,
}

impl AddressGuard {
    /// A guard that also allows these networks, each an address and its prefix length.
    pub fn new(allowed: Vec<(IpAddr, u8)>) -> Self {
        Self { allowed, proxies_resolve: false }
    }

    /// This guard, which leaves the resolving of names to every proxy, also to one inside a private network.
    /// The operator vouches that such proxies refuse private targets themselves.
    pub fn leaving_names_to_proxies(self) -> Self {
        Self { proxies_resolve: true, ..self }
    }

    /// Whether a proxy at this address is given names to resolve. One on the public internet is: what it
    /// reaches from there is not behind this guard. One in a private network or on this machine could lead to
    /// its neighbours, so it is given only addresses that were checked.
    pub fn leaves_names_to(&self, proxy: IpAddr) -> bool {
        let proxy = proxy.to_canonical();
        self.proxies_resolve || (is_public(proxy) && !is_own(proxy))
    }

    /// A guard that also allows this machine, for tests and benches, which run the other side themselves.
    pub fn with_loopback() -> Self {
        Self::new(vec![(Ipv4Addr::LOCALHOST.into(), 8), (Ipv6Addr::LOCALHOST.into(), 128)])
    }

    /// Whether this address may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allows_unless_own(address, is_own)
    }

    /// As [`allows`](Self::allows), with `is_own` to decide which addresses are this machine's.
    fn allows_unless_own(&self, address: IpAddr, is_own: impl Fn(IpAddr) -> bool) -> bool {
        let address = address.to_canonical();
        self.allowed.iter().any(|(network, bits)| contains(*network, *bits, address))
            || (is_public(address) && !is_own(address))
    }
}

/// How an operator allows an address that the guard refuses, as the lines to write.
pub fn how_to_allow(address: IpAddr) -> String {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    format!(
        "add allow_private_targets = [\"{address}/{bits}\"] to postway.toml, or set \
         POSTWAY_ALLOW_PRIVATE_TARGETS={address}/{bits}, and restart"
    )
}

/// The address of a host that needs no resolver: an address in any notation, or `localhost`.
pub fn literal_address(host: &str) -> Option<IpAddr> {
    let host = host.trim_matches(['[', ']']);
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    match url::Host::parse(host).ok()? {
        url::Host::Ipv4(address) => Some(address.into()),
        url::Host::Ipv6(address) => Some(IpAddr::from(address).to_canonical()),
        // RFC 6761 6.3: the one name whose address is fixed.
        url::Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            (name == "localhost" || name.ends_with(".localhost")).then_some(Ipv4Addr::LOCALHOST.into())
        }
    }
}

/// Whether an address belongs to this machine, by its current routes: a packet to an own address has that
/// address as its source. Choosing a route sends no packet. If no socket can be opened for the address
/// family, no connection is possible, either.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, DISCARD_PORT))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
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
    !is_special && address != AZURE_WIRE_SERVER
}

/// Only global unicast is public, without its special-purpose parts.
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
    fn names_are_left_to_proxies_outside_and_to_others_if_the_operator_says_so() {
        let guard = AddressGuard::new(vec![("10.0.0.0".parse().unwrap(), 8)]);
        let leaves = |guard: &AddressGuard, proxy: &str| guard.leaves_names_to(proxy.parse().unwrap());
        assert!(leaves(&guard, "8.8.8.8") && leaves(&guard, "2606:4700::1111"));
        for private in ["10.1.2.3", "127.0.0.1", "::1", "::ffff:10.0.0.1", "169.254.169.254"] {
            assert!(!leaves(&guard, private), "{private}");
            assert!(leaves(&guard.clone().leaving_names_to_proxies(), private), "{private}");
        }
    }

    #[test]
    fn public_addresses_pass_and_others_do_not() {
        let guard = AddressGuard::default();
        for public in [
            "8.8.8.8",
            "100.63.0.1",
            "168.63.129.17",
            "172.32.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
        ] {
            assert!(guard.allows(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "169.254.170.2",
            "fd20:ce::254",
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
        let guard = AddressGuard::new(vec![("10.1.0.0".parse().unwrap(), 16), ("::1".parse().unwrap(), 128)]);
        assert!(guard.allows("10.1.255.1".parse().unwrap()));
        assert!(guard.allows("::ffff:10.1.0.9".parse().unwrap()));
        assert!(guard.allows("::1".parse().unwrap()));
        assert!(!guard.allows("10.2.0.1".parse().unwrap()));
        assert!(!guard.allows("127.0.0.1".parse().unwrap()));
        assert!(
            AddressGuard::new(vec![("0.0.0.0".parse().unwrap(), 0)]).allows("127.0.0.1".parse().unwrap())
        );
    }
    #[test]
    fn an_own_public_address_is_refused_unless_it_is_allowed() {
        let own = |address: IpAddr| ["8.8.4.4", "2606:4700::9"].contains(&address.to_string().as_str());
        let (closed, opened) = (
            AddressGuard::default(),
            AddressGuard::new(vec![("8.8.4.0".parse().unwrap(), 24), ("2606::".parse().unwrap(), 16)]),
        );
        for address in ["8.8.4.4", "::ffff:8.8.4.4", "2606:4700::9"] {
            assert!(!closed.allows_unless_own(address.parse().unwrap(), own), "{address}");
            assert!(opened.allows_unless_own(address.parse().unwrap(), own), "{address}");
        }
        assert!(closed.allows_unless_own("8.8.8.8".parse().unwrap(), own));
    }

    #[test]
    fn the_machine_knows_its_own_addresses() {
        assert!(is_own("127.0.0.1".parse().unwrap()));
        for stranger in ["8.8.8.8", "192.0.2.1", "2606:4700::1111"] {
            assert!(!is_own(stranger.parse().unwrap()), "{stranger}");
        }
        // The address that packets to the internet would leave with, where there is a way to the internet.
        let outward = UdpSocket::bind("0.0.0.0:0").unwrap();
        if outward.connect("8.8.8.8:9").is_ok() {
            assert!(is_own(outward.local_addr().unwrap().ip()));
        }
    }

    #[test]
    fn an_address_is_recognised_in_any_spelling_and_a_name_is_not_one() {
        for (host, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("[::1]", "::1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("LOCALHOST.", "127.0.0.1"),
            ("mail.localhost", "127.0.0.1"),
        ] {
            assert_eq!(literal_address(host), Some(address.parse().unwrap()), "{host}");
        }
        for name in ["relay.example", "localhost.example", "", "a b"] {
            assert_eq!(literal_address(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_to_be_written_lets_the_address_through() {
        let said = how_to_allow("10.1.2.3".parse().unwrap());
        assert!(said.contains("allow_private_targets = [\"10.1.2.3/32\"]"), "{said}");
        assert!(how_to_allow("::1".parse().unwrap()).contains("POSTWAY_ALLOW_PRIVATE_TARGETS=::1/128,"));
    }
}
