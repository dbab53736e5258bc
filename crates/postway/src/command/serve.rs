//! `postway serve`: runs the server until a signal asks it to stop.

use crate::{config::Loaded, telemetry, wire};

/// Starts logs and metrics and runs the rooms.
pub async fn run(loaded: Loaded) -> anyhow::Result<()> {
    let _log = telemetry::start_logs(&loaded.config.log)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    if loaded.config.smtp.listen.is_some() {
        tracing::warn!("smtp.listen is set, but this version has no SMTP listener yet");
    }
    let metrics = telemetry::start_metrics()?;
    wire::serve(&loaded.config, metrics).await
}
