//! `[pec]`: certified mail.

use std::path::PathBuf;

use super::layers::ConfigLayers;

/// How receipts of certified mail are verified.
#[derive(Clone, Debug)]
pub struct PecSection {
    /// A PEM bundle of the authorities that certify providers; none: no signature is verified.
    pub trust_file: Option<PathBuf>,
}

impl PecSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let trust_file = layers.take_optional("pec.trust_file", |text| match text {
            "" => Err("is empty; name a file".to_owned()),
            _ => Ok(PathBuf::from(text)),
        });
        Some(Self { trust_file: trust_file? })
    }
}
