//! `postway bench`: drives the real path, HTTP in and SMTP out, and prints what was measured.
//!
//! On its own it starts a server of this binary in a fresh folder and a sink, so that one command on one machine
//! gives figures to compare; with `--url` it measures a running server. It counts loss and duplicates beside the
//! rates, because a rate without them says nothing. It is bounded in messages and in time, and leaves nothing
//! running; on a server given with `--url`, its accounts and messages (`bench-…`) stay. It fails (exit code 1) if a message is lost, sent twice without doubt, or not done in time.

mod audit;
mod connection;
mod load;
mod measure;
mod report;
mod server;
mod sink;
mod smtp_sink;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Session;
use crate::client::{Body, Client};
use crate::failure::Failure;
use connection::Connection;
use load::Plan;
use measure::{Meter, percentiles};
use report::{Idle, Queued, Report};
use server::Server;
use sink::Sink;
use smtp_sink::{Relay, SinkChoice};

/// An address to which no mail is ever sent: port 9 (discard) of this machine, where nobody listens.
const NOWHERE: (&str, u16) = ("127.0.0.1", 9);
const IDLE_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// How many messages
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    messages: u32,
    /// Bytes of text in each
    #[arg(long, value_name = "BYTES", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    size: u32,
    /// HTTP connections at the same time [default: 64, or 8 with --mode batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    concurrency: Option<u32>,
    /// One message a request, or many
    #[arg(long, value_enum, default_value_t = Mode::Single)]
    mode: Mode,
    /// Messages in one batch request
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1000))]
    batch_size: u32,
    /// SMTP connections that the account may open
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,
    /// Who takes the mail: auto (smtp-sink if there is one), smtp-sink, builtin (counts exactly), or HOST:PORT
    #[arg(long, value_name = "SINK", default_value = "auto")]
    sink: SinkChoice,
    /// Messages sent one at a time to measure latency without load; 0: none
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    idle_latency: u32,
    /// Messages put on an account that cannot send, before the rest: shows memory and speed with a backlog
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    queued: u32,
    /// Give up after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout_seconds: u64,
    /// Where to make the temporary data folder; a disk gives honest figures, memory does not
    #[arg(long, value_name = "FOLDER")]
    temp_dir: Option<PathBuf>,
    /// The database of the server that is started: an empty one, whose URL this is [default: a SQLite file]
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// The process of a running server, to measure its CPU time and memory
    #[arg(long, requires = "url")]
    pid: Option<u32>,
}

/// How messages are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// `POST /v1/messages`
    Single,
    /// `POST /v1/messages/batch`
    Batch,
}

pub async fn run(session: &Session, args: BenchArgs) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_secs(args.timeout_seconds);
    let server = match session.names_a_server() {
        true => Server::running(session.client()?, args.pid),
        false => Server::start(args.temp_dir.as_deref(), args.database.as_deref()).await?,
    };
    let report = Bench { args, client: &server.client, pid: server.pid, deadline }.run().await;
    let stopped = server.stop().await;
    let mut report = report?;
    report.warnings.extend(stopped?);
    let json = serde_json::to_value(&report).context("cannot write the report as JSON")?;
    session.output.show(&json, |output, _| report.render(output))?;
    match report.problem() {
        Some(problem) => Err(anyhow::anyhow!(problem).into()),
        None => Ok(()),
    }
}

struct Bench<'a> {
    args: BenchArgs,
    client: &'a Client,
    pid: Option<u32>,
    deadline: Instant,
}

impl Bench<'_> {
    async fn run(self) -> Result<Report, Failure> {
        let run = format!("bench-{:08x}", rand::random::<u32>());
        let queued = self.preload(&run).await?;
        let idle = self.idle(&run).await?;
        let mut report = self.measure(&run).await?;
        report.queued = queued;
        report.idle = idle;
        Ok(report)
    }

    /// The load itself: all messages in, all out, then the books are compared.
    async fn measure(&self, run: &str) -> Result<Report, Failure> {
        let relay = Relay::start(&self.args.sink).await?;
        let account = self.create_account(run, relay.host(), relay.port(), self.args.connections).await?;
        let baseline = audit::finished(self.client).await?;
        let before = Meter::read(self.client, self.pid).await?;
        let plan = self.plan(&account, run, self.args.messages, self.args.mode);
        let bar = progress(u64::from(self.args.messages), "accept");
        let started = Instant::now();
        let loaded = load::run(&plan, self.deadline, &bar).await?;
        bar.finish_and_clear();
        let bar = progress(loaded.accepted, "send");
        let done = audit::wait_until_finished(
            self.client,
            baseline + loaded.accepted,
            baseline,
            self.deadline,
            &bar,
        )
        .await?;
        let sending = started.elapsed();
        bar.finish_and_clear();
        let after = Meter::read(self.client, self.pid).await?;
        let books = audit::read(self.client, run).await?;
        let sink = relay.stop().await?;
        let mut report = Report::new(&self.args, sink.name.clone());
        report.set_load(loaded, !done);
        report.set_sent(&books, sending);
        report.set_cost(&before, &after);
        report.set_books(&books, &sink, &before, &after);
        Ok(report)
    }

    /// Puts messages on an account that cannot send, and looks at the server's memory.
    async fn preload(&self, run: &str) -> Result<Option<Queued>, Failure> {
        if self.args.queued == 0 {
            return Ok(None);
        }
        let run = format!("{run}-queued");
        let (host, port) = NOWHERE;
        let account = self.create_account(&run, host, port, 1).await?;
        let path = ["v1", "accounts", account.as_str(), "suspend"];
        // A server that cannot suspend an account yet keeps the messages waiting for a host that is not there.
        match self.client.call(Method::POST, &path, &[], Body::Empty).await {
            Ok(_) | Err(Failure::NotFound(_) | Failure::Refused(_)) => {}
            Err(failure) => return Err(failure),
        }
        let bar = progress(u64::from(self.args.queued), "queue");
        let plan = self.plan(&account, &run, self.args.queued, Mode::Batch);
        let loaded = load::run(&plan, self.deadline, &bar).await?;
        bar.finish_and_clear();
        let meter = Meter::read(self.client, self.pid).await?;
        Ok(Some(Queued { messages: loaded.accepted, resident_mib: meter.resident_mib }))
    }

    /// One message at a time, from the request to the sink's 250; always with our own sink, which knows when that was.
    async fn idle(&self, run: &str) -> Result<Option<Idle>, Failure> {
        if self.args.idle_latency == 0 {
            return Ok(None);
        }
        let run = format!("{run}-idle");
        let mut sink = Sink::start()?;
        let account = self.create_account(&run, "127.0.0.1", sink.address().port(), 4).await?;
        let plan = self.plan(&account, &run, self.args.idle_latency, Mode::Single);
        let mut connection = Connection::open(&plan.address).await.context("cannot connect to the server")?;
        let bar = progress(u64::from(self.args.idle_latency), "idle");
        let mut latencies = Vec::new();
        for number in 0..self.args.idle_latency {
            let started = std::time::Instant::now();
            let uid = connection.post_one(&plan, number).await?;
            let arrived =
                tokio::time::timeout(IDLE_WAIT_MAX, sink.arrival_of(uid)).await.with_context(|| {
                    format!("message {uid} did not reach the sink within {IDLE_WAIT_MAX:?}")
                })??;
            latencies.push(arrived.duration_since(started).as_micros() as u64);
            bar.inc(1);
        }
        bar.finish_and_clear();
        sink.stop()?;
        let (p50, p99) = percentiles(&mut latencies);
        Ok(Some(Idle { messages: self.args.idle_latency, p50_ms: p50 / 1000.0, p99_ms: p99 / 1000.0 }))
    }

    async fn create_account(
        &self,
        id: &str,
        host: &str,
        port: u16,
        connections: u32,
    ) -> Result<String, Failure> {
        let account = json!({
            "id": id, "kind": "smtp", "host": host, "port": port, "tls": "none", "max_connections": connections,
        });
        let created: Value =
            self.client.call(Method::POST, &["v1", "accounts"], &[], Body::Json(&account)).await?;
        Ok(created.get("id").and_then(Value::as_str).unwrap_or(id).to_owned())
    }

    fn plan(&self, account: &str, batch: &str, messages: u32, mode: Mode) -> Plan {
        let concurrency = match mode {
            Mode::Single => self.args.concurrency.unwrap_or(64),
            Mode::Batch => self.args.concurrency.unwrap_or(8),
        };
        let per_request = if mode == Mode::Single { 1 } else { self.args.batch_size };
        let shape = load::Shape { size: self.args.size, messages, per_request, concurrency, mode };
        Plan::new(self.client, account, batch, shape)
    }
}

/// A bar on standard error, drawn on a terminal only.
fn progress(length: u64, name: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length).with_prefix(name);
    match ProgressStyle::with_template("{prefix:>7} {bar:40} {human_pos}/{human_len} {per_sec} {elapsed}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
