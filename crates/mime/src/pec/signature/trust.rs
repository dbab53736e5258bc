//! Whom a signature must lead to: the authorities that certify the providers.

use rustls_pki_types::{CertificateDer, TrustAnchor, pem::PemObject};

/// Certificates of authorities that are trusted, from a PEM bundle. The empty store trusts nobody.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    anchors: Vec<TrustAnchor<'static>>,
}

/// Why a bundle is no trust store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// A section of the bundle is broken.
    #[error("the trust store is not PEM: certificate {number} cannot be read")]
    NotPem {
        /// Its place in the bundle, from 1.
        number: usize,
    },
    /// A certificate cannot serve as an authority.
    #[error("certificate {number} of the trust store is not one of an authority: remove or replace it")]
    NotUsable {
        /// Its place in the bundle, from 1.
        number: usize,
    },
    /// There is no certificate in it.
    #[error("the trust store holds no certificate: give a PEM bundle with BEGIN CERTIFICATE sections")]
    Empty,
}

impl TrustStore {
    /// From a bundle of PEM sections; text between them and sections of other kinds are passed over.
    pub fn from_pem(bundle: &[u8]) -> Result<Self, TrustError> {
        let mut anchors = Vec::new();
        for (index, der) in CertificateDer::pem_slice_iter(bundle).enumerate() {
            let number = index + 1;
            let der = der.map_err(|_| TrustError::NotPem { number })?;
            let anchor =
                webpki::anchor_from_trusted_cert(&der).map_err(|_| TrustError::NotUsable { number })?;
            anchors.push(anchor.to_owned());
        }
        if anchors.is_empty() { Err(TrustError::Empty) } else { Ok(Self { anchors }) }
    }

    /// How many authorities it holds.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// Whether it trusts nobody.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    pub(super) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }
}
