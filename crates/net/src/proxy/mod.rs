//! Connections through a proxy: SOCKS5 (RFC 1928, RFC 1929) and HTTP CONNECT (RFC 9110 9.3.6).
//!
//! The guard applies to the proxy's own address and to the target. A proxy on the public internet resolves
//! the target's name itself, so that names of its network work; what it reaches from there is not behind the
//! guard. A proxy in a private network stands beside what the guard protects: there the name is resolved by
//! us, and the proxy is given an address that was checked, unless the operator leaves names to proxies (ADR 39).
//! Every message is bounded, and the handshake has one deadline. Errors name target and proxy, never the
//! password.

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
use crate::{
    AddressGuard, NetError,
    connect::{connect_from, resolve_allowed},
    guard::literal_address,
};

/// The longest user name, password and target name: SOCKS5 has one octet for each length.
const FIELD_BYTES_MAX: usize = 255;
/// How many addresses of a target a proxy is asked for, one after the other.
const ADDRESSES_THROUGH_PROXY_MAX: usize = 3;

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

/// The path of connections out of this machine: through a proxy, from one of its addresses, both, or neither.
#[derive(Clone, Debug, Default)]
pub struct EgressPath {
    /// The proxy to connect through.
    pub proxy: Option<OutboundProxy>,
    /// The address of this machine that connections leave from. With a proxy, it is for those to the proxy.
    pub source: Option<IpAddr>,
}

impl EgressPath {
    /// The path through this proxy, or the direct one.
    pub fn through(proxy: Option<OutboundProxy>) -> Self {
        Self { proxy, source: None }
    }

    /// Whether connections leave as the system decides.
    pub fn is_direct(&self) -> bool {
        self.proxy.is_none() && self.source.is_none()
    }
}

/// Prints what a person needs to know after "connected to …"; nothing for the direct path.
impl fmt::Display for EgressPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = self.source {
            write!(f, " from {source}")?;
        }
        match &self.proxy {
            Some(proxy) => write!(f, " through the {proxy}"),
            None => Ok(()),
        }
    }
}

/// Connects to `host` before `deadline` by this path, and only if the guard allows it.
///
/// If the proxy refuses or requires other credentials, this is a [`NetError::Connect`] of the target, of the
/// kind `PermissionDenied` if the credentials are wrong.
pub async fn connect_through(
    path: &EgressPath,
    host: &str,
    port: u16,
    deadline: Instant,
    guard: &AddressGuard,
) -> Result<TcpStream, NetError> {
    let Some(proxy) = &path.proxy else {
        return connect_from(path.source, host, port, deadline, guard).await;
    };
    let failed = |source| NetError::Connect { host: host.to_owned(), port, source };
    let target = target(host).map_err(failed)?;
    if literal_address(host).is_some_and(|address| !guard.allows(address)) {
        return Err(NetError::Guarded { host: host.to_owned() });
    }
    let call = ProxyCall { proxy, source: path.source, host, port, deadline, guard };
    let tcp = call.reach_proxy().await?;
    let knows_target = match target {
        Host::Domain(_) => guard.leaves_names_to(tcp.peer_addr().map_err(failed)?.ip()),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    };
    if knows_target {
        return call.agree(tcp, &target).await;
    }
    let mut waiting = Some(tcp);
    let mut refusal = failed(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    // A proxy without IPv6 refuses such an address, so it is asked for another one, on a new connection.
    let addresses = resolve_allowed(host, port, deadline, guard).await?;
    for address in addresses.into_iter().take(ADDRESSES_THROUGH_PROXY_MAX) {
        let tcp = match waiting.take() {
            Some(tcp) => tcp,
            None => call.reach_proxy().await?,
        };
        let address = match address.ip() {
            IpAddr::V4(address) => Host::Ipv4(address),
            IpAddr::V6(address) => Host::Ipv6(address),
        };
        match call.agree(tcp, &address).await {
            Err(error @ NetError::Connect { .. }) if error.kind() != io::ErrorKind::PermissionDenied => {
                refusal = error;
            }
            decided => return decided,
        }
    }
    Err(refusal)
}

/// One connection that is wanted through a proxy.
struct ProxyCall<'a> {
    proxy: &'a OutboundProxy,
    source: Option<IpAddr>,
    host: &'a str,
    port: u16,
    deadline: Instant,
    guard: &'a AddressGuard,
}

impl ProxyCall<'_> {
    fn failed(&self, source: io::Error) -> NetError {
        NetError::Connect { host: self.host.to_owned(), port: self.port, source }
    }

    /// Connects to the proxy itself.
    async fn reach_proxy(&self) -> Result<TcpStream, NetError> {
        let Self { proxy, source, deadline, guard, .. } = self;
        connect_from(*source, &proxy.host, proxy.port, *deadline, guard).await.map_err(|error| match error {
            NetError::Connect { source, .. } => {
                let text = format!("the {proxy} takes no connection: {source}");
                self.failed(io::Error::new(source.kind(), text))
            }
            other => other,
        })
    }

    /// Asks the proxy for a connection to the target.
    async fn agree(&self, mut tcp: TcpStream, target: &Host) -> Result<TcpStream, NetError> {
        let Self { proxy, port, .. } = *self;
        let agreed = async {
            match proxy.kind {
                ProxyProtocol::Socks5 => socks5::request_connection(&mut tcp, proxy, target, port).await,
                ProxyProtocol::Http => http::request_connection(&mut tcp, proxy, target, port).await,
            }
        };
        match timeout_at(self.deadline, agreed).await {
            Ok(Ok(())) => Ok(tcp),
            Ok(Err(error)) => {
                Err(self.failed(io::Error::new(error.kind(), format!("through the {proxy}: {error}"))))
            }
            Err(_) => {
                let (host, port) = (proxy.host.clone(), proxy.port);
                Err(NetError::Timeout { host, port, what: "proxy handshake" })
            }
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
