//! What stands in the path of a connection: the header of a proxy in front of us, the answers of a proxy that
//! we go through, and those of a virus scanner. None is believed beyond what it says, and none takes more than
//! its bounds.

// A test fails by panicking.
#![allow(clippy::unwrap_used)]

use std::{
    cell::Cell,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use postway_fuzz::{Grown, InputGenerator, try_seeds};
use postway_net::{
    AddressGuard, EgressPath, VirusScanner, connect_through,
    listen::{ProxiedPeer, ProxyError, read_proxy_header},
};
use rand::{Rng, rngs::StdRng};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    time::Instant,
};

/// The longest header of a proxy: of version 2, with its frame.
const HEADER_OCTETS_MAX: usize = 16 + 4_096;
/// What follows a header.
const FOLLOWS: &[u8] = b"\x16\x03\x01 a handshake, or EHLO me.example\r\n";
/// How much of a scanner's answer is read.
const ANSWER_BYTES_MAX: usize = 4 * 1024;
/// The longest answer of a proxy that is read, and the longest that is made: it fits the buffers of a socket.
const HANDSHAKE_BYTES_MAX: usize = 9 * 1024;
const PROXY_BYTES_MAX: usize = 16 * 1024;
/// How long a scanner or a proxy is waited for.
const SHORT: Duration = Duration::from_millis(50);
/// Within this many trials, some come to their end.
const ENOUGH: u64 = 200;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A header that a proxy would write, and whom it names.
fn proxy_header(random: &mut StdRng) -> (Vec<u8>, ProxiedPeer) {
    let port = random.random::<u16>();
    let (four, six) = (Ipv4Addr::from_bits(random.random()), Ipv6Addr::from_bits(random.random()));
    let mut v2 = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    let mut fields = Vec::new();
    for _ in 0..random.random_range(0..4) {
        let length = random.random_range(0..300_u16);
        fields.push(random.random());
        fields.extend(length.to_be_bytes());
        fields.extend((0..length).map(|_| random.random::<u8>()));
    }
    // The type of TLS fields has a form of its own.
    fields.iter_mut().take(1).for_each(|kind| *kind |= 0x80);
    let (family, addresses, client) = match random.random_range(0..5) {
        0 => {
            let line = format!("PROXY TCP4 {four} 10.0.0.1 {port} 25\r\n");
            return (line.into_bytes(), ProxiedPeer::Client(SocketAddr::new(four.into(), port)));
        }
        1 => {
            let line = format!("PROXY TCP6 {six} ::1 {port} 25\r\n");
            return (line.into_bytes(), ProxiedPeer::Client(SocketAddr::new(six.into(), port)));
        }
        2 => return (b"PROXY UNKNOWN whatever\r\n".to_vec(), ProxiedPeer::Unnamed),
        3 => (0x11, [&four.octets()[..], &[10, 0, 0, 1]].concat(), SocketAddr::new(four.into(), port)),
        _ => (0x21, [six.octets(), six.octets()].concat(), SocketAddr::new(six.into(), port)),
    };
    let rest = [&addresses[..], &port.to_be_bytes(), &[0, 25], &fields].concat();
    v2.push(family);
    v2.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    v2.extend(rest);
    (v2, ProxiedPeer::Client(client))
}

#[test]
fn a_proxys_header_names_whom_it_says_and_nothing_after_it_is_read() {
    let runtime = runtime();
    try_seeds(|random| {
        let (header, peer) = proxy_header(random);
        let genuine = [&header[..], FOLLOWS].concat();
        let mut left = &genuine[..];
        match runtime.block_on(read_proxy_header(&mut left)) {
            Ok(read) => assert_eq!((read.peer, left), (peer, FOLLOWS), "{}", header.escape_ascii()),
            // The further fields are random, and one may be of a form that is wrong.
            Err(error) => assert!(header.starts_with(b"\r"), "{error}: {}", header.escape_ascii()),
        }
        // However it is spoilt, a bounded number of octets is read.
        let seeds: &[&[u8]] = &[&genuine];
        let words: &[&[u8]] = &[b"\r\n", b"PROXY ", b"TCP4 ", b"\xff\xff", b"\0", b" ", b"\x20", b"\x21\x11"];
        let spoilt = Grown { seeds, words }.input(random);
        let mut left = &spoilt[..];
        let read = runtime.block_on(read_proxy_header(&mut left));
        assert!(spoilt.len() - left.len() <= HEADER_OCTETS_MAX);
        match read {
            Err(ProxyError::Broken(_)) => assert!(left.is_empty(), "{}", spoilt.escape_ascii()),
            Err(ProxyError::Malformed(_)) => {}
            Ok(_) => assert!(spoilt.starts_with(b"PROXY ") || spoilt.starts_with(b"\r\n\r\n\0\r\nQUIT\n")),
        }
    });
}

/// What a scanner says.
fn verdict(random: &mut StdRng) -> Vec<u8> {
    let seeds: &[&[u8]] = &[
        b"stream: OK\0",
        b"stream: Eicar-Test-Signature FOUND\0",
        b"INSTREAM size limit exceeded. ERROR\0",
        b"stream: OK\nstream: X FOUND\n",
    ];
    let words: &[&[u8]] = &[b"OK", b" FOUND", b"stream: ", b"\0", b"\n", b"\x1b[2J", b"\xff", b"ERROR"];
    match random.random_range(0..4) {
        0 => seeds[random.random_range(0..seeds.len())].to_vec(),
        _ => Grown { seeds, words }.input(random),
    }
}

#[test]
fn a_scanner_is_believed_only_where_it_says_ok_or_found() {
    let runtime = runtime();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let scanner = VirusScanner::new(address.parse().unwrap(), SHORT, 1 << 20);
    let judged = Cell::new(0);
    let tried = try_seeds(|random| {
        let (answer, reads) = (verdict(random), random.random_bool(0.9));
        let mail = vec![b'x'; random.random_range(0..100_000)];
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            while reads && !heard.ends_with(&[0; 4]) && stream.read_buf(&mut heard).await.unwrap_or(0) > 0 {}
            // It may have hung up.
            let _ = stream.write_all(&answer).await;
        };
        let (said, ()) = runtime.block_on(async { tokio::join!(scanner.scan(&mail), serve) });
        let shown = || answer[..answer.len().min(200)].escape_ascii().to_string();
        match said {
            Ok(None) => {
                let read = &answer[..answer.len().min(ANSWER_BYTES_MAX)];
                let words = String::from_utf8_lossy(read).replace(['\0', '\r', '\n', ' '], "");
                assert!(words == "stream:OK" || words == "OK", "{}", shown());
                judged.set(judged.get() + 1);
            }
            Ok(Some(name)) => {
                assert!(answer.windows(6).any(|part| part == b" FOUND"), "{}", shown());
                assert!((1..=200).contains(&name.chars().count()) && !name.chars().any(char::is_control));
            }
            Err(error) => assert!(error.reason.chars().count() <= 300, "{error}"),
        }
    });
    assert!(tried < ENOUGH || judged.get() > 0, "no scan came to its end");
}

/// What a proxy says that we go through.
fn proxy_answer(random: &mut StdRng, is_socks: bool) -> Vec<u8> {
    let (seeds, words): (&[&[u8]], &[&[u8]]) = match is_socks {
        true => (
            &[
                b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0",
                b"\x05\x02\x01\x00\x05\x00\x00\x03\x04name\0\0",
                b"\x05\xff",
            ],
            &[b"\x05", b"\x00", b"\x01", b"\x03\xff", b"\x04", b"\xff"],
        ),
        false => (
            &[
                b"HTTP/1.1 200 Connection established\r\n\r\n",
                b"HTTP/1.0 407 Proxy Authentication Required\r\nX: y\r\n\r\n",
            ],
            &[b"HTTP/1.", b" 200 ", b"\r\n", b"\r\n\r\n", b"\0", b"\xff", b" "],
        ),
    };
    match random.random_range(0..3) {
        0 => seeds[random.random_range(0..seeds.len())].to_vec(),
        _ => Grown { seeds, words }.input(random),
    }
}

/// Says this to whoever connects, and then what the target would say.
async fn speak(listener: &TcpListener, answer: &[u8]) -> std::io::Result<TcpStream> {
    let (mut stream, _) = listener.accept().await?;
    stream.write_all(answer).await?;
    stream.write_all(FOLLOWS).await?;
    stream.shutdown().await?;
    Ok(stream)
}

#[test]
fn a_proxy_has_connected_only_where_it_says_so() {
    let runtime = runtime();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let guard = AddressGuard::with_loopback().leaving_names_to_proxies();
    let connected = Cell::new(0);
    let tried = try_seeds(|random| {
        let is_socks = random.random_bool(0.5);
        let scheme = if is_socks { "socks5" } else { "http" };
        let proxy = format!("{scheme}://user:secret@127.0.0.1:{port}").parse().unwrap();
        let path = EgressPath::through(Some(proxy));
        let mut answer = proxy_answer(random, is_socks);
        answer.truncate(PROXY_BYTES_MAX);
        let deadline = Instant::now() + SHORT;
        runtime.block_on(async {
            let connect = connect_through(&path, "relay.example", 25, deadline, &guard);
            let (connection, _held) = tokio::join!(connect, speak(&listener, &answer));
            let shown = || answer[..answer.len().min(200)].escape_ascii().to_string();
            match connection {
                Ok(mut stream) => {
                    let is_said = match is_socks {
                        true => answer.starts_with(&[5, 0]) || answer.starts_with(&[5, 2]),
                        false => answer.starts_with(b"HTTP/1."),
                    };
                    assert!(is_said, "{}", shown());
                    // All that follows its answer is left to the caller.
                    let (whole, mut left) = ([&answer[..], FOLLOWS].concat(), Vec::new());
                    if stream.read_to_end(&mut left).await.is_ok() {
                        assert!(whole.ends_with(&left), "{}", shown());
                        assert!(whole.len() - left.len() <= HANDSHAKE_BYTES_MAX, "{}", shown());
                    }
                    connected.set(connected.get() + 1);
                }
                Err(error) => assert!(!error.to_string().contains("secret"), "{error}"),
            }
        });
    });
    assert!(tried < ENOUGH || connected.get() > 0, "no connection came about");
}
