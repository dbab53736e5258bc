//! The origin of a request that a proxy forwards.
//!
//! Headers that name another address or another scheme are trusted only from configured proxies, because any
//! client can send them. Proxies write one of two headers, and pass the other one on as the client sent it, so
//! only the one that is configured is read: `X-Forwarded-For` (and `-Proto`), or `Forwarded` (RFC 7239). Of the
//! addresses in it the last one that is not a trusted proxy's counts: those before it came from the client.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use postway_api::RequestOrigin;
use postway_domain::key::IpNetwork;

use crate::config::ForwardedHeader;

/// The most proxies in a row that are followed.
const PROXIES_MAX: usize = 16;

/// Where a request on a connection with this origin came from.
pub fn origin(
    connection: RequestOrigin,
    headers: &HeaderMap,
    trusted: &[IpNetwork],
    header: ForwardedHeader,
) -> RequestOrigin {
    if !is_trusted(connection.address, trusted) {
        return connection;
    }
    let named = match header {
        ForwardedHeader::XForwardedFor => by_x_forwarded(headers, trusted),
        ForwardedHeader::Forwarded => by_forwarded(headers, trusted),
    };
    let is_https = named.is_https.unwrap_or(connection.is_https);
    match named.client {
        Some(client) => RequestOrigin { is_https, ..RequestOrigin::direct(client) },
        None => RequestOrigin { is_shared: true, is_https, ..connection },
    }
}

/// Whether connections from there are a trusted proxy's.
pub fn is_trusted(peer: IpAddr, trusted: &[IpNetwork]) -> bool {
    trusted.iter().any(|network| network.contains(peer))
}

/// What trusted proxies say of the client.
struct ForwardedClient {
    client: Option<IpAddr>,
    is_https: Option<bool>,
}

fn by_x_forwarded(headers: &HeaderMap, trusted: &[IpNetwork]) -> ForwardedClient {
    let hops = joined(headers, "x-forwarded-for");
    let mut addresses = hops.rsplit(',').take(PROXIES_MAX).map(|hop| address(hop.trim()));
    let client = addresses.find(|hop| !is_proxy(*hop, trusted)).flatten();
    let schemes = joined(headers, "x-forwarded-proto");
    let scheme = schemes.rsplit(',').next().map(str::trim).filter(|scheme| !scheme.is_empty());
    ForwardedClient { client, is_https: scheme.map(is_https) }
}

/// The client that the last trusted proxy in a row saw, with the scheme that this proxy was asked by.
fn by_forwarded(headers: &HeaderMap, trusted: &[IpNetwork]) -> ForwardedClient {
    let given = joined(headers, "forwarded");
    let hops = elements(&given);
    let mut found = ForwardedClient { client: None, is_https: None };
    for hop in hops.iter().rev().take(PROXIES_MAX) {
        let value = |name: &str| {
            hop.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
        };
        found.is_https = value("proto").map(is_https).or(found.is_https);
        let named = value("for").and_then(address);
        if !is_proxy(named, trusted) {
            found.client = named;
            break;
        }
    }
    found
}

/// Whether this hop is a trusted proxy, so that the hop before it is looked at.
fn is_proxy(hop: Option<IpAddr>, trusted: &[IpNetwork]) -> bool {
    hop.is_some_and(|hop| is_trusted(hop, trusted))
}

fn is_https(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("https")
}

/// The elements of a `Forwarded` header, each a list of names with values. What cannot be read is an element
/// that names nobody.
fn elements(value: &str) -> Vec<Vec<(&str, String)>> {
    let pairs = |element| {
        let fields = split_outside_quotes(element, ';').into_iter().filter_map(|field| field.split_once('='));
        fields.map(|(name, value)| (name.trim(), unquoted(value.trim()))).collect()
    };
    split_outside_quotes(value, ',').into_iter().map(pairs).collect()
}

/// Splits at a character that is not in a quoted string. If a quote does not end, quotes count for nothing: a
/// client could otherwise open one that takes in what a proxy adds.
fn split_outside_quotes(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut begin, mut in_quotes, mut is_escaped) = (Vec::new(), 0, false, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if in_quotes => is_escaped = true,
            '"' => in_quotes = !in_quotes,
            other if other == at && !in_quotes => {
                parts.push(&text[begin..index]);
                begin = index + other.len_utf8();
            }
            _ => {}
        }
    }
    if in_quotes {
        return text.split(at).collect();
    }
    parts.push(&text[begin..]);
    parts
}

fn unquoted(value: &str) -> String {
    match value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) {
        None => value.to_owned(),
        Some(inside) => {
            let mut characters = inside.chars();
            let mut text = String::with_capacity(inside.len());
            while let Some(character) = characters.next() {
                text.extend(if character == '\\' { characters.next() } else { Some(character) });
            }
            text
        }
    }
}

/// An address, with or without brackets and a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// All lines of a header as one. What is no text is replaced, so that a client cannot make a line unreadable to
/// which a proxy adds.
fn joined(headers: &HeaderMap, name: &str) -> String {
    let lines = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    lines.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn asked(peer: &str, headers: &[(&'static str, &str)]) -> RequestOrigin {
        let header = match headers {
            [("forwarded", _), ..] => ForwardedHeader::Forwarded,
            _ => ForwardedHeader::XForwardedFor,
        };
        asked_by(header, peer, headers)
    }

    fn asked_by(header: ForwardedHeader, peer: &str, headers: &[(&'static str, &str)]) -> RequestOrigin {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        origin(RequestOrigin::direct(ip(peer)), &map, &["10.0.0.0/8".parse().unwrap()], header)
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

    #[test]
    fn the_standard_header_is_read_like_the_other_where_it_is_the_one_that_counts() {
        for hops in [
            "for=203.0.113.9",
            "For=\"203.0.113.9:4711\";proto=http, for=10.0.0.2",
            "for=1.1.1.1;proto=https, for=203.0.113.9, for=10.0.0.2;by=10.0.0.1",
            "for=\"1.1.1.1, for=10.0.0.7\", for=203.0.113.9",
            "for=\"junk, for=203.0.113.9",
            "for=\"a\\\", for=\"203.0.113.9\"",
            "junk, ;;=, for=203.0.113.9;ext=\"a,b;c=\\\"d\"",
        ] {
            let origin = asked("10.0.0.1", &[("forwarded", hops)]);
            assert_eq!((origin.address, origin.is_shared), (ip("203.0.113.9"), false), "{hops}");
            assert_eq!(asked("192.0.2.1", &[("forwarded", hops)]), RequestOrigin::direct(ip("192.0.2.1")));
        }
        let six = asked("10.0.0.1", &[("forwarded", "for=\"[2001:db8:cafe::17]:4711\";proto=https")]);
        assert!(six.address == ip("2001:db8:cafe::17") && six.is_https, "{six:?}");
        // The scheme is that of the hop which the client made, not what the client wrote of an earlier one.
        let forged =
            asked("10.0.0.1", &[("forwarded", "for=1.1.1.1;proto=https, for=203.0.113.9;proto=http")]);
        assert!(forged.address == ip("203.0.113.9") && !forged.is_https, "{forged:?}");
        for hops in
            ["", "for=unknown", "for=_hidden", "for=10.0.0.7", "for=203.0.113.9, for=\"junk", "proto=https"]
        {
            let origin = asked("10.0.0.1", &[("forwarded", hops)]);
            assert!(origin.is_shared && origin.address == ip("10.0.0.1"), "{hops}: {origin:?}");
        }
    }

    /// A proxy that writes one header passes the other one on as the client sent it.
    #[test]
    fn only_the_header_that_is_configured_is_read() {
        let both = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=198.51.100.7;proto=https")];
        let by_x = asked_by(ForwardedHeader::XForwardedFor, "10.0.0.1", &both);
        assert!(by_x.address == ip("203.0.113.9") && !by_x.is_https, "{by_x:?}");
        let by_standard = asked_by(ForwardedHeader::Forwarded, "10.0.0.1", &both);
        assert!(by_standard.address == ip("198.51.100.7") && by_standard.is_https, "{by_standard:?}");
    }

    #[test]
    fn a_proxy_that_says_nothing_of_the_scheme_leaves_that_of_its_own_connection() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "203.0.113.9".parse().unwrap());
        let connection = RequestOrigin { is_https: true, ..RequestOrigin::direct(ip("10.0.0.1")) };
        let by = |headers: &HeaderMap| origin(connection, headers, &trusted, ForwardedHeader::XForwardedFor);
        assert!(by(&headers).is_https);
        headers.insert("x-forwarded-proto", "http".parse().unwrap());
        assert!(!by(&headers).is_https);
    }
}
