//! The PROXY protocol, versions 1 and 2: the header by which a TCP proxy names its client.
//!
//! The header is read before anything else from connections that must send it, and not one byte more: a TLS
//! handshake may follow. Its length is bounded before it is read, and the caller sets a deadline. An invalid
//! header ends the connection. A proxy may also send a header that names no client (UNKNOWN, LOCAL, or a
//! socket that is not TCP over IP).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest header of version 1, including its line ending.
const V1_OCTETS_MAX: usize = 107;
/// The octets that are read first: fewer than the shortest header of either version.
const START_OCTETS: usize = 13;
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The octets before the addresses of version 2.
const V2_FRAME_OCTETS: usize = 16;
/// The most octets of addresses and further fields in version 2; proxies send some hundreds.
const V2_REST_OCTETS_MAX: usize = 4_096;

/// The client behind a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxiedPeer {
    /// This client.
    Client(SocketAddr),
    /// The proxy names no client: it connects for itself, as for health checks, or does not know the client.
    Unnamed,
}

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The client.
    pub peer: ProxiedPeer,
    /// Whether the client spoke TLS with the proxy; only version 2 can say so (`send-proxy-v2-ssl`).
    pub is_tls: bool,
}

impl ProxyHeader {
    fn without_tls(peer: ProxiedPeer) -> Self {
        Self { peer, is_tls: false }
    }
}

/// Why no header could be read.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The header is invalid; the text says why.
    #[error("no PROXY header that can be read: {0}")]
    Malformed(&'static str),
    /// The connection broke.
    #[error("the connection ended before its PROXY header did: {0}")]
    Broken(#[from] std::io::Error),
}

/// Reads the header at the start of a connection, and nothing after it. The caller must set a deadline.
pub async fn read_proxy_header<S: AsyncRead + Unpin>(stream: &mut S) -> Result<ProxyHeader, ProxyError> {
    let mut start = [0; START_OCTETS];
    // The first octet is checked alone, so that a client of another protocol is refused at once.
    stream.read_exact(&mut start[..1]).await?;
    if !matches!(start[0], b'P' | b'\r') {
        return Err(ProxyError::Malformed("it begins with something else"));
    }
    stream.read_exact(&mut start[1..]).await?;
    match start.first_chunk() {
        Some(signature) if signature == V2_SIGNATURE => read_v2(stream, start[12]).await,
        _ if start.starts_with(b"PROXY ") => read_v1(stream, &start).await,
        _ => Err(ProxyError::Malformed("it begins with something else")),
    }
}

async fn read_v1<S: AsyncRead + Unpin>(stream: &mut S, start: &[u8]) -> Result<ProxyHeader, ProxyError> {
    let mut line = start.to_vec();
    // Octet by octet: what follows the line must not be read.
    while !line.ends_with(b"\r\n") {
        if line.len() >= V1_OCTETS_MAX {
            return Err(ProxyError::Malformed("the line has no end"));
        }
        line.push(stream.read_u8().await?);
    }
    parse_v1(&line[..line.len() - 2]).map(ProxyHeader::without_tls)
}

/// Parses a line of version 1 without its ending.
fn parse_v1(line: &[u8]) -> Result<ProxiedPeer, ProxyError> {
    const FORM: ProxyError =
        ProxyError::Malformed("the line is not `PROXY TCP4 source destination port port`");
    let line = std::str::from_utf8(line).map_err(|_| FORM)?;
    if line == "PROXY UNKNOWN" || line.starts_with("PROXY UNKNOWN ") {
        // The rest of the line must be ignored.
        return Ok(ProxiedPeer::Unnamed);
    }
    let words: Vec<&str> = line.split(' ').collect();
    let ["PROXY", family, source, destination, source_port, destination_port] = words[..] else {
        return Err(FORM);
    };
    let address = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse().ok().map(IpAddr::V4),
            "TCP6" => text.parse().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let port = |text: &str| {
        let is_plain =
            text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        text.parse::<u16>().ok().filter(|_| is_plain)
    };
    match (address(source), address(destination), port(source_port), port(destination_port)) {
        (Some(source), Some(_), Some(port), Some(_)) => {
            Ok(ProxiedPeer::Client(SocketAddr::new(source, port)))
        }
        _ => Err(FORM),
    }
}

async fn read_v2<S: AsyncRead + Unpin>(
    stream: &mut S,
    version_and_command: u8,
) -> Result<ProxyHeader, ProxyError> {
    let mut frame = [0; V2_FRAME_OCTETS - START_OCTETS];
    stream.read_exact(&mut frame).await?;
    let [family, high, low] = frame;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > V2_REST_OCTETS_MAX {
        return Err(ProxyError::Malformed("it is longer than any that is known"));
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    parse_v2(version_and_command, family, &rest)
}

/// Parses the part of version 2 after the signature.
fn parse_v2(version_and_command: u8, family: u8, rest: &[u8]) -> Result<ProxyHeader, ProxyError> {
    const SHORT: ProxyError = ProxyError::Malformed("its addresses are cut off");
    let is_local = match version_and_command {
        0x20 => true,
        0x21 => false,
        _ => return Err(ProxyError::Malformed("the version or the command is not known")),
    };
    let (client, addresses) = match family {
        // TCP over IPv4 and IPv6: two addresses, two ports.
        0x11 => {
            let fields: &[u8; 12] = rest.first_chunk().ok_or(SHORT)?;
            let source = Ipv4Addr::new(fields[0], fields[1], fields[2], fields[3]);
            let port = u16::from_be_bytes([fields[8], fields[9]]);
            (Some(SocketAddr::new(source.into(), port)), fields.len())
        }
        0x21 => {
            let fields: &[u8; 36] = rest.first_chunk().ok_or(SHORT)?;
            let source: [u8; 16] = *fields.first_chunk().ok_or(SHORT)?;
            let port = u16::from_be_bytes([fields[32], fields[33]]);
            (Some(SocketAddr::new(Ipv6Addr::from(source).into(), port)), fields.len())
        }
        // No address, UDP, or a Unix socket: the rest has no meaning here.
        0x00 | 0x12 | 0x22 | 0x31 | 0x32 => (None, rest.len()),
        _ => return Err(ProxyError::Malformed("the family of its addresses is not known")),
    };
    let spoke_tls = read_fields(&rest[addresses..])?;
    match client {
        Some(client) if !is_local => Ok(ProxyHeader { peer: ProxiedPeer::Client(client), is_tls: spoke_tls }),
        _ => Ok(ProxyHeader::without_tls(ProxiedPeer::Unnamed)),
    }
}

/// Checks that the further fields end with the header: a type, a length of two octets, and that many octets.
/// Returns whether one of them says that the client spoke TLS.
fn read_fields(mut rest: &[u8]) -> Result<bool, ProxyError> {
    /// `PP2_TYPE_SSL`, and the bit of its first octet for a client that spoke TLS.
    const TLS: u8 = 0x20;
    const SPOKE_TLS: u8 = 0x01;
    let mut spoke_tls = false;
    while !rest.is_empty() {
        let field = match rest {
            [kind, high, low, after @ ..] => after
                .split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))
                .map(|(value, after)| (*kind, value, after)),
            _ => None,
        };
        let (kind, value, after) =
            field.ok_or(ProxyError::Malformed("a field is longer than what is left"))?;
        spoke_tls |= kind == TLS && value.first().is_some_and(|flags| flags & SPOKE_TLS != 0);
        rest = after;
    }
    Ok(spoke_tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a stream: the peer, and the number of octets left.
    async fn read(mut stream: &[u8]) -> (Result<ProxiedPeer, ProxyError>, usize) {
        let header = read_proxy_header(&mut stream).await;
        (header.map(|header| header.peer), stream.len())
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&V2_SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    const V4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0xC3, 0x50, 0, 25];

    fn v6() -> Vec<u8> {
        let source: Ipv6Addr = "2001:db8::7".parse().unwrap();
        [&source.octets()[..], &Ipv6Addr::LOCALHOST.octets(), &50_000_u16.to_be_bytes(), &[0, 25]].concat()
    }

    #[tokio::test]
    async fn headers_name_the_client_and_leave_what_follows() {
        let client = |text: &str| ProxiedPeer::Client(text.parse().unwrap());
        let (v4, v6) = (client("192.0.2.7:50000"), client("[2001:db8::7]:50000"));
        let field = [0x04, 0, 3, 1, 2, 3];
        for (header, peer) in [
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 50000 25\r\n".to_vec(), v4),
            (b"PROXY TCP6 2001:db8::7 ::1 50000 25\r\n".to_vec(), v6),
            (b"PROXY UNKNOWN\r\n".to_vec(), ProxiedPeer::Unnamed),
            (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n".to_vec(), ProxiedPeer::Unnamed),
            (v2(0x21, 0x11, &V4), v4),
            (v2(0x21, 0x11, &[&V4[..], &field, &[0x01, 0, 0]].concat()), v4),
            (v2(0x21, 0x21, &self::v6()), v6),
            (v2(0x20, 0x00, &[]), ProxiedPeer::Unnamed),
            (v2(0x20, 0x11, &V4), ProxiedPeer::Unnamed),
            (v2(0x21, 0x00, &[]), ProxiedPeer::Unnamed),
            (v2(0x21, 0x31, &[0; 216]), ProxiedPeer::Unnamed),
        ] {
            for follows in [&b""[..], b"EHLO me\r\n"] {
                let (read, left) = read(&[&header[..], follows].concat()).await;
                assert_eq!((read.unwrap(), left), (peer, follows.len()), "{}", header.escape_ascii());
            }
            // A header that is cut off anywhere is invalid.
            for cut in 0..header.len() {
                let (read, left) = read(&header[..cut]).await;
                assert!(matches!(read, Err(ProxyError::Broken(_))), "{} at {cut}", header.escape_ascii());
                assert_eq!(left, 0);
            }
        }
    }

    #[tokio::test]
    async fn a_header_says_whether_the_client_spoke_tls() {
        let tls = |flags: u8| [&V4[..], &[0x20, 0, 5, flags, 0, 0, 0, 0]].concat();
        for (command, rest, expected) in [
            (0x21, tls(0x01), true),
            (0x21, tls(0x07), true),
            (0x21, tls(0x06), false),
            (0x21, [&V4[..], &[0x20, 0, 0]].concat(), false),
            (0x21, V4.to_vec(), false),
            // A proxy that connects for itself says nothing about a client.
            (0x20, tls(0x01), false),
        ] {
            let header = read_proxy_header(&mut &v2(command, 0x11, &rest)[..]).await.unwrap();
            assert_eq!(header.is_tls, expected, "{}", rest.escape_ascii());
        }
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused_after_a_bounded_number_of_octets() {
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_OCTETS_MAX));
        let endless = [b"PROXY TCP4 ".to_vec(), vec![b'1'; 10_000]].concat();
        let mut oversize = v2(0x21, 0x11, &[0; V2_REST_OCTETS_MAX]);
        oversize[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        for stream in [
            &b"EHLO me.example and whatever follows\r\n"[..],
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a handshake",
            b"PROXYTCP4 192.0.2.7 10.0.0.1 50000 25\r\n",
            b"proxy TCP4 192.0.2.7 10.0.0.1 50000 25\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 50000\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 50000 25 7\r\n",
            b"PROXY TCP4  192.0.2.7 10.0.0.1 50000 25\r\n",
            b"PROXY TCP4 2001:db8::7 ::1 50000 25\r\n",
            b"PROXY TCP6 192.0.2.7 10.0.0.1 50000 25\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 25\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 050 25\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 +5 25\r\n",
            b"PROXY TCP4 192.0.2.7 10.0.0.1 50000 25\nEHLO me.example, and no CR in sight, so that it goes on and on and on for ever\r\n",
            b"PROXY UDP4 192.0.2.7 10.0.0.1 50000 25\r\n",
            b"PROXY UNKNOWNX\r\n",
            long.as_bytes(),
            &endless,
            &oversize,
            &v2(0x31, 0x11, &V4),
            &v2(0x22, 0x11, &V4),
            &v2(0x21, 0x13, &V4),
            &v2(0x21, 0x11, &V4[..11]),
            &v2(0x21, 0x21, &v6()[..35]),
            &v2(0x20, 0x11, &V4[..11]),
            &v2(0x21, 0x11, &[&V4[..], &[0x04]].concat()),
            &v2(0x21, 0x11, &[&V4[..], &[0x04, 0, 4, 1, 2, 3]].concat()),
            &v2(0x21, 0x11, &[&V4[..], &[0x04, 0xFF, 0xFF]].concat()),
        ] {
            let (read, left) = read(stream).await;
            let shown = stream[..stream.len().min(80)].escape_ascii();
            assert!(matches!(read, Err(ProxyError::Malformed(_))), "{shown}: {read:?}");
            assert!(stream.len() - left <= V2_FRAME_OCTETS + V2_REST_OCTETS_MAX, "{shown}");
        }
        let (_, left) = read(&endless).await;
        assert_eq!(endless.len() - left, V1_OCTETS_MAX);
        let (_, left) = read(&oversize).await;
        assert_eq!(oversize.len() - left, V2_FRAME_OCTETS, "its length alone refuses it");
    }
}
