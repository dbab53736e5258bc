//! What `kill -9` costs: servers are killed at random moments under load, again and again, and the records
//! are compared.
//!
//! Clients post one mail after the other, each until it is acknowledged, and remember the acknowledged uids.
//! A server that was killed is started again in its folder. When everything is settled, three ledgers must
//! agree: the clients', the sink's and the store's. The sink is slow, so that many kills happen between the
//! final dot and its answer, when no sender can know whether the mail was taken. Fails if an acknowledged
//! mail is lost, if a mail came twice without a doubt on record, or if the store does not know of a mail that
//! the sink took.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::args::{BenchArgs, BenchMode};
use super::audit::{self, StoreAudit};
use super::connection::BenchConnection;
use super::load::LoadPlan;
use super::measure::percentile;
use super::server::{self, BenchServer, ServerRecipe};
use super::sink::{ArrivedMail, BuiltinSink};
use super::{create_account, progress, run_name};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{CommandOutput, list};

/// How long a server works between two kills, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 100..900;
/// The default number of clients that post at the same time.
const CLIENTS: u32 = 8;
/// Between two mails of a client, and before a mail is posted again: a load, not a flood, so that the books
/// stay short.
const PACE: Duration = Duration::from_millis(10);
const POLL: Duration = Duration::from_millis(100);
/// The states of a mail that is still to be sent; one in doubt is, unless it is on hold.
const UNDER_WAY: [&str; 5] = ["accepted", "validating", "ready", "scheduled", "sending"];

/// The result of the kills.
#[derive(Debug, Default, Serialize)]
pub struct KillReport {
    kills: u32,
    nodes: u32,
    sink_delay_ms: u64,
    /// Mails that were acknowledged to a client.
    acknowledged: u64,
    /// Acknowledged mails that neither the store nor the sink has.
    lost: u64,
    /// Taken by the sink, and in the store neither sent nor in doubt.
    unknown: u64,
    /// Copies at the sink beyond one for each mail.
    repeated: u64,
    /// Copies beyond those that the doubts in the mail's history explain.
    repeated_without_doubt: u64,
    /// How often a mail was in doubt.
    doubts: u64,
    /// Mails still in doubt at the end, on hold because they were in doubt too often.
    held: u64,
    by_status: BTreeMap<String, u64>,
    /// From a kill until the server was ready again.
    down_p50_ms: f64,
    down_max_ms: f64,
    /// From the last kill until the last mail was settled.
    settled_after_seconds: f64,
    timed_out: bool,
    warnings: Vec<String>,
}

/// Starts servers, and kills them.
pub async fn run(
    args: &BenchArgs,
    kills: u32,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<KillReport, CommandFailure> {
    let mut nodes = recipe.start(args.nodes).await?;
    let found = measure(args, kills, &recipe, &mut nodes, deadline).await;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    kills: u32,
    recipe: &ServerRecipe,
    nodes: &mut [BenchServer],
    deadline: Instant,
) -> Result<KillReport, CommandFailure> {
    let run = run_name();
    let sink = BuiltinSink::start(Duration::from_millis(args.sink_delay_ms))?;
    let target = ("127.0.0.1", sink.address().port());
    create_account(&nodes[0].client, &run, target, args.connections, Value::Null).await?;
    let shape = args.shape(args.messages, BenchMode::Single);
    let plans: Vec<LoadPlan> =
        nodes.iter().map(|node| LoadPlan::new(&node.client, &run, &run, shape)).collect();
    let clients = KillClients::start(&plans, args.concurrency.unwrap_or(CLIENTS));
    let mut down = Vec::new();
    let bar = progress(u64::from(kills), "kills");
    while down.len() < kills as usize && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(rand::random_range(LIFE_MS))).await;
        let struck = rand::random_range(0..nodes.len());
        down.push(recipe.kill_and_start(&mut nodes[struck]).await?.as_millis() as u64);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let acknowledged = clients.stop().await?;
    let (last, client) = (Instant::now(), &nodes[0].client);
    let settled = wait_until_settled(client, deadline).await?;
    let settled_after_seconds = last.elapsed().as_secs_f64();
    let arrived = sink.stop()?;
    let mut books = StoreAudit::default();
    audit::read(client, &run, &mut books).await?;
    let mut found = KillReport {
        kills: down.len() as u32,
        nodes: args.nodes,
        sink_delay_ms: args.sink_delay_ms,
        down_p50_ms: percentile(&mut down, 0.5),
        down_max_ms: percentile(&mut down, 1.0),
        settled_after_seconds,
        timed_out: !settled || down.len() < kills as usize,
        ..KillReport::default()
    };
    found.compare(&acknowledged, &arrived, &books);
    found.count_doubts(client, &arrived, &books).await?;
    Ok(found)
}

/// Waits until nothing is under way; false if the deadline came first.
async fn wait_until_settled(client: &ApiClient, deadline: Instant) -> Result<bool, CommandFailure> {
    while Instant::now() < deadline {
        let stats = client.get(&["v1", "stats"], &[]).await?;
        let number = |at: &str| stats.pointer(at).and_then(Value::as_u64).unwrap_or(0);
        let of = |status: &&str| number(&format!("/by_status/{status}"));
        let doubtful = of(&"in_doubt").saturating_sub(number("/in_doubt_held"));
        if UNDER_WAY.iter().map(of).sum::<u64>() + doubtful == 0 {
            return Ok(true);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(false)
}

impl KillReport {
    /// The clients' ledger and the sink's against the store's.
    fn compare(&mut self, acknowledged: &[Uuid], arrived: &ArrivedMail, books: &StoreAudit) {
        self.acknowledged = acknowledged.len() as u64;
        self.by_status = books.by_status.clone();
        self.held = books.count("in_doubt");
        let copies = |uid: &Uuid| arrived.by_uid.get(uid).copied().unwrap_or(0);
        let is_lost = |uid: &&Uuid| match books.states.get(*uid).map(String::as_str) {
            Some("sent") | None => copies(uid) == 0,
            Some(_) => false,
        };
        self.lost = acknowledged.iter().filter(is_lost).count() as u64;
        let is_known = |uid: &Uuid| {
            books.states.get(uid).is_some_and(|status| matches!(status.as_str(), "sent" | "in_doubt"))
        };
        self.unknown = arrived.by_uid.keys().filter(|uid| !is_known(uid)).count() as u64;
        self.repeated = arrived.by_uid.values().map(|count| u64::from(count - 1)).sum();
    }

    /// Reads the history of each mail that took more than one attempt, or came more than once.
    async fn count_doubts(
        &mut self,
        client: &ApiClient,
        arrived: &ArrivedMail,
        books: &StoreAudit,
    ) -> Result<(), CommandFailure> {
        let copies = |uid: &Uuid| u64::from(arrived.by_uid.get(uid).copied().unwrap_or(0));
        let more_than_once = arrived.by_uid.keys().filter(|uid| copies(uid) > 1);
        let mut suspects: Vec<&Uuid> = books.tried_again.iter().chain(more_than_once).collect();
        suspects.sort_unstable();
        suspects.dedup();
        for uid in suspects.into_iter().filter(|uid| books.states.contains_key(*uid)) {
            let message = client.get(&["v1", "messages", &uid.to_string()], &[]).await?;
            let events = list(&message, "events").iter();
            let doubts = events.filter(|event| event["type"] == "in_doubt").count() as u64;
            self.doubts += doubts;
            self.repeated_without_doubt += copies(uid).saturating_sub(1 + doubts);
        }
        Ok(())
    }

    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        if self.lost > 0 {
            return Some(format!("{} acknowledged mails are lost", self.lost));
        }
        if self.repeated_without_doubt > 0 {
            return Some(format!("{} mails were repeated without a doubt", self.repeated_without_doubt));
        }
        if self.unknown > 0 {
            return Some(format!("the store does not know of {} mails that were sent", self.unknown));
        }
        self.timed_out.then(|| "not all was settled in time, see by_status".to_owned())
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let states =
            self.by_status.iter().map(|(status, count)| format!("{status} {count}")).collect::<Vec<_>>();
        let mut text = output.fields([
            ("kills", format!("{} of {} server(s)", self.kills, self.nodes)),
            ("sink", format!("builtin, {} ms a mail", self.sink_delay_ms)),
            ("acknowledged", self.acknowledged.to_string()),
            ("lost", self.lost.to_string()),
            ("sent and not known", self.unknown.to_string()),
            ("in doubt", self.doubts.to_string()),
            ("repeated", self.repeated.to_string()),
            ("repeated without a doubt", self.repeated_without_doubt.to_string()),
            ("held for a word", self.held.to_string()),
            ("kill to ready p50 / max (ms)", format!("{:.0} / {:.0}", self.down_p50_ms, self.down_max_ms)),
            ("settled after (s)", format!("{:.1}", self.settled_after_seconds)),
            ("states", states.join(", ")),
        ]);
        for warning in &self.warnings {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        text
    }
}

/// Clients at work.
struct KillClients {
    stop: CancellationToken,
    tasks: JoinSet<Vec<Uuid>>,
}

impl KillClients {
    fn start(plans: &[LoadPlan], count: u32) -> Self {
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        for client in 0..count {
            tasks.spawn(post_until_stopped(plans.to_vec(), client, count, stop.clone()));
        }
        Self { stop, tasks }
    }

    /// Lets each client finish its mail, and returns the acknowledged uids.
    async fn stop(mut self) -> anyhow::Result<Vec<Uuid>> {
        self.stop.cancel();
        let mut acknowledged = Vec::new();
        while let Some(uids) = self.tasks.join_next().await {
            acknowledged.extend(uids.context("a client ended badly")?);
        }
        Ok(acknowledged)
    }
}

/// Posts every `step`th mail, each until it is acknowledged, to whichever server answers.
async fn post_until_stopped(
    plans: Vec<LoadPlan>,
    first: u32,
    step: u32,
    stop: CancellationToken,
) -> Vec<Uuid> {
    let (mut acknowledged, mut turn, mut connection) = (Vec::new(), first as usize, None);
    for number in (first..).step_by(step as usize) {
        if stop.is_cancelled() {
            break;
        }
        loop {
            let plan = &plans[turn % plans.len()];
            if let Ok(uid) = post(&mut connection, plan, number).await {
                acknowledged.push(uid);
                break;
            }
            // This server is dead, or not up yet; another may answer.
            (connection, turn) = (None, turn + 1);
            tokio::time::sleep(PACE).await;
        }
        tokio::time::sleep(PACE).await;
    }
    acknowledged
}

async fn post(
    connection: &mut Option<BenchConnection>,
    plan: &LoadPlan,
    number: u32,
) -> anyhow::Result<Uuid> {
    let open = match connection {
        Some(open) => open,
        None => connection.insert(BenchConnection::open(plan.address()).await?),
    };
    open.post_one(plan, number).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The report for acknowledged mails, where `uids[n]` is in the n-th state and reached the sink the n-th
    /// number of times.
    fn found(ledger: &[(Option<&str>, u32)]) -> KillReport {
        let (mut books, mut arrived, mut acknowledged) =
            (StoreAudit::default(), ArrivedMail::default(), Vec::new());
        for (number, (status, copies)) in ledger.iter().enumerate() {
            let uid = Uuid::from_u128(number as u128 + 1);
            if let Some(status) = status {
                books.enter(&json!({"uid": uid.to_string(), "status": status, "attempt": 1}));
            }
            if *copies > 0 {
                arrived.by_uid.insert(uid, *copies);
            }
            acknowledged.push(uid);
        }
        let mut found = KillReport::default();
        found.compare(&acknowledged, &arrived, &books);
        found
    }

    #[test]
    fn mail_is_lost_that_nobody_has_or_that_never_came_though_it_is_called_sent() {
        assert_eq!(found(&[(Some("sent"), 1), (Some("failed"), 0), (Some("in_doubt"), 0)]).lost, 0);
        let found = found(&[(None, 0), (Some("sent"), 0), (Some("sent"), 1)]);
        assert_eq!((found.acknowledged, found.lost), (3, 2));
        assert!(found.problem().unwrap().contains("2 acknowledged"));
    }

    #[test]
    fn mail_that_came_is_sent_or_in_doubt_and_anything_else_a_fault() {
        let found = found(&[(Some("sent"), 1), (Some("in_doubt"), 2), (Some("ready"), 1), (None, 1)]);
        assert_eq!((found.lost, found.unknown, found.repeated, found.held), (0, 2, 1, 1));
        assert!(found.problem().unwrap().contains("does not know of 2"));
    }

    #[test]
    fn a_repeat_is_a_fault_only_without_a_doubt() {
        let mut found = found(&[(Some("sent"), 2)]);
        assert_eq!((found.repeated, found.problem()), (1, None));
        found.repeated_without_doubt = 1;
        assert!(found.problem().unwrap().contains("without a doubt"));
    }
}
