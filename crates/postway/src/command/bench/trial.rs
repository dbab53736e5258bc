//! One load through one set of servers, and its audit.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::args::{BenchArgs, BenchMode};
use super::audit::{self, StoreAudit};
use super::connection::BenchConnection;
use super::load::{self, LoadPlan, LoadResult};
use super::measure::{ResourceMeter, percentile};
use super::report::{BenchReport, IdleLatency, QueuedMemory};
use super::server::BenchServer;
use super::sink::BuiltinSink;
use super::smtp_sink::BenchRelay;
use super::{create_account, progress, run_name};
use crate::cli::client::{ApiClient, RequestBody};
use crate::cli::failure::CommandFailure;

/// An address to which no mail is ever sent: port 9 (discard) of this machine, where nothing listens.
pub const NOWHERE: (&str, u16) = ("127.0.0.1", 9);
const IDLE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A measurement on servers that run.
pub struct BenchTrial<'a> {
    pub args: &'a BenchArgs,
    pub nodes: &'a [BenchServer],
    pub deadline: Instant,
}

/// Where a part of the load goes: a server, a tenant, an account.
pub struct LoadTarget<'a> {
    pub client: &'a ApiClient,
    pub account: String,
}

/// A load that went through.
pub struct FinishedLoad {
    /// As the clients saw it.
    pub loaded: LoadResult,
    /// Whether all of it came to an end in time.
    pub done: bool,
    /// From the first request until the last message came to its end.
    pub elapsed: Duration,
    /// The servers' readings before it.
    pub before: ResourceMeter,
    /// The servers' readings after it.
    pub after: ResourceMeter,
}

impl BenchTrial<'_> {
    /// A backlog if one is wanted, the latency without load, then the load.
    pub async fn run(&self) -> Result<BenchReport, CommandFailure> {
        let run = run_name();
        let queued = self.preload(&run).await?;
        let idle = self.idle(&run).await?;
        let mut report = self.plain(&run).await?;
        (report.queued, report.idle) = (queued, idle);
        Ok(report)
    }

    /// The load through one account without limits, spread over the servers.
    pub async fn plain(&self, run: &str) -> Result<BenchReport, CommandFailure> {
        let relay = BenchRelay::start(&self.args.sink).await?;
        let target = (relay.host(), relay.port());
        let account = create_account(self.client(), run, target, self.args.connections, Value::Null).await?;
        let ways: Vec<LoadTarget<'_>> = self
            .nodes
            .iter()
            .map(|node| LoadTarget { client: &node.client, account: account.clone() })
            .collect();
        self.measure(run, &ways, &[self.client()], relay).await
    }

    /// The load itself, then the store's records of each tenant are compared with the sink's.
    pub async fn measure(
        &self,
        run: &str,
        ways: &[LoadTarget<'_>],
        tenants: &[&ApiClient],
        relay: BenchRelay,
    ) -> Result<BenchReport, CommandFailure> {
        let sent = self.send(run, ways, tenants).await?;
        self.audit(run, tenants, relay, sent).await
    }

    /// All messages in, all out.
    pub async fn send(
        &self,
        run: &str,
        ways: &[LoadTarget<'_>],
        tenants: &[&ApiClient],
    ) -> Result<FinishedLoad, CommandFailure> {
        let baseline = audit::finished(tenants).await?;
        let before = ResourceMeter::read(self.nodes).await?;
        let shape = self.args.shape(self.args.messages, self.args.mode);
        let plans: Vec<LoadPlan> =
            ways.iter().map(|way| LoadPlan::new(way.client, &way.account, run, shape)).collect();
        let bar = progress(u64::from(self.args.messages), "accept");
        let started = Instant::now();
        let loaded = load::run(plans, self.deadline, &bar).await?;
        bar.finish_and_clear();
        let bar = progress(loaded.accepted, "send");
        let wanted = baseline + loaded.accepted;
        let done = audit::wait_until_finished(tenants, wanted, baseline, self.deadline, &bar).await?;
        let elapsed = started.elapsed();
        bar.finish_and_clear();
        let after = ResourceMeter::read(self.nodes).await?;
        Ok(FinishedLoad { loaded, done, elapsed, before, after })
    }

    /// The result of a load, by the store's records of each tenant and by the sink's.
    pub async fn audit(
        &self,
        run: &str,
        tenants: &[&ApiClient],
        relay: BenchRelay,
        sent: FinishedLoad,
    ) -> Result<BenchReport, CommandFailure> {
        let FinishedLoad { loaded, done, elapsed, before, after } = sent;
        let mut books = StoreAudit::default();
        for tenant in tenants {
            audit::read(tenant, run, &mut books).await?;
        }
        let sink = relay.stop().await?;
        let mut report = BenchReport::new(self.args, self.nodes.len(), sink.name.clone());
        report.set_load(loaded, !done);
        report.set_sent(&books, elapsed);
        report.set_cost(&before, &after);
        report.set_books(&books, &sink, &before, &after);
        Ok(report)
    }

    /// Puts messages on an account that cannot send, and looks at the server's memory.
    async fn preload(&self, run: &str) -> Result<Option<QueuedMemory>, CommandFailure> {
        if self.args.queued == 0 {
            return Ok(None);
        }
        let run = format!("{run}-queued");
        let account = create_account(self.client(), &run, NOWHERE, 1, Value::Null).await?;
        let path = ["v1", "accounts", account.as_str(), "suspend"];
        self.client().call(Method::POST, &path, &[], RequestBody::Empty).await?;
        let bar = progress(u64::from(self.args.queued), "queue");
        let shape = self.args.shape(self.args.queued, BenchMode::Batch);
        let plan = LoadPlan::new(self.client(), &account, &run, shape);
        let loaded = load::run(vec![plan], self.deadline, &bar).await?;
        bar.finish_and_clear();
        let meter = ResourceMeter::read(self.nodes).await?;
        Ok(Some(QueuedMemory { messages: loaded.accepted, resident_mib: meter.resident_mib }))
    }

    /// One message at a time, from the request to the sink's 250; always with our own sink, which knows when
    /// that was.
    async fn idle(&self, run: &str) -> Result<Option<IdleLatency>, CommandFailure> {
        let messages = self.args.idle_latency;
        if messages == 0 {
            return Ok(None);
        }
        let run = format!("{run}-idle");
        let mut sink = BuiltinSink::start(Duration::ZERO)?;
        let target = ("127.0.0.1", sink.address().port());
        let account = create_account(self.client(), &run, target, 4, Value::Null).await?;
        let plan = LoadPlan::new(self.client(), &account, &run, self.args.shape(messages, BenchMode::Single));
        let mut connection =
            BenchConnection::open(plan.address()).await.context("cannot connect to the server")?;
        let bar = progress(u64::from(messages), "idle");
        let mut latencies = Vec::new();
        for number in 0..messages {
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
        let mut at = |share| percentile(&mut latencies, share) / 1000.0;
        Ok(Some(IdleLatency { messages, p50_ms: at(0.50), p99_ms: at(0.99) }))
    }

    /// The first server, which speaks for all.
    fn client(&self) -> &ApiClient {
        &self.nodes[0].client
    }
}
