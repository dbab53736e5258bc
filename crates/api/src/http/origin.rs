//! The origin of a request, as the listener knows it.

use std::net::IpAddr;

use axum::http::request::Parts;
use postway_domain::client::ClientAddress;

/// The origin of a request. The listener attaches it to every request as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOrigin {
    /// The client's address: the other end of the connection, or the address that a trusted proxy names.
    pub address: IpAddr,
    /// Whether several clients may share this address: programs on this machine, one of which may be a proxy,
    /// and a trusted proxy that does not name its client. They are not counted as one client.
    pub is_shared: bool,
    /// Whether a trusted proxy says that the client used TLS.
    pub is_https: bool,
}

impl RequestOrigin {
    /// The origin of a connection without a trusted proxy.
    pub fn direct(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, is_shared: address.is_loopback(), is_https: false }
    }

    /// The origin of this request, if the listener attached one.
    pub(crate) fn from_parts(parts: &Parts) -> Option<Self> {
        parts.extensions.get().copied()
    }

    /// The address under which wrong keys are counted; `None` if other clients share it.
    pub(crate) fn client(&self) -> Option<ClientAddress> {
        (!self.is_shared).then(|| ClientAddress::of(self.address))
    }
}
