//! One load through one set of servers, and its books.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::args::{BenchArgs, Mode};
use super::audit::{self, Books};
use super::connection::Connection;
use super::load::{self, Loaded, Plan};
use super::measure::{Meter, percentile};
use super::report::{Idle, Queued, Report};
use super::server::Node;
use super::sink::Sink;
use super::smtp_sink::Relay;
use super::{create_account, progress, run_name};
use crate::cli::client::{Body, Client};
use crate::cli::failure::Failure;

/// An address to which no mail is ever sent: port 9 (discard) of this machine, where nobody listens.
pub const NOWHERE: (&str, u16) = ("127.0.0.1", 9);
const IDLE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A measurement on servers that run.
pub struct Trial<'a> {
    pub args: &'a BenchArgs,
    pub nodes: &'a [Node],
    pub deadline: Instant,
}

/// Where a part of the load goes: a server, a tenant, an account.
pub struct Way<'a> {
    pub client: &'a Client,
    pub account: String,
}

/// A load that went through.
pub struct Sent {
    /// As the clients saw it.
    pub loaded: Loaded,
    /// Whether all of it came to an end in time.
    pub done: bool,
    /// From the first request until the last message came to its end.
    pub elapsed: Duration,
    /// The servers' readings before it.
    pub before: Meter,
    /// And after.
    pub after: Meter,
}

impl Trial<'_> {
    /// A backlog if one is wanted, the latency without load, then the load.
    pub async fn run(&self) -> Result<Report, Failure> {
        let run = run_name();
        let queued = self.preload(&run).await?;
        let idle = self.idle(&run).await?;
        let mut report = self.plain(&run).await?;
        (report.queued, report.idle) = (queued, idle);
        Ok(report)
    }

    /// The load through one account without limits, spread over the servers.
    pub async fn plain(&self, run: &str) -> Result<Report, Failure> {
        let relay = Relay::start(&self.args.sink).await?;
        let target = (relay.host(), relay.port());
        let account = create_account(self.client(), run, target, self.args.connections, Value::Null).await?;
        let ways: Vec<Way<'_>> =
            self.nodes.iter().map(|node| Way { client: &node.client, account: account.clone() }).collect();
        self.measure(run, &ways, &[self.client()], relay).await
    }

    /// The load itself, then the books of each tenant are compared with the sink's.
    pub async fn measure(
        &self,
        run: &str,
        ways: &[Way<'_>],
        tenants: &[&Client],
        relay: Relay,
    ) -> Result<Report, Failure> {
        let sent = self.send(run, ways, tenants).await?;
        self.audit(run, tenants, relay, sent).await
    }

    /// All messages in, all out.
    pub async fn send(&self, run: &str, ways: &[Way<'_>], tenants: &[&Client]) -> Result<Sent, Failure> {
        let baseline = audit::finished(tenants).await?;
        let before = Meter::read(self.nodes).await?;
        let shape = self.args.shape(self.args.messages, self.args.mode);
        let plans: Vec<Plan> =
            ways.iter().map(|way| Plan::new(way.client, &way.account, run, shape)).collect();
        let bar = progress(u64::from(self.args.messages), "accept");
        let started = Instant::now();
        let loaded = load::run(plans, self.deadline, &bar).await?;
        bar.finish_and_clear();
        let bar = progress(loaded.accepted, "send");
        let wanted = baseline + loaded.accepted;
        let done = audit::wait_until_finished(tenants, wanted, baseline, self.deadline, &bar).await?;
        let elapsed = started.elapsed();
        bar.finish_and_clear();
        let after = Meter::read(self.nodes).await?;
        Ok(Sent { loaded, done, elapsed, before, after })
    }

    /// What became of a load, by the books of each tenant and by the sink's.
    pub async fn audit(
        &self,
        run: &str,
        tenants: &[&Client],
        relay: Relay,
        sent: Sent,
    ) -> Result<Report, Failure> {
        let Sent { loaded, done, elapsed, before, after } = sent;
        let mut books = Books::default();
        for tenant in tenants {
            audit::read(tenant, run, &mut books).await?;
        }
        let sink = relay.stop().await?;
        let mut report = Report::new(self.args, self.nodes.len(), sink.name.clone());
        report.set_load(loaded, !done);
        report.set_sent(&books, elapsed);
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
        let account = create_account(self.client(), &run, NOWHERE, 1, Value::Null).await?;
        let path = ["v1", "accounts", account.as_str(), "suspend"];
        self.client().call(Method::POST, &path, &[], Body::Empty).await?;
        let bar = progress(u64::from(self.args.queued), "queue");
        let shape = self.args.shape(self.args.queued, Mode::Batch);
        let plan = Plan::new(self.client(), &account, &run, shape);
        let loaded = load::run(vec![plan], self.deadline, &bar).await?;
        bar.finish_and_clear();
        let meter = Meter::read(self.nodes).await?;
        Ok(Some(Queued { messages: loaded.accepted, resident_mib: meter.resident_mib }))
    }

    /// One message at a time, from the request to the sink's 250; always with our own sink, which knows when that was.
    async fn idle(&self, run: &str) -> Result<Option<Idle>, Failure> {
        let messages = self.args.idle_latency;
        if messages == 0 {
            return Ok(None);
        }
        let run = format!("{run}-idle");
        let mut sink = Sink::start(Duration::ZERO)?;
        let target = ("127.0.0.1", sink.address().port());
        let account = create_account(self.client(), &run, target, 4, Value::Null).await?;
        let plan = Plan::new(self.client(), &account, &run, self.args.shape(messages, Mode::Single));
        let mut connection =
            Connection::open(plan.address()).await.context("cannot connect to the server")?;
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
        Ok(Some(Idle { messages, p50_ms: at(0.50), p99_ms: at(0.99) }))
    }

    /// The first server, which speaks for all.
    fn client(&self) -> &Client {
        &self.nodes[0].client
    }
}
