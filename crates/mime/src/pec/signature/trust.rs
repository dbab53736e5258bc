//! The trusted authorities, which certify the providers.

use rustls_pki_types::{CertificateDer, TrustAnchor, pem::PemObject};

/// Certificates of trusted authorities, from a PEM bundle. The empty store trusts no certificate.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    anchors: Vec<TrustAnchor<'static>>,
}

/// Why a bundle cannot be used as a trust store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// A section of the bundle is broken.
    #[error("the trust store is not PEM: certificate {number} cannot be read")]
    NotPem {
        /// Its position in the bundle, from 1.
        number: usize,
    },
    /// A certificate cannot serve as an authority.
    #[error("certificate {number} of the trust store is not one of an authority: remove or replace it")]
    NotUsable {
        /// Its position in the bundle, from 1.
        number: usize,
    },
    /// The bundle contains no certificate.
    #[error("the trust store holds no certificate: give a PEM bundle with BEGIN CERTIFICATE sections")]
    Empty,
}

impl TrustStore {
    /// Reads a bundle of PEM sections; text between them and sections of other kinds are skipped.
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

    /// The number of trusted authorities.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// Whether it contains no authority.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    pub(super) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }
}
