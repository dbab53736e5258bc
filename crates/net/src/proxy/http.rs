//! Requests a connection from an HTTP proxy: CONNECT (RFC 9110 9.3.6), with Basic credentials (RFC 7617).

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret, zeroize::Zeroizing};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use url::Host;

use super::{OutboundProxy, denied, garbled};

/// The longest head of a response.
pub(super) const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Requests a connection to the target. The next octets on the connection are from the target.
pub(super) async fn request_connection(
    tcp: &mut TcpStream,
    proxy: &OutboundProxy,
    target: &Host,
    port: u16,
) -> io::Result<()> {
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
    // Read octet by octet: everything after the head is from the target and belongs to the caller.
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
