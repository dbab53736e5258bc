//! `postway top`: queue, rates and problems, live in the terminal, or as text or JSON.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep_until};

use super::CommandContext;
use crate::cli::failure::CommandFailure;
use crate::cli::output::is_dumb;
use crate::server::shutdown::StopSignals;
use crate::top::{SnapshotSource, StatusBoard, WatchedServer, live, plain};

#[derive(Args, Debug)]
pub struct TopArgs {
    /// How often to ask the server
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    interval: u64,
    /// Print once and exit, which is the default if the output is not a terminal
    #[arg(long)]
    once: bool,
}

pub async fn run(context: &CommandContext, args: TopArgs) -> Result<(), CommandFailure> {
    let client = context.client()?;
    let station = WatchedServer { server: client.base().to_string(), tenant: context.tenant() };
    let mut source = SnapshotSource::new(client);
    let interval = Duration::from_secs(args.interval);
    if context.output.is_json() && !args.once {
        return lines(context, source, interval).await;
    }
    if context.output.is_json() {
        return context.output.json(&source.ask().await?.json());
    }
    if args.once || !is_live() {
        return context.output.text(&plain(&StatusBoard::new(&station, &source.ask().await?)));
    }
    Box::pin(live(source, &station, interval, context.output.colours())).await
}

/// Whether there is a terminal that can be drawn on and typed into.
fn is_live() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb()
}

/// A line of JSON for each answer, until interrupted. Failures in between go to standard error.
async fn lines(
    context: &CommandContext,
    mut source: SnapshotSource,
    interval: Duration,
) -> Result<(), CommandFailure> {
    let mut signals = StopSignals::listen().map_err(anyhow::Error::new)?;
    loop {
        let next = Instant::now() + interval;
        let answer = tokio::select! {
            answer = source.ask() => answer,
            () = signals.next() => return Ok(()),
        };
        match answer {
            Ok(news) => context.output.json(&news.json())?,
            Err(failure @ (CommandFailure::Unreachable { .. } | CommandFailure::Failed(_))) => {
                eprintln!("postway: {failure}")
            }
            Err(failure) => return Err(failure),
        }
        tokio::select! {
            () = sleep_until(next) => {}
            () = signals.next() => return Ok(()),
        }
    }
}
