//! Errors of outgoing connections.

use std::{io, net::IpAddr};

use thiserror::Error;

use crate::guard::{how_to_allow, literal_address};

/// A connection could not be made or secured.
#[derive(Debug, Error)]
pub enum NetError {
    /// The name has no address.
    #[error("cannot resolve {host:?}: {source}; check the host name and the resolver")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// Every address of the host is private or this machine's own, and none of them is allowed.
    #[error("{host:?} has no public address; {}", advice(host))]
    Guarded {
        /// The host.
        host: String,
    },
    /// The address that connections are to leave from is not one of this machine.
    #[error("{address} is no address of this machine ({source}): give one of its own, or none")]
    Source {
        /// The address.
        address: IpAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The host has no address of the family that connections are to leave from.
    #[error("{host:?} has no {} address, and connections are to leave from {address}", family(address))]
    SourceFamily {
        /// The host.
        host: String,
        /// The address that connections leave from.
        address: IpAddr,
    },
    /// No address of the host took the connection.
    #[error("cannot connect to {host}:{port}: {source}")]
    Connect {
        /// The host.
        host: String,
        /// Its port.
        port: u16,
        /// The error of the last address tried.
        source: io::Error,
    },
    /// The deadline passed first.
    #[error("no {what} with {host}:{port} before the deadline")]
    Timeout {
        /// The host.
        host: String,
        /// Its port.
        port: u16,
        /// What was being waited for.
        what: &'static str,
    },
    /// The peer's certificate does not verify. Trying again will not help; the set-up must change.
    #[error(
        "the certificate of {host} does not verify: {reason}; check the host name, or give the private CA's certificate"
    )]
    Certificate {
        /// The name the certificate was checked against.
        host: String,
        /// What the verifier said.
        reason: String,
    },
    /// The handshake broke off.
    #[error("TLS handshake with {host} failed: {source}")]
    Handshake {
        /// The peer.
        host: String,
        /// What rustls or the socket said.
        source: io::Error,
    },
    /// TLS cannot be used as configured: bad PEM, a host name no certificate can carry, no trusted roots.
    #[error("TLS set-up: {0}")]
    TlsSetup(String),
}

fn family(address: &IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// How to allow a refused host. The addresses of a name are not shown, because the user who named it may not
/// know the gateway's network.
fn advice(host: &str) -> String {
    match literal_address(host) {
        Some(address) => format!("if it is to be reached, {}", how_to_allow(address)),
        None => "if it is to be reached, add its network to allow_private_targets (POSTWAY_ALLOW_PRIVATE_TARGETS), \
                 such as 10.0.0.0/8, and restart"
            .to_owned(),
    }
}

impl NetError {
    /// True when the configuration or the peer's certificate is at fault, so that waiting alone cannot help.
    pub fn is_setup(&self) -> bool {
        match self {
            Self::Certificate { .. }
            | Self::TlsSetup(_)
            | Self::Guarded { .. }
            | Self::Source { .. }
            | Self::SourceFamily { .. } => true,
            Self::Resolve { .. } | Self::Connect { .. } | Self::Timeout { .. } | Self::Handshake { .. } => {
                false
            }
        }
    }

    /// The kind of I/O error underneath, for classification.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Resolve { source, .. } | Self::Connect { source, .. } | Self::Handshake { source, .. } => {
                source.kind()
            }
            Self::Source { .. } | Self::SourceFamily { .. } => io::ErrorKind::AddrNotAvailable,
            Self::Timeout { .. } => io::ErrorKind::TimedOut,
            Self::Guarded { .. } => io::ErrorKind::PermissionDenied,
            Self::Certificate { .. } => io::ErrorKind::InvalidData,
            Self::TlsSetup(_) => io::ErrorKind::InvalidInput,
        }
    }
}
