//! `postway top`: how the mail is doing, live in the terminal, or as text or JSON for others.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use tokio::time::{Instant, sleep_until};

use super::Session;
use crate::cli::failure::Failure;
use crate::cli::output::is_dumb;
use crate::server::shutdown::Signals;
use crate::top::{Board, Source, Station, live, plain};

#[derive(Args, Debug)]
pub struct TopArgs {
    /// How often to ask the server
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    interval: u64,
    /// Print once and end, as happens where the output is no terminal
    #[arg(long)]
    once: bool,
}

pub async fn run(session: &Session, args: TopArgs) -> Result<(), Failure> {
    let client = session.client()?;
    let station = Station { server: client.base().to_string(), tenant: session.tenant() };
    let mut source = Source::new(client);
    let interval = Duration::from_secs(args.interval);
    if session.output.is_json() && !args.once {
        return lines(session, source, interval).await;
    }
    if session.output.is_json() {
        return session.output.json(&source.ask().await?.json());
    }
    if args.once || !is_live() {
        return session.output.text(&plain(&Board::new(&station, &source.ask().await?)));
    }
    Box::pin(live(source, &station, interval, session.output.colours())).await
}

/// Whether there is a terminal that can be drawn on and typed into.
fn is_live() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb()
}

/// A line of JSON for each answer, until interrupted. What is wrong in between goes to standard error.
async fn lines(session: &Session, mut source: Source, interval: Duration) -> Result<(), Failure> {
    let mut signals = Signals::listen().map_err(anyhow::Error::new)?;
    loop {
        let next = Instant::now() + interval;
        let answer = tokio::select! {
            answer = source.ask() => answer,
            () = signals.next() => return Ok(()),
        };
        match answer {
            Ok(news) => session.output.json(&news.json())?,
            Err(failure @ (Failure::Unreachable { .. } | Failure::Failed(_))) => {
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
