//! `[telemetry]`: metrics.

use std::time::Duration;

use super::integer_between;
use super::keys::{self, ConfigSecret};
use super::layers::ConfigLayers;

const UPKEEP: Duration = Duration::from_secs(5);

/// The settings of metrics.
#[derive(Clone, Debug)]
pub struct TelemetrySection {
    /// How often the recorder folds its histograms; without it they would grow.
    pub upkeep: Duration,
    /// The key that a scraper must show; none: `/metrics` is open.
    pub metrics_key: Option<ConfigSecret>,
}

impl TelemetrySection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let upkeep = layers.take("telemetry.upkeep_seconds", UPKEEP, &UPKEEP.as_secs().to_string(), |text| {
            integer_between(text, 1, 300).map(Duration::from_secs)
        });
        let metrics_key = keys::read_admin_key(layers, "telemetry.metrics_key");
        Some(Self { upkeep: upkeep?, metrics_key: metrics_key? })
    }
}
