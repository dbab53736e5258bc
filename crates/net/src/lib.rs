//! The guarded way out: TCP connections with a deadline, TLS with one crypto provider for the whole process, and an
//! [HTTP client](http).
//!
//! Promises: every wait ends at a deadline the caller gives; every error names the host and port it is about;
//! certificates are verified against the platform's roots (and a private CA's, if given) unless the caller
//! asks for the unverified mode, which exists for opportunistic encryption alone (RFC 7435: some protection
//! where there would be none); a guarded connection never reaches a private address that was not allowed.
//!
//! Fails with [`NetError`]. Does not retry, and only the HTTP client keeps connections.

mod connect;
mod error;
mod guard;
pub mod http;
mod proxy;
mod stream;
mod tls;

pub use connect::connect;
pub use error::NetError;
pub use guard::{Guard, how_to_allow, literal_address};
pub use proxy::{Proxy, ProxyUrlError, connect_through};
pub use stream::Stream;
pub use tls::{TlsClient, Verify, install_crypto_provider};
