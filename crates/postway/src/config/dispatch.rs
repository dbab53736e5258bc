//! `[dispatch]`: how much is sent at once, and how long a stop may take.

use std::time::Duration;

use super::integer_between;
use super::layers::ConfigLayers;

const IN_FLIGHT: usize = 512;
const DRAIN: Duration = Duration::from_secs(30);

/// The bounds of dispatch.
#[derive(Clone, Debug)]
pub struct DispatchSection {
    /// The most messages that this node has in `sending` at the same time.
    pub max_in_flight: usize,
    /// How long a stop waits for what is on the wire.
    pub drain: Duration,
}

impl DispatchSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let max_in_flight =
            layers.take("dispatch.max_in_flight", IN_FLIGHT, &IN_FLIGHT.to_string(), |text| {
                integer_between(text, 1, 100_000).map(|count| count as usize)
            });
        let drain = layers.take("dispatch.drain_seconds", DRAIN, &DRAIN.as_secs().to_string(), |text| {
            integer_between(text, 0, 600).map(Duration::from_secs)
        });
        Some(Self { max_in_flight: max_in_flight?, drain: drain? })
    }
}
