//! One tenant's trickle, alone and beside another's backlog.
//!
//! The sink is slow, as relays are, and the server may send only few mails at once, so that tenants compete
//! for slots and not for the processors that the load uses too. One tenant sends at a steady pace, first
//! alone, then while another has nine times as much waiting. Measured is the time from accept to sent, and
//! how much of it the mail waited to be claimed. Fails if the backlog was gone before the trickle was.

use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::args::{BenchArgs, BenchMode};
use super::audit::{self, StoreAudit};
use super::connection::BenchConnection;
use super::load::{self, LoadPlan};
use super::measure::percentile;
use super::server::{self, BenchServer, ServerRecipe};
use super::sink::BuiltinSink;
use super::{create_account, create_tenant, progress, run_name};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

/// One mail in this many belongs to the trickle.
const ONE_IN: u32 = 10;

/// How long mails took.
#[derive(Debug, Default, Serialize)]
struct LatencySpread {
    p50_ms: f64,
    p95_ms: f64,
}

/// A trickle's figures.
#[derive(Debug, Default, Serialize)]
struct TrickleFigures {
    messages: u32,
    sent: u64,
    accept_to_sent: LatencySpread,
    /// The time until the mail was claimed.
    until_claimed: LatencySpread,
}

/// What a backlog costs another tenant.
#[derive(Debug, Default, Serialize)]
pub struct FairnessReport {
    alone: TrickleFigures,
    beside: TrickleFigures,
    p50_ratio: f64,
    p95_ratio: f64,
    backlog: u64,
    /// What was left of the backlog when the last of the trickle was sent.
    backlog_left: u64,
    /// How fast the backlog went meanwhile.
    backlog_per_second: f64,
    sink_delay_ms: u64,
    in_flight: u32,
    pace: u32,
    duplicates: u64,
    warnings: Vec<String>,
}

/// Measures on a server of its own.
pub async fn run(
    args: &BenchArgs,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<FairnessReport, CommandFailure> {
    let recipe = recipe.with("POSTWAY_DISPATCH_MAX_IN_FLIGHT", args.in_flight.to_string());
    let nodes = recipe.start(1).await?;
    let found = measure(args, &recipe, &nodes[0], deadline).await;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    recipe: &ServerRecipe,
    node: &BenchServer,
    deadline: Instant,
) -> Result<FairnessReport, CommandFailure> {
    let run = run_name();
    let sink = BuiltinSink::start(Duration::from_millis(args.sink_delay_ms))?;
    let target = ("127.0.0.1", sink.address().port());
    let large = create_tenant(recipe, node, &format!("{run}-large")).await?;
    let small = create_tenant(recipe, node, &format!("{run}-small")).await?;
    for client in [&large, &small] {
        create_account(client, &run, target, args.connections, Value::Null).await?;
    }
    let count = (args.messages / ONE_IN).max(1);
    let batches = [format!("{run}-alone"), format!("{run}-beside")];
    trickle(args, &small, &run, &batches[0], deadline).await?;
    let backlog = count * (ONE_IN - 1);
    let plan = LoadPlan::new(&large, &run, &run, args.shape(backlog, BenchMode::Batch));
    let bar = progress(u64::from(backlog), "backlog");
    let loaded = load::run(vec![plan], deadline, &bar).await?;
    bar.finish_and_clear();
    let (gone_before, started) = (audit::finished(&[&large]).await?, Instant::now());
    trickle(args, &small, &run, &batches[1], deadline).await?;
    let gone = audit::finished(&[&large]).await?;
    let backlog_per_second = (gone - gone_before) as f64 / started.elapsed().as_secs_f64().max(0.001);
    let bar = progress(loaded.accepted, "rest");
    let done = audit::wait_until_finished(&[&large], loaded.accepted, 0, deadline, &bar).await?;
    bar.finish_and_clear();
    let (alone, beside) = (read(&small, &batches[0], count).await?, read(&small, &batches[1], count).await?);
    let arrived = sink.stop()?;
    let mut warnings: Vec<String> = loaded.problem.into_iter().collect();
    if !done {
        warnings.push("the backlog was not sent in time".to_owned());
    }
    Ok(FairnessReport {
        p50_ratio: beside.accept_to_sent.p50_ms / alone.accept_to_sent.p50_ms.max(0.5),
        p95_ratio: beside.accept_to_sent.p95_ms / alone.accept_to_sent.p95_ms.max(0.5),
        alone,
        beside,
        backlog: loaded.accepted,
        backlog_left: loaded.accepted.saturating_sub(gone),
        backlog_per_second,
        sink_delay_ms: args.sink_delay_ms,
        in_flight: args.in_flight,
        pace: args.pace,
        duplicates: arrived.by_uid.values().map(|count| u64::from(count.saturating_sub(1))).sum(),
        warnings,
    })
}

/// Mails one at a time, at the pace asked for; waits until all are sent.
async fn trickle(
    args: &BenchArgs,
    client: &ApiClient,
    account: &str,
    batch: &str,
    deadline: Instant,
) -> Result<(), CommandFailure> {
    let messages = (args.messages / ONE_IN).max(1);
    let before = audit::finished(&[client]).await?;
    let plan = LoadPlan::new(client, account, batch, args.shape(messages, BenchMode::Single));
    let mut connection = BenchConnection::open(plan.address()).await?;
    let mut beat = tokio::time::interval(Duration::from_secs(1) / args.pace);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let bar = progress(u64::from(messages), "trickle");
    for number in 0..messages {
        beat.tick().await;
        connection.post_one(&plan, number).await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let wanted = before + u64::from(messages);
    audit::wait_until_finished(&[client], wanted, before, deadline, &ProgressBar::hidden()).await?;
    Ok(())
}

/// The messages of a trickle, according to the store; read at the end, because reading costs the server.
async fn read(client: &ApiClient, batch: &str, messages: u32) -> Result<TrickleFigures, CommandFailure> {
    let mut books = StoreAudit::default();
    audit::read(client, batch, &mut books).await?;
    let mut waits = waits(client, &books.sent).await?;
    Ok(TrickleFigures {
        messages,
        sent: books.sent.len() as u64,
        accept_to_sent: LatencySpread::of(&mut books.latencies_ms),
        until_claimed: LatencySpread::of(&mut waits),
    })
}

/// How long each of these waited for its first attempt, in milliseconds.
async fn waits(client: &ApiClient, sent: &[Uuid]) -> Result<Vec<u64>, CommandFailure> {
    let mut waits = Vec::with_capacity(sent.len());
    for uid in sent {
        let message = client.get(&["v1", "messages", &uid.to_string()], &[]).await?;
        let (created, started) = (message.get("created_at"), message.pointer("/attempts/0/started_at"));
        waits.extend(audit::milliseconds_between(created, started));
    }
    Ok(waits)
}

impl LatencySpread {
    fn of(values: &mut [u64]) -> Self {
        Self { p50_ms: percentile(values, 0.50), p95_ms: percentile(values, 0.95) }
    }

    fn text(&self) -> String {
        format!("{:.0} / {:.0}", self.p50_ms, self.p95_ms)
    }
}

impl FairnessReport {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        let unsent = |trickle: &TrickleFigures| u64::from(trickle.messages).saturating_sub(trickle.sent);
        match unsent(&self.alone) + unsent(&self.beside) {
            0 if self.backlog_left == 0 => Some(
                "the backlog ended before the trickle; give more --messages or a higher --pace".to_owned(),
            ),
            0 if self.duplicates > 0 => Some(format!("{} mails were sent twice", self.duplicates)),
            0 => None,
            unsent => Some(format!("{unsent} mails of the trickle were not sent in time")),
        }
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let mut text = output.fields([
            ("trickle", format!("{} mails, {} a second", self.beside.messages, self.pace)),
            ("backlog", format!("{} mails of another tenant", self.backlog)),
            (
                "sink",
                format!("builtin, {} ms a mail; {} in hand at most", self.sink_delay_ms, self.in_flight),
            ),
            ("alone, accept to sent p50 / p95 (ms)", self.alone.accept_to_sent.text()),
            ("beside the backlog", self.beside.accept_to_sent.text()),
            ("ratio of p50 / p95", format!("{:.2} / {:.2}", self.p50_ratio, self.p95_ratio)),
            ("alone, accept to claim p50 / p95 (ms)", self.alone.until_claimed.text()),
            ("the same beside the backlog", self.beside.until_claimed.text()),
            ("backlog sent/s meanwhile", format!("{:.0}", self.backlog_per_second)),
            ("backlog left at the end", self.backlog_left.to_string()),
            ("duplicates", self.duplicates.to_string()),
        ]);
        for warning in &self.warnings {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_that_was_gone_too_early_proves_nothing() {
        let trickle = || TrickleFigures { messages: 2, sent: 2, ..TrickleFigures::default() };
        let mut found = FairnessReport {
            alone: trickle(),
            beside: trickle(),
            backlog_left: 1,
            ..FairnessReport::default()
        };
        assert_eq!(found.problem(), None);
        found.backlog_left = 0;
        assert!(found.problem().unwrap().contains("backlog"));
        found.beside.sent = 1;
        assert!(found.problem().unwrap().contains("1 mails"));
    }
}
