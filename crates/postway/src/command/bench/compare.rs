//! The same load done in several ways, in turns. On a shared machine, ratios say more than rates.
//!
//! Each round does all of them, and every other round in the other order, so that drift (growing tables, a
//! neighbour on the machine) affects all ways equally. Figures are medians over the rounds, ratios are to the
//! first way.

use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::args::BenchArgs;
use super::report::BenchReport;
use super::server::{self, BenchServer, ServerRecipe};
use super::smtp_sink::BenchRelay;
use super::trial::{BenchTrial, LoadTarget};
use super::{create_account, create_tenant, run_name};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

/// Over how many tenants the load with limits is spread.
const TENANTS: usize = 4;
type Figure = fn(&BenchReport) -> Option<f64>;
const SENT: Figure = |report| Some(report.sent_per_second);
const CPU: Figure = |report| report.cpu_seconds_per_1000;

/// Limits that are counted and never reached.
const LIMITS: (u32, u32, u32) = (10_000_000, 100_000_000, 1_000_000_000);

/// The figures of several ways of doing the same.
#[derive(Debug, Serialize)]
pub struct BenchComparison {
    pub(super) sides: Vec<ComparedSide>,
    pub(super) warnings: Vec<String>,
}

/// The figures of one way.
#[derive(Debug, Serialize)]
pub(super) struct ComparedSide {
    name: String,
    /// Its rate from accept to sent, over the first one's.
    sent_per_second_ratio: Option<f64>,
    /// Its CPU time for a message, over the first one's.
    cpu_ratio: Option<f64>,
    pub(super) passes: Vec<BenchReport>,
}

/// One server against many, on the same database.
pub async fn nodes(
    args: &BenchArgs,
    recipe: &ServerRecipe,
    deadline: Instant,
) -> Result<BenchComparison, CommandFailure> {
    let mut compared = BenchComparison::of(["1 node".to_owned(), format!("{} nodes", args.nodes)]);
    for side in order(args.rounds, 2) {
        let nodes = recipe.start(if side == 0 { 1 } else { args.nodes }).await?;
        let report = BenchTrial { args, nodes: &nodes, deadline }.plain(&run_name()).await;
        compared.warnings.extend(server::stop(nodes).await?);
        compared.sides[side].passes.push(report?);
    }
    Ok(compared.finish())
}

/// An account without limits against one with limits, and against several of tenants that take turns.
pub async fn limits(
    args: &BenchArgs,
    recipe: &ServerRecipe,
    deadline: Instant,
) -> Result<BenchComparison, CommandFailure> {
    let nodes = recipe.start(1).await?;
    let compared = limits_on(args, recipe, &nodes, deadline).await;
    let stopped = server::stop(nodes).await;
    let mut compared = compared?;
    compared.warnings.extend(stopped?);
    Ok(compared)
}

async fn limits_on(
    args: &BenchArgs,
    recipe: &ServerRecipe,
    nodes: &[BenchServer],
    deadline: Instant,
) -> Result<BenchComparison, CommandFailure> {
    let trial = BenchTrial { args, nodes, deadline };
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        tenants.push(create_tenant(recipe, &nodes[0], &format!("{}-{number}", run_name())).await?);
    }
    let names = ["no limits".to_owned(), "limits".to_owned(), format!("limits, {TENANTS} tenants")];
    let mut compared = BenchComparison::of(names);
    for side in order(args.rounds, 3) {
        let report = match side {
            0 => trial.plain(&run_name()).await?,
            1 => limited(&trial, &tenants[..1]).await?,
            _ => limited(&trial, &tenants).await?,
        };
        compared.sides[side].passes.push(report);
    }
    Ok(compared.finish())
}

/// The load through an account with limits of each tenant. Together they have as many connections as the
/// plain one.
async fn limited(trial: &BenchTrial<'_>, tenants: &[ApiClient]) -> Result<BenchReport, CommandFailure> {
    let run = run_name();
    let relay = BenchRelay::start(&trial.args.sink).await?;
    let (per_minute, per_hour, per_day) = LIMITS;
    let limits = json!({"per_minute": per_minute, "per_hour": per_hour, "per_day": per_day});
    let connections = trial.args.connections.div_ceil(tenants.len() as u32);
    let mut ways = Vec::new();
    for client in tenants {
        let (target, more) = ((relay.host(), relay.port()), json!({"limits": limits}));
        ways.push(LoadTarget {
            client,
            account: create_account(client, &run, target, connections, more).await?,
        });
    }
    let tenants: Vec<&ApiClient> = tenants.iter().collect();
    trial.measure(&run, &ways, &tenants, relay).await
}

/// The order in which the sides are measured.
pub(super) fn order(rounds: u32, sides: usize) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |round| {
        (0..sides).map(move |side| if round % 2 == 0 { side } else { sides - 1 - side })
    })
}

impl ComparedSide {
    /// The median of the rounds, the lower of two middle values; `None` if a round has no figure.
    fn median(&self, figure: impl Fn(&BenchReport) -> Option<f64>) -> Option<f64> {
        let mut values = self.passes.iter().map(figure).collect::<Option<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        values.get(values.len().saturating_sub(1) / 2).copied()
    }

    fn all(&self) -> String {
        self.passes.iter().map(|pass| format!("{:.0}", pass.sent_per_second)).collect::<Vec<_>>().join(" ")
    }
}

impl BenchComparison {
    /// A comparison without measurements.
    pub(super) fn of<const N: usize>(names: [String; N]) -> Self {
        let side =
            |name| ComparedSide { name, sent_per_second_ratio: None, cpu_ratio: None, passes: Vec::new() };
        Self { sides: names.map(side).into(), warnings: Vec::new() }
    }

    /// Sets the ratios.
    pub(super) fn finish(mut self) -> Self {
        let figures = |side: &ComparedSide| (side.median(SENT), side.median(CPU));
        let (sent, cpu) = self.sides.first().map(figures).unwrap_or_default();
        for side in &mut self.sides {
            let (own_sent, own_cpu) = figures(side);
            side.sent_per_second_ratio = own_sent.zip(sent).map(|(own, first)| own / first);
            side.cpu_ratio = own_cpu.zip(cpu).map(|(own, first)| own / first);
        }
        self
    }

    fn passes(&self) -> impl Iterator<Item = &BenchReport> {
        self.sides.iter().flat_map(|side| &side.passes)
    }

    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        self.passes().find_map(BenchReport::problem)
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let row = |name: &str, cell: &dyn Fn(&ComparedSide) -> String| {
            std::iter::once(name.to_owned()).chain(self.sides.iter().map(cell)).collect::<Vec<_>>()
        };
        let number = |value: Option<f64>, digits: usize| {
            value.map(|value| format!("{value:.digits$}")).unwrap_or_default()
        };
        let median = |name: &str, digits: usize, figure: Figure| {
            row(name, &|side| number(side.median(figure), digits))
        };
        let rows = [
            median("accept to sent/s", 0, SENT),
            row("ratio", &|side| number(side.sent_per_second_ratio, 2)),
            median("accepted/s", 0, |report| Some(report.accepted_per_second)),
            median("accept to sent p50 (ms)", 0, |report| Some(report.accept_to_sent_p50_ms)),
            median("accept to sent p99 (ms)", 0, |report| Some(report.accept_to_sent_p99_ms)),
            median("CPU-seconds per 1,000", 3, CPU),
            row("ratio", &|side| number(side.cpu_ratio, 2)),
            median("commits per message", 4, |report| report.commits_per_message),
            median("peak resident (MiB)", 0, |report| report.peak_resident_mib),
            row("each round, sent/s", &|side| side.all()),
        ];
        let names = self.sides.iter().map(|side| side.name.as_str());
        let mut text = output.table(&std::iter::once("median").chain(names).collect::<Vec<_>>(), rows);
        let sum = |figure: fn(&BenchReport) -> u64| self.passes().map(figure).sum::<u64>();
        text.push_str(&format!(
            "\n\nlost {}, duplicates {}, in doubt {}",
            sum(|report| report.lost),
            sum(|report| report.duplicates),
            sum(|report| report.in_doubt)
        ));
        for warning in self.warnings.iter().chain(self.passes().flat_map(|pass| &pass.warnings)) {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(first: [BenchReport; 3], second: [BenchReport; 3]) -> BenchComparison {
        let mut compared = BenchComparison::of(["one".to_owned(), "two".to_owned()]);
        (compared.sides[0].passes, compared.sides[1].passes) = (first.into(), second.into());
        compared.finish()
    }

    fn report(sent_per_second: f64, cpu: Option<f64>) -> BenchReport {
        BenchReport { sent_per_second, cpu_seconds_per_1000: cpu, ..BenchReport::default() }
    }

    #[test]
    fn every_other_round_is_in_the_other_order() {
        assert_eq!(order(3, 2).collect::<Vec<_>>(), [0, 1, 1, 0, 0, 1]);
        assert_eq!(order(2, 3).collect::<Vec<_>>(), [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn the_ratio_is_of_the_middle_rounds() {
        let compared = compare(
            [90.0, 100.0, 500.0].map(|rate| report(rate, Some(0.2))),
            [150.0, 10.0, 200.0].map(|rate| report(rate, Some(0.1))),
        );
        let other = &compared.sides[1];
        assert_eq!((other.sent_per_second_ratio, other.cpu_ratio), (Some(1.5), Some(0.5)));
    }

    #[test]
    fn a_cost_that_one_round_does_not_know_is_left_out() {
        let known = || report(1.0, Some(0.1));
        let compared = compare([known(), report(1.0, None), known()], [known(), known(), known()]);
        assert_eq!(compared.sides[1].cpu_ratio, None);
    }
}
