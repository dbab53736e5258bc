//! The way out through somebody else's door: SOCKS5 (RFC 1928, RFC 1929) and HTTP CONNECT (RFC 9110 9.3.6).
//!
//! The target's name is resolved by the proxy, so that a name which only its network knows works, and no lookup
//! tells ours. A guard holds for the proxy's own address as for any other, and for a target written as an address
//! or as `localhost`; what a name means on the far side is the proxy's affair. Everything said is bounded and ends
//! at one deadline. Errors name target and proxy, never the password.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};
use thiserror::Error;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout_at},
};
use url::{Host, Url};

use crate::{Guard, NetError, connect_guarded};

/// The longest user name, password and target name, which SOCKS5 counts in one octet each.
const FIELD_BYTES_MAX: usize = 255;
/// The longest head of an answer to CONNECT.
const HEAD_BYTES_MAX: usize = 8 * 1024;
const SOCKS_PORT: u16 = 1080;

/// A proxy to connect through. Made from a URL; printed without its credentials.
#[derive(Clone)]
pub struct Proxy {
    kind: Kind,
    host: String,
    port: u16,
    credentials: Option<(String, SecretString)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Socks5,
    Http,
}

/// The text is not the URL of a proxy. Does not repeat it: it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the proxy {0}; write socks5://user:password@host:port or http://user:password@host:port")]
pub struct ProxyUrlError(&'static str);

impl FromStr for Proxy {
    type Err = ProxyUrlError;

    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let url = Url::parse(text.trim()).map_err(|_| ProxyUrlError("is not a URL"))?;
        let (kind, port) = match url.scheme() {
            "socks5" | "socks5h" => (Kind::Socks5, url.port().unwrap_or(SOCKS_PORT)),
            "http" => (Kind::Http, url.port_or_known_default().unwrap_or(80)),
            _ => return Err(ProxyUrlError("is neither socks5 nor http")),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(ProxyUrlError("has more than a host and a port"));
        }
        // Of a scheme that is not the web's, the host is taken as it stands: parse it as one.
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(ProxyUrlError("has no host"))?;
        let host = match Host::parse(host).map_err(|_| ProxyUrlError("has a host that cannot be one"))? {
            Host::Domain(name) => name,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (username, password) => {
                let decode = |text| decoded(text).ok_or(ProxyUrlError("has credentials that do not decode"));
                let (username, password) =
                    (decode(username)?, Zeroizing::new(decode(password.unwrap_or(""))?));
                if username.len().max(password.len()) > FIELD_BYTES_MAX {
                    return Err(ProxyUrlError("has credentials of more than 255 bytes"));
                }
                // Neither protocol can carry them: RFC 1929 wants at least one octet, RFC 7617 splits at the colon.
                if username.is_empty() || (kind == Kind::Socks5 && password.is_empty()) {
                    return Err(ProxyUrlError("needs both a user name and a password, or neither"));
                }
                if kind == Kind::Http && username.contains(':') {
                    return Err(ProxyUrlError("has a user name with a colon, which http cannot carry"));
                }
                Some((username, SecretString::from(password.as_str())))
            }
        };
        Ok(Self { kind, host, port, credentials })
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Socks5 => "SOCKS5",
            Kind::Http => "HTTP",
        };
        write!(f, "{kind} proxy {}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// Connects to `host` before `deadline`, through the proxy if there is one, and only where the guard lets it.
///
/// A proxy that refuses, or asks for other credentials, is a [`NetError::Connect`] of the target; of the kind
/// `PermissionDenied` where the credentials are at fault.
pub async fn connect_through(
    proxy: Option<&Proxy>,
    host: &str,
    port: u16,
    deadline: Instant,
    guard: Option<&Guard>,
) -> Result<TcpStream, NetError> {
    let Some(proxy) = proxy else {
        return connect_guarded(host, port, deadline, guard).await;
    };
    let failed = |source| NetError::Connect { host: host.to_owned(), port, source };
    let target = target(host).map_err(failed)?;
    if guard.is_some_and(|guard| is_refused(&target, guard)) {
        return Err(NetError::Guarded { host: host.to_owned() });
    }
    let mut tcp =
        connect_guarded(&proxy.host, proxy.port, deadline, guard).await.map_err(|error| match error {
            NetError::Connect { source, .. } => {
                let text = format!("the {proxy} takes no connection: {source}");
                failed(io::Error::new(source.kind(), text))
            }
            other => other,
        })?;
    let agreed = async {
        match proxy.kind {
            Kind::Socks5 => socks5(&mut tcp, proxy, &target, port).await,
            Kind::Http => http_connect(&mut tcp, proxy, &target, port).await,
        }
    };
    match timeout_at(deadline, agreed).await {
        Ok(Ok(())) => Ok(tcp),
        Ok(Err(error)) => Err(failed(io::Error::new(error.kind(), format!("through the {proxy}: {error}")))),
        Err(_) => {
            Err(NetError::Timeout { host: proxy.host.clone(), port: proxy.port, what: "proxy handshake" })
        }
    }
}

/// Reads a target as a resolver on the far side would: `127.1` and `0x7f000001` are addresses too.
fn target(host: &str) -> io::Result<Host> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(match address {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        });
    }
    match Host::parse(host) {
        Ok(Host::Domain(name)) if name.len() > FIELD_BYTES_MAX => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "the host name has more than 255 bytes"))
        }
        Ok(host) => Ok(host),
        Err(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a host name")),
    }
}

fn is_refused(target: &Host, guard: &Guard) -> bool {
    match target {
        Host::Ipv4(address) => !guard.allows((*address).into()),
        Host::Ipv6(address) => !guard.allows((*address).into()),
        // RFC 6761 6.3: the one name whose meaning is known without asking.
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            let is_local = name == "localhost" || name.ends_with(".localhost");
            is_local && !guard.allows(Ipv4Addr::LOCALHOST.into())
        }
    }
}

async fn socks5(tcp: &mut TcpStream, proxy: &Proxy, target: &Host, port: u16) -> io::Result<()> {
    const NO_AUTH: u8 = 0;
    const BY_PASSWORD: u8 = 2;
    let methods: &[u8] =
        if proxy.credentials.is_some() { &[5, 2, NO_AUTH, BY_PASSWORD] } else { &[5, 1, NO_AUTH] };
    tcp.write_all(methods).await?;
    let mut choice = [0; 2];
    tcp.read_exact(&mut choice).await?;
    match (choice, &proxy.credentials) {
        ([5, NO_AUTH], _) => {}
        ([5, BY_PASSWORD], Some((username, password))) => {
            let password = password.expose_secret();
            let mut sign_in = Zeroizing::new(Vec::with_capacity(3 + username.len() + password.len()));
            sign_in.push(1);
            push_counted(&mut sign_in, username.as_bytes());
            push_counted(&mut sign_in, password.as_bytes());
            tcp.write_all(&sign_in).await?;
            let mut verdict = [0; 2];
            tcp.read_exact(&mut verdict).await?;
            if verdict[1] != 0 {
                return Err(denied("it refuses the user name and password"));
            }
        }
        ([5, _], _) => return Err(denied("it wants another kind of sign-in")),
        _ => return Err(garbled("it does not speak SOCKS5")),
    }
    let mut request = vec![5, 1, 0];
    match target {
        Host::Ipv4(address) => {
            request.push(1);
            request.extend(address.octets());
        }
        Host::Ipv6(address) => {
            request.push(4);
            request.extend(address.octets());
        }
        Host::Domain(name) => {
            request.push(3);
            push_counted(&mut request, name.as_bytes());
        }
    }
    request.extend(port.to_be_bytes());
    tcp.write_all(&request).await?;
    let mut head = [0; 4];
    tcp.read_exact(&mut head).await?;
    if head[0] != 5 {
        return Err(garbled("it does not speak SOCKS5"));
    }
    if head[1] != 0 {
        return Err(refused(head[1]));
    }
    // The address it connects from follows, of no use to us.
    let bound = match head[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(tcp.read_u8().await?),
        _ => return Err(garbled("it answers with an unknown kind of address")),
    };
    let mut rest = [0; FIELD_BYTES_MAX + 2];
    tcp.read_exact(&mut rest[..bound + 2]).await?;
    Ok(())
}

/// Adds a field and its length. What is longer was refused when it was parsed; should one come here it is cut.
fn push_counted(request: &mut Vec<u8>, field: &[u8]) {
    let length = u8::try_from(field.len()).unwrap_or(u8::MAX);
    request.push(length);
    request.extend_from_slice(&field[..usize::from(length)]);
}

fn refused(code: u8) -> io::Error {
    let (kind, why) = match code {
        2 => (io::ErrorKind::PermissionDenied, "it does not allow this connection"),
        3 => (io::ErrorKind::NetworkUnreachable, "the network is unreachable"),
        4 => (io::ErrorKind::HostUnreachable, "the host is unreachable or unknown"),
        5 => (io::ErrorKind::ConnectionRefused, "the connection was refused"),
        6 => (io::ErrorKind::TimedOut, "the connection timed out"),
        _ => (io::ErrorKind::Other, "it failed to connect"),
    };
    io::Error::new(kind, why)
}

async fn http_connect(tcp: &mut TcpStream, proxy: &Proxy, target: &Host, port: u16) -> io::Result<()> {
    let mut request =
        Zeroizing::new(format!("CONNECT {target}:{port} HTTP/1.1\r\nHost: {target}:{port}\r\n"));
    if let Some((username, password)) = &proxy.credentials {
        let pair = Zeroizing::new(format!("{username}:{}", password.expose_secret()));
        let basic = Zeroizing::new(BASE64_STANDARD.encode(pair.as_bytes()));
        request.push_str("Proxy-Authorization: Basic ");
        request.push_str(&basic);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    tcp.write_all(request.as_bytes()).await?;
    // Octet by octet: whatever follows the head is the target speaking, and belongs to whoever gets the connection.
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD_BYTES_MAX {
            return Err(garbled("its answer has no end"));
        }
        head.push(tcp.read_u8().await?);
    }
    let line = head.split(|&b| b == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&b| b == b' ');
    let is_http = words.next().is_some_and(|word| word.starts_with(b"HTTP/1."));
    let code = words.next().and_then(|word| std::str::from_utf8(word).ok()?.parse::<u16>().ok());
    match code.filter(|_| is_http) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(denied("it refuses the user name and password (407)")),
        Some(403) => Err(denied("it does not allow this connection (403)")),
        Some(code) => Err(io::Error::other(format!("it answers {code} to CONNECT"))),
        None => Err(garbled("it does not speak HTTP")),
    }
}

fn denied(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn garbled(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Undoes percent-encoding; `None` where it is malformed or not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(octets).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{net::TcpListener, task::JoinHandle};

    use super::*;

    /// A proxy that expects these words, answers each with its reply, and says nothing else.
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

    async fn through(url: &str, host: &str, guard: Option<&Guard>) -> Result<TcpStream, NetError> {
        let deadline = Instant::now() + Duration::from_secs(5);
        connect_through(Some(&url.parse().unwrap()), host, 993, deadline, guard).await
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
            through(&format!("socks5://bob:p%40ss%3Awd@127.0.0.1:{port}"), "imap.example.org", None)
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
            let mut tcp = through(&format!("socks5://127.0.0.1:{port}"), host, None).await.unwrap();
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
        let mut tcp =
            through(&format!("http://bob:secret@127.0.0.1:{port}"), "imap.example.org", None).await.unwrap();
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
                    // The length of what it is told does not matter: it refuses.
                    assert_eq!(tcp.read_u8().await.unwrap(), 1);
                    tcp.write_all(&[1, 1]).await.unwrap();
                }
                // Until the other side has read all and gone.
                tokio::io::copy(&mut tcp, &mut tokio::io::sink()).await.ok();
            });
            let url = format!("{scheme}://bob:hunter2@127.0.0.1:{port}");
            let error = through(&url, "imap.example.org", None).await.unwrap_err();
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
        let proxy: Proxy = format!("socks5://127.0.0.1:{port}").parse().unwrap();
        let soon = Instant::now() + Duration::from_millis(100);
        let error = connect_through(Some(&proxy), "imap.example.org", 993, soon, None).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains(&format!("proxy handshake with 127.0.0.1:{port}")), "{error}");
        drop(listener);
        let error =
            through(&format!("socks5://127.0.0.1:{port}"), "imap.example.org", None).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&format!("SOCKS5 proxy 127.0.0.1:{port}")), "{error}");
    }

    #[tokio::test]
    async fn the_guard_holds_for_the_proxy_and_for_what_is_plainly_private() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("socks5://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let error = through(&url, "imap.example.org", Some(&Guard::default())).await.unwrap_err();
        assert!(matches!(&error, NetError::Guarded { host } if host == "127.0.0.1"), "{error}");
        // The proxy is allowed; the network of the targets is not.
        let guard = Guard::new(vec![("127.0.0.1".parse().unwrap(), 32)]);
        for host in ["10.1.2.3", "10.1", "0xa000001", "169.254.169.254.", "::1", "[::1]", "::ffff:10.0.0.1"] {
            let error = through(&url, host, Some(&guard)).await.unwrap_err();
            assert!(matches!(error, NetError::Guarded { .. }), "{host}: {error}");
        }
        assert!(is_refused(&target("LOCALHOST.").unwrap(), &Guard::default()));
        assert!(is_refused(&target("a.localhost").unwrap(), &Guard::default()));
        assert!(!is_refused(&target("localhost.example.org").unwrap(), &Guard::default()));
    }

    #[test]
    fn a_target_cannot_smuggle_words_into_the_request() {
        for host in ["a\r\nX: y", "a b", "a%0d%0ab", "a/b", "a@b", "", "a:25"] {
            assert!(target(host).is_err(), "{host:?}");
        }
        assert!(target(&"a".repeat(256)).is_err());
        assert_eq!(target("bücher.example").unwrap().to_string(), "xn--bcher-kva.example");
    }

    #[test]
    fn urls_are_read_and_credentials_are_never_printed() {
        let proxy: Proxy = "socks5h://bob:hunter2@[::1]".parse().unwrap();
        assert_eq!((proxy.kind, proxy.host.as_str(), proxy.port), (Kind::Socks5, "::1", 1080));
        assert_eq!(format!("{proxy:?}"), "Proxy(SOCKS5 proxy ::1:1080)");
        let proxy: Proxy = "http://Proxy.example.org/".parse().unwrap();
        assert_eq!((proxy.kind, proxy.host.as_str(), proxy.port), (Kind::Http, "proxy.example.org", 80));
        for url in [
            "",
            "proxy:1080",
            "https://proxy",
            "socks4://proxy",
            "socks5://",
            "socks5://proxy/path",
            "http://proxy/?q",
            "socks5://bob@proxy",
            "socks5://:hunter2@proxy",
            "socks5://bob:%zz@proxy",
            "http://b%3Ab:hunter2@proxy",
            "socks5://exa mple",
        ] {
            let error = url.parse::<Proxy>().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(format!("socks5://bob:{}@proxy", "x".repeat(256)).parse::<Proxy>().is_err());
    }
}
