//! Outgoing connections: TCP with a deadline and a guard against private addresses, TLS with one crypto
//! provider for the whole process, and an [HTTP client](http).
//!
//! Promises: every wait ends at a deadline the caller gives; every error names the host and port it is about;
//! certificates are verified against the platform's roots (and a private CA's, if given) unless the caller
//! requests the unverified mode, which exists only for opportunistic encryption (RFC 7435); a guarded
//! connection never reaches a private address that was not allowed.
//!
//! [`listen`] has what listeners share: their certificate, and the header of a TCP proxy.
//!
//! Functions fail with [`NetError`]. Nothing is retried, and only the HTTP client pools connections.

mod connect;
mod error;
mod guard;
pub mod http;
pub mod listen;
mod proxy;
mod stream;
mod tls;
mod virus_scan;

pub use connect::connect;
pub use error::NetError;
pub use guard::{AddressGuard, how_to_allow, literal_address};
pub use proxy::{EgressPath, OutboundProxy, ProxyUrlError, connect_through};
pub use stream::NetStream;
pub use tls::{CertificateCheck, TlsClient, install_crypto_provider};
pub use virus_scan::{ScannerAddress, VirusScanError, VirusScanner};
