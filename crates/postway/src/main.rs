//! The `postway` binary: reads the command line, runs one command, and ends with a documented exit code.
//!
//! `postway` alone is `postway serve`. All other commands but `migrate`, `backup`, `config`, `completions`,
//! `inspect` and `bench` speak HTTP to a running server.

mod cli;
mod cluster;
mod command;
mod config;
mod doctor;
mod housekeeping;
mod server;
#[cfg(test)]
mod simulation;
mod top;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use cli::failure::CommandFailure;
use command::CommandLine;

/// Many small values are allocated and freed on different threads, which glibc's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = CommandLine::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, CommandFailure::OutputClosed) {
                eprintln!("postway: {failure}");
            }
            failure.exit_code()
        }
    }
}

fn run(cli: CommandLine) -> Result<(), CommandFailure> {
    postway_net::install_crypto_provider();
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();
    // A server uses every core; a command waits for one answer.
    let mut builder = match cli.is_server() {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build().context("cannot start the async runtime")?;
    runtime.block_on(cli.run())
}
