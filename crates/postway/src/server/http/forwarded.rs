//! The origin of a request that a proxy forwards.
//!
//! Headers that name another address or another scheme are trusted only from configured proxies, because any
//! client can send them. Of the addresses in `X-Forwarded-For` the last one that is not a trusted proxy's
//! counts: those before it came from the client.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use postway_api::RequestOrigin;
use postway_domain::key::IpNetwork;

/// The most proxies in a row that are followed.
const PROXIES_MAX: usize = 16;

/// Where a request on a connection from `peer` came from.
pub fn origin(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNetwork]) -> RequestOrigin {
    let direct = RequestOrigin::direct(peer);
    if !is_trusted(peer, trusted) {
        return direct;
    }
    let is_https =
        last(headers, "x-forwarded-proto").is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    let from = match named(headers, trusted) {
        Some(client) => RequestOrigin::direct(client),
        None => RequestOrigin { is_shared: true, ..direct },
    };
    RequestOrigin { is_https, ..from }
}

/// Whether connections from there are a trusted proxy's.
pub fn is_trusted(peer: IpAddr, trusted: &[IpNetwork]) -> bool {
    trusted.iter().any(|network| network.contains(peer))
}

fn named(headers: &HeaderMap, trusted: &[IpNetwork]) -> Option<IpAddr> {
    let given = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = given.flat_map(|value| value.split(',')).map(str::trim).collect();
    for hop in hops.iter().rev().take(PROXIES_MAX) {
        let address = address(hop)?;
        if !is_trusted(address, trusted) {
            return Some(address);
        }
    }
    None
}

/// An address, with or without brackets and a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

fn last<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    value.rsplit(',').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn asked(peer: &str, headers: &[(&'static str, &str)]) -> RequestOrigin {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        origin(ip(peer), &map, &["10.0.0.0/8".parse().unwrap()])
    }

    #[test]
    fn only_a_trusted_proxy_names_the_client() {
        let forged = [("x-forwarded-for", "203.0.113.1"), ("x-forwarded-proto", "https")];
        assert_eq!(asked("192.0.2.1", &forged), RequestOrigin::direct(ip("192.0.2.1")));
        assert_eq!(asked("127.0.0.1", &forged), RequestOrigin::direct(ip("127.0.0.1")));
        let through = asked("10.0.0.1", &forged);
        let expected = RequestOrigin { address: ip("203.0.113.1"), is_shared: false, is_https: true };
        assert_eq!(through, expected);
    }

    #[test]
    fn what_the_client_wrote_itself_is_passed_over() {
        for hops in
            ["1.1.1.1, 203.0.113.9, 10.0.0.2", "junk, 203.0.113.9", "203.0.113.9:4711", "1.1.1.1,203.0.113.9"]
        {
            assert_eq!(asked("10.0.0.1", &[("x-forwarded-for", hops)]).address, ip("203.0.113.9"), "{hops}");
        }
        let lines = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "[2001:db8::9]:80")];
        assert_eq!(asked("10.0.0.1", &lines).address, ip("2001:db8::9"));
    }

    #[test]
    fn a_proxy_that_names_nobody_stands_for_many() {
        for hops in ["", "unknown", "10.0.0.7", "203.0.113.9, junk"] {
            let origin = asked("10.0.0.1", &[("x-forwarded-for", hops)]);
            assert!(origin.is_shared && origin.address == ip("10.0.0.1"), "{hops}: {origin:?}");
        }
    }
}
