//! `[clamd]`: the virus scanner for attachments and received mail.

use std::{sync::Arc, time::Duration};

use postway_net::{ScannerAddress, VirusScanner};

use super::integer_between;
use super::layers::ConfigLayers;

const TIMEOUT_S: usize = 30;
const SCANNED_BYTES: usize = 25 * 1024 * 1024;

/// The settings of the scanner.
#[derive(Clone, Debug)]
pub struct ClamdSection {
    /// Where clamd listens; none: nothing is scanned.
    pub address: Option<ScannerAddress>,
    /// How long a scan may take.
    pub timeout: Duration,
    /// The largest mail that is scanned, in bytes.
    pub max_bytes: usize,
}

impl ClamdSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let address = layers.take_optional("clamd.address", str::parse::<ScannerAddress>);
        let mut count = |key, default: usize, max: u64| {
            layers.take(key, default, &default.to_string(), |text| {
                integer_between(text, 1, max).map(|count| count as usize)
            })
        };
        let timeout = count("clamd.timeout_seconds", TIMEOUT_S, 600);
        let max_bytes = count("clamd.max_bytes", SCANNED_BYTES, 1 << 30);
        let timeout = Duration::from_secs(timeout? as u64);
        Some(Self { address: address?, timeout, max_bytes: max_bytes? })
    }

    /// The scanner, if one is configured.
    pub fn scanner(&self) -> Option<Arc<VirusScanner>> {
        let address = self.address.clone()?;
        Some(Arc::new(VirusScanner::new(address, self.timeout, self.max_bytes)))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_is_scanned_until_there_is_an_address_that_can_be_one() {
        let read = |value: &str| {
            crate::config::load_from(None, [("POSTWAY_CLAMD_ADDRESS".into(), value.into())])
                .map(|loaded| loaded.config.clamd.scanner().is_some())
                .map_err(|errors| errors.to_string())
        };
        assert_eq!(read("/run/clamav/clamd.ctl"), Ok(true));
        assert_eq!(read("127.0.0.1:3310"), Ok(true));
        assert!(read("clamd").unwrap_err().starts_with("`clamd.address`"));
        assert!(crate::config::load_from(None, []).unwrap().config.clamd.scanner().is_none());
    }
}
