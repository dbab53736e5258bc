//! How soon rows of an outbox are accepted: one at a time, and many at once.
//!
//! The outbox is installed into the PostgreSQL that `--outbox` names, and a server of this binary serves it
//! with `batch_timeout = 0`. Times are the rows' own: from the beginning of their transaction to their
//! acceptance, so the application's commit is in them. Fails if a row is not accepted, or two rows share a
//! message. The outbox stays installed; the rows are removed.

use std::time::Duration;

use postway_intake::outbox::{
    OutboxError, SourceUrl,
    install::{self, InstallPlan},
    rehearsal::{AcceptanceTimes, OutboxBenchClient},
};
use serde::Serialize;
use tokio::time::Instant;

use super::args::BenchArgs;
use super::measure::ResourceMeter;
use super::server::{self, BenchServer, ServerRecipe};
use super::{progress, run_name};
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

const SCHEMA: &str = "postway";
/// Rows of one transaction of the application.
const ROWS: u32 = 500;
const POLL: Duration = Duration::from_millis(2);

/// The result of the measurement.
#[derive(Debug, Serialize)]
pub struct OutboxBench {
    rows: u32,
    accepted_per_second: f64,
    cpu_seconds_per_1000: Option<f64>,
    /// One row at a time, with nothing else to do.
    idle_rows: u32,
    idle_p50_ms: f64,
    idle_p99_ms: f64,
    not_accepted: i64,
    shared: i64,
    warnings: Vec<String>,
}

/// Measures on a server of its own.
pub async fn run(
    args: &BenchArgs,
    url: &str,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<OutboxBench, CommandFailure> {
    let source = SourceUrl::parse(url).map_err(|error| CommandFailure::Usage(format!("--outbox {error}")))?;
    let plan = InstallPlan { schema: SCHEMA.to_owned(), accounts_schema: None, keep_secrets: false };
    install::install(&source, &plan).await.map_err(failure)?;
    let recipe = recipe
        .with("POSTWAY_OUTBOX_URL", url.to_owned())
        .with("POSTWAY_OUTBOX_FROM", "bench@example.com".to_owned())
        .with("POSTWAY_OUTBOX_ACCOUNT", "sandbox".to_owned())
        .with("POSTWAY_OUTBOX_BATCH_TIMEOUT", "0".to_owned());
    let nodes = recipe.start(1).await?;
    let found = measure(args, &source, &nodes, deadline).await;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    source: &SourceUrl,
    nodes: &[BenchServer],
    deadline: Instant,
) -> Result<OutboxBench, CommandFailure> {
    let mut application = OutboxBenchClient::connect(source, SCHEMA).await.map_err(failure)?;
    let text = "x".repeat(args.size as usize);
    let (idle, load) = (run_name(), run_name());
    let bar = progress(u64::from(args.idle_latency), "one");
    for row in 1..=args.idle_latency {
        application.insert(&idle, 1, &text).await.map_err(failure)?;
        wait_for(&mut application, &idle, row, deadline).await?;
        bar.set_position(u64::from(row));
    }
    bar.finish_and_clear();
    let one = application.fared(&idle).await.map_err(failure)?;

    let before = ResourceMeter::read(nodes).await?;
    let bar = progress(u64::from(args.messages), "many");
    let mut inserted = 0;
    while inserted < args.messages {
        let rows = ROWS.min(args.messages - inserted);
        application.insert(&load, rows, &text).await.map_err(failure)?;
        inserted += rows;
        bar.set_position(u64::from(inserted));
    }
    let many = wait_for(&mut application, &load, args.messages, deadline).await?;
    bar.finish_and_clear();
    let after = ResourceMeter::read(nodes).await?;
    let cpu = before.cpu_seconds.zip(after.cpu_seconds).map(|(before, after)| after - before);
    for run in [&idle, &load] {
        application.clear(run).await.map_err(failure)?;
    }
    Ok(OutboxBench {
        rows: args.messages,
        accepted_per_second: many.accepted as f64 / many.lasted_s.max(0.001),
        cpu_seconds_per_1000: cpu.map(|cpu| cpu * 1_000.0 / f64::from(args.messages.max(1))),
        idle_rows: args.idle_latency,
        idle_p50_ms: one.p50_s * 1e3,
        idle_p99_ms: one.p99_s * 1e3,
        not_accepted: i64::from(args.messages) - many.accepted,
        shared: many.accepted - many.messages,
        warnings: Vec::new(),
    })
}

/// Waits until `count` rows of a run are accepted, or until the deadline, and returns their figures.
async fn wait_for(
    application: &mut OutboxBenchClient,
    run: &str,
    rows: u32,
    deadline: Instant,
) -> Result<AcceptanceTimes, CommandFailure> {
    // Reading many rows often would disturb those who write them.
    let pause = POLL.max(Duration::from_micros(10) * rows);
    loop {
        let fared = application.fared(run).await.map_err(failure)?;
        if fared.accepted >= i64::from(rows) || Instant::now() >= deadline {
            return Ok(fared);
        }
        tokio::time::sleep(pause).await;
    }
}

fn failure(error: OutboxError) -> CommandFailure {
    CommandFailure::Failed(error.into())
}

impl OutboxBench {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        match (self.not_accepted, self.shared) {
            (1.., _) => Some(format!("{} rows were not accepted in time", self.not_accepted)),
            (_, 1..) => Some(format!("{} rows share their message with others", self.shared)),
            _ => None,
        }
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let cpu = self.cpu_seconds_per_1000.map(|cpu| format!("{cpu:.3}")).unwrap_or_default();
        let fields = output.fields([
            ("rows", self.rows.to_string()),
            ("accepted/s", format!("{:.0}", self.accepted_per_second)),
            ("CPU-seconds per 1,000", cpu),
            ("one at a time", self.idle_rows.to_string()),
            ("p50 (ms)", format!("{:.1}", self.idle_p50_ms)),
            ("p99 (ms)", format!("{:.1}", self.idle_p99_ms)),
            ("not accepted", self.not_accepted.to_string()),
            ("shared", self.shared.to_string()),
        ]);
        let warnings: String = self.warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        format!("{fields}{warnings}")
    }
}
