//! Certificates made for the occasion: a CA, and server certificates signed by it.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// A certificate authority that nobody trusts yet.
pub struct TestCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A server certificate with its key, ready for use.
#[derive(Clone)]
pub struct TestCert {
    /// The certificate of the CA, in PEM: what a client must trust.
    pub ca_pem: String,
    /// The certificate, in PEM.
    pub cert_pem: String,
    /// The private key, in PEM.
    pub key_pem: String,
    /// A rustls configuration that serves it.
    pub config: Arc<ServerConfig>,
}

impl Default for TestCa {
    fn default() -> Self {
        Self::new()
    }
}

impl TestCa {
    /// A fresh CA.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Postway test CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect("a key can be generated");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("the CA's parameters are valid");
        Self { issuer }
    }

    /// The CA's certificate, in PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server certificate for `names` (host names and addresses).
    pub fn issue(&self, names: &[&str]) -> TestCert {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("the names fit into a certificate");
        let key = KeyPair::generate().expect("a key can be generated");
        let cert = params.signed_by(&key, &self.issuer).expect("the CA can sign");
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], private)
            .expect("certificate and key belong together");
        TestCert {
            ca_pem: self.pem(),
            cert_pem: cert.pem(),
            key_pem: key.serialize_pem(),
            config: Arc::new(config),
        }
    }
}

impl TestCert {
    /// A certificate of a fresh CA for this machine's loopback names.
    pub fn localhost() -> Self {
        TestCa::new().issue(&["localhost", "127.0.0.1", "::1"])
    }
}
