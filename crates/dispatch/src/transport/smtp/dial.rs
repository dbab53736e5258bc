//! Opens connections to relays: over the network, or over a simulation of it.
//!
//! This is the only seam below the SMTP client. Everything above it, from the greeting to the final dot, is
//! the same code over a pipe as over TCP.

use std::fmt;

use async_trait::async_trait;
use postway_net::{AddressGuard, EgressPath, NetError, NetStream, connect_through};
use tokio::time::Instant;

/// Opens connections to relays.
#[async_trait]
pub trait RelayDialer: fmt::Debug + Send + Sync {
    /// Connects before `deadline` by this path, to an address that the guard allows.
    async fn dial(
        &self,
        egress: &EgressPath,
        host: &str,
        port: u16,
        deadline: Instant,
        guard: &AddressGuard,
    ) -> Result<NetStream, NetError>;
}

/// Opens connections over TCP, as the real program does.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDialer;

#[async_trait]
impl RelayDialer for TcpDialer {
    async fn dial(
        &self,
        egress: &EgressPath,
        host: &str,
        port: u16,
        deadline: Instant,
        guard: &AddressGuard,
    ) -> Result<NetStream, NetError> {
        connect_through(egress, host, port, deadline, guard).await.map(NetStream::Plain)
    }
}
