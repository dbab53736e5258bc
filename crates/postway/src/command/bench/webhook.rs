//! What one webhook costs: the same load for a tenant without a webhook and for one with a webhook, in turns.
//!
//! The receiver is our own and answers at once. Sending is measured from accept to sent; notifying may end
//! later, and is measured from the first call to the last. Its CPU time is what the passes with the webhook
//! took more than those without, acknowledgements included. Fails if a notification is lost, comes out of
//! order, or not in time.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::args::BenchArgs;
use super::compare::{BenchComparison, order};
use super::measure::ResourceMeter;
use super::receiver::{HeardCalls, WebhookReceiver};
use super::report::BenchReport;
use super::server::{self, BenchServer, ServerRecipe};
use super::smtp_sink::BenchRelay;
use super::trial::{BenchTrial, FinishedLoad, LoadTarget};
use super::{create_account, create_tenant, run_name};
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

/// The events of a bench's mail that a webhook can be notified of.
pub const TOLD: [&str; 2] = ["email.accepted", "email.sent"];
const POLL: Duration = Duration::from_millis(20);

/// The result of the measurement.
#[derive(Debug, Serialize)]
pub struct WebhookBench {
    #[serde(flatten)]
    compared: BenchComparison,
    events: Vec<String>,
    told: Vec<NotificationFigures>,
    /// What a thousand of them took of the server's CPU time.
    cpu_seconds_per_1000_notifications: Option<f64>,
}

/// The notifications of one pass.
#[derive(Debug, Serialize)]
struct NotificationFigures {
    expected: u64,
    arrived: u64,
    per_second: f64,
    /// From the end of sending until all were acknowledged.
    behind_ms: u64,
    lost: u64,
    repeated: u64,
    out_of_order: u64,
    foreign: u64,
}

/// Measures on a server of its own.
pub async fn run(
    args: &BenchArgs,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<WebhookBench, CommandFailure> {
    let nodes = recipe.start(1).await?;
    let receiver = WebhookReceiver::start()?;
    let found = measure(args, &recipe, &nodes, &receiver, deadline).await;
    receiver.stop()?;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.compared.warnings.extend(stopped?);
    Ok(found)
}

/// Adds a webhook to the client's tenant.
pub async fn create_webhook(client: &ApiClient, url: &str, events: &[String]) -> Result<(), CommandFailure> {
    let webhook = json!({"url": url, "events": events});
    client.call(Method::POST, &["v1", "webhooks"], &[], RequestBody::Json(&webhook)).await.map(drop)
}

async fn measure(
    args: &BenchArgs,
    recipe: &ServerRecipe,
    nodes: &[BenchServer],
    receiver: &WebhookReceiver,
    deadline: Instant,
) -> Result<WebhookBench, CommandFailure> {
    let trial = BenchTrial { args, nodes, deadline };
    let run = run_name();
    let plain = create_tenant(recipe, &nodes[0], &format!("{run}-plain")).await?;
    let with = create_tenant(recipe, &nodes[0], &format!("{run}-told")).await?;
    create_webhook(&with, &receiver.url(0), &args.events).await?;
    let per_message = TOLD.iter().filter(|name| args.is_told(name)).count() as u64;
    let mut compared = BenchComparison::of(["no webhook".to_owned(), "one webhook".to_owned()]);
    let (mut told, mut costs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for side in order(args.rounds, 2) {
        let (client, per_message) = if side == 0 { (&plain, 0) } else { (&with, per_message) };
        let (report, cost, heard) = pass(&trial, client, receiver, per_message).await?;
        compared.sides[side].passes.push(report);
        costs[side].extend(cost);
        told.extend(heard.filter(|_| side == 1));
    }
    let notifications = per_message * u64::from(args.messages);
    let costs = costs.map(|mut side| middle(&mut side));
    let cpu_seconds_per_1000_notifications = match costs {
        [Some(without), Some(with)] if notifications > 0 => {
            Some((with - without).max(0.0) * 1000.0 / notifications as f64)
        }
        _ => None,
    };
    let events = args.events.clone();
    Ok(WebhookBench { compared: compared.finish(), events, told, cpu_seconds_per_1000_notifications })
}

/// One load with its notifications: the report, the CPU time, and the figures of the notifications.
async fn pass(
    trial: &BenchTrial<'_>,
    client: &ApiClient,
    receiver: &WebhookReceiver,
    per_message: u64,
) -> Result<(BenchReport, Option<f64>, Option<NotificationFigures>), CommandFailure> {
    let run = run_name();
    let relay = BenchRelay::start(&trial.args.sink).await?;
    let target = (relay.host(), relay.port());
    let account = create_account(client, &run, target, trial.args.connections, Value::Null).await?;
    let sent = trial.send(&run, &[LoadTarget { client, account }], &[client]).await?;
    let ended = Instant::now();
    let expected = sent.loaded.accepted * per_message;
    let in_time = wait_until_told(trial, receiver, &sent, expected).await?;
    let behind = ended.elapsed();
    let after = ResourceMeter::read(trial.nodes).await?;
    let cost = sent.before.cpu_seconds.zip(after.cpu_seconds).map(|(before, after)| after - before);
    let told = NotificationFigures::of(&receiver.take(), expected, behind);
    let mut report = trial.audit(&run, &[client], relay, sent).await?;
    if !in_time {
        report.warnings.push("not every notification was acknowledged in time".to_owned());
    }
    Ok((report, cost, Some(told)))
}

/// Waits until all have arrived and the server knows it; false if the deadline came first.
async fn wait_until_told(
    trial: &BenchTrial<'_>,
    receiver: &WebhookReceiver,
    sent: &FinishedLoad,
    expected: u64,
) -> Result<bool, CommandFailure> {
    if tokio::time::timeout_at(trial.deadline, receiver.wait_for(expected)).await.is_err() {
        return Ok(false);
    }
    let Some(before) = sent.before.acknowledged else { return Ok(true) };
    while Instant::now() < trial.deadline {
        let acknowledged = ResourceMeter::read(trial.nodes).await?.acknowledged.unwrap_or(before);
        if acknowledged - before >= expected as f64 {
            return Ok(true);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(false)
}

/// The median, the lower of two middle values.
fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

impl NotificationFigures {
    fn of(heard: &HeardCalls, expected: u64, behind: Duration) -> Self {
        let times = || heard.arrivals.iter().map(|(_, at)| *at);
        let lasted = times().min().zip(times().max()).map(|(first, last)| last - first).unwrap_or_default();
        let arrived = heard.arrivals.len() as u64;
        Self {
            expected,
            arrived,
            per_second: arrived as f64 / lasted.as_secs_f64().max(0.001),
            behind_ms: u64::try_from(behind.as_millis()).unwrap_or(u64::MAX),
            lost: expected.saturating_sub(arrived),
            repeated: heard.repeated,
            out_of_order: heard.out_of_order,
            foreign: heard.foreign,
        }
    }

    fn problem(&self) -> Option<String> {
        let Self { lost, out_of_order, arrived, expected, .. } = self;
        match (lost, out_of_order) {
            (1.., _) => Some(format!("{lost} notifications did not arrive in time")),
            (_, 1..) => Some(format!("{out_of_order} notifications came after later ones")),
            _ if arrived > expected => Some(format!("{} notifications too many", arrived - expected)),
            _ => None,
        }
    }
}

impl WebhookBench {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        self.compared.problem().or_else(|| self.told.iter().find_map(NotificationFigures::problem))
    }

    /// The tables for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let sum =
            |figure: fn(&NotificationFigures) -> u64| self.told.iter().map(figure).sum::<u64>().to_string();
        let each = |figure: fn(&NotificationFigures) -> f64| {
            self.told.iter().map(|one| format!("{:.0}", figure(one))).collect::<Vec<_>>().join(" ")
        };
        let median = middle(&mut self.told.iter().map(|one| one.per_second).collect::<Vec<_>>());
        let cost = self.cpu_seconds_per_1000_notifications;
        let fields = output.fields([
            ("told of", self.events.join(", ")),
            ("notifications/s, first to last", median.map(|rate| format!("{rate:.0}")).unwrap_or_default()),
            ("each round", each(|one| one.per_second)),
            ("behind the last sent (ms)", each(|one| one.behind_ms as f64)),
            ("CPU-seconds per 1,000", cost.map(|cost| format!("{cost:.3}")).unwrap_or_default()),
            ("notifications", sum(|one| one.arrived)),
            ("lost", sum(|one| one.lost)),
            ("repeated", sum(|one| one.repeated)),
            ("out of order", sum(|one| one.out_of_order)),
            ("not ours", sum(|one| one.foreign)),
        ]);
        format!("{}\n\n{fields}", self.compared.render(output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_time_in_which_notifications_came() {
        let start = std::time::Instant::now();
        let arrivals = (0..=10).map(|n| (0, start + Duration::from_millis(100 * n))).collect();
        let told =
            NotificationFigures::of(&HeardCalls { arrivals, ..HeardCalls::default() }, 11, Duration::ZERO);
        assert_eq!((told.per_second, told.lost, told.problem()), (11.0, 0, None));
    }

    #[test]
    fn what_is_lost_late_or_too_much_is_a_problem() {
        let told = |arrived, out_of_order| {
            let heard = HeardCalls {
                arrivals: vec![(0, std::time::Instant::now()); arrived],
                out_of_order,
                ..HeardCalls::default()
            };
            NotificationFigures::of(&heard, 2, Duration::ZERO).problem()
        };
        assert_eq!(told(2, 0), None);
        for (arrived, out_of_order) in [(1, 0), (2, 1), (3, 0)] {
            assert!(told(arrived, out_of_order).is_some(), "{arrived} {out_of_order}");
        }
    }
}
