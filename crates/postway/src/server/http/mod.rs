//! The HTTP listeners: accept connections, within bounds, and hand their requests to the API.
//!
//! There are up to three: one for plain text, one under TLS (with HTTP/2), and one that only leads to the
//! second. They share their connection slots.
//!
//! Each request carries where it came from, for keys that are bound to networks, for limits, and for wrong
//! keys, which are counted by address. Headers that name another address are believed from trusted proxies
//! alone, and so is a PROXY header from the networks that were named for it.
//!
//! They bound what a client can occupy without showing a key: the number of its connections and of all, the
//! time of a handshake, the size of a request's head and the time until it is there, and how slowly an answer
//! may be taken. When all connections are taken, one that is idle is closed for a new one. The bodies have
//! bounds of their own, in the API.

mod answer_body;
mod arrival;
mod connection;
mod connection_limit;
mod forwarded;
mod head_deadline;
pub mod redirect;
mod refusal;
mod request_slots;
#[cfg(test)]
mod tests;
mod write_timeout;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use postway_domain::{client::ClientAddress, key::IpNetwork};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::arrival::{HTTP1, HTTP2};
use self::{
    arrival::ConnectionArrivals, connection::ConnectionShare, connection_limit::ConnectionSlots,
    refusal::ConnectionRefusals, request_slots::RequestSlots,
};
use crate::config::ForwardedHeader;

/// The largest head of a request; beyond it the answer is 431. A connection buffers at most twice as much:
/// what was read, and what the next read brings. The number of its fields has the bound of the library, 100.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How long the head of a request may take to arrive.
const HEAD_MAX: Duration = Duration::from_secs(15);
/// How long a proxy may take to send its header, and a client for its handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long to wait after the system could not give a connection, as when file handles have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How many connections clients may have, and which proxies may name their clients.
#[derive(Clone, Debug)]
pub struct HttpBounds {
    /// Connections at once.
    pub connections_max: usize,
    /// Connections of one client: an IPv4 address, or a /64 of IPv6.
    pub connections_per_client_max: usize,
    /// Proxies, which are not counted as one client, and whose headers about their clients are trusted.
    pub trusted_proxies: Vec<IpNetwork>,
    /// The header by which they name their clients.
    pub forwarded_header: ForwardedHeader,
    /// Proxies of TCP, which must begin each connection with a PROXY header.
    pub proxy_networks: Vec<IpNetwork>,
    /// How long the head of a request may take to arrive.
    pub head_max: Duration,
    /// How long a proxy may take to send its header, and a client for its TLS handshake.
    pub handshake_max: Duration,
    /// Whether connections from this machine count for no client; tests want them counted.
    pub is_loopback_shared: bool,
}

impl HttpBounds {
    /// Bounds with the default time for a head, and without proxies.
    pub fn new(connections_max: usize, connections_per_client_max: usize) -> Self {
        Self {
            connections_max,
            connections_per_client_max,
            trusted_proxies: Vec::new(),
            forwarded_header: ForwardedHeader::XForwardedFor,
            proxy_networks: Vec::new(),
            head_max: HEAD_MAX,
            handshake_max: HANDSHAKE_MAX,
            is_loopback_shared: true,
        }
    }

    /// The client that connections from `peer` count for; `None` if many clients share the address.
    fn client(&self, peer: IpAddr) -> Option<ClientAddress> {
        let is_shared = (self.is_loopback_shared && peer.to_canonical().is_loopback())
            || forwarded::is_trusted(peer, &self.trusted_proxies)
            || self.is_tcp_proxy(peer);
        (!is_shared).then(|| ClientAddress::of(peer))
    }
}

/// What the listeners of a server share.
pub struct HttpListeners {
    bounds: Arc<HttpBounds>,
    slots: Arc<ConnectionSlots>,
    requests: Arc<RequestSlots>,
    refusals: Arc<ConnectionRefusals>,
}

impl HttpListeners {
    /// Listeners that share these bounds.
    pub fn new(bounds: HttpBounds) -> Self {
        let slots = ConnectionSlots::new(bounds.connections_max, bounds.connections_per_client_max);
        let requests = RequestSlots::new(bounds.connections_max, bounds.connections_per_client_max);
        Self { bounds: Arc::new(bounds), slots, requests, refusals: Arc::default() }
    }

    /// Serves until `stop` is cancelled, then lets the requests in progress finish.
    ///
    /// The router may be replaced while serving: each request goes to the current one.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        router: watch::Receiver<Router>,
        stop: CancellationToken,
    ) {
        let (connections, is_tls) = (TaskTracker::new(), tls.is_some());
        let (bounds, tasks) = (self.bounds.clone(), connections.clone());
        let requests = self.requests.clone();
        let share = Arc::new(ConnectionShare { bounds, router, requests, stop: stop.clone(), tasks });
        let arrivals = Arc::new(ConnectionArrivals { share, tls, refusals: self.refusals.clone() });
        while let Some((stream, peer)) = next(&listener, &stop).await {
            let slot = match self.slots.take(self.bounds.client(peer.ip())) {
                Ok(slot) => slot,
                Err(refusal) => {
                    self.refusals.refuse(stream, refusal, is_tls);
                    continue;
                }
            };
            let arrivals = arrivals.clone();
            connections.spawn(async move { arrivals.receive(stream, peer, slot).await });
        }
        drop(listener);
        connections.close();
        connections.wait().await;
    }
}

/// The next connection; `None` when it is time to stop.
async fn next(listener: &TcpListener, stop: &CancellationToken) -> Option<(TcpStream, SocketAddr)> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "a connection was gone before it was used");
                    }
                    return (stream, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        accepted = accept => Some(accepted),
    }
}
