//! Where a request came from, as the listener knows it.

use std::net::IpAddr;

use axum::http::request::Parts;
use postway_domain::client::ClientAddress;

/// Where a request came from. The listener attaches it to every request as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestOrigin {
    /// The client's address: the connection's other end, or whom a trusted proxy names.
    pub address: IpAddr,
    /// Whether many clients may have this address: programs on this machine, of which one may be a proxy, and a trusted proxy
    /// that does not say for whom it asks. They are not counted as one.
    pub is_shared: bool,
    /// Whether a trusted proxy says that the client came over TLS.
    pub is_https: bool,
}

impl RequestOrigin {
    /// Where a connection without a trusted proxy comes from.
    pub fn direct(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, is_shared: address.is_loopback(), is_https: false }
    }

    /// Where this request came from; none where nobody attached it.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        parts.extensions.get().copied()
    }

    /// As whom its wrong keys are counted; none where others would pay for them.
    pub(crate) fn client(&self) -> Option<ClientAddress> {
        (!self.is_shared).then(|| ClientAddress::of(self.address))
    }
}
