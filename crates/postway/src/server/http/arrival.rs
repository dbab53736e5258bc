//! What comes before the first request of a connection: its slot, the header of a TCP proxy, and the TLS
//! handshake.
//!
//! Every wait has a deadline, and until it is over the connection counts as idle: when all slots are taken,
//! it makes room for another one. A client that a proxy names counts for itself, like one that connects
//! directly.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use postway_net::listen::{ProxiedPeer, ProxyHeader, read_proxy_header};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    HttpBounds,
    connection::{self, ConnectionPeer, ConnectionShare},
    connection_limit::ConnectionSlot,
    refusal::ConnectionRefusals,
};

/// The name of HTTP/2 in a handshake.
pub const HTTP2: &str = "h2";
/// The name of HTTP/1.1 in a handshake.
pub const HTTP1: &str = "http/1.1";

/// What a listener does with its connections.
pub struct ConnectionArrivals {
    pub share: Arc<ConnectionShare>,
    pub tls: Option<TlsAcceptor>,
    pub refusals: Arc<ConnectionRefusals>,
}

impl ConnectionArrivals {
    /// Serves a connection that has a slot, once it is clear who is there.
    pub async fn receive(&self, mut stream: TcpStream, from: SocketAddr, mut slot: ConnectionSlot) {
        let bounds = &self.share.bounds;
        let mut peer = ConnectionPeer {
            address: from.ip(),
            is_unnamed: false,
            is_https: self.tls.is_some(),
            is_http2: false,
        };
        if bounds.is_tcp_proxy(from.ip()) {
            let Some(header) = self.read_header(&mut stream, from.ip(), &slot).await else { return };
            match header.peer {
                ProxiedPeer::Client(client) => peer.address = client.ip(),
                ProxiedPeer::Unnamed => peer.is_unnamed = true,
            }
            peer.is_https |= header.is_tls;
            if !peer.is_unnamed
                && let Err(refusal) = slot.assign_to(bounds.client(peer.address))
            {
                return self.refusals.refuse(stream, refusal, self.tls.is_some());
            }
        }
        let share = self.share.clone();
        match &self.tls {
            None => connection::serve(stream, peer, slot, share).await,
            Some(acceptor) => {
                let Some(stream) = self.shake_hands(acceptor, stream, peer.address, &slot).await else {
                    return;
                };
                peer.is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2.as_bytes());
                connection::serve(stream, peer, slot, share).await;
            }
        }
    }

    async fn read_header(
        &self,
        stream: &mut TcpStream,
        proxy: IpAddr,
        slot: &ConnectionSlot,
    ) -> Option<ProxyHeader> {
        let header = tokio::select! {
            biased;
            () = self.share.stop.cancelled() => return None,
            () = slot.occupancy.wanted() => return self.cut("idle"),
            header = timeout(self.share.bounds.handshake_max, read_proxy_header(stream)) => header,
        };
        match header {
            Ok(Ok(header)) => Some(header),
            Ok(Err(error)) => {
                tracing::info!(%proxy, %error, "an HTTP connection from http.proxy_networks was refused");
                self.cut("proxy")
            }
            Err(_) => {
                tracing::info!(%proxy, "a proxy of HTTP sent no PROXY header in time");
                self.cut("proxy")
            }
        }
    }

    async fn shake_hands(
        &self,
        acceptor: &TlsAcceptor,
        stream: TcpStream,
        peer: IpAddr,
        slot: &ConnectionSlot,
    ) -> Option<TlsStream<TcpStream>> {
        let handshake = tokio::select! {
            biased;
            () = self.share.stop.cancelled() => return None,
            () = slot.occupancy.wanted() => return self.cut("idle"),
            handshake = timeout(self.share.bounds.handshake_max, acceptor.accept(stream)) => handshake,
        };
        let failed = match handshake {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
        tracing::debug!(error = %failed, %peer, "a TLS handshake of HTTP failed");
        self.cut("handshake")
    }

    /// Counts a connection that ends before its first request.
    fn cut<T>(&self, reason: &'static str) -> Option<T> {
        metrics::counter!("postway_http_connections_cut_total", "reason" => reason).increment(1);
        None
    }
}

impl HttpBounds {
    /// Whether connections from there begin with a PROXY header.
    pub(super) fn is_tcp_proxy(&self, peer: IpAddr) -> bool {
        self.proxy_networks.iter().any(|network| network.contains(peer))
    }
}
