//! Whatever a client writes into these headers, the address that counts is the one that its proxy added.

use std::net::Ipv4Addr;

use hyper::header::HeaderValue;
use postway_fuzz::{Grown, InputGenerator, try_seeds};
use rand::Rng;

use super::*;

/// The longest part that a client writes.
const WRITTEN_BYTES_MAX: usize = 4_096;

const SEEDS: &[&[u8]] = &[
    b"for=1.1.1.1;proto=https, for=10.0.0.2;by=10.0.0.1",
    b"For=\"[2001:db8::1]:4711\";proto=http;host=\"a,b;c\"",
    b"1.1.1.1, 10.0.0.2",
    b"[2001:db8::1]:80",
    b"for=\"junk, for=10.0.0.7",
];
const WORDS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"\\\"",
    b",",
    b";",
    b"=",
    b"for=",
    b"for=\"",
    b"proto=https",
    b"10.0.0.1",
    b"203.0.113.1",
    b"unknown",
    b"[",
    b"]",
    b":1",
    b"\xff",
    b"\xe2\x80",
    b"\t",
];

#[test]
fn what_a_client_writes_never_becomes_its_address() {
    let trusted: Vec<IpNetwork> = vec!["10.0.0.0/8".parse().unwrap()];
    let written = Grown { seeds: SEEDS, words: WORDS };
    try_seeds(|random| {
        let mut written = written.input(random);
        written.truncate(WRITTEN_BYTES_MAX);
        written.retain(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f));
        let Ok(by_client) = HeaderValue::from_bytes(&written) else { return };
        let (is_six, in_one_line) = (random.random_bool(0.3), random.random_bool(0.5));
        let client: IpAddr = match is_six {
            true => "2001:db8::9".parse().unwrap(),
            false => "203.0.113.9".parse().unwrap(),
        };
        for (header, name, by_proxy) in [
            (ForwardedHeader::XForwardedFor, "x-forwarded-for", client.to_string()),
            (
                ForwardedHeader::Forwarded,
                "forwarded",
                if is_six { format!("for=\"[{client}]:4711\"") } else { format!("for={client};proto=http") },
            ),
        ] {
            let mut headers = HeaderMap::new();
            if in_one_line {
                let joined = [by_client.as_bytes(), b", ", by_proxy.as_bytes()].concat();
                headers.append(name, HeaderValue::from_bytes(&joined).unwrap());
            } else {
                headers.append(name, by_client.clone());
                headers.append(name, by_proxy.parse().unwrap());
            }
            let proxy = RequestOrigin::direct(Ipv4Addr::new(10, 0, 0, 1).into());
            let found = origin(proxy, &headers, &trusted, header);
            assert_eq!((found.address, found.is_shared), (client, false), "{headers:?}");
            // From anybody else, it changes nothing.
            let stranger = RequestOrigin::direct(Ipv4Addr::new(192, 0, 2, 1).into());
            assert_eq!(origin(stranger, &headers, &trusted, header), stranger, "{headers:?}");
        }
    });
}
