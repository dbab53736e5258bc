//! Certificates that clients show: who they are, without deciding what they may do.
//!
//! A client may show one or none. Showing one proves that the client has its private key. A self-signed one is
//! as good as any other: it is known by its fingerprint, or not at all. By name it is known only if it was
//! issued, for clients, by an authority that the listener was given.

use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, aws_lc_rs as provider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

/// The SHA-256 of a certificate.
pub type CertificateFingerprint = [u8; digest::SHA256_OUTPUT_LEN];

/// Asks clients for a certificate, and takes whichever they show.
#[derive(Debug)]
pub(super) struct AnyClientCertificate(Arc<CryptoProvider>);

impl AnyClientCertificate {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Arc::new(provider::default_provider())))
    }
}

impl ClientCertVerifier for AnyClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // What it is worth is decided later, by its fingerprint or its names.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The authorities whose certificates of clients are known by name.
#[derive(Clone, Debug)]
pub struct ClientAuthorities(Arc<dyn ClientCertVerifier>);

impl ClientAuthorities {
    /// The authorities with these certificates; an error says which one cannot be used.
    pub fn new(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(provider::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        verifier.build().map(Self).map_err(|error| error.to_string())
    }
}

/// The certificate that a client has shown.
#[derive(Clone, Debug)]
pub struct ShownCertificate {
    chain: Vec<CertificateDer<'static>>,
}

impl ShownCertificate {
    /// The certificate of a finished handshake, if the client showed one.
    pub fn of(chain: Option<&[CertificateDer<'static>]>) -> Option<Self> {
        chain.filter(|chain| !chain.is_empty()).map(|chain| Self { chain: chain.to_vec() })
    }

    /// Its fingerprint.
    pub fn fingerprint(&self) -> CertificateFingerprint {
        let mut fingerprint = [0; digest::SHA256_OUTPUT_LEN];
        if let Some(own) = self.chain.first() {
            fingerprint.copy_from_slice(digest::digest(&digest::SHA256, own).as_ref());
        }
        fingerprint
    }

    /// Whether one of these authorities issued it, for clients, and it is valid at this time.
    pub fn is_issued_by(&self, authorities: &ClientAuthorities, now_s: u64) -> bool {
        let Some((own, others)) = self.chain.split_first() else { return false };
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now_s));
        authorities.0.verify_client_cert(own, others, now).is_ok()
    }

    /// Whether it is for this host or address: one of its subject's alternative names. That is worth something
    /// only if a known authority issued it.
    pub fn is_for(&self, name: &str) -> bool {
        let Some(own) = self.chain.first() else { return false };
        let Ok(name) = ServerName::try_from(name) else { return false };
        webpki::EndEntityCert::try_from(own)
            .is_ok_and(|own| own.verify_is_valid_for_subject_name(&name).is_ok())
    }
}
