//! `postway serve`: runs the server until a signal asks it to stop.

use clap::Args;

use crate::{
    config::LoadedConfig,
    server::{self, telemetry},
};

/// The arguments of `postway serve`.
#[derive(Args, Debug, Default)]
pub struct ServeArgs {
    /// Suspend every tenant before anything is sent, as after a restored backup
    #[arg(long)]
    hold: bool,
}

/// Starts logs and metrics, and runs the server.
pub async fn run(loaded: LoadedConfig, args: ServeArgs) -> anyhow::Result<()> {
    let _log = telemetry::start_logs(&loaded.config.log)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let metrics = telemetry::start_metrics()?;
    server::serve(&loaded.config, metrics, args.hold).await
}
