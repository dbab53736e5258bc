//! The arguments of `postway bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::load::LoadShape;
use super::smtp_sink::SinkChoice;
use super::webhook::TOLD;
use crate::cli::failure::CommandFailure;

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// How many messages
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub messages: u32,
    /// Bytes of text in each
    #[arg(long, value_name = "BYTES", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    pub size: u32,
    /// HTTP connections at the same time [default: 64, or 8 with --mode batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: Option<u32>,
    /// One message a request, or many
    #[arg(long, value_enum, default_value_t = BenchMode::Single)]
    pub mode: BenchMode,
    /// Messages in one batch request
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub batch_size: u32,
    /// SMTP connections that the account may open
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub connections: u32,
    /// The SMTP server that takes the mail: auto (smtp-sink if there is one), smtp-sink, builtin (counts
    /// exactly), or HOST:PORT
    #[arg(long, value_name = "SINK", default_value = "auto")]
    pub sink: SinkChoice,
    /// Messages sent one at a time to measure latency without load; 0: none
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub idle_latency: u32,
    /// Messages queued on an account that cannot send, before the others: shows memory and speed with a
    /// backlog
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub queued: u32,
    /// Give up after this time
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout_seconds: u64,
    /// Where to make the temporary data folder; a disk gives honest figures, memory does not
    #[arg(long, value_name = "FOLDER")]
    pub temp_dir: Option<PathBuf>,
    /// The database of the server that is started: an empty one, whose URL this is [default: a SQLite file]
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// Servers that share the database; with more than one, the same load also goes through a single one, to
    /// compare
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16), conflicts_with_all = ["fairness", "limits"])]
    pub nodes: u32,
    /// Measure what one tenant's backlog costs another: nine mails in ten are a backlog, the tenth a trickle
    /// beside it
    #[arg(long, conflicts_with = "limits")]
    pub fairness: bool,
    /// Measure what limits and turns among tenants cost, against a plain account
    #[arg(long)]
    pub limits: bool,
    /// Measure what one webhook costs and how fast it is notified: with and without it, in turns
    #[arg(long, conflicts_with_all = ["fairness", "limits", "nodes"])]
    pub webhook: bool,
    /// Measure how soon N webhooks are notified of which half are dead, in tenants of 100
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=20_000), conflicts_with_all = ["fairness", "limits", "nodes", "webhook"])]
    pub subscribers: u32,
    /// Measure how soon rows of an outbox are accepted, in this PostgreSQL; the outbox is installed there,
    /// and its rows are removed again
    #[arg(long, value_name = "URL", conflicts_with_all = ["fairness", "limits", "nodes", "webhook", "subscribers"])]
    pub outbox: Option<String>,
    /// Measure how fast mail is accepted over SMTP, against HTTP: in turns, over 20 connections or
    /// --concurrency
    #[arg(long, conflicts_with_all = ["fairness", "limits", "nodes", "webhook", "subscribers", "outbox"])]
    pub smtp: bool,
    /// Measure what the compatibility APIs cost compared with our own route: in turns, over 20 connections or
    /// --concurrency
    #[arg(long, conflicts_with_all = ["fairness", "limits", "nodes", "webhook", "subscribers", "outbox", "smtp"])]
    pub doors: bool,
    /// Measure the calls of the page with N messages stored [default: a million]; may need --timeout-seconds
    /// 1800
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1000000", value_parser = clap::value_parser!(u32).range(1_000..=10_000_000), conflicts_with_all = ["fairness", "limits", "nodes", "webhook", "subscribers", "outbox", "smtp", "doors"])]
    pub page: Option<u32>,
    /// Kill the server with SIGKILL N times under load, and compare the records of clients, sink and store;
    /// also with --nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with_all = ["fairness", "limits", "webhook", "subscribers", "outbox", "smtp", "doors", "page"])]
    pub kills: Option<u32>,
    /// With --webhook and --subscribers: the events that webhooks are notified of; * is all
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "*")]
    pub events: Vec<String>,
    /// How often a comparison (--nodes, --limits, --webhook, --smtp, --doors) is repeated, or how many mails
    /// --subscribers are notified of
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// With --fairness and --kills: how long the sink takes for a mail
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub sink_delay_ms: u64,
    /// With --fairness: the most messages the server sends at once, few enough that tenants compete
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub in_flight: u32,
    /// With --fairness: mails a second of the tenant with the trickle
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pace: u32,
    /// The process of a running server, to measure its CPU time and memory
    #[arg(long, requires = "url")]
    pub pid: Option<u32>,
}

/// How messages are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchMode {
    /// `POST /v1/messages`
    Single,
    /// `POST /v1/messages/batch`
    Batch,
}

impl BenchArgs {
    /// Refuses combinations of flags that clap alone does not refuse.
    pub fn check(&self, names_a_server: bool) -> Result<(), CommandFailure> {
        let tells = self.webhook || self.subscribers > 0;
        let takes = self.outbox.is_some() || self.page.is_some() || self.doors || self.kills.is_some();
        if (self.nodes > 1 || self.fairness || self.limits || self.smtp || tells || takes) && names_a_server {
            let text = "--nodes, --fairness, --limits, --webhook, --subscribers, --smtp, --doors, --page, --kills and --outbox start \
                        their own servers; leave --url and POSTWAY_URL out";
            return Err(CommandFailure::Usage(text.to_owned()));
        }
        if tells && !TOLD.iter().any(|name| self.is_told(name)) {
            let text = format!("a bench's mail is accepted and sent: give --events {} or *", TOLD.join(", "));
            return Err(CommandFailure::Usage(text));
        }
        let shared = self.database.as_deref().is_some_and(|url| !url.starts_with("sqlite:"));
        if self.nodes > 1 && !shared {
            let text = "SQLite serves one process; for --nodes give --database postgres://… or mysql://…";
            return Err(CommandFailure::Usage(text.to_owned()));
        }
        Ok(())
    }

    /// Whether the webhooks are notified of this event.
    pub fn is_told(&self, name: &str) -> bool {
        self.events.iter().any(|event| event == "*" || event == name)
    }

    /// The shape of a load of `messages` messages.
    pub fn shape(&self, messages: u32, mode: BenchMode) -> LoadShape {
        let (per_request, connections) = match mode {
            BenchMode::Single => (1, 64),
            BenchMode::Batch => (self.batch_size, 8),
        };
        let concurrency = self.concurrency.unwrap_or(connections);
        LoadShape { size: self.size, messages, per_request, concurrency, mode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct BenchCommandLine {
        #[command(flatten)]
        bench: BenchArgs,
        #[arg(long)]
        url: Option<String>,
    }

    fn check(line: &str) -> Result<(), CommandFailure> {
        let line = BenchCommandLine::try_parse_from(line.split(' ')).unwrap();
        line.bench.check(line.url.is_some())
    }

    #[test]
    fn many_nodes_need_a_database_that_they_can_share() {
        assert!(check("bench --nodes 2 --database postgres://localhost/x").is_ok());
        for line in ["bench --nodes 2", "bench --nodes 2 --database sqlite:///tmp/x.db"] {
            assert!(
                matches!(check(line), Err(CommandFailure::Usage(text)) if text.contains("SQLite")),
                "{line}"
            );
        }
    }

    #[test]
    fn a_comparison_is_refused_on_a_running_server() {
        assert!(check("bench --url http://x").is_ok());
        let own = [
            "--limits",
            "--fairness",
            "--webhook",
            "--subscribers 10",
            "--smtp",
            "--doors",
            "--kills 3",
            "--nodes 2 --database mysql://localhost/x",
        ];
        for what in own {
            let line = format!("bench --url http://x {what}");
            assert!(matches!(check(&line), Err(CommandFailure::Usage(_))), "{line}");
        }
    }

    #[test]
    fn one_thing_is_measured_at_a_time() {
        let lines = [
            "bench --limits --fairness",
            "bench --nodes 2 --limits",
            "bench --fairness --nodes 2",
            "bench --webhook --limits",
            "bench --subscribers 10 --webhook",
            "bench --smtp --limits",
            "bench --kills 3 --page",
        ];
        for line in lines {
            assert!(BenchCommandLine::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn a_webhook_that_nothing_would_be_told_of_is_refused() {
        assert!(check("bench --webhook").is_ok());
        assert!(check("bench --webhook --events email.failed,email.sent").is_ok());
        let refused = check("bench --webhook --events email.bounced");
        assert!(matches!(refused, Err(CommandFailure::Usage(text)) if text.contains("email.sent")));
    }
}
