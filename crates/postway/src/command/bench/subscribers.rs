//! Many webhooks of which half are dead: how soon the living ones are notified.
//!
//! Of the dead, every other refuses connections, and the rest take them and never answer. In each round every
//! tenant sends one mail, and all its webhooks are notified. In the first round the server knows nothing of
//! the webhooks; in the others the living ones have answered before. The time from the request to the call is
//! measured. Fails if a living webhook is not notified.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::args::{BenchArgs, BenchMode};
use super::connection::BenchConnection;
use super::load::LoadPlan;
use super::measure::{ResourceMeter, percentile};
use super::receiver::{HeardCalls, WebhookReceiver};
use super::server::{self, BenchServer, ServerRecipe, free_port};
use super::sink::BuiltinSink;
use super::webhook::{TOLD, create_webhook};
use super::{create_account, create_tenant, progress, run_name};
use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;
use crate::cli::output::CommandOutput;

/// As many webhooks as a tenant may have.
const PER_TENANT: u32 = 100;
/// Tenants whose webhooks are made at the same time.
const SEEDED_AT_ONCE: usize = 8;

/// The result of the measurement.
#[derive(Debug, Default, Serialize)]
pub struct SubscribersBench {
    living: u32,
    refusing: u32,
    silent: u32,
    tenants: u32,
    rounds: Vec<SubscriberRound>,
    warnings: Vec<String>,
}

/// One mail of each tenant.
#[derive(Debug, Default, Serialize)]
struct SubscriberRound {
    /// Notifications for the living.
    expected: u64,
    arrived: u64,
    repeated: u64,
    out_of_order: u64,
    p50_ms: f64,
    p95_ms: f64,
    last_ms: f64,
    cpu_seconds: Option<f64>,
}

/// How a webhook behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiverKind {
    Living,
    Refusing,
    Silent,
}

/// Every other is dead, and of those every other refuses.
fn kind(number: u32) -> ReceiverKind {
    match number % 4 {
        0 | 2 => ReceiverKind::Living,
        1 => ReceiverKind::Refusing,
        _ => ReceiverKind::Silent,
    }
}

/// A tenant that sends.
struct SendingTenant {
    client: Arc<ApiClient>,
    account: String,
    webhooks: std::ops::Range<u32>,
}

/// Measures on a server of its own.
pub async fn run(
    args: &BenchArgs,
    recipe: ServerRecipe,
    deadline: Instant,
) -> Result<SubscribersBench, CommandFailure> {
    let nodes = recipe.start(1).await?;
    let receiver = WebhookReceiver::start()?;
    let found = measure(args, &recipe, &nodes, &receiver, deadline).await;
    receiver.stop()?;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    recipe: &ServerRecipe,
    nodes: &[BenchServer],
    receiver: &WebhookReceiver,
    deadline: Instant,
) -> Result<SubscribersBench, CommandFailure> {
    let run = run_name();
    let sink = BuiltinSink::start(Duration::ZERO)?;
    let mut silence = JoinSet::new();
    let silent = keep_silent(&mut silence).await?;
    let refusing = format!("http://127.0.0.1:{}/hook", free_port()?);
    let mut senders = Vec::new();
    for first in (0..args.subscribers).step_by(PER_TENANT as usize) {
        let client = create_tenant(recipe, &nodes[0], &format!("{run}-{first}")).await?;
        let target = ("127.0.0.1", sink.address().port());
        let account = create_account(&client, &run, target, 4, Value::Null).await?;
        let webhooks = first..(first + PER_TENANT).min(args.subscribers);
        senders.push(SendingTenant { client: Arc::new(client), account, webhooks });
    }
    let bar = progress(u64::from(args.subscribers), "seed");
    let mut seeding = JoinSet::new();
    for sender in &senders {
        if seeding.len() >= SEEDED_AT_ONCE {
            joined(seeding.join_next().await)?;
        }
        let url = |number| match kind(number) {
            ReceiverKind::Living => receiver.url(number),
            ReceiverKind::Refusing => refusing.clone(),
            ReceiverKind::Silent => silent.clone(),
        };
        let urls: Vec<String> = sender.webhooks.clone().map(url).collect();
        let (client, events, bar) = (Arc::clone(&sender.client), args.events.clone(), bar.clone());
        seeding.spawn(async move {
            for url in urls {
                create_webhook(&client, &url, &events).await?;
                bar.inc(1);
            }
            Ok(())
        });
    }
    while let Some(done) = seeding.join_next().await {
        joined(Some(done))?;
    }
    bar.finish_and_clear();
    let count = |wanted| (0..args.subscribers).filter(|number| kind(*number) == wanted).count() as u32;
    let mut found = SubscribersBench {
        living: count(ReceiverKind::Living),
        refusing: count(ReceiverKind::Refusing),
        silent: count(ReceiverKind::Silent),
        tenants: senders.len() as u32,
        ..SubscribersBench::default()
    };
    let per_webhook = TOLD.iter().filter(|name| args.is_told(name)).count() as u64;
    let expected = u64::from(found.living) * per_webhook;
    for number in 0..args.rounds {
        found.rounds.push(round(args, nodes, &senders, receiver, (number, expected), deadline).await?);
    }
    sink.stop()?;
    silence.shutdown().await;
    Ok(found)
}

fn joined(
    done: Option<Result<Result<(), CommandFailure>, tokio::task::JoinError>>,
) -> Result<(), CommandFailure> {
    match done {
        Some(done) => done.context("making webhooks ended badly")?,
        None => Ok(()),
    }
}

async fn round(
    args: &BenchArgs,
    nodes: &[BenchServer],
    senders: &[SendingTenant],
    receiver: &WebhookReceiver,
    (number, expected): (u32, u64),
    deadline: Instant,
) -> Result<SubscriberRound, CommandFailure> {
    let before = ResourceMeter::read(nodes).await?;
    let mut posted = Vec::with_capacity(senders.len());
    for sender in senders {
        let plan = LoadPlan::new(&sender.client, &sender.account, "round", args.shape(1, BenchMode::Single));
        let mut connection = BenchConnection::open(plan.address()).await?;
        posted.push((sender.webhooks.end, std::time::Instant::now()));
        connection.post_one(&plan, number).await?;
    }
    // Missing notifications show that the deadline passed.
    let _ = timeout_at(deadline, receiver.wait_for(expected)).await;
    let after = ResourceMeter::read(nodes).await?;
    let cpu = before.cpu_seconds.zip(after.cpu_seconds).map(|(before, after)| after - before);
    Ok(SubscriberRound { cpu_seconds: cpu, ..SubscriberRound::of(&receiver.take(), &posted, expected) })
}

/// A server that takes every connection and never says a word; its address.
async fn keep_silent(tasks: &mut JoinSet<()>) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen for the silent")?;
    let address = listener.local_addr().context("cannot read the silent one's address")?;
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let mut unread = [0; 4096];
                while stream.read(&mut unread).await.is_ok_and(|count| count > 0) {}
            });
            while connections.try_join_next().is_some() {}
        }
    });
    Ok(format!("http://{address}/hook"))
}

impl SubscriberRound {
    /// `posted` says for each tenant where its webhooks' numbers end, and when its mail was posted.
    fn of(heard: &HeardCalls, posted: &[(u32, std::time::Instant)], expected: u64) -> Self {
        let took = |(subscriber, at): &(u32, std::time::Instant)| {
            let tenant = posted.partition_point(|(end, _)| end <= subscriber);
            let since = posted.get(tenant).map(|(_, since)| at.duration_since(*since)).unwrap_or_default();
            since.as_millis() as u64
        };
        let mut took: Vec<u64> = heard.arrivals.iter().map(took).collect();
        let mut at = |share| percentile(&mut took, share);
        Self {
            p50_ms: at(0.50),
            p95_ms: at(0.95),
            last_ms: at(1.0),
            expected,
            arrived: heard.arrivals.len() as u64,
            repeated: heard.repeated,
            out_of_order: heard.out_of_order,
            cpu_seconds: None,
        }
    }
}

impl SubscribersBench {
    /// Why the run is a failure, if it is one.
    pub fn problem(&self) -> Option<String> {
        let missing: u64 = self.rounds.iter().map(|round| round.expected.saturating_sub(round.arrived)).sum();
        let late: u64 = self.rounds.iter().map(|round| round.out_of_order).sum();
        match (missing, late) {
            (0, 0) => None,
            (0, _) => Some(format!("{late} notifications came after later ones")),
            _ => Some(format!("{missing} notifications for the living did not arrive in time")),
        }
    }

    /// The table for people.
    pub fn render(&self, output: CommandOutput) -> String {
        let Self { living, refusing, silent, tenants, .. } = self;
        let rows = (1..).zip(&self.rounds).map(|(number, round): (u32, &SubscriberRound)| {
            vec![
                number.to_string(),
                format!("{} of {}", round.arrived, round.expected),
                format!("{:.0} / {:.0}", round.p50_ms, round.p95_ms),
                format!("{:.0}", round.last_ms),
                round.repeated.to_string(),
                round.cpu_seconds.map(|cpu| format!("{cpu:.2}")).unwrap_or_default(),
            ]
        });
        let heads = ["round", "told", "p50 / p95 (ms)", "last (ms)", "repeated", "CPU-seconds"];
        let table = output.table(&heads, rows);
        let mut text = format!(
            "{living} living webhooks, {refusing} that refuse, {silent} that never answer, of {tenants} tenants\n\n{table}"
        );
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
    fn half_are_dead_and_half_of_those_silent() {
        let count = |wanted| (0..100).filter(|number| kind(*number) == wanted).count();
        assert_eq!(
            [ReceiverKind::Living, ReceiverKind::Refusing, ReceiverKind::Silent].map(count),
            [50, 25, 25]
        );
    }

    #[test]
    fn the_time_of_a_call_counts_from_the_mail_of_its_own_tenant() {
        let start = std::time::Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let posted = [(100, start), (200, after(50))];
        let heard = HeardCalls { arrivals: vec![(99, after(60)), (100, after(60))], ..HeardCalls::default() };
        let round = SubscriberRound::of(&heard, &posted, 3);
        assert_eq!((round.p50_ms, round.last_ms), (10.0, 60.0));
        let found = SubscribersBench { rounds: vec![round], ..SubscribersBench::default() };
        assert!(found.problem().unwrap().contains("1 notifications"));
    }
}
