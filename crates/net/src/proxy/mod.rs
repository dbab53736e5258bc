//! Connections through a proxy: SOCKS5 (RFC 1928, RFC 1929) and HTTP CONNECT (RFC 9110 9.3.6).
//!
//! The proxy resolves the target's name, so that names of its network work and no lookup reveals the target
//! to ours. The guard applies to the proxy's own address, and to a target that is an address or `localhost`;
//! it cannot check what the proxy resolves a name to. Every message is bounded, and the handshake has one
//! deadline. Errors name target and proxy, never the password.

mod http;
mod socks5;
#[cfg(test)]
mod tests;
mod url;

use std::{fmt, io, net::IpAddr};

use ::url::Host;
use secrecy::SecretString;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

pub use self::url::ProxyUrlError;
use crate::{AddressGuard, NetError, connect, guard::literal_address};

/// The longest user name, password and target name: SOCKS5 has one octet for each length.
const FIELD_BYTES_MAX: usize = 255;

/// A proxy to connect through. It is parsed from a URL and printed without its credentials.
#[derive(Clone)]
pub struct OutboundProxy {
    kind: ProxyProtocol,
    host: String,
    port: u16,
    credentials: Option<(String, SecretString)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyProtocol {
    Socks5,
    Http,
}

impl fmt::Display for OutboundProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ProxyProtocol::Socks5 => "SOCKS5",
            ProxyProtocol::Http => "HTTP",
        };
        write!(f, "{kind} proxy {}:{}", self.host, self.port)
    }
}

impl fmt::Debug for OutboundProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// Connects to `host` before `deadline`, through the proxy if there is one, and only if the guard allows it.
///
/// If the proxy refuses or requires other credentials, this is a [`NetError::Connect`] of the target, of the
/// kind `PermissionDenied` if the credentials are wrong.
pub async fn connect_through(
    proxy: Option<&OutboundProxy>,
    host: &str,
    port: u16,
    deadline: Instant,
    guard: &AddressGuard,
) -> Result<TcpStream, NetError> {
    let Some(proxy) = proxy else {
        return connect(host, port, deadline, guard).await;
    };
    let failed = |source| NetError::Connect { host: host.to_owned(), port, source };
    let target = target(host).map_err(failed)?;
    if literal_address(host).is_some_and(|address| !guard.allows(address)) {
        return Err(NetError::Guarded { host: host.to_owned() });
    }
    let mut tcp = connect(&proxy.host, proxy.port, deadline, guard).await.map_err(|error| match error {
        NetError::Connect { source, .. } => {
            let text = format!("the {proxy} takes no connection: {source}");
            failed(io::Error::new(source.kind(), text))
        }
        other => other,
    })?;
    let agreed = async {
        match proxy.kind {
            ProxyProtocol::Socks5 => socks5::request_connection(&mut tcp, proxy, &target, port).await,
            ProxyProtocol::Http => http::request_connection(&mut tcp, proxy, &target, port).await,
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

/// Parses a target as the proxy's resolver would: `127.1` and `0x7f000001` are addresses too.
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

fn denied(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn garbled(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
