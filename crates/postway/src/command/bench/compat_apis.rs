//! What the compatibility APIs cost compared with our own routes: the same mail through each, one message a
//! request and many, on one server. Each API is measured next to our route that does the same, in alternating
//! order: the ratio of two loads that follow each other says more than figures taken minutes apart.
//!
//! The tenant's account is suspended, so what is measured is acceptance alone, each mail durable when it is
//! answered. An API whose messages carry their sender's ids is compared with our route with ids, another with
//! our route without: looking up an id is not a cost of the API. Fails if a mail that was answered is not in
//! the store.

use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::acceptance::{AcceptanceFigures, AcceptanceRound};
use super::args::{BenchArgs, BenchMode};
use super::load::{self, LoadPlan, NUMBER};
use super::measure::ResourceMeter;
use super::server::{self, BenchServer, ServerRecipe};
use super::trial::NOWHERE;
use super::{create_account, progress, run_name};
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

/// The default number of connections.
const CONNECTIONS: u32 = 20;
/// Messages of a request that carries many; one of the APIs takes no more.
const MANY: u32 = 100;

/// A route that accepts mail.
struct BenchRoute {
    name: &'static str,
    path: &'static str,
    /// The status that says that all were accepted.
    taken: u16,
    /// The index of our own route that does the same.
    beside: usize,
    /// Messages of a request.
    each: u32,
    /// The JSON around the messages.
    frame: (&'static str, &'static str),
    message: fn(&str, &str) -> String,
}

const LIST: (&str, &str) = ("[", "]");
const MESSAGES: (&str, &str) = (r#"{"messages":["#, "]}");
const DATA: (&str, &str) = (r#"{"data":["#, "]}");

#[rustfmt::skip]
const WAYS: [BenchRoute; 13] = [
    BenchRoute { name: "ours, with ids", path: "/v1/messages", taken: 202, beside: 0, each: 1, frame: ("", ""), message: ours_with_id },
    BenchRoute { name: "ours, without", path: "/v1/messages", taken: 202, beside: 1, each: 1, frame: ("", ""), message: ours },
    BenchRoute { name: "ours, many, with ids", path: "/v1/messages/batch", taken: 202, beside: 2, each: MANY, frame: MESSAGES, message: ours_with_id },
    BenchRoute { name: "ours, many, without", path: "/v1/messages/batch", taken: 202, beside: 3, each: MANY, frame: MESSAGES, message: ours },
    BenchRoute { name: "000", path: "/compat/outbox/emails", taken: 201, beside: 0, each: 1, frame: DATA, message: of_000 },
    BenchRoute { name: "000, many", path: "/compat/outbox/emails", taken: 201, beside: 2, each: MANY, frame: DATA, message: of_000 },
    BenchRoute { name: "001", path: "/compat/proxy/commands/add-messages", taken: 200, beside: 0, each: 1, frame: MESSAGES, message: of_001 },
    BenchRoute { name: "001, many", path: "/compat/proxy/commands/add-messages", taken: 200, beside: 2, each: MANY, frame: MESSAGES, message: of_001 },
    BenchRoute { name: "004", path: "/compat/pipeline/v1/email/send", taken: 202, beside: 1, each: 1, frame: ("", ""), message: ours },
    BenchRoute { name: "resend", path: "/compat/resend/emails", taken: 200, beside: 1, each: 1, frame: ("", ""), message: ours },
    BenchRoute { name: "resend, many", path: "/compat/resend/emails/batch", taken: 200, beside: 3, each: MANY, frame: LIST, message: ours },
    BenchRoute { name: "postmark", path: "/compat/postmark/email", taken: 200, beside: 1, each: 1, frame: ("", ""), message: of_postmark },
    BenchRoute { name: "postmark, many", path: "/compat/postmark/email/batch", taken: 200, beside: 3, each: MANY, frame: LIST, message: of_postmark },
];

/// Our own body; 004 and Resend have the same fields.
fn ours(_: &str, text: &str) -> String {
    format!(
        r#"{{"from":"bench@example.com","to":"r{NUMBER}@example.net","subject":"Bench {NUMBER}","html":"{text}"}}"#
    )
}

fn ours_with_id(run: &str, text: &str) -> String {
    with_id(run, "text", text)
}

fn of_000(run: &str, text: &str) -> String {
    with_id(run, "body_text", text)
}

fn of_001(run: &str, text: &str) -> String {
    with_id(run, "body", text)
}

fn with_id(run: &str, body: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{run}-{NUMBER}","from":"bench@example.com","to":"r{NUMBER}@example.net","subject":"Bench {NUMBER}","{body}":"{text}"}}"#
    )
}

fn of_postmark(_: &str, text: &str) -> String {
    format!(
        r#"{{"From":"bench@example.com","To":"r{NUMBER}@example.net","Subject":"Bench {NUMBER}","HtmlBody":"{text}"}}"#
    )
}

/// The result of the measurement.
#[derive(Debug, Serialize)]
pub struct CompatBench {
    messages: u32,
    connections: u32,
    ways: Vec<MeasuredRoute>,
    lost: i64,
    problem: Option<String>,
    warnings: Vec<String>,
}

/// One route, and its cost relative to our own.
#[derive(Debug, Serialize)]
struct MeasuredRoute {
    name: &'static str,
    #[serde(flatten)]
    side: AcceptanceFigures,
    /// The median of its rounds.
    cpu_ratio: Option<f64>,
}

/// Measures on a server of its own.
pub async fn run(
    args: &BenchArgs,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<CompatBench, CommandFailure> {
    let nodes = recipe.start(1).await?;
    let found = measure(args, &nodes, deadline).await;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    nodes: &[BenchServer],
    deadline: Instant,
) -> Result<CompatBench, CommandFailure> {
    let client = &nodes[0].client;
    let account = create_account(client, &run_name(), NOWHERE, 1, Value::Null).await?;
    client.call(Method::POST, &["v1", "accounts", &account, "suspend"], &[], RequestBody::Empty).await?;
    let tenant = json!({"default_account": account});
    client.call(Method::PATCH, &["v1", "tenants", "default"], &[], RequestBody::Json(&tenant)).await?;
    let connections = args.concurrency.unwrap_or(CONNECTIONS);
    let one = load::LoadShape { concurrency: connections, ..args.shape(args.messages, BenchMode::Single) };
    let text = load::text(args.size as usize);
    let mut rounds: [Vec<AcceptanceRound>; WAYS.len()] = Default::default();
    let mut ratios: [Vec<f64>; WAYS.len()] = Default::default();
    let (mut lost, mut problem) = (0, None);
    for round in 0..args.rounds {
        for (door, way) in WAYS.iter().enumerate().filter(|(place, way)| way.beside != *place) {
            let mut pair = [way.beside, door];
            if round % 2 == 1 {
                pair.reverse();
            }
            let mut cpu = [None; WAYS.len()];
            for place in pair {
                let way = &WAYS[place];
                let shape = load::LoadShape { per_request: way.each, ..one };
                let message = (way.message)(&run_name(), &text);
                let plan = LoadPlan::of(client, way.path, way.frame, message, way.taken, shape);
                let stored = stored(client).await?;
                let before = ResourceMeter::read_at_rest(nodes).await?;
                let bar = progress(u64::from(args.messages), way.name);
                let mut loaded = load::run(vec![plan], deadline, &bar).await?;
                bar.finish_and_clear();
                let after = ResourceMeter::read_at_rest(nodes).await?;
                let accepted = i64::try_from(loaded.accepted).unwrap_or(i64::MAX);
                lost += (accepted - (self::stored(client).await? - stored)).max(0);
                let measured = AcceptanceRound::of(&mut loaded, &before, &after);
                cpu[place] = measured.cpu;
                rounds[place].push(measured);
                problem = problem.or(loaded.problem);
            }
            ratios[door].extend(cpu[door].zip(cpu[way.beside]).map(|(door, ours)| door / ours));
        }
    }
    let sides = rounds.map(|rounds| AcceptanceFigures::of(&rounds));
    let measured = |((side, way), mut ratios): ((AcceptanceFigures, &BenchRoute), Vec<f64>)| {
        ratios.sort_by(f64::total_cmp);
        MeasuredRoute { name: way.name, side, cpu_ratio: ratios.get(ratios.len() / 2).copied() }
    };
    let ways = sides.into_iter().zip(&WAYS).zip(ratios).map(measured).collect();
    Ok(CompatBench { messages: args.messages, connections, ways, lost, problem, warnings: Vec::new() })
}

/// How many messages the store has.
async fn stored(client: &ApiClient) -> Result<i64, CommandFailure> {
    let stats = client.get(&["v1", "stats"], &[]).await?;
    let states = stats["by_status"].as_object();
    Ok(states.map_or(0, |states| states.values().filter_map(Value::as_i64).sum()))
}

impl CompatBench {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        match self.lost {
            0 => self.problem.clone(),
            lost => Some(format!("{lost} messages that were accepted are not in the store")),
        }
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let rows = self.ways.iter().map(|way| {
            let [rate, cpu, p50, p99, each] = way.side.column();
            let ratio = way.cpu_ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
            vec![way.name.to_owned(), rate, cpu, ratio, p50, p99, each]
        });
        let head = ["by", "accepted/s", "CPU-s per 1,000", "ratio", "p50 (ms)", "p99 (ms)", "each round"];
        let table = output.table(&head, rows);
        let warnings: String = self.warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
        format!(
            "{table}\n\n{} messages a round, {} connections, lost {}{warnings}",
            self.messages, self.connections, self.lost
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_brings_numbered_messages_as_json() {
        for way in &WAYS {
            let message = (way.message)("run", "hello\\n");
            let body: Value =
                serde_json::from_str(&format!("{}{message}{}", way.frame.0, way.frame.1)).unwrap();
            assert!(body.to_string().contains(&format!("r{NUMBER}@example.net")), "{}", way.name);
            let beside = &WAYS[way.beside];
            assert!(beside.path.starts_with("/v1/messages") && beside.each == way.each, "{}", way.name);
        }
    }
}
