//! Tests proxies that accept, refuse, are silent, do not exist, or are not allowed.

use std::time::Duration;

use postway_testkit::ClosedPort;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

use super::{http::HEAD_BYTES_MAX, *};

/// A proxy that expects these requests and sends the reply to each.
async fn scripted(script: Vec<(Vec<u8>, Vec<u8>)>) -> (u16, JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        for (expected, reply) in script {
            let mut heard = vec![0; expected.len()];
            tcp.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard, expected, "{}", String::from_utf8_lossy(&heard));
            tcp.write_all(&reply).await.unwrap();
        }
        tcp
    });
    (port, serving)
}

/// A guard that allows everything, and leaves names to proxies: most tests are about the proxy protocols.
fn anywhere() -> AddressGuard {
    checking().leaving_names_to_proxies()
}

/// A guard that allows everything, for a proxy beside us.
fn checking() -> AddressGuard {
    AddressGuard::new(vec![(IpAddr::from([0, 0, 0, 0]), 0), (IpAddr::from([0; 16]), 0)])
}

async fn through(url: &str, host: &str, guard: &AddressGuard) -> Result<TcpStream, NetError> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let path = EgressPath::through(Some(url.parse().unwrap()));
    connect_through(&path, host, 993, deadline, guard).await
}

const GRANTED: &[u8] = &[5, 0, 0, 1, 10, 0, 0, 1, 0, 80];

#[tokio::test]
async fn socks5_signs_in_and_lets_the_proxy_resolve_the_name() {
    let sign_in = b"\x01\x03bob\x07p@ss:wd".to_vec();
    let request = b"\x05\x01\x00\x03\x10imap.example.org\x03\xe1".to_vec();
    // The target's greeting comes in the same packet as the proxy's answer and must not be lost.
    let granted = [GRANTED, b"* OK hello"].concat();
    let script = vec![(vec![5, 2, 0, 2], vec![5, 2]), (sign_in, vec![1, 0]), (request, granted)];
    let (port, serving) = scripted(script).await;
    let mut tcp =
        through(&format!("socks5://bob:p%40ss%3Awd@127.0.0.1:{port}"), "imap.example.org", &anywhere())
            .await
            .unwrap();
    let mut greeting = [0; 10];
    tcp.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"* OK hello");
    serving.await.unwrap();
}

#[tokio::test]
async fn socks5_takes_addresses_and_any_kind_of_answer() {
    for (bound, host, asked) in [
        (vec![4; 19], "192.0.2.7", vec![5, 1, 0, 1, 192, 0, 2, 7, 3, 225]),
        ([vec![3, 3], b"abc\0\0".to_vec()].concat(), "2001:db8::1", {
            let address: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
            [&[5, 1, 0, 4][..], &address.octets(), &[3, 225]].concat()
        }),
    ] {
        let answer = [vec![5, 0, 0], bound, b"!".to_vec()].concat();
        let (port, serving) = scripted(vec![(vec![5, 1, 0], vec![5, 0]), (asked, answer)]).await;
        let mut tcp = through(&format!("socks5://127.0.0.1:{port}"), host, &anywhere()).await.unwrap();
        assert_eq!(tcp.read_u8().await.unwrap(), b'!');
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn http_connect_signs_in_and_leaves_what_follows_the_head() {
    let request = b"CONNECT imap.example.org:993 HTTP/1.1\r\nHost: imap.example.org:993\r\n\
        Proxy-Authorization: Basic Ym9iOnNlY3JldA==\r\n\r\n";
    let answer = b"HTTP/1.1 200 Connection established\r\nX-A: b\r\n\r\n* OK".to_vec();
    let (port, serving) = scripted(vec![(request.to_vec(), answer)]).await;
    let mut tcp = through(&format!("http://bob:secret@127.0.0.1:{port}"), "imap.example.org", &anywhere())
        .await
        .unwrap();
    let mut greeting = [0; 4];
    tcp.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"* OK");
    serving.await.unwrap();
}

#[tokio::test]
async fn a_refusal_names_target_and_proxy_and_no_password() {
    let http = |status: &str| format!("HTTP/1.1 {status}\r\n\r\n").into_bytes();
    let endless = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; HEAD_BYTES_MAX]].concat();
    let cases = [
        ("socks5", vec![5, 2], "", io::ErrorKind::PermissionDenied),
        ("socks5", vec![5, 255], "another kind of sign-in", io::ErrorKind::PermissionDenied),
        ("socks5", b"HTTP".to_vec(), "does not speak SOCKS5", io::ErrorKind::InvalidData),
        ("http", http("407 No"), "user name and password", io::ErrorKind::PermissionDenied),
        ("http", http("502 No"), "502", io::ErrorKind::Other),
        ("http", b"220 mail ESMTP\r\n\r\n".to_vec(), "does not speak HTTP", io::ErrorKind::InvalidData),
        ("http", endless, "no end", io::ErrorKind::InvalidData),
    ];
    for (scheme, reply, says, kind) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let mut first = [0; 4];
            tcp.read_exact(&mut first).await.unwrap();
            tcp.write_all(&reply).await.unwrap();
            if reply == [5, 2] {
                // It refuses, whatever the length of the request is.
                assert_eq!(tcp.read_u8().await.unwrap(), 1);
                tcp.write_all(&[1, 1]).await.unwrap();
            }
            // Waits until the other side has read everything and closed.
            tokio::io::copy(&mut tcp, &mut tokio::io::sink()).await.ok();
        });
        let url = format!("{scheme}://bob:hunter2@127.0.0.1:{port}");
        let error = through(&url, "imap.example.org", &anywhere()).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("imap.example.org:993") && text.contains(&format!("127.0.0.1:{port}")),
            "{text}"
        );
        assert!(text.contains(says) && !text.contains("hunter2"), "{text}");
        assert_eq!(error.kind(), kind, "{text}");
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_or_says_nothing_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = EgressPath::through(Some(format!("socks5://127.0.0.1:{port}").parse().unwrap()));
    let soon = Instant::now() + Duration::from_secs(1);
    let error = connect_through(&proxy, "imap.example.org", 993, soon, &anywhere()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains(&format!("proxy handshake with 127.0.0.1:{port}")), "{error}");
    let closed = ClosedPort::take();
    let port = closed.port();
    let error =
        through(&format!("socks5://127.0.0.1:{port}"), "imap.example.org", &anywhere()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains(&format!("SOCKS5 proxy 127.0.0.1:{port}")), "{error}");
}

#[tokio::test]
async fn the_guard_holds_for_the_proxy_and_for_what_is_plainly_private() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("socks5://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let error = through(&url, "imap.example.org", &AddressGuard::default()).await.unwrap_err();
    assert!(matches!(&error, NetError::Guarded { host } if host == "127.0.0.1"), "{error}");
    // The proxy is allowed; the network of the targets is not.
    let guard = AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)]);
    for host in ["10.1.2.3", "10.1", "0xa000001", "169.254.169.254.", "::1", "[::1]", "::ffff:10.0.0.1"] {
        let error = through(&url, host, &guard).await.unwrap_err();
        assert!(matches!(error, NetError::Guarded { .. }), "{host}: {error}");
    }
}

#[tokio::test]
async fn a_proxy_beside_us_is_given_an_address_that_was_checked() {
    // `localhost` may have an address of either family; the guard of this test allows one.
    let guard = AddressGuard::new(vec![("127.0.0.1".parse().unwrap(), 32)]);
    for url in ["socks5", "http"] {
        let (asked, answer): (&[u8], &[u8]) = match url {
            "socks5" => (&[5, 1, 0, 1, 127, 0, 0, 1, 3, 225], GRANTED),
            _ => {
                (b"CONNECT 127.0.0.1:993 HTTP/1.1\r\nHost: 127.0.0.1:993\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n")
            }
        };
        let hello = (vec![5, 1, 0], vec![5, 0]);
        let script = [(url == "socks5").then_some(hello), Some((asked.to_vec(), answer.to_vec()))];
        let (port, serving) = scripted(script.into_iter().flatten().collect()).await;
        through(&format!("{url}://127.0.0.1:{port}"), "localhost", &guard).await.unwrap();
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_never_reaches_a_proxy_beside_us() {
    let listener = TcpListener::bind("127.0.0.9:0").await.unwrap();
    let url = format!("socks5://127.0.0.9:{}", listener.local_addr().unwrap().port());
    let guard = AddressGuard::new(vec![("127.0.0.9".parse().unwrap(), 32)]);
    // `localhost` itself is known without a resolver, so this is a name that only a resolver knows.
    let Some(own) = own_name() else { return };
    let error = through(&url, &own, &guard).await.unwrap_err();
    assert!(matches!(&error, NetError::Guarded { host } if *host == own), "{error}");
    let (mut tcp, _) = listener.accept().await.unwrap();
    let mut heard = Vec::new();
    tcp.read_to_end(&mut heard).await.unwrap();
    assert!(heard.is_empty(), "the proxy was told nothing");
}

/// The name of this machine, if its resolver knows it.
fn own_name() -> Option<String> {
    let name = std::fs::read_to_string("/etc/hostname").ok()?.trim().to_owned();
    std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0)).ok()?.next()?;
    Some(name)
}

#[tokio::test]
async fn a_proxy_without_ipv6_is_asked_for_another_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("socks5://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let serving = tokio::spawn(async move {
        let mut kinds = Vec::new();
        // Refuses IPv6, and grants IPv4.
        while !kinds.contains(&1) {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let mut hello = [0; 3];
            tcp.read_exact(&mut hello).await.unwrap();
            tcp.write_all(&[5, 0]).await.unwrap();
            let mut head = [0; 4];
            tcp.read_exact(&mut head).await.unwrap();
            kinds.push(head[3]);
            let answer: &[u8] = if head[3] == 1 { GRANTED } else { &[5, 8, 0, 1, 0, 0, 0, 0, 0, 0] };
            tcp.write_all(answer).await.unwrap();
            // Closing with unread bytes would reset the connection before the answer is read.
            tokio::spawn(async move { tokio::io::copy(&mut tcp, &mut tokio::io::sink()).await.ok() });
        }
        kinds
    });
    through(&url, "localhost", &checking()).await.unwrap();
    assert!([vec![1], vec![4, 1]].contains(&serving.await.unwrap()));
}

#[tokio::test]
async fn the_connection_to_the_proxy_leaves_from_the_chosen_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("socks5://127.0.0.1:{}", listener.local_addr().unwrap().port()).parse().unwrap();
    let path = EgressPath { proxy: Some(proxy), source: Some("127.0.0.8".parse().unwrap()) };
    assert!(path.to_string().starts_with(" from 127.0.0.8 through the SOCKS5 proxy 127.0.0.1:"), "{path}");
    let guard = checking();
    let deadline = Instant::now() + Duration::from_secs(30);
    let (_, accepted) = tokio::join!(connect_through(&path, "192.0.2.1", 25, deadline, &guard), async {
        listener.accept().await.unwrap().1
    });
    assert_eq!(accepted.ip().to_string(), "127.0.0.8");
}

#[test]
fn a_target_cannot_smuggle_words_into_the_request() {
    for host in ["a\r\nX: y", "a b", "a%0d%0ab", "a/b", "a@b", "", "a:25"] {
        assert!(target(host).is_err(), "{host:?}");
    }
    assert!(target(&"a".repeat(256)).is_err());
    assert_eq!(target("bücher.example").unwrap().to_string(), "xn--bcher-kva.example");
}
