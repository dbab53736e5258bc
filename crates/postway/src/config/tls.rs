//! `[tls]`: the certificate of the listeners.

use std::path::PathBuf;

use postway_net::listen::CertificateFiles;

use super::layers::ConfigLayers;

/// The certificate of the listeners.
#[derive(Clone, Debug)]
pub struct TlsSection {
    /// The certificate and key of HTTP, and of SMTP where it has none of its own.
    pub certificate: Option<CertificateFiles>,
}

impl TlsSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let certificate = read_certificate_files(layers, "tls.certificate_file", "tls.key_file");
        Some(Self { certificate: certificate? })
    }
}

/// Two settings that name a certificate and its key: both or none.
pub(super) fn read_certificate_files(
    layers: &mut ConfigLayers,
    certificate_setting: &'static str,
    key_setting: &'static str,
) -> Option<Option<CertificateFiles>> {
    let file = |text: &str| Ok(PathBuf::from(text));
    let certificate = layers.take_optional(certificate_setting, file);
    let key = layers.take_optional(key_setting, file);
    match (certificate?, key?) {
        (Some(certificate), Some(key)) => Some(Some(CertificateFiles { certificate, key })),
        (None, None) => Some(None),
        (Some(_), None) => {
            layers.refuse(certificate_setting, format!("needs {key_setting}: set both"));
            None
        }
        (None, Some(_)) => {
            layers.refuse(key_setting, format!("needs {certificate_setting}: set both"));
            None
        }
    }
}
