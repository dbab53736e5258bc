//! Many webhooks of which half are dead: how soon the living are told.
//!
//! Of the dead, every other refuses connections, and the rest take them and never answer. In each round every tenant sends
//! one mail, and all its webhooks are to be told; in the first nobody is known yet, in the others the living have answered
//! before. Measured is the time from the request to the call. Fails if one of the living is not told.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::args::{BenchArgs, Mode};
use super::connection::Connection;
use super::load::Plan;
use super::measure::{Meter, percentile};
use super::receiver::{Heard, Receiver};
use super::server::{self, Node, Recipe, free_port};
use super::sink::Sink;
use super::webhook::{TOLD, create_webhook};
use super::{create_account, create_tenant, progress, run_name};
use crate::cli::client::Client;
use crate::cli::failure::Failure;
use crate::cli::output::Output;

/// As many webhooks as a tenant may have.
const PER_TENANT: u32 = 100;
/// Tenants whose webhooks are made at the same time.
const SEEDED_AT_ONCE: usize = 8;

/// What was found.
#[derive(Debug, Default, Serialize)]
pub struct Subscribers {
    living: u32,
    refusing: u32,
    silent: u32,
    tenants: u32,
    rounds: Vec<Round>,
    warnings: Vec<String>,
}

/// One mail of each tenant.
#[derive(Debug, Default, Serialize)]
struct Round {
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

/// What a webhook is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Living,
    Refusing,
    Silent,
}

/// Every other is dead, and of those every other refuses.
fn kind(number: u32) -> Kind {
    match number % 4 {
        0 | 2 => Kind::Living,
        1 => Kind::Refusing,
        _ => Kind::Silent,
    }
}

/// A tenant that sends.
struct Sender {
    client: Arc<Client>,
    account: String,
    webhooks: std::ops::Range<u32>,
}

/// Measures on a server of its own.
pub async fn run(args: &BenchArgs, recipe: Recipe, deadline: Instant) -> Result<Subscribers, Failure> {
    let nodes = recipe.start(1).await?;
    let receiver = Receiver::start()?;
    let found = measure(args, &recipe, &nodes, &receiver, deadline).await;
    receiver.stop()?;
    let stopped = server::stop(nodes).await;
    let mut found = found?;
    found.warnings.extend(stopped?);
    Ok(found)
}

async fn measure(
    args: &BenchArgs,
    recipe: &Recipe,
    nodes: &[Node],
    receiver: &Receiver,
    deadline: Instant,
) -> Result<Subscribers, Failure> {
    let run = run_name();
    let sink = Sink::start(Duration::ZERO)?;
    let mut silence = JoinSet::new();
    let silent = keep_silent(&mut silence).await?;
    let refusing = format!("http://127.0.0.1:{}/hook", free_port()?);
    let mut senders = Vec::new();
    for first in (0..args.subscribers).step_by(PER_TENANT as usize) {
        let client = create_tenant(recipe, &nodes[0], &format!("{run}-{first}")).await?;
        let target = ("127.0.0.1", sink.address().port());
        let account = create_account(&client, &run, target, 4, Value::Null).await?;
        let webhooks = first..(first + PER_TENANT).min(args.subscribers);
        senders.push(Sender { client: Arc::new(client), account, webhooks });
    }
    let bar = progress(u64::from(args.subscribers), "seed");
    let mut seeding = JoinSet::new();
    for sender in &senders {
        if seeding.len() >= SEEDED_AT_ONCE {
            joined(seeding.join_next().await)?;
        }
        let url = |number| match kind(number) {
            Kind::Living => receiver.url(number),
            Kind::Refusing => refusing.clone(),
            Kind::Silent => silent.clone(),
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
    let mut found = Subscribers {
        living: count(Kind::Living),
        refusing: count(Kind::Refusing),
        silent: count(Kind::Silent),
        tenants: senders.len() as u32,
        ..Subscribers::default()
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

fn joined(done: Option<Result<Result<(), Failure>, tokio::task::JoinError>>) -> Result<(), Failure> {
    match done {
        Some(done) => done.context("making webhooks ended badly")?,
        None => Ok(()),
    }
}

async fn round(
    args: &BenchArgs,
    nodes: &[Node],
    senders: &[Sender],
    receiver: &Receiver,
    (number, expected): (u32, u64),
    deadline: Instant,
) -> Result<Round, Failure> {
    let before = Meter::read(nodes).await?;
    let mut posted = Vec::with_capacity(senders.len());
    for sender in senders {
        let plan = Plan::new(&sender.client, &sender.account, "round", args.shape(1, Mode::Single));
        let mut connection = Connection::open(plan.address()).await?;
        posted.push((sender.webhooks.end, std::time::Instant::now()));
        connection.post_one(&plan, number).await?;
    }
    // The deadline is told by what is missing.
    let _ = timeout_at(deadline, receiver.wait_for(expected)).await;
    let after = Meter::read(nodes).await?;
    let cpu = before.cpu_seconds.zip(after.cpu_seconds).map(|(before, after)| after - before);
    Ok(Round { cpu_seconds: cpu, ..Round::of(&receiver.take(), &posted, expected) })
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

impl Round {
    /// `posted` says for each tenant where its webhooks' numbers end, and when its mail was posted.
    fn of(heard: &Heard, posted: &[(u32, std::time::Instant)], expected: u64) -> Self {
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

impl Subscribers {
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
    pub fn render(&self, output: Output) -> String {
        let Self { living, refusing, silent, tenants, .. } = self;
        let rows = (1..).zip(&self.rounds).map(|(number, round): (u32, &Round)| {
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
        assert_eq!([Kind::Living, Kind::Refusing, Kind::Silent].map(count), [50, 25, 25]);
    }

    #[test]
    fn the_time_of_a_call_counts_from_the_mail_of_its_own_tenant() {
        let start = std::time::Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let posted = [(100, start), (200, after(50))];
        let heard = Heard { arrivals: vec![(99, after(60)), (100, after(60))], ..Heard::default() };
        let round = Round::of(&heard, &posted, 3);
        assert_eq!((round.p50_ms, round.last_ms), (10.0, 60.0));
        let found = Subscribers { rounds: vec![round], ..Subscribers::default() };
        assert!(found.problem().unwrap().contains("1 notifications"));
    }
}
