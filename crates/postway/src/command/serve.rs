//! `postway serve`: runs the server until a signal asks it to stop.

use crate::{config::Loaded, telemetry, wire};

/// Starts logs and metrics and runs the rooms.
pub async fn run(loaded: Loaded) -> anyhow::Result<()> {
    let _log = telemetry::start_logs(&loaded.config.log)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let metrics = telemetry::start_metrics()?;
    wire::serve(&loaded.config, metrics).await
}
