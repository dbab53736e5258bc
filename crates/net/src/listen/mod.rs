//! What listeners share: the certificate that clients are shown, the one that they may show, and the header by
//! which a TCP proxy names its client.
//!
//! Nothing here opens a socket or accepts a connection; the listeners of HTTP and SMTP do. Both use the same
//! [`ServerCertificate`] if they are given the same files, so a new certificate is taken over by both at once.

mod certificate;
mod client_certificate;
mod proxy_header;

pub use certificate::{CertificateError, CertificateFiles, ServerCertificate};
pub use client_certificate::{CertificateFingerprint, ClientAuthorities, ShownCertificate};
pub use proxy_header::{ProxiedPeer, ProxyError, ProxyHeader, read_proxy_header};
