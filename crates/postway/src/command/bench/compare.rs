//! The same load done in two ways, in turns, and the ratio: on a shared machine that says more than a rate.
//!
//! Each round does both, and every other round in the other order, so that what drifts (tables that grow, a neighbour
//! on the machine) weighs on both alike. Figures are medians over the rounds.

use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::args::BenchArgs;
use super::report::Report;
use super::server::{self, Node, Recipe};
use super::smtp_sink::Relay;
use super::trial::{Trial, Way};
use super::{create_account, create_tenant, run_name};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::Output;

/// Over how many tenants the load with limits is spread.
const TENANTS: usize = 4;
/// Limits that are counted and never reached.
const LIMITS: (u32, u32, u32) = (10_000_000, 100_000_000, 1_000_000_000);

/// What two ways of doing the same came to.
#[derive(Debug, Serialize)]
pub struct Comparison {
    base: Side,
    other: Side,
    /// The other's rate from accept to sent, over the base's.
    sent_per_second_ratio: Option<f64>,
    /// The other's CPU time for a message, over the base's.
    cpu_ratio: Option<f64>,
    warnings: Vec<String>,
}

/// One of the two ways.
#[derive(Debug, Serialize)]
struct Side {
    name: String,
    passes: Vec<Report>,
}

/// One server against many, on the same database.
pub async fn nodes(args: &BenchArgs, recipe: &Recipe, deadline: Instant) -> Result<Comparison, Failure> {
    let names = ["1 node".to_owned(), format!("{} nodes", args.nodes)];
    let mut passes = Passes::new(names);
    for side in order(args.rounds) {
        let nodes = recipe.start(if side == 0 { 1 } else { args.nodes }).await?;
        let report = Trial { args, nodes: &nodes, deadline }.plain(&run_name()).await;
        passes.warnings.extend(server::stop(nodes).await?);
        passes.sides[side].passes.push(report?);
    }
    Ok(passes.compare())
}

/// An account without limits against accounts with limits, of tenants that take turns.
pub async fn limits(args: &BenchArgs, recipe: &Recipe, deadline: Instant) -> Result<Comparison, Failure> {
    let nodes = recipe.start(1).await?;
    let compared = limits_on(args, recipe, &nodes, deadline).await;
    let stopped = server::stop(nodes).await;
    let mut compared = compared?;
    compared.warnings.extend(stopped?);
    Ok(compared)
}

async fn limits_on(
    args: &BenchArgs,
    recipe: &Recipe,
    nodes: &[Node],
    deadline: Instant,
) -> Result<Comparison, Failure> {
    let trial = Trial { args, nodes, deadline };
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        tenants.push(create_tenant(recipe, &nodes[0], &format!("{}-{number}", run_name())).await?);
    }
    let mut passes = Passes::new(["no limits".to_owned(), format!("limits, {TENANTS} tenants")]);
    for side in order(args.rounds) {
        let report = match side {
            0 => trial.plain(&run_name()).await?,
            _ => limited(&trial, &tenants).await?,
        };
        passes.sides[side].passes.push(report);
    }
    Ok(passes.compare())
}

/// The load through an account with limits of each tenant. Together they have as many connections as the plain one.
async fn limited(trial: &Trial<'_>, tenants: &[Client]) -> Result<Report, Failure> {
    let run = run_name();
    let relay = Relay::start(&trial.args.sink).await?;
    let (per_minute, per_hour, per_day) = LIMITS;
    let limits = json!({"per_minute": per_minute, "per_hour": per_hour, "per_day": per_day});
    let connections = trial.args.connections.div_ceil(tenants.len() as u32);
    let mut ways = Vec::new();
    for client in tenants {
        let (target, more) = ((relay.host(), relay.port()), json!({"limits": limits}));
        ways.push(Way { client, account: create_account(client, &run, target, connections, more).await? });
    }
    let tenants: Vec<&Client> = tenants.iter().collect();
    trial.measure(&run, &ways, &tenants, relay).await
}

/// Which side is measured when.
fn order(rounds: u32) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(|round| if round % 2 == 0 { [0, 1] } else { [1, 0] })
}

struct Passes {
    sides: [Side; 2],
    warnings: Vec<String>,
}

impl Passes {
    fn new(names: [String; 2]) -> Self {
        Self { sides: names.map(|name| Side { name, passes: Vec::new() }), warnings: Vec::new() }
    }

    fn compare(self) -> Comparison {
        let [base, other] = self.sides;
        let ratio = |figure: fn(&Report) -> Option<f64>| Some(other.median(figure)? / base.median(figure)?);
        Comparison {
            sent_per_second_ratio: ratio(|report| Some(report.sent_per_second)),
            cpu_ratio: ratio(|report| report.cpu_seconds_per_1000),
            base,
            other,
            warnings: self.warnings,
        }
    }
}

impl Side {
    /// The middle of the rounds, the lower of two; none where a round does not know.
    fn median(&self, figure: impl Fn(&Report) -> Option<f64>) -> Option<f64> {
        let mut values = self.passes.iter().map(figure).collect::<Option<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        values.get(values.len().saturating_sub(1) / 2).copied()
    }

    fn all(&self) -> String {
        self.passes.iter().map(|pass| format!("{:.0}", pass.sent_per_second)).collect::<Vec<_>>().join(" ")
    }
}

impl Comparison {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        self.base.passes.iter().chain(&self.other.passes).find_map(Report::problem)
    }

    /// The table for people.
    pub fn render(&self, output: Output) -> String {
        let row = |name: &str, digits: usize, figure: fn(&Report) -> Option<f64>| {
            let (base, other) = (self.base.median(figure), self.other.median(figure));
            let text = |value: Option<f64>, digits: usize| {
                value.map(|value| format!("{value:.digits$}")).unwrap_or_default()
            };
            let ratio = base.zip(other).map(|(base, other)| other / base);
            vec![name.to_owned(), text(base, digits), text(other, digits), text(ratio, 2)]
        };
        let rows = [
            row("accept to sent/s", 0, |report| Some(report.sent_per_second)),
            row("accepted/s", 0, |report| Some(report.accepted_per_second)),
            row("accept to sent p50 (ms)", 0, |report| Some(report.accept_to_sent_p50_ms)),
            row("accept to sent p99 (ms)", 0, |report| Some(report.accept_to_sent_p99_ms)),
            row("CPU-seconds per 1,000", 3, |report| report.cpu_seconds_per_1000),
            row("commits per message", 4, |report| report.commits_per_message),
            row("peak resident (MiB)", 0, |report| report.peak_resident_mib),
            vec!["each round, sent/s".to_owned(), self.base.all(), self.other.all(), String::new()],
        ];
        let mut text = output.table(&["median", &self.base.name, &self.other.name, "ratio"], rows);
        let passes = || self.base.passes.iter().chain(&self.other.passes);
        let sum = |figure: fn(&Report) -> u64| passes().map(figure).sum::<u64>();
        text.push_str(&format!(
            "\n\nlost {}, duplicates {}, in doubt {}",
            sum(|report| report.lost),
            sum(|report| report.duplicates),
            sum(|report| report.in_doubt)
        ));
        for warning in self.warnings.iter().chain(passes().flat_map(|pass| &pass.warnings)) {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sent_per_second: f64, cpu: Option<f64>) -> Report {
        Report { sent_per_second, cpu_seconds_per_1000: cpu, ..Report::default() }
    }

    #[test]
    fn every_other_round_is_in_the_other_order() {
        assert_eq!(order(3).collect::<Vec<_>>(), [0, 1, 1, 0, 0, 1]);
    }

    #[test]
    fn the_ratio_is_of_the_middle_rounds() {
        let mut passes = Passes::new(["one".to_owned(), "two".to_owned()]);
        passes.sides[0].passes = [90.0, 100.0, 500.0].map(|rate| report(rate, Some(0.2))).into();
        passes.sides[1].passes = [150.0, 10.0, 200.0].map(|rate| report(rate, Some(0.1))).into();
        let compared = passes.compare();
        assert_eq!((compared.sent_per_second_ratio, compared.cpu_ratio), (Some(1.5), Some(0.5)));
    }

    #[test]
    fn a_cost_that_one_round_does_not_know_is_left_out() {
        let mut passes = Passes::new(["one".to_owned(), "two".to_owned()]);
        passes.sides[0].passes = vec![report(1.0, None)];
        passes.sides[1].passes = vec![report(1.0, Some(0.1))];
        assert_eq!(passes.compare().cpu_ratio, None);
    }
}
