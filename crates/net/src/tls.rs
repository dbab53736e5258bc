//! TLS for clients: rustls with aws-lc-rs, verified by the platform's roots.
//!
//! A [`TlsClient`] is made once and shared. Roots are read when the first verified handshake needs them, so a
//! machine without certificates can run everything that needs none. Configurations for private CAs are
//! cached, so that a connection does not read the platform's store again.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;

use crate::{NetError, NetStream};

/// How many private-CA configurations are cached before all are dropped.
const CONFIGS_MAX: usize = 256;

/// Makes aws-lc-rs the crypto provider of this process. It is called once at start; further calls have no
/// effect.
pub fn install_crypto_provider() {
    if CryptoProvider::get_default().is_none() {
        // If another thread wins the race, a provider is installed as well.
        aws_lc_rs::default_provider().install_default().ok();
    }
}

/// How a peer's certificate is verified.
#[derive(Debug, Clone, Copy)]
pub enum CertificateCheck<'a> {
    /// Against the platform's roots.
    Platform,
    /// Against the platform's roots and these, in PEM.
    WithRoots(&'a [u8]),
    /// Not verified. Only for opportunistic encryption, where the alternative is plain text.
    Unverified,
}

/// Makes TLS connections. Cheap to share behind an `Arc`.
#[derive(Debug)]
pub struct TlsClient {
    provider: Arc<CryptoProvider>,
    extra_roots: Vec<CertificateDer<'static>>,
    platform: OnceLock<Arc<ClientConfig>>,
    unverified: OnceLock<Arc<ClientConfig>>,
    with_roots: Mutex<HashMap<Vec<u8>, Arc<ClientConfig>>>,
}

impl Default for TlsClient {
    fn default() -> Self {
        Self::new()
    }
}

impl TlsClient {
    /// A client that trusts the platform's roots.
    pub fn new() -> Self {
        Self {
            provider: Arc::new(aws_lc_rs::default_provider()),
            extra_roots: Vec::new(),
            platform: OnceLock::new(),
            unverified: OnceLock::new(),
            with_roots: Mutex::default(),
        }
    }

    /// A client that also trusts the certificates in `pem`, for every connection.
    pub fn with_extra_roots(pem: &[u8]) -> Result<Self, NetError> {
        Ok(Self { extra_roots: read_roots(pem)?, ..Self::new() })
    }

    /// Performs a TLS handshake on `tcp` before `deadline`. The certificate must be valid for `host`.
    pub async fn handshake(
        &self,
        tcp: TcpStream,
        host: &str,
        verify: CertificateCheck<'_>,
        deadline: Instant,
    ) -> Result<NetStream, NetError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            NetError::TlsSetup(format!("{host:?} is not a name that a certificate can carry"))
        })?;
        let port = tcp.peer_addr().map_or(0, |address| address.port());
        let connector = TlsConnector::from(self.config(verify)?);
        match timeout_at(deadline, connector.connect(name, tcp)).await {
            Ok(Ok(stream)) => Ok(NetStream::Tls(Box::new(stream))),
            Ok(Err(source)) => Err(handshake_error(host, source)),
            Err(_) => Err(NetError::Timeout { host: host.to_owned(), port, what: "TLS handshake" }),
        }
    }

    fn config(&self, verify: CertificateCheck<'_>) -> Result<Arc<ClientConfig>, NetError> {
        match verify {
            CertificateCheck::Platform => get_or_make(&self.platform, || self.verified(&[])),
            CertificateCheck::Unverified => get_or_make(&self.unverified, || {
                let verifier = Arc::new(NoVerification(self.provider.clone()));
                self.build(verifier)
            }),
            CertificateCheck::WithRoots(pem) => {
                let mut configs = self.with_roots.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(config) = configs.get(pem) {
                    return Ok(config.clone());
                }
                let config = self.verified(&read_roots(pem)?)?;
                if configs.len() >= CONFIGS_MAX {
                    configs.clear();
                }
                configs.insert(pem.to_vec(), config.clone());
                Ok(config)
            }
        }
    }

    fn verified(&self, roots: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, NetError> {
        let roots = self.extra_roots.iter().chain(roots).cloned();
        let verifier = Verifier::new_with_extra_roots(roots, self.provider.clone())
            .map_err(|error| NetError::TlsSetup(format!("no usable trusted roots: {error}")))?;
        self.build(Arc::new(verifier))
    }

    fn build(&self, verifier: Arc<dyn ServerCertVerifier>) -> Result<Arc<ClientConfig>, NetError> {
        let config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| NetError::TlsSetup(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

/// The value in `cell`, made on first use. Two threads may both make it; one value is kept.
fn get_or_make(
    cell: &OnceLock<Arc<ClientConfig>>,
    make: impl FnOnce() -> Result<Arc<ClientConfig>, NetError>,
) -> Result<Arc<ClientConfig>, NetError> {
    match cell.get() {
        Some(config) => Ok(config.clone()),
        None => {
            let config = make()?;
            Ok(cell.get_or_init(|| config).clone())
        }
    }
}

fn read_roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, NetError> {
    let roots: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| NetError::TlsSetup(format!("the extra roots are not PEM certificates: {error}")))?;
    if roots.is_empty() {
        return Err(NetError::TlsSetup("the extra roots hold no PEM certificate".to_owned()));
    }
    Ok(roots)
}

fn handshake_error(host: &str, source: io::Error) -> NetError {
    let tls = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            NetError::Certificate { host: host.to_owned(), reason: reason.to_string() }
        }
        _ => NetError::Handshake { host: host.to_owned(), source },
    }
}

/// Accepts any certificate, but still verifies that the peer has its key.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_that_are_not_pem_are_refused_with_a_reason() {
        for pem in [&b""[..], b"not pem", b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"] {
            let error = TlsClient::with_extra_roots(pem).unwrap_err();
            assert!(error.is_setup(), "{error}");
            assert!(error.to_string().contains("extra roots"), "{error}");
        }
    }

    #[test]
    fn the_provider_can_be_installed_twice() {
        install_crypto_provider();
        install_crypto_provider();
        assert!(CryptoProvider::get_default().is_some());
    }
}
