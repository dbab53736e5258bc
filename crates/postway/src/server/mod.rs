//! The server: opens its listeners and its database, builds the subsystems, runs them, and stops them in
//! order.
//!
//! `serve` is the only composition root: [`open`] → [`build`] → [`start`] → wait for a signal → [`drain`].
//! Work passes between the subsystems through the store; the handles that `build` and `start` hand around are
//! read-only, or lead into the intake.

mod announce;
mod build;
mod certificates;
mod database;
mod domains;
mod drain;
mod http;
mod inbound;
pub mod keys;
mod open;
mod outboxes;
mod port_owner;
mod private_hosts;
mod probes;
mod process_stats;
mod received_mail;
mod reception;
mod secret_check;
mod self_signed;
pub mod shutdown;
mod sign_in_provider;
mod start;
mod submission;
pub mod suspend_all;
pub mod telemetry;
mod trace_export;
mod web_listeners;

use anyhow::Context as _;

use self::{announce::StartAnnouncement, shutdown::StopSignals, telemetry::MetricsHandles};
use crate::config::ServerConfig;

/// Runs the server until a signal asks it to stop. With `suspends`, every tenant is suspended before anything
/// is sent.
pub async fn serve(config: &ServerConfig, metrics: MetricsHandles, suspends: bool) -> anyhow::Result<()> {
    log_panics_without_their_text();
    let mut signals = StopSignals::listen().context("cannot listen for signals")?;
    let listeners = open::open_listeners(config).await?;
    let opened = tokio::select! {
        opened = open::open_store(config, &listeners, suspends) => opened?,
        () = signals.next() => return Ok(()),
    };
    let built = build::build(config, &listeners, &opened, &metrics)?;

    let (store, guard) = (opened.store.clone(), built.guard.clone());
    let (address, further) = (listeners.address, listeners.listener_announcement.clone());
    let admin_key = listeners.admin_key.clone();
    let running = start::start(config, listeners, opened, built, metrics);
    if admin_key.fresh {
        keys::write_admin_key(config, &admin_key)?;
    }
    // The announcement is no reason not to serve: tenants that cannot be read now are left out.
    let captured = announce::captured_tenants(&*store).await.unwrap_or_default();
    StartAnnouncement { address, further, admin_key, suspended: suspends, captured }.print(config);
    let explaining =
        tokio::spawn(announce::explain_settings(store, guard, config.attachments.folders.clone()));

    signals.next().await;
    explaining.abort();
    tracing::info!("stopping: finishing what is on the wire");
    tokio::select! {
        finished = running.drain() => {
            if finished {
                tracing::info!("stopped");
            } else {
                tracing::warn!("stopped; some messages were still on the wire and will be settled at the next start");
            }
        }
        () = signals.next() => tracing::warn!("stopped at once by a second signal; leases will be taken back at the next start"),
    }
    Ok(())
}

/// Logs where a task panicked, and not what it said: the text may quote mail.
fn log_panics_without_their_text() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a task panicked");
    }));
}
